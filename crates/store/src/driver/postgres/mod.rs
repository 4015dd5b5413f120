//! PostgreSQL, for many nodes: every submission is a transaction of its own on a pooled connection, in two
//! round trips: begin, locks, time and reads; then writes, guard and commit.
//!
//! Modules in reading order: [`settings`], `tls`, `connection` (one session: its statements, its notices),
//! `pool`, `transaction` (a submission's two trips), `value`, `fault` (what an error means), `schema`,
//! `layout` (the tables, read back).

mod connection;
mod fault;
mod layout;
mod pool;
mod schema;
mod transaction;
mod value;

pub mod settings;
pub mod tls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kernel::Clock;

pub use self::settings::{Mode, Postgres, Timeouts};

use self::fault::unavailable;
use self::pool::Pool;
use self::transaction::Transaction;
use crate::copy::Table;
use crate::driver::Driver;
use crate::error::Error;
use crate::migration::{Chain, Registered};
use crate::statement::{Query, Write};
use crate::value::Row;
use crate::work::{Work, Written};

/// Submissions that may wait for a connection. Whoever comes later is told to come again instead of
/// filling the memory.
const QUEUE_MAX: usize = 16_384;
/// Tries of one transaction that the server undid for reasons that lie in others, or whose connection was
/// of no use before its commit was sent.
const TRIES_MAX: u32 = 4;
/// Pause before the second try; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(10);

/// The open engine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Pool,
    clock: Arc<dyn Clock>,
    waiting: AtomicUsize,
    /// Microseconds by which the server's clock is ahead of ours.
    ahead: AtomicI64,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens it and brings the schema up, trying for as long as `patience` where others are in the way.
    pub(crate) async fn open(
        settings: &Postgres,
        chains: &[Chain],
        clock: Arc<dyn Clock>,
        patience: Duration,
    ) -> Result<Self, Error> {
        let engine = Self::look(settings, clock).await?;
        schema::run(&engine.shared.pool, chains, patience).await?;
        Ok(engine)
    }

    /// Opens it as it is.
    pub(crate) async fn look(settings: &Postgres, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let pool = Pool::new(settings)?;
        let waiting = AtomicUsize::new(0);
        // Known from the start: the first signature is judged before the first transaction is over.
        let ahead = AtomicI64::new(transaction::ahead(&mut *pool.get().await?, &*clock).await?);
        Ok(Self { shared: Arc::new(Shared { pool, clock, waiting, ahead }) })
    }
}

#[async_trait]
impl Driver for Engine {
    fn enqueue(&self, work: Box<dyn Work>) {
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) >= QUEUE_MAX {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            return work.settled(Err(unavailable("too many submissions wait")));
        }
        // A task of its own: whoever asked may go, the transaction ends all the same.
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move { shared.serve(work).await });
    }

    async fn queries(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        let mut tries = 0;
        loop {
            let mut connection = self.shared.pool.get().await?;
            let fault = match transaction::snapshot(&mut connection, &queries).await {
                Ok(rows) => return Ok(rows),
                Err(fault) => fault,
            };
            self.shared.pool.mind(&mut connection, &fault);
            drop(connection);
            tries += 1;
            if tries >= TRIES_MAX || fault.is_final() {
                return Err(fault.into_error());
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(tries)).await;
        }
    }

    /// Tried once: whoever looks through everything comes again. In a task of its own: whoever asked may go, the next
    /// one on the connection does not wait for what is left of it.
    async fn survey(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        let shared = Arc::clone(&self.shared);
        let surveyed = tokio::spawn(async move {
            let mut connection = shared.pool.get().await?;
            transaction::survey(&mut connection, &queries).await.map_err(|fault| {
                shared.pool.mind(&mut connection, &fault);
                fault.into_error()
            })
        });
        surveyed.await.unwrap_or_else(|stopped| Err(unavailable(&stopped.to_string())))
    }

    fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Indexes that an interrupted build left unusable.
    async fn integrity(&self) -> Result<Vec<String>, Error> {
        let sql = "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid where not i.indisvalid";
        let rows = self.queries(vec![Query::new("engine.indexes", sql, vec![])]).await?;
        rows.iter()
            .flatten()
            .map(|row| Ok(format!("the index {} is not valid; rebuild it: reindex index {0}", row.text(0)?)))
            .collect()
    }

    async fn registered(&self) -> Result<Vec<Registered>, Error> {
        schema::registered(&self.shared.pool).await
    }

    fn chains(&self, chains: &[Chain]) -> Vec<Chain> {
        schema::with_engine(chains)
    }

    async fn layout(&self) -> Result<Vec<Table>, Error> {
        let answers = self.queries(layout::queries()).await?;
        layout::read(&answers)
    }

    fn count_on(&self, table: &Table) -> Option<Write> {
        layout::count_on(table)
    }

    fn ahead(&self) -> i64 {
        self.shared.ahead.load(Ordering::Relaxed)
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl Shared {
    async fn serve(&self, mut work: Box<dyn Work>) {
        let end = self.run(&mut *work).await;
        if catch_unwind(AssertUnwindSafe(|| work.settled(end))).is_err() {
            tracing::error!("a submission panicked when it was told its end");
        }
    }

    async fn run(&self, work: &mut dyn Work) -> Result<Written, Error> {
        let mut counted = Some(Waiting(&self.waiting));
        let mut planned = false;
        for tries in 1.. {
            let mut connection = self.pool.get().await?;
            counted.take();
            let ended =
                Transaction { connection: &mut connection, work, planned: &mut planned, shared: self }
                    .run()
                    .await;
            let fault = match ended {
                Ok(written) => return Ok(written),
                Err(fault) => fault,
            };
            self.pool.mind(&mut connection, &fault);
            drop(connection);
            let again = !planned || work.again();
            if tries >= TRIES_MAX || !again || fault.is_final() {
                return Err(fault.into_error());
            }
            tracing::debug!(?fault, tries, "the transaction is tried again");
            tokio::time::sleep(PAUSE * 2_u32.pow(tries)).await;
        }
        Err(unavailable("no try was left"))
    }
}

/// Counts a submission as waiting until it has its connection.
struct Waiting<'c>(&'c AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
