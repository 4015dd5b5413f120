//! What all nodes of a run share: the store's rows, clock and locks, the choices of the seed, what goes
//! wrong, and what is written down of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kernel::Time;
use parking_lot::Mutex;
use store::{Error, Query, Row, Write, Written, values};
use testkit::Seeded;
use tokio::time::Instant;

use crate::locks::Locks;
use crate::market::Trade;
use crate::mishap::{Mishap, Mishaps};
use crate::rows;
use crate::stage::Stage;
use crate::trace::Trace;

/// The store's clock when a run begins: 2026-03-01T09:49:14Z.
pub(crate) const BEGAN: Time = Time::from_seconds(1_772_358_554);

/// Shared by all nodes of a run.
pub(crate) struct World {
    stage: Arc<Stage>,
    choice: Mutex<Seeded>,
    began: Instant,
    /// Microseconds by which the store's clock was moved forward.
    moved: AtomicI64,
    /// Milliseconds that a message takes at most, as a rule.
    wire: AtomicU64,
    pub(crate) locks: Locks,
    pub(crate) mishaps: Mutex<Mishaps>,
    pub(crate) trace: Mutex<Trace>,
    findings: Mutex<Vec<String>>,
    /// Counts what clients do and see: the order of a history.
    ticks: AtomicU64,
    /// Differs in every decision.
    serial: AtomicI64,
    /// Next number of a delivery. Numbers are taken before the commit, as from a sequence.
    deliveries: AtomicI64,
    /// Keys by what their locks are taken on.
    keys: Mutex<BTreeMap<i64, String>>,
    /// Keys under which somebody who is no client seemed to be at work, with which payload (0: not known), and
    /// when that began.
    ghosts: Mutex<Vec<(String, i64, u64)>>,
    /// The last number taken for a row of a table.
    sequences: Mutex<BTreeMap<String, i64>>,
    /// Who looks at the tables after each commit.
    watch: Mutex<Option<Watch>>,
}

