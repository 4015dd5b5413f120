//! A store of a test's own, and submissions as closures.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use kernel::Time;
use store::migration::{Chain, File};
use store::{Error, Lock, Query, Row, Store, Work, Write, Written, values};
use tempfile::TempDir;
use testkit::MovableClock;
use testkit::postgres;
use tokio::sync::oneshot;

/// A table with a unique name, and one that only grows.
pub(crate) const NOTES: Chain = Chain {
    name: "notes",
    files: &[File::new(
        "notes_v1",
        "create table notes (id {pk}, name text not null unique, body {bytes}, version {int} not null default 1,
           at {time}, flag {flag}, json {json}, money {money}, address {inet}) {strict};
         create table growth (id {pk}, note {int} not null references notes (id)) {strict};
         {append_only growth}",
    )],
};

pub(crate) struct Scene {
    pub(crate) store: Store,
    pub(crate) folder: TempDir,
}

pub(crate) async fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    Scene { store: open(folder.path(), &[NOTES]).await.unwrap(), folder }
}

/// Opens the store of `folder` on the engine that the suite runs on.
pub(crate) async fn open(folder: &Path, chains: &[Chain]) -> Result<Store, Error> {
    Store::open(&postgres::settings(folder), chains, Arc::new(MovableClock::at(1000))).await
}

type Plan = Box<dyn FnOnce(Vec<Vec<Row>>, Time) -> Result<Vec<Write>, Error> + Send>;
pub(crate) type End = Result<Written, Error>;

struct Job {
    lock: Lock,
    reads: Vec<Query>,
    plan: Option<Plan>,
    answer: oneshot::Sender<End>,
}

impl Work for Job {
    fn lock(&self) -> Lock {
        self.lock
    }

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
    /// Hands a closure to the engine.
    pub(crate) fn plan(
        &self,
        reads: Vec<Query>,
        plan: impl FnOnce(Vec<Vec<Row>>, Time) -> Result<Vec<Write>, Error> + Send + 'static,
    ) -> oneshot::Receiver<End> {
        self.locked(Lock::None, reads, plan)
    }

    pub(crate) fn locked(
        &self,
        lock: Lock,
        reads: Vec<Query>,
        plan: impl FnOnce(Vec<Vec<Row>>, Time) -> Result<Vec<Write>, Error> + Send + 'static,
    ) -> oneshot::Receiver<End> {
        let (answer, answered) = oneshot::channel();
        self.store.enqueue(Box::new(Job { lock, reads, plan: Some(Box::new(plan)), answer }));
        answered
    }

    pub(crate) fn enqueue(&self, writes: Vec<Write>) -> oneshot::Receiver<End> {
        self.plan(vec![], move |_, _| Ok(writes))
    }

    pub(crate) async fn write(&self, writes: Vec<Write>) -> End {
        self.enqueue(writes).await.unwrap()
    }

    /// Holds a transaction open until released, on a thread of the engine: what is enqueued meanwhile on
    /// the embedded engine is one group.
    pub(crate) fn hold(&self) -> Hold {
        let (started, begun): (Sender<()>, Receiver<()>) = channel();
        let (release, released): (Sender<()>, Receiver<()>) = channel();
        let end = self.plan(vec![], move |_, _| {
            started.send(()).unwrap();
            // What else this thread of the runtime had to do goes to another one.
            let _ = tokio::task::block_in_place(|| released.recv());
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

/// Lets the transaction go on when dropped.
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

/// The whole schema and its registry, as the engine itself tells it.
pub(crate) fn dump(folder: &Path) -> Vec<String> {
    let Some(database) = postgres::beside(folder) else {
        let connection = rusqlite::Connection::open(folder.join(store::FILE)).unwrap();
        let sql = "select coalesce(sql, name) from sqlite_schema union all select name || checksum || applied_at from schema_migrations";
        let mut statement = connection.prepare(sql).unwrap();
        let lines = statement.query_map([], |row| row.get(0)).unwrap();
        return lines.collect::<Result<_, _>>().unwrap();
    };
    let columns = "select table_name || ' ' || column_name || ' ' || data_type || coalesce('(' || numeric_precision::text || ',' || numeric_scale::text || ')', '')
        || case when is_nullable = 'NO' then ' not null' else '' end || case when is_identity = 'YES' then ' identity' else '' end
        || coalesce(' default ' || column_default, '')
        from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position";
    let others = "select indexdef from pg_indexes where schemaname = 'public' order by indexname";
    let rules = "select conrelid::regclass::text || ' ' || pg_get_constraintdef(oid) from pg_constraint where connamespace = 'public'::regnamespace order by (conrelid::regclass::text || ' ' || pg_get_constraintdef(oid)) collate \"C\"";
    let triggers = "select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal order by pg_get_triggerdef(oid) collate \"C\"";
    let registry = "select name || checksum || applied_at from schema_migrations order by name";
    let exists = postgres::rows(&database.direct, "select to_regclass('schema_migrations') is not null");
    let mut lines: Vec<String> = [columns, others, rules, triggers]
        .iter()
        .flat_map(|sql| postgres::rows(&database.direct, sql))
        .collect();
    if exists == ["t"] {
        lines.extend(postgres::rows(&database.direct, registry));
    }
    lines
}
