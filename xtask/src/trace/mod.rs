//! Crash tooling for Linux: runs a program under `ptrace`, numbers every system call that
//! changes one folder or sends over TCP, kills the program exactly before the n-th, and rebuilds
//! the folder as a power cut at that moment would have left it. It knows nothing of the server
//! it serves to test; no strace, no root, no kernel module.
//!
//! # Points
//!
//! A *point* is one call of `write` and kin, `send*`, `sendfile`, `copy_file_range`, `splice`,
//! `rename*`, `link*`, `symlink*`, `unlink*`, `rmdir`, `mkdir*`, `open*` with `O_CREAT` or
//! `O_TRUNC`, `truncate` and kin, `fallocate`, `chmod` and kin, `fsync`, `fdatasync`,
//! `sync_file_range`, `syncfs`, `sync`, by any thread or child, whose target lies in the folder
//! or is a TCP connection. Pipes, event descriptors, Unix sockets, UDP, standard output and
//! files elsewhere don't count. Failed calls count too: a kill before them is a kill.
//!
//! One point is in flight at a time; others wait at their entry. The numbers are therefore the
//! true order of effects. They are *not* the same in two runs of a program with threads: plan
//! kills by number, judge by what the recording of *that* run says.
//!
//! # How a harness uses it
//!
//! ```ignore
//! // 1. Prepare a folder (`init`): the base, all of it taken as durable. Each run gets its own
//! //    copy; a replay of no points is one: `trace::replay(&base, &[], &folder)`.
//! // 2. The counting run.
//! let mut server = Command::new("target/release/onceseal");
//! server.args(["serve", "--folder"]).arg(&folder).stdout(pipe_writer).stderr(log_file);
//! let plan = Plan::new(server, &folder).arm(Arm::FirstByte).stop_at_answer_from(stub_port);
//! let running = trace::start(plan)?;
//! wait_for_listening_line(pipe_reader);              // not over HTTP, see `Arm`
//! send_the_event();                                  // any thread, any client
//! let phase = running.wait_for(Phase::Ended, limit); // Gone: it ended by itself
//! let counted = running.stop()?.counted;             // SIGKILL, then the recording
//! // 3. For each n in 1..=counted: fresh folder from the base, `.kill_at(n)`, the same drive.
//! //    A client error is expected: the server dies under it.
//! let recording = running.wait_limit(limit)?;
//! //    `killed_at == None`: this run had fewer points; `stop()` it and count it as killed late.
//! // 4a. SIGKILL: restart on the folder as it lies. Check.
//! // 4b. Power cut: `trace::replay(&base, &recording.points, &fresh)`, restart on `fresh`. Check.
//! ```
//!
//! What had been told to whom before the kill stands in the recording: [`Point::sent`] gives the
//! bytes of every answer and announcement the kernel took, so "nobody had been told 2xx" is
//! judged by the log, not by whether the client's read came through. A clock moved by `faketime`
//! and the like go to the [`std::process::Command`] as environment.
//!
//! [`Recording::before`] cuts one complete recording at any n, so all power cuts of one run can
//! be replayed without running it n times (the kills still need their runs).
//!
//! # The model of durability
//!
//! [`replay()`] is stricter than any file system at hand: a file's content and length count up to
//! its last `fsync`, `fdatasync` or `O_DSYNC` write, permission bits up to its last `fsync`; a
//! name made, changed or removed counts once its directory was synced (and that directory's own
//! name in its parent). A synced file without a synced name is absent; a synced name of an
//! unsynced file is an empty file. A rename between two directories is durable with the sync of
//! the target's; the old name goes with the sync of the old directory, and never before. Nothing
//! unsynced survives: real disks may keep any part of it, which a program must bear as well (the
//! plain kill is the case where all of it is kept).
//! [`Durability::LenientExt4`] lets the `fsync` of a file that has no durable name yet make its
//! name durable. [`Durability::Names`] keeps all names and only synced content.
//! [`Durability::Everything`] drops nothing: a harness replays so once and compares
//! with the folder the kill left (save `*-shm`), which proves that no write went past the log.
//!
//! # Limits
//!
//! - `io_uring` and shared writable mappings write past the calls. A mapping in the folder
//!   (other than SQLite's `*-shm`, which replays leave out) makes [`replay()`] refuse; `io_uring`
//!   goes unseen.
//! - No model, so a refusal in [`replay()`]: symbolic links, holes punched, renames and links over
//!   the folder's border.
//! - Only traced programs may touch the folder while it is traced.
//! - A blocking send that waits for its reader holds all points up. Read your answers.
//! - A call interrupted by a signal and restarted counts twice.
//! - Each system call, of interest or not, costs some 20 µs (two stops): a small axum and SQLite
//!   receiver answers about 200 requests a second under trace. Deadlines of the tracee need a
//!   margin.
//! - Writes to SQLite's `*-shm` are points like all others: one more place to kill at.
//! - Run on x86_64. The aarch64 call numbers are there, untried.

