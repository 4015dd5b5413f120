//! What the service promises and how it is measured (sections 18, 19): buttons with their objectives, the metrics of
//! the gate, what each server counts and keeps, and what the database says about a period.
//!
//! Modules in reading order: [`button`] (section 18), [`tally`] (counts of a server, kept each minute), [`audited`]
//! (reading the audit over a period), [`gate`] (section 19), [`report`] (both for a period).
//!
//! Not here: what `/metrics` prints and the rules over it (crates `web` and `onceseal`), which are made of the same
//! tables.

pub mod audited;
pub mod button;
pub mod gate;
mod money;
pub mod report;
pub mod tally;

pub use audited::Period;
pub use button::{BUTTONS, Button};
pub use gate::{METRICS, Metric, Reading, Status};
pub use report::{Report, unexplained};
pub use tally::{End, Tally};
