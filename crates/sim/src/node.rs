//! A node of the installation: a process with its door and its relay, killed and started anew. Not here:
//! when (`steps`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use door::{Door, Submission};
use relay::held::{self, Operator, Settlement};
use relay::{Relay, Settings};
use store::{Error, Query, Store, Write, values};

use crate::client::Clients;
use crate::domain::{Kind, Put, REMOVED, SHOWN};
use crate::driver::Unreliable;
use crate::foreign::{Foreign, Road};
use crate::process::{Process, ProcessClock, SeededRandom};
use crate::world::World;

/// Open records that a recovery looks at.
const OPEN_MAX: i64 = 64;

/// A node.
pub(crate) struct Node {
    pub(crate) process: Arc<Process>,
    pub(crate) door: Door,
    relay: Arc<Relay>,
    /// A turn of the relay, or a recovery, is under way.
    turns: Arc<AtomicBool>,
    recovers: Arc<AtomicBool>,
    life: u32,
}

impl Node {
    pub(crate) fn start(world: &Arc<World>, foreign: &Arc<Foreign>, node: usize, life: u32) -> Self {
        let process = Process::new(node, life, 0);
        let driver = Unreliable { world: Arc::clone(world), process: Arc::clone(&process) };
        let random = Arc::new(SeededRandom::new(world.below(u64::MAX)));
        let door = Door::new(Store::over(Arc::new(driver)), random);
        let clock = Arc::new(ProcessClock { world: Arc::clone(world), process: Arc::clone(&process) });
        let roads = Road::all(foreign, &process);
        let relay = Arc::new(Relay::new(door.clone(), clock, roads, Settings::default()));
        world.tell(|| format!("{} starts", process.name));
        Self { process, door, relay, turns: Arc::default(), recovers: Arc::default(), life }
    }

    /// Dies, with everything that it had in its memory.
    pub(crate) fn kill(&self, world: &World, clients: &Clients) {
        world.tell(|| format!("{} is killed", self.process.name));
        self.process.kill();
        clients.cut(world, &self.process);
    }

    /// Stands still, or goes on.
    pub(crate) fn pause_or_resume(&self, world: &World) {
        let process = &self.process;
        if process.is_running() {
            world.tell(|| format!("{} stands still", process.name));
            process.pause();
        } else {
            world.tell(|| format!("{} goes on", process.name));
            process.resume();
        }
    }

    /// Its machine's clock goes wrong by hours, or right again.
    pub(crate) fn misset(&self, world: &World) {
        let hours = world.pick(&[-25_i64, -1, 0, 1, 25]).copied().unwrap_or(0);
        world.tell(|| format!("{} has a clock that is {hours} h off", self.process.name));
        self.process.set_machine(hours * 3_600_000_000);
    }

    /// The same node, started anew.
    pub(crate) fn again(&self, world: &Arc<World>, foreign: &Arc<Foreign>) -> Self {
        Self::start(world, foreign, self.process.node, self.life + 1)
    }

    /// A round of each channel, unless one is under way.
    pub(crate) fn turn(&self, world: &Arc<World>) {
        if self.turns.swap(true, Ordering::Relaxed) {
            return;
        }
        let (relay, turns) = (Arc::clone(&self.relay), Arc::clone(&self.turns));
        let (world, process) = (Arc::clone(world), Arc::clone(&self.process));
        tokio::spawn(async move {
            process.pass().await;
            let turn = relay.turn().await;
            world.tell(|| format!("{} relay: {turn:?}", process.name));
            turns.store(false, Ordering::Relaxed);
        });
    }

    /// Takes up what others left: lapsed leases, failed and open keys, orphaned records.
    pub(crate) fn recover(&self, world: &Arc<World>, foreign: &Arc<Foreign>, kinds: &Arc<Vec<Kind>>) {
        if self.recovers.swap(true, Ordering::Relaxed) {
            return;
        }
        let recovery = Recovery {
            world: Arc::clone(world),
            foreign: Arc::clone(foreign),
            process: Arc::clone(&self.process),
            door: self.door.clone(),
            kinds: Arc::clone(kinds),
        };
        let recovers = Arc::clone(&self.recovers);
        tokio::spawn(async move {
            recovery.process.pass().await;
            let ended = recovery.sweep().await;
            recovery.world.tell(|| format!("{} recovery: {ended:?}", recovery.process.name));
            recovers.store(false, Ordering::Relaxed);
        });
    }

