//! Rows and statements: the SQL is written once, a driver runs it.
//!
//! Modules in reading order: [`value`] (what goes into and comes out of a row), [`statement`] (a query
//! or a write as a value), [`error`] (what went wrong, and whether it may have happened all the same),
//! [`work`] (one submission's life inside a transaction, without I/O), [`migration`] (the schema, file
//! by file), and `driver` (SQLite: one writer thread with group commit, readers apart).
//!
//! Statements use `$1` parameters and the common subset of SQLite and PostgreSQL. No test for an
//! engine's name stands outside of `driver`.
//!
//! Not here: what a submission means. Only the crate `door` opens write transactions, through
//! [`Store::enqueue`].

pub mod error;
pub mod migration;
pub mod statement;
pub mod value;
pub mod work;

mod driver;

pub use driver::sqlite::{FILE, LOCK, Settings, Store, is_locked};
pub use error::{Error, Raise};
pub use statement::{Expect, Query, Write};
pub use value::{Row, Value};
pub use work::{Work, Written};
