//! Earnings (section 6.5): one file a command. What a call earns is in [`crate::orders`], what a withdrawal takes
//! in [`crate::settlements`].
//!
//! Whoever changes an amount of an earning holds the supplier's balance rows, so that after every commit the
//! balances equal the earnings' parts (section 11.5, check 4).

mod bonus;
mod compensate;
mod insert;
mod release;
mod reverse;

pub use bonus::Bonus;
pub use compensate::Compensate;
pub(crate) use insert::{NewEarning, Origin, insert};
pub use release::Release;
pub(crate) use reverse::{Side, lots, reverse};
