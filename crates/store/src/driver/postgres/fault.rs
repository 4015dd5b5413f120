//! What an error of the server or of the connection means for the submission.

use tokio_postgres::Error as Cause;
use tokio_postgres::error::SqlState;

use crate::error::{Error, Raise, RaiseKind};

/// Raised by `onceseal_hit`: a write hit another number of rows than it must.
pub(super) const MISSED: &str = "OS001";
/// Raised by `onceseal_append_only`.
pub(super) const APPEND_ONLY: &str = "OS002";

/// What the transaction's owner can do about an error.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// It is the submission's own: tell it.
    Final(Error),
    /// It lies in others (deadlock, serialization, lock time-out) or in a stale statement: the same again
    /// may do. Nothing was kept.
    Again(Error),
    /// The transaction was already undone by an earlier statement's error: that one counts.
    Follows,
    /// The connection is of no use any more; nothing is known of what was on the wire.
    Lost(Error),
    /// The connection is of no use any more, and the commit may or may not have happened.
    Unknown(Error),
    /// This server takes no writes or is going down; nothing was kept, and no connection of this pool is
    /// worth keeping.
    WrongServer(Error),
}

impl Fault {
    pub(super) fn of(name: &'static str, cause: &Cause) -> Self {
        let Some(db) = cause.as_db_error() else {
            return if cause.is_closed() || is_transport(cause) {
                Self::Lost(unavailable(&brief(cause)))
            } else {
                // A value that can't be sent, an answer that can't be read.
                Self::Final(Error::Statement { name, cause: brief(cause) })
            };
        };
        let text = format!("{} ({})", db.message(), db.code().code());
        let raised = |kind| Self::Final(Error::Raised(Raise { write: name, kind }));
        match db.code() {
            code if code.code() == MISSED => {
                raised(RaiseKind::Rows { hit: db.message().parse().unwrap_or(0) })
            }
            code if code.code() == APPEND_ONLY => raised(RaiseKind::Rule),
            code if *code == SqlState::UNIQUE_VIOLATION => raised(RaiseKind::Unique),
            // Also a value that its column has no room for, which is a rule of the table elsewhere.
            code if code.code().starts_with("23") || *code == SqlState::STRING_DATA_RIGHT_TRUNCATION => {
                raised(RaiseKind::Rule)
            }
            code if *code == SqlState::IN_FAILED_SQL_TRANSACTION => Self::Follows,
            code if *code == SqlState::T_R_SERIALIZATION_FAILURE
                || *code == SqlState::T_R_DEADLOCK_DETECTED
                || *code == SqlState::LOCK_NOT_AVAILABLE
                // A cached plan after a change of the schema; a statement that a pooler doesn't know.
                || *code == SqlState::FEATURE_NOT_SUPPORTED
                || *code == SqlState::INVALID_SQL_STATEMENT_NAME =>
            {
                Self::Again(unavailable(&text))
            }
            code if *code == SqlState::READ_ONLY_SQL_TRANSACTION
                || *code == SqlState::ADMIN_SHUTDOWN
                || *code == SqlState::CRASH_SHUTDOWN
                || *code == SqlState::CANNOT_CONNECT_NOW =>
            {
                Self::WrongServer(unavailable(&text))
            }
            // A wrong number of values, in the server's words; a pooler that lost the server is fatal.
            code if *code == SqlState::PROTOCOL_VIOLATION && db.severity() == "ERROR" => {
                Self::Final(Error::Statement { name, cause: text })
            }
            // Connection exceptions, a pooler's own words, idle-in-transaction time-out.
            code if code.code().starts_with("08")
                || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                || *code == SqlState::PROTOCOL_VIOLATION =>
            {
                Self::Lost(unavailable(&text))
            }
            // Out of resources, time-outs, I/O errors: nothing was kept, later it may work.
            code if matches!(code.code().get(..2), Some("53" | "57" | "58" | "25" | "55" | "54")) => {
                Self::Final(unavailable(&text))
            }
            code if code.code() == "XX001" || code.code() == "XX002" => {
                Self::Final(Error::Corrupt { table: name, column: "(the engine's own files)".into() })
            }
            // The server's words for a value that doesn't fit would show the value.
            code if code.code().starts_with("22") => {
                let cause = format!("a value does not fit its column ({})", code.code());
                Self::Final(Error::Statement { name, cause })
            }
            _ => Self::Final(Error::Statement { name, cause: text }),
        }
    }

    /// A taken number is a matter of who was first: counted on again, it is free.
    pub(super) fn renumbered(self) -> Self {
        match self {
            Self::Final(Error::Raised(Raise { kind: RaiseKind::Unique, write })) => {
                Self::Again(unavailable(&format!("{write}: others were faster with the number each time")))
            }
            other => other,
        }
    }

    /// Whether trying again here is of no use, or not allowed before a look.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Final(_) | Self::Unknown(_))
    }

    /// What the submission is told when nothing more is tried.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Final(error)
            | Self::Again(error)
            | Self::Lost(error)
            | Self::Unknown(error)
            | Self::WrongServer(error) => error,
            Self::Follows => unavailable("the transaction was undone"),
        }
    }
}

fn is_transport(cause: &Cause) -> bool {
    let mut source = std::error::Error::source(cause);
    while let Some(inner) = source {
        if inner.is::<std::io::Error>() {
            return true;
        }
        source = inner.source();
    }
    // Unexpected messages: the conversation is out of step.
    cause.to_string().contains("unexpected message")
}

/// The error with its causes, without values: the library's own words name none.
pub(super) fn brief(cause: &Cause) -> String {
    let mut text = cause.to_string();
    let mut source = std::error::Error::source(cause);
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}

pub(super) fn unavailable(cause: &str) -> Error {
    Error::Unavailable { cause: cause.to_owned() }
}