/// Called with what a commit wrote.
pub(crate) type Watch = Arc<dyn Fn(&World, &[Write]) + Send + Sync>;

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// Must be called within the run's runtime: its clock begins now.
    pub(crate) fn new(stage: Arc<Stage>, choice: Seeded, trace: bool) -> Arc<Self> {
        Arc::new(Self {
            stage,
            choice: Mutex::new(choice),
            began: Instant::now(),
            moved: AtomicI64::new(0),
            wire: AtomicU64::new(1),
            locks: Locks::default(),
            mishaps: Mutex::new(Mishaps::default()),
            trace: Mutex::new(Trace::new(trace, BEGAN)),
            findings: Mutex::default(),
            ticks: AtomicU64::new(0),
            serial: AtomicI64::new(0),
            deliveries: AtomicI64::new(1),
            keys: Mutex::default(),
            ghosts: Mutex::default(),
            sequences: Mutex::default(),
            watch: Mutex::default(),
        })
    }

    /// The folder of key files.
    pub(crate) fn keys(&self) -> &Path {
        self.stage.keys()
    }

    /// The store's clock.
    pub(crate) fn now(&self) -> Time {
        let moved = Duration::from_micros(u64::try_from(self.moved.load(Ordering::Relaxed)).unwrap_or(0));
        BEGAN.plus(self.began.elapsed()).plus(moved)
    }

    /// Moves the store's clock forward; timers of the nodes don't see it.
    pub(crate) fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(0);
        self.moved.fetch_add(micros, Ordering::Relaxed);
    }

    /// A number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.choice.lock().below(end)
    }

    /// True `of_hundred` times in a hundred.
    pub(crate) fn chance(&self, of_hundred: u64) -> bool {
        self.choice.lock().chance(of_hundred)
    }

    /// One of several.
    pub(crate) fn pick<'t, T>(&self, of: &'t [T]) -> Option<&'t T> {
        let index = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of.get(index)
    }

    /// A time below `end`, in milliseconds.
    pub(crate) fn millis(&self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }

    pub(crate) fn set_wire(&self, millis: u64) {
        self.wire.store(millis, Ordering::Relaxed);
    }

    /// A message's way. Some are slow.
    pub(crate) async fn way(&self) {
        let wire = self.wire.load(Ordering::Relaxed);
        let millis = match self.below(100) {
            0 => self.below(wire * 100 + 1),
            _ => self.below(wire + 1),
        };
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }

    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        let now = self.now();
        self.trace.lock().tell(now, line);
    }

    /// Something that must not happen.
    pub(crate) fn find(&self, finding: String) {
        self.tell(|| format!("FOUND {finding}"));
        self.findings.lock().push(finding);
    }

    pub(crate) fn findings(&self) -> Vec<String> {
        self.findings.lock().clone()
    }

    pub(crate) fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn serial(&self) -> i64 {
        self.serial.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Names a key for what its locks leave behind.
    pub(crate) fn name(&self, lock: i64, key: &str) {
        self.keys.lock().insert(lock, key.to_owned());
    }

    /// The lock outlives whoever took it: to others somebody seems to be at work.
    pub(crate) fn haunted(&self, lock: Option<i64>) {
        let key = lock.and_then(|lock| self.keys.lock().get(&lock).cloned());
        if let Some(key) = key {
            self.at_work(key, 0);
        }
    }

    /// Somebody who is no client is at work under the key.
    pub(crate) fn at_work(&self, key: String, payload: i64) {
        let at = self.tick();
        self.ghosts.lock().push((key, payload, at));
    }

    pub(crate) fn ghosts(&self) -> Vec<(String, i64, u64)> {
        self.ghosts.lock().clone()
    }

    /// What goes wrong with the next operation of a node, if anything.
    pub(crate) fn mishap(&self, node: usize) -> Option<Mishap> {
        let mut choice = self.choice.lock();
        self.mishaps.lock().next(node, &mut choice)
    }

    /// The next operation of a node will go wrong.
    pub(crate) fn plan(&self, node: usize) -> Mishap {
        let mut choice = self.choice.lock();
        self.mishaps.lock().plan(node, &mut choice)
    }

    /// One read on the newest committed state.
    pub(crate) fn read(&self, query: &Query) -> Result<Vec<Row>, Error> {
        match rows::numbered(query, |table| self.next_of(table)) {
            Some(numbered) => self.stage.memory().read(&numbered?),
            None => self.stage.memory().read(query),
        }
    }

    /// Takes the next number of a table. It is gone even if nothing is kept.
    fn next_of(&self, table: &str) -> Result<i64, Error> {
        let mut sequences = self.sequences.lock();
        if !sequences.contains_key(table) {
            let sql = format!("select coalesce(max(id), 0) from {table}");
            let highest = self.stage.memory().read(&Query::new("sequence", sql, Vec::new()))?;
            sequences.insert(table.to_owned(), highest.first().map_or(Ok(0), |row| row.int(0))?);
        }
        let last = sequences.entry(table.to_owned()).or_default();
        *last += 1;
        Ok(*last)
    }

    /// Whose look follows each commit.
    pub(crate) fn watched_by(&self, watch: Watch) {
        *self.watch.lock() = Some(watch);
    }

    /// What all runs with the supply side have in common.
    pub(crate) fn trade(&self) -> &Trade {
        self.stage.trade()
    }

    /// Takes numbers for the deliveries that these writes insert. They are gone even if nothing is kept.
    pub(crate) fn number(&self, writes: &[Write]) -> i64 {
        let count = writes.iter().filter(|write| write.name == "outbox.delivery").count();
        self.deliveries.fetch_add(i64::try_from(count).unwrap_or(0), Ordering::Relaxed)
    }

    /// Commits writes, all or none, with the numbers taken before.
    pub(crate) fn commit(&self, writes: &[Write], numbers: i64) -> Result<Written, Error> {
        let written = self.write(writes, numbers)?;
        let watch = self.watch.lock().clone();
        if let Some(watch) = watch {
            watch(self, writes);
        }
        Ok(written)
    }

    fn write(&self, writes: &[Write], numbers: i64) -> Result<Written, Error> {
        let memory = self.stage.memory();
        if writes.iter().any(|write| write.name == "outbox.delivery") {
            let sql = "update sim_sequence set next = $1";
            memory.write(&[Write::one("sequence.set", sql, values![numbers])])?;
        }
        memory.write(writes)
    }
}
