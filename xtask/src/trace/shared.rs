//! What the tracing thread and the caller's thread both hold: the phase, the group to kill. Not
//! here: any ptrace call, which only the tracing thread may make.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SIGKILL, killpg};
use nix::unistd::Pid;

use super::plan::Arm;

/// How far a run is; it only moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Started, not counting yet.
    Waiting,
    /// Points get numbers.
    Counting,
    /// The judge ended the counted stretch; the program runs on.
    Ended,
    /// No tracee is left.
    Gone,
}

/// The two sides' common state.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    armed: bool,
    group: Group,
}

#[derive(Debug, Clone, Copy)]
enum Group {
    /// Not started; `doomed` when a stop was asked for already.
    Unborn { doomed: bool },
    /// Members are left, so the number is still this group's.
    Alive(i32),
    /// All are reaped and the number may belong to others.
    Reaped,
}

impl Shared {
    /// A run that has not begun.
    pub(super) fn new() -> Self {
        let state = State { phase: Phase::Waiting, armed: false, group: Group::Unborn { doomed: false } };
        Self { state: Mutex::new(state), moved: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program runs, as leader of group `leader`.
    pub(super) fn launched(&self, leader: i32) {
        let mut state = self.lock();
        let doomed = matches!(state.group, Group::Unborn { doomed: true });
        state.group = Group::Alive(leader);
        drop(state);
        if doomed {
            // A failure shows at the next stop the caller asks for.
            let _ = self.kill_group();
        }
    }

    /// The exit of its last member was taken.
    pub(super) fn group_gone(&self) {
        self.lock().group = Group::Reaped;
    }

    /// Moves on to `phase`, never back.
    pub(super) fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = state.phase.max(phase);
        self.moved.notify_all();
    }

    /// Where the run is.
    pub(super) fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Waits until the run is at `phase` or past it, at most `limit`; gives where it is then.
    pub(super) fn wait_for(&self, phase: Phase, limit: Duration) -> Phase {
        let waited = self.moved.wait_timeout_while(self.lock(), limit, |state| state.phase < phase);
        waited.unwrap_or_else(PoisonError::into_inner).0.phase
    }

    /// Lets [`Arm::FirstByteOnceArmed`] begin.
    pub(super) fn arm(&self) {
        self.lock().armed = true;
    }

    /// Whether the first byte may begin the count now.
    pub(super) fn may_begin(&self, arm: Arm) -> bool {
        match arm {
            Arm::Start | Arm::FirstByte => true,
            Arm::FirstByteOnceArmed => self.lock().armed,
        }
    }

    /// Kills the whole group, if it still runs.
    ///
    /// # Errors
    /// What the kernel says, other than that nobody is left.
    pub(super) fn kill_group(&self) -> io::Result<()> {
        // Held over the kill: the number must not be reaped in between.
        let mut state = self.lock();
        match state.group {
            Group::Alive(leader) => match killpg(Pid::from_raw(leader), SIGKILL) {
                Ok(()) | Err(Errno::ESRCH) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Group::Unborn { .. } => {
                state.group = Group::Unborn { doomed: true };
                Ok(())
            }
            Group::Reaped => Ok(()),
        }
    }
}
