//! Who works on a key, and until when: the claim, its fence and its lease.

use std::time::Duration;

use crate::time::Time;

/// One attempt's right to finish the work on a key. Token and attempt number together are the fence:
/// a write that names a claim which is no longer the record's hits no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Random, so that two processes never share one.
    pub token: [u8; 16],
    /// 1 for the first attempt, raised by every take-over.
    pub attempt: i64,
}

/// A claim with its end. Past the end anybody may take the work over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Whose it is.
    pub claim: Claim,
    /// First instant at which it no longer holds.
    pub until: Time,
}

impl Lease {
    /// Whether the holder may still be at work.
    #[must_use]
    pub fn holds(&self, now: Time) -> bool {
        now < self.until
    }

    /// What to tell somebody who asks again: the rest of the lease, within 200 ms and 2 s.
    #[must_use]
    pub fn retry_after(&self, now: Time) -> Duration {
        self.until.since(now).clamp(RETRY_SOONEST, RETRY_LATEST)
    }
}

/// Sooner would be polling.
pub const RETRY_SOONEST: Duration = Duration::from_millis(200);
/// Later would leave a finished answer lying.
pub const RETRY_LATEST: Duration = Duration::from_secs(2);
