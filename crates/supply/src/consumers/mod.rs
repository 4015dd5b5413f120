//! What follows from an event after its commit (section 17.2): channels of the relay. An event may come twice, so
//! each of them does the same the second time. Not here: when they are tried again (`relay`), SMS codes
//! (the program's own channel).

pub mod payout;
pub mod statement;

pub use payout::Payouts;
pub use statement::{Files, NotKept, Statements};
