//! What is sent, and the states of a delivery. Not here: SQL, texts.

use kernel::Time;
use serde_json::Value as Json;
use uuid::Uuid;

/// One outbox row on its way to one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Row of `outbox_deliveries`; what a person names to re-drive it.
    pub delivery_id: i64,
    /// Id of the outbox row: the same over all attempts, re-drives and destinations, so that a receiver can
    /// remove repeats by it.
    pub event_id: Uuid,
    /// `{chain}.{domain}.{action}.{result}`.
    pub event_name: String,
    /// Kind of object.
    pub object_type: String,
    /// Which object.
    pub object_id: String,
    /// Id of the request that caused it.
    pub request_id: String,
    /// What is told; no secret.
    pub payload: Json,
    /// When it happened, not when it is sent.
    pub occurred_at: Time,
    /// Which attempt this is, from 1; a re-drive counts anew.
    pub attempt: i64,
}

impl Message {
    /// A text field of the payload; empty ones count as absent.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.payload.get(name).and_then(Json::as_str).filter(|text| !text.trim().is_empty())
    }
}

/// States of a delivery (supply specification, section 17.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for its time.
    Pending,
    /// Claimed, under a lease.
    Sending,
    /// The other side has it.
    Delivered,
    /// The other side said no, for good. Held.
    Refused,
    /// Nobody can tell whether it arrived. Held.
    Uncertain,
    /// All attempts are used up, or a person gave it up. Held.
    Dead,
}

impl State {
    /// All of them, in the order of a delivery's life.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Sending, Self::Delivered, Self::Refused, Self::Uncertain, Self::Dead];
    /// Those that wait for a person.
    pub const HELD: [Self; 3] = [Self::Refused, Self::Uncertain, Self::Dead];

    /// The word in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::Uncertain => "uncertain",
            Self::Dead => "dead",
        }
    }

    /// The state that the word stands for.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether it waits for a person.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Refused | Self::Uncertain | Self::Dead)
    }
}
