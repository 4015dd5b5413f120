//! Clocks, fakes and builders that tests share. Not for the product.

mod clock;

pub use clock::{CountingRandom, MovableClock};