mod calls;
mod disk;
mod effects;
mod plan;
mod point;
mod replay;
mod shared;
mod sockets;
mod sys;
#[cfg(test)]
mod tests;
mod tracer;
mod view;

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, bail};

pub(crate) use plan::{Arm, Plan, Seen};
pub(crate) use point::{Effect, Origin, Point, Socket, Target};
pub(crate) use replay::{Durability, replay, replay_with};
pub(crate) use shared::Phase;
use shared::Shared;
use tracer::Tracer;

/// What a run left.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Every point from the program's start to its end, in order, numbered where counted.
    pub(crate) points: Vec<Point>,
    /// How many points were counted; without a kill, the number of places to kill at.
    pub(crate) counted: u64,
    /// The number of the point it was killed at: that one did not happen, all earlier did.
    pub(crate) killed_at: Option<u64>,
    /// That point, not carried out.
    pub(crate) killed_before: Option<Point>,
    /// How the started program itself ended.
    pub(crate) exit: Option<ExitStatus>,
}

impl Recording {
    /// The points that happen before counted point `number`: what a kill there leaves.
    pub(crate) fn before(&self, number: u64) -> &[Point] {
        let end = self.points.iter().position(|point| point.number.is_some_and(|at| at >= number));
        self.points.get(..end.unwrap_or(self.points.len())).unwrap_or_default()
    }
}

/// A program under trace. Dropped, it is killed and waited for.
#[derive(Debug)]
pub(crate) struct Running {
    shared: Arc<Shared>,
    tracer: Option<JoinHandle<anyhow::Result<Recording>>>,
}

/// Starts a plan on a tracing thread of its own; the caller's thread is free to drive it.
///
/// # Errors
/// When the folder is missing or the program does not start under trace.
pub(crate) fn start(plan: Plan) -> anyhow::Result<Running> {
    let shared = Arc::new(Shared::new());
    let (told, started) = std::sync::mpsc::channel();
    let theirs = Arc::clone(&shared);
    // A thread of its own: ptrace obeys only the thread that started the tracee, and waiting
    // there takes no child of anybody else.
    let tracer = std::thread::Builder::new().name("tracer".to_owned()).spawn(move || {
        let _gone = TellsGone(Arc::clone(&theirs));
        let tracer = Tracer::start(plan, Arc::clone(&theirs)).inspect(|_| {
            // The receiver waits right below.
            let _ = told.send(());
        });
        drop(told);
        tracer.and_then(Tracer::run)
    })?;
    let mut running = Running { shared, tracer: Some(tracer) };
    match started.recv() {
        Ok(()) => Ok(running),
        Err(_) => match running.join() {
            Err(error) => Err(error),
            Ok(_) => bail!("the tracer ended before its program began"),
        },
    }
}

/// Says that the run is over, even where the caller's judge panics on the tracing thread.
struct TellsGone(Arc<Shared>);

impl Drop for TellsGone {
    fn drop(&mut self) {
        self.0.enter(Phase::Gone);
    }
}

/// Runs a plan to its end, with nobody driving it.
///
/// # Errors
/// As [`start`], and what the kernel refuses on the way.
pub(crate) fn run(plan: Plan) -> anyhow::Result<Recording> {
    start(plan)?.wait()
}

impl Running {
    /// Lets [`Arm::FirstByteOnceArmed`] begin with the next byte received.
    pub(crate) fn arm(&self) {
        self.shared.arm();
    }

    /// Where the run is.
    pub(crate) fn phase(&self) -> Phase {
        self.shared.phase()
    }

    /// Waits until the run is at `phase` or past it, at most `limit`; gives where it is then.
    pub(crate) fn wait_for(&self, phase: Phase, limit: Duration) -> Phase {
        self.shared.wait_for(phase, limit)
    }

    /// Waits for the end of the program and all its children.
    ///
    /// # Errors
    /// What the kernel refused on the way.
    pub(crate) fn wait(mut self) -> anyhow::Result<Recording> {
        self.join()
    }

    /// As [`Running::wait`], but kills what still runs after `limit`.
    ///
    /// # Errors
    /// What the kernel refused on the way.
    pub(crate) fn wait_limit(self, limit: Duration) -> anyhow::Result<Recording> {
        if self.wait_for(Phase::Gone, limit) == Phase::Gone { self.wait() } else { self.stop() }
    }

    /// Kills the whole group (SIGKILL), wherever it is, and gives the recording. A point in
    /// flight then has no result and counts as not happened in a replay.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn stop(mut self) -> anyhow::Result<Recording> {
        self.kill()?;
        self.join()
    }

    fn kill(&self) -> io::Result<()> {
        self.shared.kill_group()
    }

    fn join(&mut self) -> anyhow::Result<Recording> {
        let tracer = self.tracer.take().context("the run was waited for already")?;
        match tracer.join() {
            Ok(recording) => recording,
            Err(_) => bail!("the tracing thread panicked; its program is dead"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.tracer.is_some() {
            // Nothing can be told from here, and the tracee dies with its tracer anyway.
            let _ = self.kill();
            let _ = self.join();
        }
    }
}