    /// A person acts on a held delivery.
    pub(crate) fn act(&self, world: &Arc<World>, id: i64, act: Act) {
        let (door, process, world) = (self.door.clone(), Arc::clone(&self.process), Arc::clone(world));
        tokio::spawn(async move {
            process.pass().await;
            let request_id = "req-person".into();
            let operator = Operator { id: 7, kind: "admin", role: "operations", request_id };
            let done = match act {
                Act::Redrive => held::redrive(&door, id, &operator, &[SHOWN.into(), REMOVED.into()]).await,
                Act::Settle(as_) => held::settle(&door, id, as_, &operator).await,
            };
            world.tell(|| format!("{} {act:?} of {id}: {done:?}", process.name));
        });
    }

    /// Somebody finds that a key's record and its artefacts disagree.
    pub(crate) fn orphan(&self, world: &Arc<World>, key: String) {
        let (door, process, world) = (self.door.clone(), Arc::clone(&self.process), Arc::clone(world));
        tokio::spawn(async move {
            process.pass().await;
            let sql = "update sim_records set status = 'orphaned', updated_at = $1
                where key = $2 and status = 'processed' and response_code is not null";
            let plan = move |_, now| Ok((vec![Write::any("records.orphan", sql, values![now, &key])], ()));
            let done = door.maintain("orphan", Vec::new(), plan).await;
            world.tell(|| format!("{} orphans: {done:?}", process.name));
        });
    }
}

/// What a person does with a held delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Redrive,
    Settle(Settlement),
}

/// Numbers of the held deliveries.
pub(crate) fn held_ones(world: &World) -> Vec<i64> {
    let sql = "select id from outbox_deliveries where status in ('refused', 'uncertain', 'dead') order by id";
    let rows = world.read(&Query::new("held", sql, Vec::new())).unwrap_or_default();
    rows.iter().filter_map(|row| row.int(0).ok()).collect()
}

/// A sweep over what is open, as the domain's own recovery does it.
struct Recovery {
    world: Arc<World>,
    foreign: Arc<Foreign>,
    process: Arc<Process>,
    door: Door,
    kinds: Arc<Vec<Kind>>,
}

impl Recovery {
    async fn sweep(&self) -> Result<u32, door::Failure> {
        let sql = "select key, payload, status, locked_until from sim_records
            where response_code is null or status = 'orphaned' order by attempt_no, id limit $1";
        let rows = self.door.store().query(Query::new("records.open", sql, values![OPEN_MAX])).await?;
        let now = self.world.now();
        let mut done = 0;
        for row in rows {
            let (key, payload) = (row.text(0)?.to_owned(), row.int(1)?);
            match row.text(2)? {
                "orphaned" => self.mend(key).await?,
                "processing" if row.time_or_null(3)?.is_some_and(|until| until > now) => continue,
                _ => self.run_again(key, payload).await?,
            }
            done += 1;
        }
        Ok(done)
    }

    async fn run_again(&self, key: String, payload: i64) -> Result<(), Error> {
        let Some(kind) = kind_of(&self.kinds, &key) else { return Ok(()) };
        self.world.tell(|| format!("{} recovers {key} ({payload})", self.process.name));
        self.world.at_work(key.clone(), payload);
        let put = Put {
            world: Arc::clone(&self.world),
            process: Arc::clone(&self.process),
            foreign: Arc::clone(&self.foreign),
            kind,
            key: key.clone(),
            payload,
        };
        let submission = Submission { key: Some(put.under()), command: put, wait: Duration::ZERO };
        // Whatever comes of it stands on record.
        let answer = self.door.submit(submission).await;
        self.world.tell(|| format!("{} recovered {key}: {answer:?}", self.process.name));
        Ok(())
    }

    async fn mend(&self, key: String) -> Result<(), door::Failure> {
        let sql = "update sim_records set status = 'processed', updated_at = $1
            where key = $2 and status = 'orphaned'";
        let plan = move |_, now| Ok((vec![Write::any("records.mend", sql, values![now, &key])], ()));
        self.door.maintain("mend", Vec::new(), plan).await.map(drop)
    }
}

/// What submissions under a key are like; its number is the key's.
pub(crate) fn kind_of(kinds: &[Kind], key: &str) -> Option<Kind> {
    let number: usize = key.strip_prefix('k')?.parse().ok()?;
    kinds.get(number).cloned()
}
