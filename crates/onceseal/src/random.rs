//! The real clock and the real randomness: the only place of the product that asks the system for either.

use std::sync::Arc;

use kernel::{Clock, Random, Time};
use store::Store;

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that all others are given")]
    fn now(&self) -> Time {
        // A clock before 1970 is a broken clock; the epoch is as good an answer as any.
        let since = std::time::SystemTime::now()
            .duration_since(std::time::SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// The clock of a store that many machines share, as far as this machine knows it. By it all nodes judge
/// the age of signatures and tokens alike; records are judged by the store itself.
pub struct StoreClock {
    /// This machine's clock.
    pub machine: Arc<dyn Clock>,
    /// Whose clock counts.
    pub store: Store,
}

impl Clock for StoreClock {
    fn now(&self) -> Time {
        Time::from_micros(self.machine.now().micros().saturating_add(self.store.ahead()))
    }
}

/// The system's source of random bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    #[expect(clippy::disallowed_methods, reason = "this is the randomness that all others are given")]
    #[expect(clippy::expect_used, reason = "no key, token or salt may be made without randomness")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system gives random bytes");
    }
}
