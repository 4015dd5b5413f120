//! A started server: its log, its end by signal, its end with all its children at once, as when the
//! machine under it fails. Not here: what the server is.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::memory::Left;

/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(5);
/// How long the kernel may take to end a program that was killed.
const KILLED_WITHIN: Duration = Duration::from_secs(20);

/// A started server; killed with all its children when dropped.
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Starts `command`, with both its outputs appended to `log`.
    ///
    /// # Errors
    /// It can't be started.
    pub(super) fn spawn(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let out = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        Ok(Self { child: spawn_for_good(command).context("setpriv (package util-linux) can't be started")? })
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal; nothing happens when it has ended.
    ///
    /// # Errors
    /// We may not.
    pub(super) fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if self.has_ended()? {
            return Ok(());
        }
        Ok(kill(self.pid()?, signal)?)
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits for its end; `None` when it lives longer than `patience`.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn ended_within(&mut self, patience: Duration) -> anyhow::Result<Option<ExitStatus>> {
        wait(patience, || Ok(self.has_ended()?))?;
        Ok(self.child.try_wait()?)
    }

    /// Ends it and all its children by `SIGKILL`, and waits until none is left. Each backend of PostgreSQL
    /// leads a session of its own, so a signal to the group would not reach them.
    ///
    /// # Errors
    /// Something lives on.
    pub(super) fn kill_all(&mut self) -> anyhow::Result<Left> {
        if self.has_ended()? {
            return Ok(Left::default());
        }
        // Stopped, it makes no more children while they are counted.
        let id = self.pid()?;
        kill(id, Signal::SIGSTOP)?;
        wait(KILLED_WITHIN, || Ok(stat(id.as_raw()).is_none_or(|(state, _)| "TZ".contains(state))))?;
        let children = children(id.as_raw());
        let left = Left::of(&[&[id.as_raw()], children.as_slice()].concat());
        self.child.kill()?;
        for child in &children {
            match kill(Pid::from_raw(*child), Signal::SIGKILL) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.child.wait()?;
        let gone = |child: &i32| stat(*child).is_none_or(|(state, _)| state == 'Z');
        let all = wait(KILLED_WITHIN, || Ok(children.iter().all(gone)))?;
        ensure!(all, "a child of program {id} lives {KILLED_WITHIN:?} after SIGKILL");
        Ok(left)
    }

    fn pid(&self) -> anyhow::Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.child.id())?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever cares about the outcome has ended it before.
        if let Ok(mut left) = self.kill_all() {
            left.remove();
        }
    }
}

/// Looks until `seen` says yes, at most for `patience`; whether it did.
///
/// # Errors
/// The first of `seen`.
pub(super) fn wait(
    patience: Duration,
    mut seen: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    let since = Instant::now();
    while !seen()? {
        if since.elapsed() >= patience {
            return Ok(false);
        }
        // Nothing here can be waited for with a limit; the loop ends with the sight or the patience.
        std::thread::park_timeout(LOOK);
    }
    Ok(true)
}

/// The end of a log, in one line.
pub(super) fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(8).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

/// Spawns on a thread that never ends. The kernel's parent-death signal follows the *thread* that spawned:
/// from a test's thread, a server would die before the value that stands for it.
fn spawn_for_good(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static SPAWNER: LazyLock<Mutex<mpsc::Sender<Order>>> = LazyLock::new(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in inbox {
                // Nobody waits any more: then the child's value is dropped, and nobody ever could.
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (answer, told) = mpsc::channel();
    let orders = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    orders.send((command, answer)).map_err(io::Error::other)?;
    told.recv().map_err(io::Error::other)?
}

/// State letter and parent of a program; `None` when it is gone.
pub(super) fn stat(id: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Ids of the programs that `parent` started and that still run.
pub(super) fn children(parent: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .filter(|id| stat(*id).is_some_and(|(_, its)| its == parent))
        .collect()
}
