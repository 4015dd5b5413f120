//! Rows and statements: the SQL is written once, a driver runs it.
//!
//! Modules in reading order: [`value`] (what goes into and comes out of a row), [`statement`] (a query
//! or a write as a value), [`error`] (what went wrong, and whether it may have happened all the same),
//! [`work`] (one submission's life inside a transaction, without I/O), [`migration`] (the schema, file
//! by file), `dialect` (the tokens for what the engines call differently), [`Store`] (the open store),
//! [`copy`] (all rows of one store into another, of another engine too), and
//! `driver` (SQLite: one writer thread with group commit, readers apart; PostgreSQL: a pool, pipelined).
//!
//! Statements use `$1` parameters and the common subset of SQLite and PostgreSQL. No test for an
//! engine's name stands outside of `driver` and `dialect`.
//!
//! Not here: what a submission means. Only the crate `door` opens write transactions, through
//! [`Store::enqueue`].

pub mod copy;
pub mod error;
pub mod migration;
pub mod planted;
pub mod statement;
pub mod value;
pub mod work;

pub mod dialect;
mod driver;
mod facade;

pub use driver::Driver;
pub use driver::postgres::{self, Mode, Postgres};
#[cfg(feature = "memory")]
pub use driver::sqlite::memory::Memory;
pub use driver::sqlite::{FILE, FolderLock, LOCK, Sqlite, is_locked, lift_fence};
pub use error::{Error, Raise, RaiseKind};
pub use facade::{Settings, Store};
pub use statement::{Expect, Query, Write};
pub use value::{Row, Value};
pub use work::{Lock, Work, Written};
