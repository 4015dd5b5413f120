//! A database in memory in its owner's hand, for drivers that imitate another engine: the simulation's. It
//! has no threads and no queue; its owner marks a state and goes back to it. Not for servers: nothing is
//! ever durable.

use kernel::Time;
use rusqlite::Connection;

use super::{connection, schema};
use crate::error::Error;
use crate::migration::Chain;
use crate::statement::{Query, Write};
use crate::value::Row;
use crate::work::Written;

/// Statements kept prepared; more than a simulation has.
const STATEMENTS: usize = 256;

/// A SQLite database in memory.
pub struct Memory {
    connection: Connection,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Memory {
    /// A database with all files of `chains`, applied at `now`.
    ///
    /// # Errors
    /// [`Error::Setup`] when a file can't be applied.
    pub fn open(chains: &[Chain], now: Time) -> Result<Self, Error> {
        let mut connection = Connection::open_in_memory().map_err(|e| connection::opening(&e))?;
        let pragmas = "pragma foreign_keys = on; pragma temp_store = memory; pragma recursive_triggers = on; pragma journal_mode = memory; pragma synchronous = off;";
        connection.execute_batch(pragmas).map_err(|e| connection::opening(&e))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        schema::run(&mut connection, chains, now)?;
        Ok(Self { connection })
    }

    /// Marks this state.
    ///
    /// # Errors
    /// [`Error::Statement`] and others, as the engine says.
    pub fn mark(&self) -> Result<(), Error> {
        self.run("begin")
    }

    /// Goes back to the marked state. It is marked no longer: a mark that stays would make the engine keep
    /// all that was ever changed since.
    ///
    /// # Errors
    /// As [`Memory::mark`].
    pub fn back(&self) -> Result<(), Error> {
        self.run("rollback")
    }

    /// Runs a read.
    ///
    /// # Errors
    /// As [`crate::Store::query`].
    pub fn read(&self, query: &Query) -> Result<Vec<Row>, Error> {
        connection::read(&self.connection, query)
    }

    /// Runs writes: all of them or none.
    ///
    /// # Errors
    /// [`Error::Raised`] when a check raised, others as the engine says; nothing is kept then.
    pub fn write(&self, writes: &[Write]) -> Result<Written, Error> {
        self.run("savepoint works")?;
        let mut written = Written::default();
        for write in writes {
            match connection::write(&self.connection, write) {
                Ok(rows) => written.returned.push((write.name, rows)),
                Err(error) => {
                    self.run("rollback to works")?;
                    self.run("release works")?;
                    return Err(error);
                }
            }
        }
        self.run("release works")?;
        Ok(written)
    }

    fn run(&self, sql: &'static str) -> Result<(), Error> {
        let ran = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        ran.map(|_| ()).map_err(|e| connection::running("memory", &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::CORE;
    use crate::values;

    const INSERT: &str =
        "insert into core_projects (tenant_id, code, name, created_at, updated_at) values (1, $1, 'n', 0, 0)";

    fn count(memory: &Memory) -> i64 {
        let query = Query::new("count", "select count(*) from core_projects", vec![]);
        memory.read(&query).unwrap()[0].int(0).unwrap()
    }

    #[test]
    fn writes_are_kept_together_or_not_at_all_and_a_mark_takes_them_back() {
        let memory = Memory::open(&[CORE], Time::from_seconds(1)).unwrap();
        memory.mark().unwrap();
        let insert = |code: &str| Write::one("insert", INSERT, values![code]);
        memory.write(&[insert("a"), insert("b")]).unwrap();
        assert!(matches!(memory.write(&[insert("c"), insert("a")]), Err(Error::Raised(_))));
        assert_eq!(count(&memory), 2);
        memory.back().unwrap();
        assert_eq!(count(&memory), 0);
        memory.mark().unwrap();
        memory.write(&[insert("a")]).unwrap();
        assert_eq!(count(&memory), 1);
    }
}
