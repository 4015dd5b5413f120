//! The system's clock and randomness, as the server has them.

use kernel::{Clock, Random, Time};

/// The system's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a comparison program's own clock; nothing is tested on it"
    )]
    fn now(&self) -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        Time::from_micros(i64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(i64::MAX))
    }
}

/// The system's source of random bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::disallowed_methods, reason = "a comparison program's own randomness")]
    #[expect(clippy::expect_used, reason = "ids made without randomness would measure something else")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system gives random bytes");
    }
}
