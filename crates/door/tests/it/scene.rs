//! Two doors to one store (as two nodes would have), a clock to move, and what the tables say.

use std::sync::Arc;
use std::time::Duration;

use door::{Answer, Done, Door, Failure};
use store::migration::CORE;
use store::{Query, Store, Write, values};
use tempfile::TempDir;
use testkit::{CountingRandom, MovableClock};
use tokio::sync::Semaphore;

use crate::domain::{Add, TEST};

pub(crate) struct Scene {
    pub(crate) door: Door,
    /// Knows nothing of the first one's locks.
    pub(crate) other: Door,
    pub(crate) clock: Arc<MovableClock>,
    _folder: TempDir,
}

pub(crate) const PATIENT: Duration = Duration::from_secs(20);

pub(crate) async fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(MovableClock::at(1_000_000));
    let settings = testkit::postgres::settings(folder.path());
    let store = Store::open(&settings, &[CORE, TEST], Arc::clone(&clock) as _).await.unwrap();
    let random = Arc::new(CountingRandom::default());
    let door = Door::new(store.clone(), Arc::clone(&random) as _);
    Scene { door, other: Door::new(store, random), clock, _folder: folder }
}

impl Scene {
    /// Runs `command` under its key and gives its result.
    pub(crate) async fn done(&self, command: Add) -> Done {
        done(self.door.submit(command.waiting(PATIENT)).await)
    }

    /// Runs `command` in a task of its own.
    pub(crate) fn start(
        &self,
        door: &Door,
        command: Add,
    ) -> tokio::task::JoinHandle<Result<Answer, Failure>> {
        let door = door.clone();
        tokio::spawn(async move { door.submit(command.now()).await })
    }

    pub(crate) async fn count(&self, sql: impl Into<String>) -> i64 {
        let rows = self.door.store().query(Query::new("count", sql.into(), vec![])).await.unwrap();
        rows[0].int(0).unwrap()
    }

    pub(crate) async fn effects(&self, key: &str) -> i64 {
        let sql = "select count(*) from test_effects where key = $1";
        let rows = self.door.store().query(Query::new("effects", sql, values![key])).await.unwrap();
        rows[0].int(0).unwrap()
    }

    /// Status and attempts of the key's record.
    pub(crate) async fn record(&self, key: &str) -> Option<(String, i64)> {
        let sql = "select status, attempt_no from test_records where key = $1";
        let rows = self.door.store().query(Query::new("record", sql, values![key])).await.unwrap();
        rows.first().map(|row| (row.text(0).unwrap().to_owned(), row.int(1).unwrap()))
    }

    /// Runs SQL past all rules.
    pub(crate) async fn force(&self, sql: impl Into<String>) {
        let write = Write::any("force", sql.into(), vec![]);
        self.door.maintain("force", vec![], move |_, _| Ok((vec![write.clone()], ()))).await.unwrap();
    }
}

pub(crate) fn done(answer: Result<Answer, Failure>) -> Done {
    match answer {
        Ok(Answer::Done(done)) => done,
        other => panic!("no result: {other:?}"),
    }
}

/// Same, durable; of an answer that must be "in progress".
pub(crate) fn in_progress(answer: Result<Answer, Failure>) -> (bool, bool) {
    match answer {
        Ok(Answer::InProgress { same, durable, .. }) => (same, durable),
        other => panic!("not in progress: {other:?}"),
    }
}

/// A place where a preparation waits until it is let through.
#[derive(Clone)]
pub(crate) struct Gate {
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { arrived: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    pub(crate) async fn pass(&self) {
        self.arrived.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }

    /// Waits until somebody stands at the gate.
    pub(crate) async fn reached(&self) {
        let arrived = tokio::time::timeout(PATIENT, self.arrived.acquire()).await;
        arrived.expect("nobody came to the gate").unwrap().forget();
    }

    /// Lets one through.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }

    /// The command with a preparation that waits here.
    pub(crate) fn before(&self, command: Add) -> Add {
        let gate = self.clone();
        command.preparing(move |_| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(())
            }
        })
    }
}
