//! A database behind a proxy that does harm, and works that are asked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kernel::Time;
use store::{Error, Query, Row, Settings, Store, Work, Write, Written};
use testkit::MovableClock;
use testkit::postgres::{self, Database};
use testkit::proxy::Proxy;
use tokio::sync::oneshot;

use crate::scene::{End, NOTES, Scene};

pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) proxy: Proxy,
    pub(crate) database: Database,
}

/// A store on a database of its own, behind a proxy.
pub(crate) async fn stage(adjust: impl FnOnce(&mut store::Postgres)) -> Stage {
    let database = postgres::required();
    let (mut settings, proxy) = database.behind_proxy();
    adjust(&mut settings);
    let store = open(&settings).await;
    let folder = tempfile::tempdir().unwrap();
    Stage { scene: Scene { store, folder }, proxy, database }
}

pub(crate) async fn open(settings: &store::Postgres) -> Store {
    let settings = Settings::Postgres(settings.clone());
    Store::open(&settings, &[NOTES], Arc::new(MovableClock::at(1000))).await.unwrap()
}

impl Stage {
    /// Names that stand in the table, asked past the product.
    pub(crate) fn kept(&self) -> Vec<String> {
        postgres::rows(&self.database.direct, "select name from notes order by id")
    }

    /// Sessions of the product that lie inside a transaction.
    pub(crate) fn open_transactions(&self) -> Vec<String> {
        postgres::rows(
            &self.database.direct,
            "select pid::text from pg_stat_activity where datname = current_database() and application_name = 'onceseal' and xact_start is not null",
        )
    }
}

/// The same writes each time it is asked, and how often it was.
pub(crate) struct Asked {
    writes: Vec<Write>,
    reads: Vec<Query>,
    times: Arc<AtomicU32>,
    answer: oneshot::Sender<End>,
}

/// Hands writes to the engine that it may ask for again; gives the end and how often it asked.
pub(crate) fn ask(store: &Store, writes: Vec<Write>) -> (oneshot::Receiver<End>, Arc<AtomicU32>) {
    let (answer, answered) = oneshot::channel();
    let times = Arc::new(AtomicU32::new(0));
    store.enqueue(Box::new(Asked { writes, reads: Vec::new(), times: Arc::clone(&times), answer }));
    (answered, times)
}

impl Work for Asked {
    fn again(&self) -> bool {
        true
    }

    fn reads(&mut self) -> Vec<Query> {
        self.reads.clone()
    }

    fn writes(&mut self, _: Vec<Vec<Row>>, _: Time) -> Result<Vec<Write>, Error> {
        self.times.fetch_add(1, Ordering::SeqCst);
        Ok(self.writes.clone())
    }

    fn settled(self: Box<Self>, end: Result<Written, Error>) {
        let _ = self.answer.send(end);
    }
}

/// Short enough for a test, long enough for a busy machine.
pub(crate) const SHORT: Duration = Duration::from_millis(200);
