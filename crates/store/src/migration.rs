//! The schema, file by file: registered by name and checksum, each in one transaction, in a fixed
//! order inside its chain (supply specification, section 10).
//!
//! What differs by engine is a token in the file: `{pk}`, `{money}`, `{json}`, `{time}`, `{inet}`,
//! `{bytes}`, `{flag}`, `{strict}`, and `{append_only TABLE}` for the triggers that refuse updates and
//! deletes.

use kernel::Time;
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// One schema file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Registered name; never changes once released.
    pub name: &'static str,
    /// Text with tokens; never changes once released.
    pub sql: &'static str,
}

/// Files in their order. A file runs only when those before it are registered.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// For messages.
    pub name: &'static str,
    /// In order.
    pub files: &'static [File],
}

/// Tenants, users, tokens, billing, audit and outbox: the ground of both domains.
pub const CORE: Chain = Chain {
    name: "core",
    files: &[File {
        name: "platform_core_schema_v1",
        sql: include_str!("../sql/platform_core_schema_v1.sql"),
    }],
};

/// Events, arrivals and certificates; needs [`CORE`].
pub const CERTIFY: Chain = Chain {
    name: "certify",
    files: &[File { name: "certify_schema_v1", sql: include_str!("../sql/certify_schema_v1.sql") }],
};

const REGISTRY: &str = "create table if not exists schema_migrations (
  name text primary key, checksum text not null, applied_at integer not null) strict";

/// Brings the database up to all files of `chains`, in order. Running it again changes nothing.
///
/// # Errors
/// [`Error::Setup`] when a registered file has another checksum, a file is missing before a registered
/// one, the database holds a file this program doesn't know (it is newer), or a statement fails.
pub(crate) fn run(connection: &mut Connection, chains: &[Chain], now: Time) -> Result<(), Error> {
    connection.execute_batch(REGISTRY).map_err(|e| failed("schema_migrations", &e))?;
    // Everything is compared before anything is applied: a refused database stays as it was.
    let missing = missing(chains, registered(connection)?)?;
    missing.into_iter().try_for_each(|(file, checksum)| apply(connection, file, &checksum, now))
}

/// Files that are not registered, in order, with their checksums.
fn missing(
    chains: &[Chain],
    mut registered: Vec<(String, String)>,
) -> Result<Vec<(&'static File, String)>, Error> {
    let mut missing: Vec<(&File, String)> = Vec::new();
    for chain in chains {
        let mut gap: Option<&str> = None;
        for file in chain.files {
            let checksum = hex::encode(Sha256::digest(file.sql.as_bytes()));
            let at = registered.iter().position(|(name, _)| name == file.name);
            match (at.map(|at| registered.swap_remove(at)), gap) {
                (Some((_, kept)), _) if kept != checksum => return Err(changed(file.name)),
                (Some(_), Some(before)) => return Err(out_of_order(file.name, before)),
                (Some(_), None) => {}
                (None, _) => {
                    gap = gap.or(Some(file.name));
                    missing.push((file, checksum));
                }
            }
        }
    }
    match registered.first() {
        Some((name, _)) => Err(Error::Setup(format!(
            "the database is newer than this program: it has the schema file {name:?}; use the newer program"
        ))),
        None => Ok(missing),
    }
}

fn registered(connection: &Connection) -> Result<Vec<(String, String)>, Error> {
    let fail = |e: rusqlite::Error| failed("schema_migrations", &e);
    let mut statement = connection.prepare("select name, checksum from schema_migrations").map_err(fail)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(fail)?;
    rows.collect::<Result<_, _>>().map_err(fail)
}

fn apply(connection: &mut Connection, file: &File, checksum: &str, now: Time) -> Result<(), Error> {
    let fail = |e: rusqlite::Error| failed(file.name, &e);
    let transaction = connection.transaction().map_err(fail)?;
    transaction.execute_batch(&render(file.sql)).map_err(fail)?;
    transaction
        .execute(
            "insert into schema_migrations values (?1, ?2, ?3)",
            params![file.name, checksum, now.micros()],
        )
        .map_err(fail)?;
    transaction.commit().map_err(fail)
}

/// The file's text for SQLite.
#[must_use]
pub fn render(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 512);
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((token, tail)) = after.split_once('}') else { break };
        text.push_str(before);
        text.push_str(&expand(token));
        rest = tail;
    }
    text.push_str(rest);
    text
}

fn expand(token: &str) -> String {
    match token.split_once(' ') {
        Some(("append_only", table)) => ["update", "delete"]
            .map(|verb| {
                format!(
                    "create trigger if not exists {table}_no_{verb} before {verb} on {table}\n\
                     begin select raise(abort, '{table} is append-only'); end;\n"
                )
            })
            .concat(),
        _ => match token {
            "pk" => "integer primary key",
            // Counts of 10^-6 minor units: a NUMERIC column would turn fractions into binary floats.
            "money" | "time" | "flag" => "integer",
            "json" | "inet" => "text",
            "bytes" => "blob",
            "strict" => "strict",
            "strict_by_key" => "strict, without rowid",
            _ => return format!("{{{token}}}"),
        }
        .to_owned(),
    }
}

fn failed(name: &str, cause: &rusqlite::Error) -> Error {
    Error::Setup(format!("the schema file {name} could not be applied: {cause}; nothing of it was kept"))
}

fn changed(name: &str) -> Error {
    Error::Setup(format!(
        "the schema file {name} was applied in another version than this program has; use the program that made this database"
    ))
}

fn out_of_order(name: &str, missing: &str) -> Error {
    Error::Setup(format!(
        "the schema file {name} is applied but {missing} before it is not; restore the database from a backup"
    ))
}
