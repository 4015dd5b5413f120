//! A store on a folder of its own, and submissions as closures.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use kernel::Time;
use store::migration::{Chain, File};
use store::{Error, Query, Row, Settings, Store, Work, Write, Written, values};
use tempfile::TempDir;
use testkit::MovableClock;
use tokio::sync::oneshot;

/// A table with a unique name, and one that only grows.
pub(crate) const NOTES: Chain = Chain {
    name: "notes",
    files: &[File {
        name: "notes_v1",
        sql: "create table notes (id {pk}, name text not null unique, body {bytes}, version integer not null default 1) {strict};
              create table growth (id {pk}, note integer not null references notes (id)) {strict};
              {append_only growth}",
    }],
};

pub(crate) struct Scene {
    pub(crate) store: Arc<Store>,
    pub(crate) folder: TempDir,
}

pub(crate) fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    Scene { store: Arc::new(open(folder.path(), &[NOTES]).unwrap()), folder }
}

pub(crate) fn open(folder: &Path, chains: &[Chain]) -> Result<Store, Error> {
    Store::open(&Settings::new(folder), chains, Arc::new(MovableClock::at(1000)))
}

type Plan = Box<dyn FnOnce(Vec<Vec<Row>>, Time) -> Result<Vec<Write>, Error> + Send>;
pub(crate) type End = Result<Written, Error>;

struct Job {
    reads: Vec<Query>,
    plan: Option<Plan>,
    answer: oneshot::Sender<End>,
}

impl Work for Job {
    fn reads(&mut self) -> Vec<Query> {
        std::mem::take(&mut self.reads)
    }

    fn writes(&mut self, rows: Vec<Vec<Row>>, now: Time) -> Result<Vec<Write>, Error> {
        (self.plan.take().unwrap())(rows, now)
    }

    fn settled(self: Box<Self>, end: End) {
        let _ = self.answer.send(end);
    }
}

impl Scene {
    /// Hands a closure to the writer.
    pub(crate) fn plan(
        &self,
        reads: Vec<Query>,
        plan: impl FnOnce(Vec<Vec<Row>>, Time) -> Result<Vec<Write>, Error> + Send + 'static,
    ) -> oneshot::Receiver<End> {
        let (answer, answered) = oneshot::channel();
        self.store.enqueue(Box::new(Job { reads, plan: Some(Box::new(plan)), answer }));
        answered
    }

    pub(crate) fn enqueue(&self, writes: Vec<Write>) -> oneshot::Receiver<End> {
        self.plan(vec![], move |_, _| Ok(writes))
    }

    pub(crate) async fn write(&self, writes: Vec<Write>) -> End {
        self.enqueue(writes).await.unwrap()
    }

    /// Holds the writer inside a transaction until released: what is enqueued meanwhile is one group.
    pub(crate) fn hold(&self) -> Hold {
        let (started, begun): (Sender<()>, Receiver<()>) = channel();
        let (release, released): (Sender<()>, Receiver<()>) = channel();
        let end = self.plan(vec![], move |_, _| {
            started.send(()).unwrap();
            let _ = released.recv();
            Ok(vec![])
        });
        begun.recv().unwrap();
        Hold { _release: release, _end: end }
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let query = Query::new("notes.all", "select name from notes order by id", vec![]);
        let rows = self.store.query(query).await.unwrap();
        rows.iter().map(|row| row.text(0).unwrap().to_owned()).collect()
    }
}

/// Lets the writer go on when dropped.
pub(crate) struct Hold {
    _release: Sender<()>,
    _end: oneshot::Receiver<End>,
}

pub(crate) fn insert(name: &str) -> Write {
    Write::one("notes.insert", "insert into notes (name) values ($1)", values![name])
}

pub(crate) fn insert_bytes(name: &str, size: usize) -> Write {
    let sql = "insert into notes (name, body) values ($1, $2)";
    Write::one("notes.insert", sql, values![name, vec![7_u8; size]])
}

pub(crate) fn setup_text<T>(opened: Result<T, Error>) -> String {
    match opened {
        Err(Error::Setup(text)) => text,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it opened"),
    }
}
