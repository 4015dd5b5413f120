//! The foreign side: the provider that leased work calls, and the channels that announcements go to. It
//! answers, refuses, is late, or takes what it was sent while its answer is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use door::Failure;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use relay::{Channel, Message, Outcome, Pace, Reach, Repeats};
use store::{Query, values};
use uuid::Uuid;

use crate::domain::{Put, REMOVED, SHOWN};
use crate::process::Process;
use crate::world::World;

/// The foreign side. One for all nodes.
pub(crate) struct Foreign {
    world: Arc<World>,
    /// So many of a hundred calls go wrong.
    of_hundred: AtomicU64,
    receipts: AtomicU64,
    /// How often each message arrived, by channel.
    arrived: Mutex<BTreeMap<(&'static str, Uuid), u32>>,
}

impl Foreign {
    pub(crate) fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            of_hundred: AtomicU64::new(0),
            receipts: AtomicU64::new(0),
            arrived: Mutex::default(),
        })
    }

    /// So many of a hundred calls go wrong from now on.
    pub(crate) fn fails(&self, of_hundred: u64) {
        self.of_hundred.store(of_hundred, Ordering::Relaxed);
    }

    fn goes_wrong(&self) -> bool {
        self.world.chance(self.of_hundred.load(Ordering::Relaxed))
    }

    /// Whether an access to the shelf fails: rarely, since a certificate takes several.
    pub(crate) fn loses_a_file(&self) -> bool {
        self.goes_wrong() && self.world.chance(15)
    }

    /// Whether a command is to leave its key open.
    pub(crate) fn leaves_open(&self) -> bool {
        self.goes_wrong() && self.world.chance(20)
    }

    /// What atomic work does before its transaction.
    pub(crate) async fn build(&self, process: &Process) -> Result<(), Failure> {
        process.pass().await;
        self.world.way().await;
        process.pass().await;
        if self.goes_wrong() { Err(failure("build", "no space")) } else { Ok(()) }
    }

    /// First step of leased work.
    pub(crate) async fn charge(&self, put: &Put, attempt: i64) -> Result<Vec<u8>, Failure> {
        self.call(put, attempt, "charge").await
    }

    /// Second step, with what the first returned.
    pub(crate) async fn confirm(&self, put: &Put, attempt: i64, charge: &[u8]) -> Result<Vec<u8>, Failure> {
        let receipt = self.call(put, attempt, "confirm").await?;
        Ok([charge, b"+", &receipt].concat())
    }

    async fn call(&self, put: &Put, attempt: i64, step: &'static str) -> Result<Vec<u8>, Failure> {
        put.process.pass().await;
        self.check(put, attempt, step);
        let wrong = self.goes_wrong();
        let late = wrong && self.world.chance(30);
        self.world.tell(|| {
            format!("{} calls {step} for {} ({}), late {late}", put.process.name, put.key, put.payload)
        });
        if late {
            tokio::time::sleep(self.world.millis(50_000)).await;
        } else {
            self.world.way().await;
        }
        put.process.pass().await;
        if wrong && !late {
            return Err(failure(step, "refused"));
        }
        Ok(format!("r{}", self.receipts.fetch_add(1, Ordering::Relaxed)).into_bytes())
    }

    /// Nothing foreign is begun without a durable claim, nor again when its result is on record.
    fn check(&self, put: &Put, attempt: i64, step: &'static str) {
        let sql = "select attempt_no, status, (select count(*) from sim_steps s where s.event = r.id and s.name = $1)
            from sim_records r where r.key = $2";
        let seen = self.world.read(&Query::new("foreign.check", sql, values![step, &put.key]));
        let row = seen.as_ref().ok().and_then(|rows| rows.first());
        let Some(row) = row else {
            return self.world.find(format!(
                "{}: the foreign step {step} began with no claim on record (attempt {attempt})",
                put.key
            ));
        };
        let holds = row.int(0) == Ok(attempt) && row.text(1) == Ok("processing");
        if holds && row.int(2) != Ok(0) {
            self.world.find(format!("{}: the foreign step {step} was begun again by its holder", put.key));
        }
    }

    fn arrives(&self, channel: &'static str, message: &Message) {
        self.world.tell(|| format!("{channel} gets {} of {}", message.event_id, message.object_id));
        *self.arrived.lock().entry((channel, message.event_id)).or_default() += 1;
    }

    /// How often each message arrived, by channel.
    pub(crate) fn arrived(&self) -> BTreeMap<(&'static str, Uuid), u32> {
        self.arrived.lock().clone()
    }

    /// How a send ends.
    async fn take(self: &Arc<Self>, channel: &'static str, process: &Process, message: &Message) -> Outcome {
        process.pass().await;
        self.world.way().await;
        let outcome = if self.goes_wrong() {
            self.mistake(channel, message).await
        } else {
            self.arrives(channel, message);
            Outcome::Delivered { receipt: "r".into() }
        };
        self.world.way().await;
        process.pass().await;
        outcome
    }

    async fn mistake(self: &Arc<Self>, channel: &'static str, message: &Message) -> Outcome {
        let refused = |reach| Outcome::Refused { cause: "refused".into(), reach };
        let retry = |after| Outcome::Retry { cause: "try again".into(), after };
        let unclear = || Outcome::Uncertain { cause: "the answer is lost".into() };
        match self.world.below(8) {
            0 => refused(Reach::Message),
            1 => refused(Reach::Channel),
            2 | 3 => retry(None),
            4 => retry(Some(self.world.millis(60_000))),
            5 => unclear(),
            6 => {
                self.arrives(channel, message);
                unclear()
            }
            _ => {
                self.late(channel, message).await;
                Outcome::Delivered { receipt: "r".into() }
            }
        }
    }

    /// The message arrives in a while, whoever still waits for it.
    async fn late(self: &Arc<Self>, channel: &'static str, message: &Message) {
        let (after, foreign, message) = (self.world.millis(90_000), Arc::clone(self), message.clone());
        let arriving = tokio::spawn(async move {
            tokio::time::sleep(after).await;
            foreign.arrives(channel, &message);
        });
        // Whoever gave up before does not hear of it.
        let _ = arriving.await;
    }
}

fn failure(step: &'static str, cause: &str) -> Failure {
    Failure::Step { step, cause: cause.into() }
}

/// A channel of one process.
pub(crate) struct Road {
    pub(crate) foreign: Arc<Foreign>,
    pub(crate) process: Arc<Process>,
    pub(crate) name: &'static str,
}

impl Road {
    /// Both channels.
    pub(crate) fn all(foreign: &Arc<Foreign>, process: &Arc<Process>) -> Vec<Arc<dyn Channel>> {
        let road = |name| {
            Arc::new(Self { foreign: Arc::clone(foreign), process: Arc::clone(process), name })
                as Arc<dyn Channel>
        };
        vec![road(SHOWN), road(REMOVED)]
    }
}

impl Channel for Road {
    fn name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> &'static str {
        "sim"
    }

    fn repeats(&self) -> Repeats {
        if self.name == REMOVED { Repeats::Removed } else { Repeats::Shown }
    }

    fn pace(&self) -> Pace {
        Pace { parallel: 8, burst: 8, every: Duration::ZERO }
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(self.foreign.take(self.name, &self.process, message))
    }
}
