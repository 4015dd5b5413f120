//! What is measured: programs that listen, say where on their standard output,
//! and take webhooks.
//!
//! To add one: a function that returns a [`Subject`], and its line in [`all`].

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::delivery::{INTERNAL_TOKEN, STRIPE_SECRET};
use super::disk::Speed;

/// How long a subject may take until it listens.
const START: Duration = Duration::from_secs(30);

/// Numbers the folders of all starts.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// The line that says where a subject listens starts or continues with this.
const LISTENING: &str = "listening on http://";

/// Name of the subject all others are put in relation to.
pub(crate) const BARE: &str = "bare";

/// Name of the receiver a good team writes first.
pub(crate) const NAIVE: &str = "naive";

/// A program under measurement.
pub(crate) struct Subject {
    /// Name in tables and on the command line.
    pub(crate) name: &'static str,
    /// Cargo package whose binary of the same name is built in release.
    pub(crate) package: &'static str,
    /// Prepares a fresh folder (configuration, keys) and says how to start.
    pub(crate) launch: fn(&Path) -> Result<Launch>,
    /// Whether its answers' `status` tells what became of the event.
    pub(crate) answers: Answers,
}

/// What an answer can be checked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The same to everything.
    Fixed,
    /// `status` is `processed`, `duplicate_reused` or `recorded`.
    ByEvent,
}

/// Command line and environment of a subject in its folder.
#[derive(Default)]
pub(crate) struct Launch {
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(&'static str, OsString)>,
}

/// Every subject, in the order of the tables.
pub(crate) fn all() -> Vec<Subject> {
    vec![bare(), naive(), onceseal(), buffered()]
}

fn bare() -> Subject {
    let launch = |_: &Path| Ok(Launch { args: args(["--listen", "127.0.0.1:0"]), env: Vec::new() });
    Subject { name: BARE, package: "bench-bare", launch, answers: Answers::Fixed }
}

fn naive() -> Subject {
    let launch = |folder: &Path| {
        let mut args = args(["--listen", "127.0.0.1:0", "--database"]);
        args.push(folder.join("naive.db").into_os_string());
        let env = vec![
            ("NAIVE_STRIPE_SECRET", STRIPE_SECRET.into()),
            ("NAIVE_INTERNAL_TOKEN", INTERNAL_TOKEN.into()),
        ];
        Ok(Launch { args, env })
    };
    Subject { name: NAIVE, package: "bench-naive", launch, answers: Answers::ByEvent }
}

fn onceseal() -> Subject {
    let launch = |folder: &Path| configured(folder, "");
    Subject { name: "onceseal", package: "onceseal", launch, answers: Answers::ByEvent }
}

/// Repeats answered from memory: an option, off by default.
fn buffered() -> Subject {
    let launch = |folder: &Path| configured(folder, "[arrivals]\nmode = \"buffered\"\n");
    Subject { name: "buffered", package: "onceseal", launch, answers: Answers::ByEvent }
}

/// The product with its defaults, but for where things are and `more`, which stands behind the first line
/// of the section `storage`.
pub(crate) fn configured(folder: &Path, more: &str) -> Result<Launch> {
    let file = folder.join("onceseal.toml");
    let text = format!(
        r#"[server]
listen = "127.0.0.1:0"
[storage]
folder = "{}"
{more}[sources.stripe]
kind = "stripe"
secrets = [{{ env = "BENCH_STRIPE_SECRET" }}]
[sources.internal]
kind = "internal"
secrets = [{{ env = "BENCH_INTERNAL_TOKEN" }}]
"#,
        folder.join("data").display()
    );
    fs::write(&file, text)?;
    let mut args = args(["serve", "--config"]);
    args.push(file.into_os_string());
    let env =
        vec![("BENCH_STRIPE_SECRET", STRIPE_SECRET.into()), ("BENCH_INTERNAL_TOKEN", INTERNAL_TOKEN.into())];
    Ok(Launch { args, env })
}

fn args<const N: usize>(texts: [&str; N]) -> Vec<OsString> {
    texts.map(OsString::from).to_vec()
}

/// Builds the subjects' binaries in release.
///
/// # Errors
/// Cargo is missing or a build failed.
pub(crate) fn build(subjects: &[Subject]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let packages: std::collections::BTreeSet<_> = subjects.iter().map(|subject| subject.package).collect();
    // One by one: together, cargo would unite the features of their dependencies and build them anew.
    for package in packages {
        let mut command = Command::new(&cargo);
        command.args(["build", "--quiet", "--release", "--package", package]).current_dir(super::root());
        let status = command.status().context("cargo can't be started; run it through cargo xtask")?;
        ensure!(status.success(), "{package} doesn't build, see cargo's messages above");
    }
    Ok(())
}

/// A started subject; ends when dropped.
pub(crate) struct Running {
    child: Child,
    folder: PathBuf,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Subject {
    /// Starts the subject in a fresh folder on the disk of the given speed and
    /// waits until it listens.
    ///
    /// # Errors
    /// It ends early or doesn't say in time where it listens; the message has
    /// the end of its standard error.
    pub(crate) fn start(&self, speed: Speed) -> Result<Running> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = super::scratch_folder()?.join(format!("{}.{}.{number}", self.name, std::process::id()));
        fs::create_dir(&folder)?;
        let launch = (self.launch)(&folder)?;
        let mut child = Command::new(super::release_folder()?.join(self.package))
            .args(launch.args)
            .envs(launch.env)
            .envs(speed.environment()?)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join("stderr"))?)
            .spawn()
            .with_context(|| format!("{} can't be started; build it first", self.name))?;
        let stdout = child.stdout.take();
        // From here on the drop of `running` ends the child, whatever happens.
        let mut running = Running { child, folder, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        match stdout.and_then(listening) {
            Some(address) => running.address = address,
            None => {
                bail!("{} doesn't say where it listens; its last words: {}", self.name, running.last_words())
            }
        }
        Ok(running)
    }
}

