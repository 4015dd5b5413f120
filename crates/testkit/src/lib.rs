//! Clocks, fakes and builders that tests share. Not for the product.

mod clock;
mod seeded;

pub use clock::{CountingRandom, MovableClock};
pub use seeded::Seeded;
