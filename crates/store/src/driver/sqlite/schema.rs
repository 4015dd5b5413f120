//! Applies the schema's files to a SQLite database.

use kernel::Time;
use rusqlite::{Connection, params};

use crate::dialect::Dialect;
use crate::error::Error;
use crate::migration::{Chain, FENCED, File, Older, Registered, failed, missing};
use crate::statement::Write;
use crate::value::Row;
use crate::values;

const REGISTRY: &str = "create table if not exists schema_migrations (
  name text primary key, checksum text not null, older_may_serve integer not null, applied_at integer not null) strict";

/// What is registered.
pub(super) const KEPT: &str = "select name, checksum, older_may_serve, applied_at from schema_migrations";

/// Brings the database up to all files of `chains`, in order. Running it again changes nothing.
///
/// # Errors
/// As [`missing`], or when a statement fails.
pub(super) fn run(connection: &mut Connection, chains: &[Chain], now: Time) -> Result<(), Error> {
    connection.execute_batch(REGISTRY).map_err(|e| registry(&e))?;
    // Everything is compared before anything is applied: a refused database stays as it was.
    let missing = missing(chains, registered(connection)?)?;
    missing.iter().try_for_each(|file| apply(connection, file, now))
}

fn registered(connection: &Connection) -> Result<Vec<Registered>, Error> {
    let mut statement = connection.prepare(KEPT).map_err(|e| registry(&e))?;
    let rows = statement.query_map([], |row| {
        let older = if row.get::<_, bool>(2)? { Older::MayServe } else { Older::MustStop };
        let applied_at = Time::from_micros(row.get(3)?);
        Ok(Registered { name: row.get(0)?, checksum: row.get(1)?, older, applied_at })
    });
    rows.and_then(Iterator::collect).map_err(|e| registry(&e))
}

/// A row of [`KEPT`].
pub(super) fn registered_row(row: &Row) -> Result<Registered, Error> {
    let older = if row.flag(2)? { Older::MayServe } else { Older::MustStop };
    let (name, checksum) = (row.text(0)?.to_owned(), row.text(1)?.to_owned());
    Ok(Registered { name, checksum, older, applied_at: row.time(3)? })
}

/// The mark of the fence: no program opens a database that has it.
pub(super) fn fence(now: Time) -> Write {
    let sql = "insert into schema_migrations (name, checksum, older_may_serve, applied_at) values ($1, $2, 0, $3) on conflict do nothing";
    Write::any("fence.mark", sql, values![FENCED, "", now])
}

/// Takes the mark away.
pub(super) fn unfence() -> Write {
    Write::any("fence.lift", "delete from schema_migrations where name = $1", values![FENCED])
}

fn apply(connection: &mut Connection, file: &File, now: Time) -> Result<(), Error> {
    let fail = |e: rusqlite::Error| failed(file.name, &e.to_string());
    let transaction = connection.transaction().map_err(fail)?;
    transaction.execute_batch(&Dialect::Sqlite.render(file.sql)).map_err(fail)?;
    let row = params![file.name, file.checksum(), file.older == Older::MayServe, now.micros()];
    transaction.execute("insert into schema_migrations values (?1, ?2, ?3, ?4)", row).map_err(fail)?;
    transaction.commit().map_err(fail)
}

fn registry(cause: &rusqlite::Error) -> Error {
    failed("schema_migrations", &cause.to_string())
}
