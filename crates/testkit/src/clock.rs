//! A clock that stands still until it is moved, and random bytes that are none.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kernel::{Clock, Random, Time};

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct MovableClock(AtomicI64);

impl MovableClock {
    /// A clock at whole seconds since the epoch.
    #[must_use]
    pub const fn at(seconds: i64) -> Self {
        Self(AtomicI64::new(seconds * 1_000_000))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets the clock, back if need be.
    pub fn set(&self, seconds: i64) {
        self.0.store(seconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }

    fn judged(&self, _shared: Time) -> Time {
        self.now()
    }
}

/// "Random" bytes that are a count: every call differs, every run is the same.
#[derive(Debug, Default)]
pub struct CountingRandom(AtomicU64);

impl Random for CountingRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            for (byte, counted) in chunk.iter_mut().rev().zip(count.to_le_bytes()) {
                *byte = counted;
            }
        }
    }
}
