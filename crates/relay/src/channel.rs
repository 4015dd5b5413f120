//! Where messages go, and the ways a send can end. Not here: when to try again (`schedule`).

use std::time::Duration;

use futures::future::BoxFuture;
use kernel::Time;
use store::Write;

use crate::message::{Message, State};

/// A way out: one destination of outbox rows.
pub trait Channel: Send + Sync {
    /// The destination, as it stands in `outbox_deliveries.destination`.
    fn name(&self) -> &str;

    /// `log`, `telegram`: for logs and pages.
    fn kind(&self) -> &'static str;

    /// Whether the other side removes repeats.
    fn repeats(&self) -> Repeats;

    /// Shorthand: whether a lapsed or unclear send may be sent again.
    fn retakes(&self) -> bool {
        self.repeats() == Repeats::Removed
    }

    /// How fast it may be used.
    fn pace(&self) -> Pace;

    /// Sends once. The caller bounds the time; dropping the future must be safe.
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome>;

    /// Rows that are written together with the mark that `message` is held, in `state`: an alert, say. None
    /// unless the channel says otherwise.
    fn held(&self, message: &Message, state: State, at: Time) -> Vec<Write> {
        let _ = (message, state, at);
        Vec::new()
    }
}

/// What the other side does with a message it already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// It removes repeats by the event id: an unclear send is sent again.
    Removed,
    /// It would show them: an unclear send is held for a person.
    Shown,
}

/// How fast a channel may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Messages sent at the same time, and claimed at once; at least 1.
    pub parallel: u32,
    /// Messages that may go out at once after a rest; at least 1.
    pub burst: u32,
    /// One more is allowed after each such time; zero for no limit.
    pub every: Duration,
}

/// How a send ended. Causes are for people: no secret in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The other side has it.
    Delivered {
        /// What it called the message.
        receipt: String,
    },
    /// It surely did not arrive, and sending again would end the same way.
    Refused {
        /// Why, and what to change.
        cause: String,
        /// Whether other messages would meet the same.
        reach: Reach,
    },
    /// It surely did not arrive, or a repeat does no harm; try again.
    Retry {
        /// What went wrong.
        cause: String,
        /// How long the other side asks to be left alone, with all messages.
        after: Option<Duration>,
    },
    /// It may or may not have arrived.
    Uncertain {
        /// What went wrong.
        cause: String,
    },
}

/// Whom a refusal concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This message; others may pass.
    Message,
    /// The whole channel (a revoked token, a wrong address): the others wait as they are, so that a wrong
    /// setting refuses one message in a while and not the whole queue.
    Channel,
}

impl Outcome {
    /// Its word in metrics.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Delivered { .. } => "delivered",
            Self::Refused { .. } => "refused",
            Self::Retry { .. } => "retry",
            Self::Uncertain { .. } => "uncertain",
        }
    }
}
