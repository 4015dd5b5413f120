//! The supply side: a supplier mounts upstream credentials, publishes packages, and withdraws what buyers'
//! calls earn. Every command is a file with what it loads and what it decides; all of them write through the
//! door. Source: `003_16c9f2e493ff5789` (XR-001) and the domain's specification, whose sections are named.
//!
//! Modules in reading order: [`caller`] (who acts), [`code`] (what is refused with), [`exact`] (JSON that goes
//! out), [`policy`] (the numbers of section 23), [`keys`] (what is secret), [`house`] (what commands share),
//! [`action`] (the form of a command), [`commanded`] (how it is run), `standing` (whether its supplier may write), [`record`] (idempotency keys), [`sweep`](mod@sweep) (those that ended), [`rewrap`] (versions of the wrapping key), [`rows`] (what the tables say), [`books`] (postings as rows),
//! [`exit`] (what must not be written), [`alert`], [`audit`] (as it is shown); then the commands: [`accounts`], [`packages`], [`orders`], [`earnings`], [`settlements`],
//! [`platform`], [`tokens`]; [`consumers`] (what follows from an event, after its commit); at last [`slo`] (what is promised,
//! and how it is measured).
//!
//! Not here: HTTP, tokens, scopes (crates `web`, `auth`), encryption (`custody`), double entry (`ledger`).

pub mod accounts;
pub mod action;
pub mod alert;
pub mod audit;
pub mod books;
pub mod caller;
pub mod code;
pub mod commanded;
pub mod consumers;
pub mod earnings;
pub mod exact;
pub mod exit;
pub mod house;
pub mod keys;
pub mod orders;
pub mod packages;
pub mod platform;
pub mod policy;
pub mod record;
pub mod rewrap;
pub mod rows;
pub mod settlements;
pub mod slo;
mod standing;
pub mod sweep;
pub mod tenants;
pub mod tokens;

#[cfg(test)]
mod fixtures;

pub use action::{Action, Change, Context, Event, Refusal, Stop};
pub use caller::{Caller, Capacity, Object};
pub use code::{Code, Invariant};
pub use commanded::Commanded;
pub use house::{House, Live, Route};
pub use keys::Keys;
pub use policy::Policy;
