//! The channel that writes one line to the log: always there, needs nothing, and is a trace of what was
//! announced. Not here: how logs are formatted.

use futures::future::BoxFuture;

use crate::channel::{Channel, Outcome, Pace, Repeats};
use crate::message::Message;
use crate::text::Announcement;

/// Lines written at the same time; a bound for the claim, the lines themselves cost nothing.
const PARALLEL: u32 = 64;

/// Writes each announcement as one line, under the event names of section 14.4 of the AuditVisa
/// specification. A line written twice carries the same event id.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log {
    /// What the names of events begin with that somebody must read: they are errors, which every log level shows.
    pub alerts: Option<&'static str>,
}

macro_rules! line {
    ($level:ident, $message:ident) => {
        tracing::$level!(
            target: "relay::announcement",
            event = event($message),
            outbox_id = %$message.event_id,
            event_id = $message.field("event_id"),
            r#ref = $message.field("ref"),
            request_id = $message.request_id,
            "{}",
            Announcement::of($message).one_line(),
        )
    };
}

fn event(message: &Message) -> &str {
    match message.field("kind") {
        Some("issued") => "event_processed",
        Some("duplicate" | "digest") => "event_duplicate_reused",
        _ => message.event_name.as_str(),
    }
}

impl Channel for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn kind(&self) -> &'static str {
        "log"
    }

    fn repeats(&self) -> Repeats {
        Repeats::Removed
    }

    fn pace(&self) -> Pace {
        Pace { parallel: PARALLEL, burst: PARALLEL, every: std::time::Duration::ZERO }
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if self.alerts.is_some_and(|prefix| message.event_name.starts_with(prefix)) {
                line!(error, message);
            } else {
                line!(info, message);
            }
            Outcome::Delivered { receipt: "logged".into() }
        })
    }
}
