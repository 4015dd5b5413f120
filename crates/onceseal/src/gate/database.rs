//! The database behind the product's back: what its tables say, faults that are put into it, locks that are held
//! against it. Only the gate does this, and only to a database of its own.

mod postgres;
mod sqlite;

use std::fmt;
use std::path::Path;

pub use postgres::Address;

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// One file.
    Sqlite,
    /// A server.
    Postgres,
}

impl Engine {
    /// As it stands in the id of a check.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An open view.
pub enum Database {
    /// Of the file.
    Sqlite(sqlite::View),
    /// Of the server.
    Postgres(Box<postgres::View>),
}

/// A lock that is held until it is dropped.
pub enum Held {
    /// The file's write lock.
    Sqlite(sqlite::Lock),
    /// Rows.
    Postgres(Box<postgres::View>),
}

/// A write that a fault is put into.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// `insert` or `update`.
    pub verb: &'static str,
    /// Of which table.
    pub table: &'static str,
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The statement raises an error.
    Breaks,
    /// The row is not touched: the race of versions is lost.
    Ignored,
    /// PostgreSQL: the statement goes on for longer than the server lets it.
    Hangs,
    /// All is well until the commit, which fails.
    AtCommit,
    /// The row takes its time, and is written.
    Slow,
}

impl Database {
    /// Opens the file in a data folder.
    ///
    /// # Errors
    /// It can't be opened.
    pub fn sqlite(folder: &Path) -> Result<Self, String> {
        sqlite::View::open(&folder.join(store::FILE)).map(Self::Sqlite)
    }

    /// Opens a session.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn postgres(address: &Address) -> Result<Self, String> {
        Ok(Self::Postgres(Box::new(postgres::View::open(address).await?)))
    }

    /// Which kind it is.
    #[must_use]
    pub const fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// The rows of a query, each column as text; nothing is the empty text.
    ///
    /// # Errors
    /// The engine refuses the statement.
    pub async fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        match self {
            Self::Sqlite(view) => view.rows(sql),
            Self::Postgres(view) => view.rows(sql).await,
        }
        .map_err(|cause| format!("{sql}: {cause}"))
    }

    /// The first column of each row.
    ///
    /// # Errors
    /// As [`Database::rows`].
    pub async fn texts(&self, sql: &str) -> Result<Vec<String>, String> {
        Ok(self.rows(sql).await?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    /// The one number that a query gives.
    ///
    /// # Errors
    /// As [`Database::rows`], or it is no whole number.
    pub async fn count(&self, sql: &str) -> Result<i64, String> {
        let text = self.texts(sql).await?.pop().unwrap_or_default();
        text.parse().map_err(|_| format!("{sql}: {text:?} is no whole number"))
    }

    /// Runs statements for good.
    ///
    /// # Errors
    /// The engine refuses one.
    pub async fn run(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::Sqlite(view) => view.run(sql),
            Self::Postgres(view) => view.run(sql).await,
        }
        .map_err(|cause| format!("{sql}: {cause}"))
    }

    /// The first column of the rows of a query, after a statement that changes copies of these tables alone. The copies
    /// belong to this session, stand before the tables in it, and are gone when this returns.
    ///
    /// # Errors
    /// The engine refuses a statement.
    pub async fn planted(&self, tables: &[&str], plant: &str, sql: &str) -> Result<Vec<String>, String> {
        let (schema, own) = match self.engine() {
            Engine::Sqlite => ("main", "temp"),
            Engine::Postgres => ("public", "pg_temp"),
        };
        for table in tables {
            self.run(&format!("create temp table {table} as select * from {schema}.{table}")).await?;
        }
        let found = async {
            self.run(plant).await?;
            self.texts(sql).await
        }
        .await;
        for table in tables {
            self.run(&format!("drop table {own}.{table}")).await?;
        }
        found
    }

    /// Holds a lock that the row with this id needs: on SQLite that of the whole file.
    ///
    /// # Errors
    /// It can't be had.
    pub async fn hold(&self, table: &str, rows: &str) -> Result<Held, String> {
        match self {
            Self::Sqlite(view) => view.lock().map(Held::Sqlite),
            Self::Postgres(view) => {
                let second = view.again().await?;
                second.run(&format!("begin; select 1 from {table} where {rows} for update")).await?;
                Ok(Held::Postgres(Box::new(second)))
            }
        }
    }

    /// From now on this happens there.
    ///
    /// # Errors
    /// The engine refuses the trigger.
    pub async fn plant(&self, spot: Spot, fault: Fault) -> Result<(), String> {
        let Spot { verb, table } = spot;
        let sql = match self.engine() {
            Engine::Sqlite => sqlite::trigger(verb, table, fault),
            Engine::Postgres => postgres::trigger(verb, table, fault),
        };
        self.run(&sql).await
    }

    /// No longer.
    ///
    /// # Errors
    /// The engine refuses.
    pub async fn heal(&self, spot: Spot) -> Result<(), String> {
        let of = match self.engine() {
            Engine::Sqlite => String::new(),
            Engine::Postgres => format!(" on {}", spot.table),
        };
        self.run(&format!("drop trigger gate_fault{of}")).await
    }

    /// Everything that every table holds, a line a row: what a canary is searched for in.
    ///
    /// # Errors
    /// As [`Database::rows`].
    pub async fn whole(&self) -> Result<Vec<(String, String)>, String> {
        let tables = match self.engine() {
            Engine::Sqlite => {
                "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by 1"
            }
            Engine::Postgres => {
                "select table_name from information_schema.tables where table_schema = 'public'
                 and table_type = 'BASE TABLE' order by 1"
            }
        };
        let mut whole = Vec::new();
        for table in self.texts(tables).await? {
            let rows = self.rows(&format!("select * from {table}")).await?;
            let text: Vec<String> = rows.into_iter().map(|row| row.join("\t")).collect();
            whole.push((table, text.join("\n")));
        }
        Ok(whole)
    }
}
