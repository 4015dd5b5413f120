//! What can go wrong, sorted by the only question that matters afterwards: did it happen?

use std::fmt;

/// A store error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A check inside the transaction raised; nothing of the submission was kept.
    #[error("a write was refused by the store: {0}")]
    Raised(Raise),
    /// It surely did not happen, and trying again later may help: disk full, locked, read-only.
    #[error("the store can't take writes now: {cause}; nothing was kept, try again")]
    Unavailable {
        /// The engine's own words, without values.
        cause: String,
    },
    /// A transaction elsewhere holds the key's lock; nothing was kept.
    #[error("the key is in use just now; ask again")]
    Busy {
        /// Whether that transaction has the same fingerprint.
        same: bool,
    },
    /// Nothing is written here any more: the installation moves to another database.
    #[error("this installation moves to another database, and nothing is written here any more")]
    Fenced,
    /// The commit's answer was lost: it may or may not have happened. Look under the key's lock.
    #[error("the commit's answer was lost: {cause}; look the record up before trying again")]
    Indeterminate {
        /// The engine's own words, without values.
        cause: String,
    },
    /// A stored row can't be read as what it must be.
    #[error("{table}, column {column}: stored value is damaged or of another kind; run `onceseal check`")]
    Corrupt {
        /// Statement's or table's name.
        table: &'static str,
        /// Position or name of the column.
        column: String,
    },
    /// The data folder or its schema can't be used; says what and what to do.
    #[error("{0}")]
    Setup(String),
    /// A statement of ours is wrong: a programming error, never the caller's fault.
    #[error("statement {name} failed: {cause}")]
    Statement {
        /// Name of the statement.
        name: &'static str,
        /// The engine's own words.
        cause: String,
    },
}

/// Which check raised, and in which write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raise {
    /// Name of the write whose check raised.
    pub write: &'static str,
    /// What it ran into.
    pub kind: RaiseKind,
}

/// The kinds of check that a write carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseKind {
    /// A unique index already holds these values.
    Unique,
    /// Another number of rows than the write demands (a lost version, a lost fence).
    Rows {
        /// Rows hit.
        hit: u64,
    },
    /// A `check`, `not null` or foreign-key rule.
    Rule,
}

impl fmt::Display for Raise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RaiseKind::Unique => write!(f, "{}: the value is taken", self.write),
            RaiseKind::Rows { hit } => write!(f, "{}: {hit} rows hit", self.write),
            RaiseKind::Rule => write!(f, "{}: a rule of the table", self.write),
        }
    }
}
