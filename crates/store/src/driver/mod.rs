//! The engines. Everything that knows one by name is below here.

use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::copy::Table;
use crate::error::Error;
use crate::migration::{Chain, Registered};
use crate::statement::{Query, Write};
use crate::value::Row;
use crate::work::Work;

pub mod postgres;
pub(crate) mod sqlite;

/// What an engine must be able to do. [`crate::Store`] has the words for users.
#[async_trait]
pub trait Driver: Debug + Send + Sync {
    /// Runs a submission in a transaction and tells it its end, without making the caller wait.
    fn enqueue(&self, work: Box<dyn Work>);

    /// Runs reads on one committed state.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`] or [`Error::Statement`].
    async fn queries(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error>;

    /// As [`Driver::queries`], for reads that go through everything and may take minutes.
    ///
    /// # Errors
    /// As [`Driver::queries`].
    async fn survey(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        self.queries(queries).await
    }

    /// Submissions that wait for their turn.
    fn waiting(&self) -> usize;

    /// Copies the committed state into a new file.
    ///
    /// # Errors
    /// [`Error::Setup`] when it can't.
    async fn copy_to(&self, target: PathBuf) -> Result<(), Error> {
        let _ = target;
        Err(Error::Setup(
            "this store is no file; take its backup with the engine's own tools (pg_dump, pg_basebackup)"
                .into(),
        ))
    }

    /// What the engine finds wrong with its own state.
    ///
    /// # Errors
    /// As [`Driver::queries`].
    async fn integrity(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Size of the write-ahead file in bytes.
    fn log_bytes(&self) -> u64 {
        0
    }

    /// How far the store's clock is ahead of this machine's, in microseconds.
    fn ahead(&self) -> i64 {
        0
    }

    /// Whether other servers may write to the same store.
    fn is_shared(&self) -> bool {
        false
    }

    /// The schema files that the database has.
    ///
    /// # Errors
    /// As [`Driver::queries`].
    async fn registered(&self) -> Result<Vec<Registered>, Error> {
        Ok(Vec::new())
    }

    /// `chains` with what the engine needs of its own before them.
    fn chains(&self, chains: &[Chain]) -> Vec<Chain> {
        chains.to_vec()
    }

    /// The tables that are there.
    ///
    /// # Errors
    /// As [`Driver::queries`].
    async fn layout(&self) -> Result<Vec<Table>, Error> {
        Ok(Vec::new())
    }

    /// Makes a table's counter go on behind its highest number, where it doesn't by itself.
    fn count_on(&self, table: &Table) -> Option<Write> {
        let _ = table;
        None
    }

    /// Ends all writing, durably, behind what is being written.
    ///
    /// # Errors
    /// [`Error::Setup`] where the engine can't; [`Error::Unavailable`] and [`Error::Indeterminate`] of the
    /// mark that is written.
    async fn fence(&self) -> Result<(), Error> {
        Err(Error::Setup("other servers write to this database, and it can't stop them".into()))
    }

    /// Lets writing begin again.
    ///
    /// # Errors
    /// As [`Driver::fence`].
    async fn lift_fence(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the fence stands.
    fn is_fenced(&self) -> bool {
        false
    }
}
