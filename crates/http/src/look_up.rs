//! An operation by its key: where it stands, without running anything. For clients whose own record of an
//! answer is lost, and for people.
//!
//! Work of the atomic form leaves no row while it runs: nothing stands under its key until its commit.

use std::time::Duration;

use door::Key;
use kernel::claim::RETRY_SOONEST;
use kernel::{Outcome, Standing, Time};
use store::{Error, Store};

/// Column of the door's look-up that names the first request.
const ORIGIN: usize = 10;

/// Where an operation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Somebody is at work, or recovery will be.
    Running {
        /// When to ask again.
        retry_after: Duration,
    },
    /// It has a result.
    Succeeded(Outcome),
    /// It was refused, for good.
    Refused(Outcome),
    /// The last attempt failed by our fault: sending it again tries again.
    Failed,
}

impl State {
    /// `processing`, `succeeded` or `failed`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running { .. } => "processing",
            Self::Succeeded(_) => "succeeded",
            Self::Refused(_) | Self::Failed => "failed",
        }
    }
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Where it stands.
    pub state: State,
    /// Of the attempt that its state came of, where the table tells it.
    pub request_id: Option<String>,
    /// When its key is free again, once it is finished; `None` for ever.
    pub expires_at: Option<Time>,
}

impl Operation {
    /// Status of the answer that stands.
    #[must_use]
    pub const fn code(&self) -> Option<u16> {
        match &self.state {
            State::Succeeded(outcome) | State::Refused(outcome) => Some(outcome.code),
            State::Running { .. } | State::Failed => None,
        }
    }

    /// When to ask again, while it runs.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.state {
            State::Running { retry_after } => Some(retry_after),
            _ => None,
        }
    }
}

/// Looks at what stands under `key`; its fingerprint does not matter. `None` when nothing does, or what did is
/// past its end at `now`.
///
/// # Errors
/// The store can't be read, or the row is damaged.
pub async fn look_up(store: &Store, key: &Key, now: Time) -> Result<Option<Operation>, Error> {
    let found = store.query(key.table.find(key)).await?;
    let Some(row) = found.first() else { return Ok(None) };
    let record = key.table.read(row)?;
    let request_id = row.text_or_null(ORIGIN)?.map(ToOwned::to_owned);
    if record.standing.has_ended(now) {
        return Ok(None);
    }
    let (state, expires_at) = match record.standing {
        Standing::Running(lease) => (State::Running { retry_after: lease.retry_after(now) }, None),
        Standing::Orphaned => (State::Running { retry_after: RETRY_SOONEST }, None),
        Standing::Finished { outcome, expires_at } if outcome.code >= 400 => {
            (State::Refused(outcome), expires_at)
        }
        Standing::Finished { outcome, expires_at } => (State::Succeeded(outcome), expires_at),
        Standing::Failed { expires_at } => (State::Failed, expires_at),
    };
    Ok(Some(Operation { state, request_id, expires_at }))
}
