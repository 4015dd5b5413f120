//! The one door: every write goes through [`Door::submit`] (commands, with or without a key) or
//! [`Door::maintain`] (housekeeping). In one transaction, together or not at all: the claim on the key,
//! the rows changed, the audit rows, the outbox rows, and the outcome that every later repeat gets.
//!
//! Modules in reading order: [`command`] (what a domain writes: `load`, `decide`), [`decision`] (what a
//! command may ask for), [`record`] (the record table's SQL), `lock` (who runs just now, in this
//! process), `attempt` and `housekeeping` (inside the transaction, without I/O), [`steps`] (foreign steps of
//! leased work), [`entry`] (submit and maintain), `run` (a submission on its way), [`branch`] (which answer came of it, for whoever counts).
//!
//! Not here: HTTP, the meaning of a command, SQL of a domain.

pub mod branch;
pub mod command;
pub mod decision;
pub mod entry;
pub use store::planted;
pub mod record;
pub mod steps;

mod attempt;
mod housekeeping;
mod lock;
mod run;

pub use command::{Command, Form, Key, Repeat, Submission};
pub use decision::{AuditRow, Decision, OutboxRow, Ruling};
pub use entry::{Answer, Done, Door, Failure};
pub use record::{Hash, Layout, RecordTable};
pub use steps::{Slice, Steps};
