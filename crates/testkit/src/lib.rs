//! Clocks, fakes and builders that tests share. Not for the product.

pub mod canary;
mod clock;
pub mod history;
pub mod postgres;
pub mod proxy;
mod seeded;

pub use clock::{CountingRandom, MovableClock};
pub use seeded::Seeded;
