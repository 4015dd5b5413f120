//! What a run is asked to do. Plain values; not here: doing it.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use super::point::{Origin, Point, Socket};

/// A program to run under trace.
pub(crate) struct Plan {
    /// The program with its arguments, environment and streams. A pipe that the caller reads
    /// is made with [`std::io::pipe`] and its write end given here.
    pub(super) command: Command,
    /// The folder whose changes are points. It must exist.
    pub(super) folder: PathBuf,
    /// When counting begins.
    pub(super) arm: Arm,
    /// The point (from 1) at whose entry everything is killed.
    pub(super) kill_at: Option<u64>,
    /// Ends the counted stretch when it says true.
    pub(super) stop_when: Option<StopWhen>,
}

/// A judge of what was seen; true ends the counted stretch.
pub(crate) type StopWhen = Box<dyn FnMut(&Seen<'_>) -> bool + Send>;

/// When counting begins. All points are recorded in every case; earlier ones have no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    /// With the program's first instruction.
    Start,
    /// With the first byte received on an accepted TCP connection.
    FirstByte,
    /// As `FirstByte`, but only of bytes received after [`super::Running::arm`] was called: for
    /// a caller that asks over HTTP whether the server is up.
    FirstByteOnceArmed,
}

/// What [`StopWhen`] is shown, in order, while counting.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// A point that returned (or failed).
    Point(&'a Point),
    /// Bytes the tracee received over TCP.
    Received {
        /// The connection.
        socket: Socket,
        /// What came.
        bytes: &'a [u8],
    },
}

impl Plan {
    /// A plan that counts from the start and kills nowhere.
    pub(crate) fn new(command: Command, folder: impl Into<PathBuf>) -> Self {
        Self { command, folder: folder.into(), arm: Arm::Start, kill_at: None, stop_when: None }
    }

    /// Sets when counting begins.
    pub(crate) fn arm(mut self, arm: Arm) -> Self {
        self.arm = arm;
        self
    }

    /// Kills everything (SIGKILL) at the entry of the `point`-th counted point, from 1.
    pub(crate) fn kill_at(mut self, point: u64) -> Self {
        self.kill_at = Some(point);
        self
    }

    /// Ends the counted stretch when `judge` says true; the program runs on, uncounted.
    pub(crate) fn stop_when(mut self, judge: impl FnMut(&Seen<'_>) -> bool + Send + 'static) -> Self {
        self.stop_when = Some(Box::new(judge));
        self
    }

    /// Ends the counted stretch when bytes come back on a connection that the program opened
    /// to `port` (the answer to an announcement).
    pub(crate) fn stop_at_answer_from(self, port: u16) -> Self {
        self.stop_when(move |seen| match seen {
            Seen::Received { socket, .. } => socket.origin == Origin::Connected && socket.peer.port() == port,
            Seen::Point(_) => false,
        })
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, folder, arm, kill_at, stop_when } = self;
        f.debug_struct("Plan")
            .field("program", &command.get_program())
            .field("folder", folder)
            .field("arm", arm)
            .field("kill_at", kill_at)
            .field("stop_when", &stop_when.is_some())
            .finish()
    }
}
