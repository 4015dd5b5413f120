//! The open store: one face for every engine.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::Clock;

use crate::driver::Driver;
use crate::driver::postgres::{self, Postgres};
use crate::driver::sqlite::{self, Sqlite};
use crate::error::Error;
use crate::migration::Chain;
use crate::statement::Query;
use crate::value::Row;
use crate::work::Work;

/// Which engine, and how to reach it.
#[derive(Clone, Debug)]
pub enum Settings {
    /// A file in a folder, for one server.
    Sqlite(Sqlite),
    /// A server of its own, for many.
    Postgres(Postgres),
}

impl Settings {
    /// The embedded store in a folder, with its defaults.
    #[must_use]
    pub fn folder(folder: impl Into<PathBuf>) -> Self {
        Self::Sqlite(Sqlite::new(folder))
    }
}

/// The open store. Cheap to share; the engine closes when the last owner drops it.
#[derive(Clone, Debug)]
pub struct Store {
    driver: Arc<dyn Driver>,
}

impl Store {
    /// Opens the store and brings the schema up to `chains`.
    ///
    /// # Errors
    /// [`Error::Setup`] when the engine can't be used, another server holds the folder, or the database is
    /// newer than this program; it says which and what to do.
    pub async fn open(settings: &Settings, chains: &[Chain], clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Ok(match settings {
            Settings::Sqlite(settings) => {
                Self::over(Arc::new(sqlite::Engine::open(settings, chains, clock)?))
            }
            Settings::Postgres(settings) => {
                Self::over(Arc::new(postgres::Engine::open(settings, chains, clock).await?))
            }
        })
    }

    /// A store over a driver of one's own: the simulation's.
    #[must_use]
    pub fn over(driver: Arc<dyn Driver>) -> Self {
        Self { driver }
    }

    /// Hands a submission to the engine. The crate `door` is the only caller: a check in `cargo xtask
    /// tidy` proves it.
    pub fn enqueue(&self, work: Box<dyn Work>) {
        self.driver.enqueue(work);
    }

    /// Submissions that wait for their turn.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.driver.waiting()
    }

    /// Runs one read on the newest committed state.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`] or [`Error::Statement`].
    pub async fn query(&self, query: Query) -> Result<Vec<Row>, Error> {
        let name = query.name;
        let mut answers = self.driver.queries(vec![query]).await?;
        answers.pop().ok_or(Error::Statement { name, cause: "no answer".into() })
    }

    /// Runs several reads on one and the same committed state.
    ///
    /// # Errors
    /// As [`Store::query`].
    pub async fn queries(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        self.driver.queries(queries).await
    }

    /// Copies the whole committed state into a new file, while writes go on.
    ///
    /// # Errors
    /// [`Error::Setup`] when the target exists or can't be written, or the engine has tools of its own for
    /// it.
    pub async fn copy_to(&self, target: PathBuf) -> Result<(), Error> {
        self.driver.copy_to(target).await
    }

    /// What the engine itself finds wrong with its state; empty when all is well.
    ///
    /// # Errors
    /// As [`Store::query`].
    pub async fn integrity(&self) -> Result<Vec<String>, Error> {
        self.driver.integrity().await
    }

    /// Size of the write-ahead file in bytes, for metrics; 0 where the engine keeps it to itself.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.driver.log_bytes()
    }

    /// How far the store's clock is ahead of this machine's, in microseconds; 0 where they are one.
    #[must_use]
    pub fn ahead(&self) -> i64 {
        self.driver.ahead()
    }

    /// Whether other servers may write to the same store.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.driver.is_shared()
    }
}