/// The address from the subject's output, which is read to its end so that the
/// subject never waits for a reader.
fn listening(stdout: ChildStdout) -> Option<SocketAddr> {
    let (found, address) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(address) = address_in(&line) {
                // Nobody waits any more when a second line says it again.
                let _ = found.send(address);
            }
        }
    });
    address.recv_timeout(START).ok()
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(LISTENING)?;
    let end = rest.find(|it: char| it.is_whitespace() || it == '/' || it == '"').unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// What a subject took from the machine.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Resident memory, in KiB.
    pub(crate) resident: u64,
    /// The most it ever was since the start, in KiB.
    pub(crate) peak: u64,
    /// Processor time since the start, user and system.
    pub(crate) processor: Duration,
}

impl Running {
    /// What the subject takes now, from `/proc`.
    ///
    /// # Errors
    /// It ended, or the system has no `/proc`.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(folder.join("status")).context("the subject is gone")?;
        let stat = fs::read_to_string(folder.join("stat")).context("the subject is gone")?;
        let size = |name| kib_of(&status, name).with_context(|| format!("/proc has no {name}"));
        let processor = processor_time(&stat).context("/proc has no processor time")?;
        Ok(Usage { resident: size("VmRSS:")?, peak: size("VmHWM:")?, processor })
    }

    /// The end of its standard error.
    fn last_words(&self) -> String {
        let text = fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

fn kib_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// User and system time, fields 14 and 15 of `/proc/PID/stat` (proc(5)), in
/// ticks of 10 ms, which is what Linux tells programs on every platform here.
fn processor_time(stat: &str) -> Option<Duration> {
    // The name, field 2, may hold blanks; it ends at the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks()? + ticks()?) * 10))
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself. Its folder stays until the end of all runs: a file system looks
        // at every inode that was freed a moment ago, and would do so in the next subject's time.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_plain_and_in_logged_lines() {
        let expected = "127.0.0.1:8080".parse().ok();
        assert_eq!(address_in("listening on http://127.0.0.1:8080"), expected);
        assert_eq!(address_in(r#"{"message":"listening on http://127.0.0.1:8080"}"#), expected);
        assert_eq!(address_in("ready: listening on http://127.0.0.1:8080/ for webhooks"), expected);
        assert_eq!(address_in("listening on port 8080"), None);
    }

    #[test]
    fn usage_is_read_from_what_the_kernel_prints() {
        assert_eq!(kib_of("Name:\tx\nVmHWM:\t    5120 kB\nVmRSS:\t 4096 kB\n", "VmRSS:"), Some(4096));
        let stat = "17 (a b) c) S 1 17 17 0 -1 4194304 90 0 0 0 12 3 0 0 20 0 1 0 100 1 1";
        assert_eq!(processor_time(stat), Some(Duration::from_millis(150)));
    }
}
