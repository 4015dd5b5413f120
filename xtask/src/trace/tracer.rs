//! The tracing thread: takes every stop, lets one point at a time through, numbers it, kills at
//! the planned one. Not here: what a call means ([`super::effects`]) and what the caller's side
//! looks like ([`super`]).
//!
//! Points are held to one in flight: while a thread is inside one, every other thread that
//! arrives at one waits at its entry. So the numbers are a true order of effects, and at the
//! kill all earlier points have returned.

use std::collections::{HashMap, VecDeque};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::calls::{Buffer, Call, Kind, decode};
use super::effects::{Begun, Scene};
use super::plan::{Arm, Plan, Seen, StopWhen};
use super::point::{Effect, Origin, Point, Target};
use super::shared::{Phase, Shared};
use super::sys::{self, Stop};
use super::view::Thread;
use super::{Recording, sockets::Sockets};

/// A syscall stop carries this signal, thanks to `PTRACE_O_TRACESYSGOOD`.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// One thread of the tracee.
#[derive(Debug, Default)]
struct Traced {
    /// Its first stop (a SIGSTOP of the kernel's making) has been seen.
    met: bool,
    /// The call of interest it is in or waits before.
    call: Option<Call>,
}

/// All state of one run.
pub(super) struct Tracer {
    scene: Scene,
    arm: Arm,
    kill_at: Option<u64>,
    stop_when: Option<StopWhen>,
    shared: Arc<Shared>,
    root: i32,
    threads: HashMap<i32, Traced>,
    /// Threads at the entry of a call, first come first served.
    held: VecDeque<i32>,
    /// The thread inside a point.
    flight: Option<(i32, Begun)>,
    /// The points so far; the one in flight is the last.
    points: Vec<Point>,
    count: u64,
    killed_before: Option<Point>,
    exit: Option<ExitStatus>,
}

impl Tracer {
    /// Starts the plan's program; this thread is its tracer from now on.
    ///
    /// # Errors
    /// When the folder is missing or the program does not start under trace.
    pub(super) fn start(plan: Plan, shared: Arc<Shared>) -> anyhow::Result<Self> {
        let Plan { command, folder, arm, kill_at, stop_when } = plan;
        let folder = folder.canonicalize().context("the folder to trace can't be opened")?;
        let root = launch(command)?;
        shared.launched(root);
        if matches!(arm, Arm::Start) {
            shared.enter(Phase::Counting);
        }
        Ok(Self {
            scene: Scene { folder, sockets: Sockets::default() },
            arm,
            kill_at,
            stop_when,
            shared,
            root,
            threads: HashMap::from([(root, Traced { met: true, call: None })]),
            held: VecDeque::new(),
            flight: None,
            points: Vec::new(),
            count: 0,
            killed_before: None,
            exit: None,
        })
    }

