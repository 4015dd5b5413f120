//! The open store: one face for every engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kernel::{Clock, Time};

use crate::copy::Table;
use crate::driver::Driver;
use crate::driver::postgres::{self, Postgres};
use crate::driver::sqlite::{self, Sqlite};
use crate::error::Error;
use crate::migration::{Chain, Registered};
use crate::statement::{Query, Write};
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

/// How long a program that starts tries to bring the schema up, where others are in the way.
const SCHEMA_WITHIN: Duration = Duration::from_secs(180);

/// The open store. Cheap to share; the engine closes when the last owner drops it.
#[derive(Clone, Debug)]
pub struct Store {
    driver: Arc<dyn Driver>,
    closed: Arc<AtomicBool>,
}

/// A clock for what only reads: none of it is kept.
#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Time {
        Time::from_micros(0)
    }
}

impl Store {
    /// Opens the store and brings the schema up to `chains`.
    ///
    /// # Errors
    /// [`Error::Setup`] when the engine can't be used, another server holds the folder, or the database is
    /// newer than this program; it says which and what to do.
    pub async fn open(settings: &Settings, chains: &[Chain], clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::open_within(settings, chains, clock, SCHEMA_WITHIN).await
    }

    /// As [`Store::open`]; the schema is tried for as long as `patience` where others are in the way.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_within(
        settings: &Settings,
        chains: &[Chain],
        clock: Arc<dyn Clock>,
        patience: Duration,
    ) -> Result<Self, Error> {
        Ok(match settings {
            Settings::Sqlite(settings) => {
                Self::over(Arc::new(sqlite::Engine::open(settings, chains, clock)?))
            }
            Settings::Postgres(settings) => {
                Self::over(Arc::new(postgres::Engine::open(settings, chains, clock, patience).await?))
            }
        })
    }

    /// Opens what is there for reading, as it is: any schema, and while a server works with it.
    ///
    /// # Errors
    /// [`Error::Setup`] and [`Error::Unavailable`] when there is no database or it can't be reached.
    pub async fn look(settings: &Settings) -> Result<Self, Error> {
        Ok(match settings {
            Settings::Sqlite(settings) => Self::over(Arc::new(sqlite::Look::open(settings)?)),
            Settings::Postgres(settings) => {
                Self::over(Arc::new(postgres::Engine::look(settings, Arc::new(NoClock)).await?))
            }
        })
    }

    /// A store over a driver of one's own: the simulation's.
    #[must_use]
    pub fn over(driver: Arc<dyn Driver>) -> Self {
        Self { driver, closed: Arc::default() }
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

    /// Runs reads that go through everything there is, on one and the same committed state. They may take minutes, which
    /// the bounds of [`Store::queries`] do not let them; nobody who waits for an answer calls it.
    ///
    /// # Errors
    /// As [`Store::query`].
    pub async fn survey(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        self.driver.survey(queries).await
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

    /// The schema files that the database has.
    ///
    /// # Errors
    /// As [`Store::query`].
    pub async fn registered(&self) -> Result<Vec<Registered>, Error> {
        self.driver.registered().await
    }

    /// `chains` with what the engine needs of its own before them.
    #[must_use]
    pub fn chains(&self, chains: &[Chain]) -> Vec<Chain> {
        self.driver.chains(chains)
    }

    /// The tables that are there.
    ///
    /// # Errors
    /// As [`Store::query`].
    pub async fn layout(&self) -> Result<Vec<Table>, Error> {
        self.driver.layout().await
    }

    /// Makes a table's counter go on behind its highest number, where it doesn't by itself.
    pub(crate) fn count_on(&self, table: &Table) -> Option<Write> {
        self.driver.count_on(table)
    }

    /// Nothing new is to be begun: what is being done may still be written. Whoever begins work asks
    /// [`Store::is_closed`] first.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Takes [`Store::close`] back.
    pub fn reopen(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }

    /// Whether new work is to be turned away.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst) || self.driver.is_fenced()
    }

    /// Ends all writing, durably: what was handed in before is written, everything later gets
    /// [`Error::Fenced`], and no program opens this store until the fence is lifted. Reads go on.
    ///
    /// # Errors
    /// [`Error::Setup`] where the engine can't; else those of a write. Writing goes on then, except after
    /// [`Error::Indeterminate`].
    pub async fn fence(&self) -> Result<(), Error> {
        self.driver.fence().await
    }

    /// Lets writing begin again. Without a fence nothing happens.
    ///
    /// # Errors
    /// Those of a write; the fence stands then.
    pub async fn lift_fence(&self) -> Result<(), Error> {
        self.driver.lift_fence().await?;
        self.reopen();
        Ok(())
    }
}
