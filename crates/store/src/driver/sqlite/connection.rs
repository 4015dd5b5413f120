//! One SQLite connection: how it is set up, how a statement runs on it, what its errors mean.

use std::path::Path;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, ToSql};

use crate::dialect::Dialect;
use crate::error::{Error, Raise, RaiseKind};
use crate::statement::{Expect, Query, Write};
use crate::value::{Row, Value};

/// A checkpoint each 20,000 pages (80 MB): rarer ones took the 99th percentile of commits from 12 to
/// 3.5 ms.
const CHECKPOINT_PAGES: u32 = 20_000;
/// The write-ahead file is cut back to this after a checkpoint, in bytes.
const LOG_LIMIT: u32 = 96 * 1024 * 1024;
/// Statements kept prepared on each connection; more than we have.
const STATEMENTS: usize = 256;

pub(super) fn open_writer(path: &Path, cache_kib: u32) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| opening(&e))?;
    let pragmas = format!(
        "pragma page_size = 4096; pragma journal_mode = wal; pragma synchronous = full;
         pragma wal_autocheckpoint = {CHECKPOINT_PAGES}; pragma journal_size_limit = {LOG_LIMIT};
         pragma foreign_keys = on; pragma temp_store = memory; pragma cache_size = -{cache_kib};
         pragma trusted_schema = off; pragma secure_delete = off; pragma recursive_triggers = on;"
    );
    connection.execute_batch(&pragmas).map_err(|e| opening(&e))?;
    connection.busy_timeout(std::time::Duration::from_secs(2)).map_err(|e| opening(&e))?;
    usable(&connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// The engine opens a write-protected file for reading and says nothing, and a file system without shared
/// memory keeps the old journal: both would only show at the first submissions.
fn usable(connection: &Connection) -> Result<(), Error> {
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(|e| opening(&e))? {
        return Err(Error::Setup(
            "the database file can't be written; check its rights and its owner (storage.folder)".into(),
        ));
    }
    let journal: String =
        connection.query_row("pragma journal_mode", [], |row| row.get(0)).map_err(|e| opening(&e))?;
    if journal != "wal" {
        return Err(Error::Setup(format!(
            "the database can't keep a write-ahead file here (journal mode {journal:?}); put storage.folder on a local disk"
        )));
    }
    connection.execute_batch("begin immediate; rollback").map_err(|e| opening(&e))
}

pub(super) fn open_reader(path: &Path, cache_kib: u32) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| opening(&e))?;
    let pragmas =
        format!("pragma query_only = on; pragma temp_store = memory; pragma cache_size = -{cache_kib};");
    connection.execute_batch(&pragmas).map_err(|e| opening(&e))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Copies the newest committed state in one step; `target` must not exist. A copy that did not end well is
/// removed: half a backup looks like one.
pub(super) fn copy(path: &Path, target: &Path) -> Result<(), Error> {
    let shown = target.display().to_string();
    std::fs::File::create_new(target)
        .map_err(|cause| Error::Setup(format!("{shown:?} can't be made: {cause}; give a new name")))?;
    copy_into(path, target).inspect_err(|_| {
        // The first error counts; what can't be removed is at least reported as failed.
        let _ = std::fs::remove_file(target);
    })
}

fn copy_into(path: &Path, target: &Path) -> Result<(), Error> {
    use rusqlite::backup::{Backup, StepResult};

    let failed = |cause: String| Error::Setup(format!("the copy stopped: {cause}; nothing of it was kept"));
    let engine = |e: rusqlite::Error| failed(e.to_string());
    let source = open_reader(path, 1024)?;
    let mut copy = Connection::open(target).map_err(engine)?;
    let end = Backup::new(&source, &mut copy).map_err(engine)?.step(-1).map_err(engine)?;
    match end {
        StepResult::Done => Ok(()),
        unfinished => Err(failed(format!("{unfinished:?}"))),
    }
}

/// Rows of the engine's own checks of its file.
pub(super) fn check(path: &Path) -> Result<Vec<Row>, Error> {
    let connection = open_reader(path, 1024)?;
    let whole = Query::new("engine.integrity", "pragma integrity_check(20)", vec![]);
    let keys = Query::new("engine.keys", "pragma foreign_key_check", vec![]);
    Ok([read(&connection, &whole)?, read(&connection, &keys)?].concat())
}

pub(super) fn read(connection: &Connection, query: &Query) -> Result<Vec<Row>, Error> {
    let mut statement = prepare(connection, query.name, &query.sql)?;
    rows(&mut statement, query.name, &query.values)
}

/// Runs a write; gives the rows of `returning`.
pub(super) fn write(connection: &Connection, write: &Write) -> Result<Vec<Row>, Error> {
    let mut statement = prepare(connection, write.name, &write.sql)?;
    let (returned, hit) = if statement.column_count() > 0 {
        let returned = rows(&mut statement, write.name, &write.values)?;
        let hit = returned.len() as u64;
        (returned, hit)
    } else {
        bind(&mut statement, write.name, &write.values)?;
        let hit = statement.raw_execute().map_err(|e| running(write.name, &e))?;
        (Vec::new(), hit as u64)
    };
    if write.expect == Expect::One && hit != 1 {
        return Err(Error::Raised(Raise { write: write.name, kind: RaiseKind::Rows { hit } }));
    }
    Ok(returned)
}

