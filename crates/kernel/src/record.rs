//! What is remembered of a key.

use crate::claim::Lease;
use crate::digest::Fingerprint;
use crate::time::Time;

/// The formal result of a submission, kept for every repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// HTTP status of the first answer.
    pub code: u16,
    /// JSON text of the first answer's content, without the parts that differ between arrivals.
    pub body: String,
}

/// The stored row of a key, as far as the answer table needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Row id in its record table.
    pub id: i64,
    /// Of the submission that made the record.
    pub fingerprint: Fingerprint,
    /// Attempts so far.
    pub attempt: i64,
    /// How often the key began anew after its end, from 1; 1 where that is not counted.
    pub generation: i64,
    /// Where it stands.
    pub standing: Standing,
}

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Claimed durably; the work is under way or its holder died.
    Running(Lease),
    /// There is a formal result. `expires_at` is `None` where keys live for ever (webhook events).
    Finished {
        /// What every repeat gets.
        outcome: Outcome,
        /// First instant at which the key is free again.
        expires_at: Option<Time>,
    },
    /// The last attempt failed by our fault; the next arrival tries again.
    Failed {
        /// First instant at which the key is free again; `None` where keys live for ever.
        expires_at: Option<Time>,
    },
    /// Artefacts and record disagree; recovery comes before any answer.
    Orphaned,
}

impl Standing {
    /// Whether the key has ended, so that it is as one that was never used (supply specification, section 2.3).
    /// Work that is under way has no end.
    #[must_use]
    pub fn has_ended(&self, now: Time) -> bool {
        match self {
            Self::Finished { expires_at, .. } | Self::Failed { expires_at } => {
                expires_at.is_some_and(|end| end <= now)
            }
            Self::Running(_) | Self::Orphaned => false,
        }
    }
}
