//! What people must hear of at once: one event of the outbox each, for the channel that pages.

use serde_json::json;

use crate::action::Event;
use crate::caller::Object;
use crate::code::Code;

/// Name of every alert.
pub const ALERT: &str = "supply.alert.raise.succeeded";

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A credential may have got out (section 8, item 2).
    P0,
    /// Money does not balance.
    S0,
    /// Somebody has to look at it within a day.
    S1,
}

impl Level {
    /// As it is told.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::P0 => "P0",
            Self::S0 => "S0",
            Self::S1 => "S1",
        }
    }
}

/// An alert about an object; `reason` is a fixed word.
#[must_use]
pub fn raised(level: Level, reason: &'static str, object: &Object) -> Event {
    Event {
        name: ALERT,
        object: object.clone(),
        version: 0,
        before: json!({}),
        after: json!({ "level": level.as_str(), "reason": reason }),
    }
}

/// INV-SET-003 did not hold (section 11.5).
pub(crate) fn unbalanced(object: &Object, code: Code) -> Event {
    let mut event = raised(Level::S0, "ledger_unbalanced", object);
    event.after = json!({ "level": "S0", "reason": "ledger_unbalanced", "code": code.as_str() });
    event
}