fn prepare<'c>(
    connection: &'c Connection,
    name: &'static str,
    sql: &str,
) -> Result<rusqlite::CachedStatement<'c>, Error> {
    let statement = connection.prepare_cached(&Dialect::Sqlite.render(sql)).map_err(|e| running(name, &e))?;
    if !in_order(&statement) {
        let cause = "parameters must appear first in the order $1, $2, ...".into();
        return Err(Error::Statement { name, cause });
    }
    Ok(statement)
}

/// SQLite numbers `$1`-style parameters by first appearance; ours appear in order, so both agree. Checked
/// in every build: the alternative is a value in the wrong column.
fn in_order(statement: &Statement<'_>) -> bool {
    (1..=statement.parameter_count()).all(|position| {
        let number = statement.parameter_name(position).and_then(|name| name.strip_prefix('$'));
        number.and_then(|digits| digits.parse().ok()) == Some(position)
    })
}

fn bind(statement: &mut Statement<'_>, name: &'static str, values: &[Value]) -> Result<(), Error> {
    if statement.parameter_count() != values.len() {
        let cause = format!("{} parameters, {} values", statement.parameter_count(), values.len());
        return Err(Error::Statement { name, cause });
    }
    for (index, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, value).map_err(|e| running(name, &e))?;
    }
    Ok(())
}

fn rows(statement: &mut Statement<'_>, name: &'static str, values: &[Value]) -> Result<Vec<Row>, Error> {
    bind(statement, name, values)?;
    let columns = statement.column_count();
    let mut answer = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|e| running(name, &e))? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(value(row.get_ref(column).map_err(|e| running(name, &e))?, name, column)?);
        }
        answer.push(Row::new(name, values));
    }
    Ok(answer)
}

fn value(value: ValueRef<'_>, table: &'static str, column: usize) -> Result<Value, Error> {
    let corrupt = || Error::Corrupt { table, column: column.to_string() };
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(int) => Value::Int(int),
        ValueRef::Text(text) => Value::Text(std::str::from_utf8(text).map_err(|_| corrupt())?.to_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(corrupt()),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(int) | Self::Money(int) => ValueRef::Integer(*int),
            Self::Time(time) => ValueRef::Integer(time.micros()),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

pub(super) fn opening(error: &rusqlite::Error) -> Error {
    Error::Setup(format!(
        "the database can't be opened: {error}; check the data folder's rights, space and disk"
    ))
}

/// What an engine error means for the submission.
pub(super) fn running(name: &'static str, error: &rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(code, text) = error else {
        return Error::Statement { name, cause: error.to_string() };
    };
    let cause = text.clone().unwrap_or_else(|| code.to_string());
    match code.code {
        ErrorCode::ConstraintViolation => {
            Error::Raised(Raise { write: name, kind: constraint(code.extended_code) })
        }
        ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::ReadOnly
        | ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::CannotOpen
        | ErrorCode::OutOfMemory
        | ErrorCode::PermissionDenied
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::OperationInterrupted => Error::Unavailable { cause },
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Error::Corrupt { table: name, column: "(the file itself)".into() }
        }
        _ => Error::Statement { name, cause },
    }
}

/// What a failed commit means. Full, busy, read-only and a failed write come before the last frame stands;
/// after any other error (a failed sync) it may be on disk, and would count after a crash.
pub(super) fn committing(error: &rusqlite::Error) -> Error {
    let before = match error {
        rusqlite::Error::SqliteFailure(code, _) => {
            matches!(code.code, ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::ReadOnly)
                || code.extended_code == rusqlite::ffi::SQLITE_IOERR_WRITE
        }
        _ => false,
    };
    match running("commit", error) {
        known @ Error::Unavailable { .. } if before => known,
        // A deferred rule that is checked at the commit.
        raised @ Error::Raised(_) => raised,
        Error::Unavailable { cause } | Error::Statement { cause, .. } => Error::Indeterminate { cause },
        other => Error::Indeterminate { cause: other.to_string() },
    }
}

const fn constraint(extended: i32) -> RaiseKind {
    match extended {
        rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE
        | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | rusqlite::ffi::SQLITE_CONSTRAINT_ROWID => RaiseKind::Unique,
        _ => RaiseKind::Rule,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn committed(extended: i32) -> Error {
        committing(&rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None))
    }

    #[test]
    fn a_commit_that_failed_before_its_last_frame_surely_did_not_happen() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_READONLY, ffi::SQLITE_IOERR_WRITE] {
            assert!(matches!(committed(code), Error::Unavailable { .. }), "{code}");
        }
    }

    #[test]
    fn a_commit_that_failed_later_may_have_happened() {
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_NOMEM, ffi::SQLITE_ERROR, ffi::SQLITE_CORRUPT] {
            assert!(matches!(committed(code), Error::Indeterminate { .. }), "{code}");
        }
    }
}
