//! The running engine, behind the store's back: its catalogue, and statements that are undone again.

use rusqlite::Connection;
use store::dialect::Dialect;
use store::migration::Chain;
use tempfile::TempDir;
use testkit::postgres;

use crate::scene::open;

/// What [`Look::tried`] says of a statement that nothing refused.
pub(super) const TAKEN: &str = "taken";

/// Runs a statement, undoes it, and tells what refused it: the code and the rule's or the column's name.
const TRY: &str = "create function onceseal_try(statement text) returns text language plpgsql as $f$
declare rule text; column_ text; words text;
begin
  execute statement;
  raise exception using errcode = 'OS900';
exception
  when sqlstate 'OS900' then return 'taken';
  when others then
    get stacked diagnostics rule = constraint_name, column_ = column_name, words = message_text;
    return sqlstate || ' ' || coalesce(nullif(rule, ''), nullif(column_, ''), words);
end $f$";

/// A database with a schema of its own.
pub(super) struct Look {
    folder: TempDir,
    url: Option<String>,
}

impl Look {
    pub(super) async fn at(chains: &[Chain]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), chains).await.unwrap());
        let url = postgres::beside(folder.path()).map(|database| database.direct);
        if let Some(url) = &url {
            postgres::execute(url, TRY);
        }
        Self { folder, url }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.url.as_ref().map_or(Dialect::Sqlite, |_| Dialect::Postgres)
    }

    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The first column of each row, by the query of the engine that runs.
    pub(super) fn lines(&self, sqlite: &str, on_postgres: &str) -> Vec<String> {
        let Some(url) = &self.url else {
            let connection = self.connection();
            let mut statement = connection.prepare(sqlite).unwrap();
            let lines = statement.query_map([], |row| row.get(0)).unwrap();
            return lines.collect::<Result<_, _>>().unwrap();
        };
        postgres::rows(url, on_postgres)
    }

    /// Runs statements for good.
    pub(super) fn run(&self, statements: &[String]) {
        let sql = statements.join(";\n");
        match &self.url {
            Some(url) => postgres::execute(url, &sql),
            None => self.connection().execute_batch(&sql).unwrap(),
        }
    }

    /// Runs each statement, undoes it, and gives what refused it, or [`TAKEN`].
    pub(super) fn tried(&self, statements: &[String]) -> Vec<String> {
        let Some(url) = &self.url else {
            let connection = self.connection();
            return statements.iter().map(|sql| undone(&connection, sql)).collect();
        };
        let list: Vec<_> =
            statements.iter().enumerate().map(|(n, sql)| format!("({n}, $q${sql}$q$)")).collect();
        let sql = format!("select onceseal_try(s) from (values {}) v (n, s) order by n", list.join(", "));
        postgres::rows(url, &sql)
    }

    fn connection(&self) -> Connection {
        let connection = Connection::open(self.folder.path().join(store::FILE)).unwrap();
        connection.execute_batch("pragma foreign_keys = on").unwrap();
        connection
    }
}

fn undone(connection: &Connection, sql: &str) -> String {
    connection.execute_batch("savepoint tried").unwrap();
    let end = connection.execute_batch(sql);
    connection.execute_batch("rollback to tried; release tried").unwrap();
    match end {
        Ok(()) => TAKEN.into(),
        Err(rusqlite::Error::SqliteFailure(_, Some(words))) => words,
        Err(other) => other.to_string(),
    }
}
