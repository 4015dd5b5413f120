//! AuditVisa: from a delivered webhook to one signed certificate, and back to every arrival.
//!
//! Modules in reading order: [`identity`] (what an event is called), [`policy`] (what is certified, and
//! under which condition), [`money`] (amounts for people), [`run`] (what a certificate says), [`page`]
//! (how it looks), [`keyring`] (who signs), [`shelf`] (where files stand), [`issue`] (from event to
//! files, and the same again), [`answer`] (what a sender is told), `command` (the event in the door's
//! transaction), [`intake`] (a delivery from the first byte to the answer), [`buffer`] (repeats
//! answered from memory, off by default), [`delivery`] (a certificate's file given out), [`audit`] (every arrival, every state), [`recovery`] (what a crash left; `orphans`, `adopt`: files
//! without a record), [`acts`] (what only a person may do), [`ledgerfile`] (processed.jsonl) and `import` (another installation's), [`plain`] (whose references are plain), `check` (the
//! store against itself), `fence` (the end of all writing, for a move), [`restored`] (what a restored database forgot).
//!
//! Not here: HTTP, configuration files, the sending of announcements (crate `relay`).

pub mod acts;
pub mod answer;
pub mod audit;
pub mod buffer;
pub mod delivery;
pub mod identity;
pub mod intake;
pub mod issue;
pub mod keyring;
pub mod ledgerfile;
pub mod money;
pub mod page;
pub mod plain;
pub mod policy;
pub mod recovery;
pub mod restored;
pub mod run;
pub mod shelf;

mod adopt;
mod check;
mod command;
mod erase;
mod fence;
mod import;
mod orphans;
mod rows;
mod sql;

pub use intake::{AuditVisa, Context, Endpoint, Settings};