    /// Serves stops until no tracee is left.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(super) fn run(mut self) -> anyhow::Result<Recording> {
        sys::resume(self.root, 0)?;
        while let Some((tid, status)) = sys::wait_any()? {
            self.changed(tid, status)?;
        }
        self.shared.group_gone();
        Ok(Recording {
            points: self.points,
            counted: self.count,
            killed_at: self.killed_before.as_ref().and_then(|point| point.number),
            killed_before: self.killed_before,
            exit: self.exit,
        })
    }

    fn changed(&mut self, tid: i32, status: i32) -> anyhow::Result<()> {
        if !libc::WIFSTOPPED(status) {
            return self.gone(tid, status);
        }
        let signal = libc::WSTOPSIG(status);
        let event = status >> 16;
        if signal == SYSCALL_STOP {
            return self.syscall(tid);
        }
        if event != 0 {
            let id = sys::event_message(tid);
            match id {
                // The thread that called exec goes on under the leader's id.
                Some(former) if event == libc::PTRACE_EVENT_EXEC && former != tid => self.forget(former)?,
                Some(new) if event != libc::PTRACE_EVENT_EXEC => {
                    self.threads.entry(new).or_default();
                }
                _ => {}
            }
            return Ok(sys::resume(tid, 0)?);
        }
        let thread = self.threads.entry(tid).or_default();
        let first = signal == libc::SIGSTOP && !thread.met;
        thread.met = true;
        Ok(sys::resume(tid, if first { 0 } else { signal })?)
    }

    fn gone(&mut self, tid: i32, status: i32) -> anyhow::Result<()> {
        if tid == self.root {
            self.exit = Some(ExitStatus::from_raw(status));
        }
        self.forget(tid)?;
        if self.threads.is_empty() {
            self.shared.group_gone();
        }
        Ok(())
    }

    /// Drops a thread that died: a point it was in never returned.
    fn forget(&mut self, tid: i32) -> anyhow::Result<()> {
        self.threads.remove(&tid);
        self.held.retain(|held| *held != tid);
        if self.flight.as_ref().is_some_and(|(flying, _)| *flying == tid) {
            self.flight = None;
            self.admit()?;
        }
        Ok(())
    }

    fn syscall(&mut self, tid: i32) -> anyhow::Result<()> {
        match sys::syscall_stop(tid) {
            Ok(Stop::Entry { nr, args }) => self.entered(tid, decode(nr, args)),
            Ok(Stop::Exit(result)) => self.returned(tid, result),
            Ok(Stop::Neither) => Ok(sys::resume(tid, 0)?),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn entered(&mut self, tid: i32, call: Option<Call>) -> anyhow::Result<()> {
        let thread = self.threads.entry(tid).or_default();
        thread.call = call;
        match call {
            Some(call) if !call.is_watched_only() => {
                self.held.push_back(tid);
                self.admit()
            }
            _ => Ok(sys::resume(tid, 0)?),
        }
    }

    /// Lets held threads go on, up to and with the next one that enters a point.
    fn admit(&mut self) -> anyhow::Result<()> {
        while self.flight.is_none() && self.killed_before.is_none() {
            let Some(tid) = self.held.pop_front() else { return Ok(()) };
            let call = self.threads.get_mut(&tid).and_then(|thread| thread.call.take());
            let Some(begun) = call.and_then(|call| self.scene.begin(Thread(tid), call)) else {
                sys::resume(tid, 0)?;
                continue;
            };
            let number = (self.shared.phase() == Phase::Counting).then_some(self.count + 1);
            let point = Point {
                number,
                thread: tid,
                call: begun.call.name,
                target: begun.target.clone(),
                effect: Effect::Nothing,
                result: None,
            };
            if number.is_some() && number == self.kill_at {
                self.killed_before = Some(point);
                return self.kill();
            }
            self.count = number.unwrap_or(self.count);
            self.points.push(point);
            self.flight = Some((tid, begun));
            sys::resume(tid, 0)?;
        }
        Ok(())
    }

    /// Ends all tracees where they stand; a thread at a call's entry never runs the call.
    fn kill(&self) -> anyhow::Result<()> {
        self.shared.kill_group()?;
        // A child may have left the group; every thread id reaches its whole thread group.
        for tid in self.threads.keys() {
            match nix::sys::signal::kill(nix::unistd::Pid::from_raw(*tid), nix::sys::signal::SIGKILL) {
                Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
                Err(error) => bail!("the traced program can't be killed: {error}"),
            }
        }
        Ok(())
    }

    fn returned(&mut self, tid: i32, result: i64) -> anyhow::Result<()> {
        if let Some((_, begun)) = self.flight.take_if(|(flying, _)| *flying == tid) {
            let (target, effect) = begun.settle(Thread(tid), &self.scene.folder, result);
            if let Some(point) = self.points.last_mut() {
                (point.target, point.effect, point.result) = (target, effect, Some(result));
            }
            self.judge_last_point();
            sys::resume(tid, 0)?;
            return self.admit();
        }
        let call = self.threads.get_mut(&tid).and_then(|thread| thread.call.take());
        if let Some(call) = call {
            self.watched(Thread(tid), call, result);
        }
        Ok(sys::resume(tid, 0)?)
    }

    fn judge_last_point(&mut self) {
        if self.shared.phase() != Phase::Counting {
            return;
        }
        if let (Some(stop_when), Some(point)) = (&mut self.stop_when, self.points.last())
            && stop_when(&Seen::Point(point))
        {
            self.shared.enter(Phase::Ended);
        }
    }

    /// The calls that are no points but say what happens between them.
    fn watched(&mut self, thread: Thread, call: Call, result: i64) {
        match call.kind {
            Kind::Accept => {
                if let Ok(fd) = i32::try_from(result)
                    && fd >= 0
                {
                    self.scene.sockets.accepted(thread, fd);
                }
            }
            // A non-blocking connect says EINPROGRESS and is in the table all the same.
            Kind::Connect { fd } => self.scene.sockets.connected(thread, fd),
            Kind::Receive { fd, target } if result > 0 => self.received(thread, fd, target, result),
            Kind::Map { fd, protection, flags } if fd >= 0 => self.mapped(thread, fd, (protection, flags)),
            _ => {}
        }
    }

    fn received(&mut self, thread: Thread, fd: i32, target: Buffer, result: i64) {
        let phase = self.shared.phase();
        let waits = phase == Phase::Waiting && self.shared.may_begin(self.arm);
        let judged = phase == Phase::Counting && self.stop_when.is_some();
        if !(waits || judged) {
            return;
        }
        let Some(socket) = thread.behind(fd).and_then(|link| self.scene.sockets.tcp(thread, &link)) else {
            return;
        };
        if waits {
            if socket.origin == Origin::Accepted {
                self.shared.enter(Phase::Counting);
            }
            return;
        }
        let bytes = thread.gather(target, result.unsigned_abs());
        if self.stop_when.as_mut().is_some_and(|stop| stop(&Seen::Received { socket, bytes: &bytes })) {
            self.shared.enter(Phase::Ended);
        }
    }

    /// Writes through a shared mapping pass no call: the replay must refuse them. SQLite's
    /// `-shm` is the known case that may be forgotten.
    fn mapped(&mut self, thread: Thread, fd: i32, (protection, flags): (i32, i32)) {
        let shared = matches!(flags & libc::MAP_TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
        let unseen = shared && protection & libc::PROT_WRITE != 0;
        let Some(path) = thread.behind(fd).filter(|_| unseen) else { return };
        let Ok(inside) = path.strip_prefix(&self.scene.folder) else { return };
        if is_forgotten(inside) {
            return;
        }
        let point = Point {
            number: None,
            thread: thread.0,
            call: "mmap",
            target: Target::File(inside.to_owned()),
            effect: Effect::Unmodelled("a shared writable mapping"),
            result: Some(0),
        };
        // The point in flight, if any, must stay the last.
        let at = self.points.len() - usize::from(self.flight.is_some());
        self.points.insert(at, point);
    }
}

impl Call {
    fn is_watched_only(&self) -> bool {
        matches!(self.kind, Kind::Map { .. } | Kind::Accept | Kind::Connect { .. } | Kind::Receive { .. })
    }
}

/// Whether a file is rebuilt by its program after a crash and so has no place in a replay.
pub(super) fn is_forgotten(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with("-shm"))
}

/// Starts the program stopped at its first instruction.
fn launch(mut command: Command) -> anyhow::Result<i32> {
    sys::trace_child_of(&mut command);
    let child = command.spawn().context("the program to trace can't be started")?;
    let root = i32::try_from(child.id())?;
    // The caller's pipes must not stay open on this side.
    drop(command);
    match sys::wait_any()? {
        Some((tid, status)) if tid == root && libc::WIFSTOPPED(status) => {}
        other => bail!("the program to trace did not stop at its start: {other:?}"),
    }
    sys::follow_everything(root).context("the program can't be followed")?;
    Ok(root)
}
