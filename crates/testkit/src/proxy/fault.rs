//! What can be switched on: the faults, whom they reach, how often they may fire.

use std::time::Duration;

/// Which bytes a fault touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What the client sends.
    ToServer,
    /// What the server answers.
    ToClient,
    /// Both.
    Both,
}

impl Way {
    pub(super) fn covers(self, other: Self) -> bool {
        self == Self::Both || self == other
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who connected.
    Client,
    /// Who was connected to.
    Server,
}

/// When a connection is cut around a COMMIT. What counts as one: a simple query with the statement
/// `COMMIT` or `END`, or the execution of a statement that was parsed from such a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The server never gets the COMMIT: it did not happen.
    Before,
    /// The client is cut off at once, the server gets the COMMIT this much later: whoever looks between
    /// the two, without the locks of the transaction, sees that it did not happen, and is wrong.
    Late(Duration),
    /// The server said `COMMIT`, the client never hears it: it happened. The answer of an aborted
    /// transaction (`ROLLBACK`) and an error pass.
    After,
}

/// When the second copy of a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// Together with the first: the two race.
    AtOnce,
    /// When the first is being answered.
    Late,
}

/// A fault. In brackets: what one firing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Bytes arrive later, in order; the flow is as wide as before (each piece held).
    Delay {
        /// Which bytes.
        way: Way,
        /// How much later.
        by: Duration,
    },
    /// Bytes arrive when the fault is lifted: a network that heals (each piece held).
    Hold(Way),
    /// So many bytes a second each way and connection, at least 1 (each piece slowed).
    Throttle {
        /// Which bytes.
        way: Way,
        /// The speed.
        bytes_per_second: u32,
    },
    /// Exactly so many bytes pass in this way (with [`Way::Both`]: in either), then both sides are closed.
    /// Counted from the connection's beginning, or from when the fault was set, if that is later (each cut).
    CutAfter {
        /// Which bytes.
        way: Way,
        /// How many still pass.
        bytes: u64,
    },
    /// The connection is cut while a COMMIT of the PostgreSQL protocol is on the wire (each cut).
    Commit(Moment),
    /// Bytes and ends of both sides are swallowed, the connection stays open. It stays black when the fault
    /// is lifted: TCP never delivers a stream with a hole (each connection that lost something).
    BlackHole,
    /// One side is reset, the other never told; what that one says is swallowed. Idle connections are
    /// reached too (each connection).
    HalfOpen {
        /// The side that is reset.
        gone: Side,
    },
    /// New connections are accepted and at once reset (each connection).
    Refuse,
    /// What the client sends until the server answers is sent a second time, on a connection of its own
    /// whose answer nobody gets. For protocols of question and answer, such as HTTP/1 (each request).
    Twice(Twin),
}

impl Fault {
    /// The fault's name, as in [`super::Proxy::fired`].
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delay { .. } => "delay",
            Self::Hold(_) => "hold",
            Self::Throttle { .. } => "throttle",
            Self::CutAfter { .. } => "cut after bytes",
            Self::Commit(Moment::Before) => "commit not sent",
            Self::Commit(Moment::Late(_)) => "commit sent late",
            Self::Commit(Moment::After) => "commit's answer lost",
            Self::BlackHole => "black hole",
            Self::HalfOpen { .. } => "half-open",
            Self::Refuse => "refuse",
            Self::Twice(_) => "sent twice",
        }
    }

    /// The fault, at most so many times.
    #[must_use]
    pub fn times(self, times: u64) -> Rule {
        Rule { times, ..self.into() }
    }

    /// The fault, for these connections only.
    #[must_use]
    pub fn reaching(self, reach: Reach) -> Rule {
        Rule { reach, ..self.into() }
    }
}

/// Which connections a fault reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All.
    All,
    /// Those that are open when it is set.
    Open,
    /// Those that are opened later.
    New,
}

/// A fault with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What happens.
    pub fault: Fault,
    /// To which connections.
    pub reach: Reach,
    /// How many times at most.
    pub times: u64,
}

impl From<Fault> for Rule {
    fn from(fault: Fault) -> Self {
        Self { fault, reach: Reach::All, times: u64::MAX }
    }
}
