//! The file of the embedded engine, by a connection of the gate's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::Fault;

/// How long the server's own writes are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection.
pub struct View {
    path: PathBuf,
    connection: Mutex<Connection>,
}

/// The write lock; given back when dropped.
pub struct Lock(Connection);

impl Drop for Lock {
    fn drop(&mut self) {
        // A connection that is closed gives it back as well.
        let _ = self.0.execute_batch("rollback");
    }
}

fn opened(path: &Path) -> Result<Connection, String> {
    let fail = |cause: rusqlite::Error| format!("the gate's database can't be opened: {cause}");
    let connection = Connection::open(path).map_err(fail)?;
    connection.busy_timeout(PATIENCE).map_err(fail)?;
    Ok(connection)
}

impl View {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        Ok(Self { path: path.to_owned(), connection: Mutex::new(opened(path)?) })
    }

    pub(super) fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let connection = self.connection.lock();
        let all = || {
            let mut statement = connection.prepare(sql)?;
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| {
                (0..columns).map(|column| row.get_ref(column).map(text)).collect::<Result<Vec<_>, _>>()
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        all().map_err(|cause: rusqlite::Error| cause.to_string())
    }

    pub(super) fn run(&self, sql: &str) -> Result<(), String> {
        self.connection.lock().execute_batch(sql).map_err(|cause| cause.to_string())
    }

    pub(super) fn lock(&self) -> Result<Lock, String> {
        let connection = opened(&self.path)?;
        connection.execute_batch("begin immediate").map_err(|cause| cause.to_string())?;
        Ok(Lock(connection))
    }
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        // Bytes may hold text: a canary in them must be found.
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A trigger with this fault.
pub(super) fn trigger(verb: &str, table: &str, fault: Fault) -> String {
    let body = match fault {
        // An error of the statement, not of a value: the smallest integer has no absolute one.
        Fault::Breaks | Fault::Hangs => "select abs(-9223372036854775807 - 1)",
        Fault::Ignored => "select raise(ignore)",
        // Some milliseconds of counting: a slice stays well within a lease.
        Fault::Slow => {
            "select max(n) from (with recursive c (n) as (select 1 union all select n + 1 from c where n < 20000) select n from c)"
        }
        // A row without its parent, which only the commit looks at.
        Fault::AtCommit => "insert into gate_child (parent) values (1)",
    };
    let at = format!("create trigger gate_fault before {verb} on {table} begin {body}; end");
    if fault == Fault::AtCommit {
        return format!(
            "create table if not exists gate_parent (id integer primary key);
             create table if not exists gate_child (parent integer references gate_parent (id)
               deferrable initially deferred); {at}"
        );
    }
    at
}
