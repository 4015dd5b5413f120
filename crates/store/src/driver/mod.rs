//! The engines. Everything that knows one by name is below here.

use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::error::Error;
use crate::statement::Query;
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
}
