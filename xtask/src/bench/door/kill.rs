//! Killed in mid-work: under load it gets `SIGKILL`, starts again, and gets every key again that was sent,
//! as its senders would do. Then each key should have had one effect.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::{JoinSet, LocalSet};

use super::served::{SUCCEEDED, Served};
use crate::bench::connection::Connection;
use crate::bench::delivery::{Delivery, account};
use crate::bench::response;

/// Connections.
const CLIENTS: usize = 32;
/// How long a key is sent again before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a sender waits for one answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Pause between sends of one key.
const AGAIN: Duration = Duration::from_millis(50);
/// Load before a kill: this long, and longer each time by a part that fits no period of the subject's.
const LOAD: Duration = Duration::from_millis(400);
const LONGER: Duration = Duration::from_millis(37);

/// What all kills left.
#[derive(Debug, Default)]
pub(super) struct Killed {
    /// Keys sent.
    pub(super) sent: u64,
    /// Keys under way at a kill.
    pub(super) cut: u64,
    /// Keys with more than one effect.
    pub(super) doubled: u64,
    /// Keys that were acknowledged, before a kill or after, and had no effect.
    pub(super) lost: u64,
    /// Keys that never were acknowledged.
    pub(super) stuck: u64,
    /// Longest time from a start that is up to the acknowledgement of a key.
    pub(super) slowest: Duration,
}

/// Kills it so often.
///
/// # Errors
/// It doesn't start again, or its effects can't be counted.
pub(super) fn killed(served: &mut Served, kills: u64) -> Result<Killed> {
    let mut all = Killed::default();
    let mut acknowledged: BTreeMap<u64, bool> = BTreeMap::new();
    for kill in 0..kills {
        let time = LOAD + LONGER * u32::try_from(kill)?;
        let mut keys = until_killed(served, time)?;
        all.sent += u64::try_from(keys.len())?;
        all.cut += keys.values().filter(|it| !**it).map(|_| 1).sum::<u64>();
        served.start()?;
        let (told, slowest) = sent_again(served, keys.keys().copied().collect())?;
        all.slowest = all.slowest.max(slowest);
        all.stuck += told.values().filter(|it| !**it).map(|_| 1).sum::<u64>();
        for (number, again) in told {
            *keys.entry(number).or_default() |= again;
        }
        acknowledged.extend(keys);
    }
    let debits = served.debits()?;
    for (number, acknowledged) in acknowledged {
        let effects = debits.get(&account(number)).copied().unwrap_or_default();
        all.doubled += u64::from(effects > 1);
        all.lost += u64::from(acknowledged && effects == 0);
    }
    Ok(all)
}

/// Numbers sent, and whether each was acknowledged.
type Keys = BTreeMap<u64, bool>;

/// What the senders of one load share.
struct Shared {
    to: SocketAddr,
    delivery: Delivery,
    next: Cell<u64>,
    keys: RefCell<Keys>,
    /// Numbers to be sent again.
    due: RefCell<VecDeque<u64>>,
    slowest: Cell<Duration>,
}

impl Shared {
    fn new(served: &Served, due: VecDeque<u64>) -> Rc<Self> {
        Rc::new(Self {
            to: served.address,
            delivery: served.delivery.clone(),
            next: Cell::new(served.next),
            keys: RefCell::default(),
            due: RefCell::new(due),
            slowest: Cell::default(),
        })
    }
}

fn until_killed(served: &mut Served, time: Duration) -> Result<Keys> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Shared::new(served, VecDeque::new());
    LocalSet::new().block_on(&runtime, async {
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let connection = Connection::open(shared.to).await.context("it takes no connection")?;
            clients.spawn_local(new_keys(connection, Rc::clone(&shared)));
        }
        tokio::time::sleep(time).await;
        served.kill();
        // Their connections are gone: each ends with its next look.
        while clients.join_next().await.is_some() {}
        anyhow::Ok(())
    })?;
    served.next = shared.next.get();
    Ok(shared.keys.take())
}

async fn new_keys(mut connection: Connection, shared: Rc<Shared>) {
    let mut delivery = shared.delivery.clone();
    loop {
        let number = shared.next.get();
        shared.next.set(number + 1);
        shared.keys.borrow_mut().insert(number, false);
        let Some(done) = acknowledged(&mut connection, delivery.numbered(number)).await else { return };
        shared.keys.borrow_mut().insert(number, done);
    }
}

/// Whether the answer says so; `None` without an answer.
async fn acknowledged(connection: &mut Connection, request: &[u8]) -> Option<bool> {
    let answer = tokio::time::timeout(ANSWER, connection.exchange(request)).await.ok()?;
    let (status, body) = answer.ok()?;
    Some(status / 100 == 2 && response::says(body, SUCCEEDED))
}

fn sent_again(served: &Served, due: VecDeque<u64>) -> Result<(Keys, Duration)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Shared::new(served, due);
    LocalSet::new().block_on(&runtime, async {
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn_local(known_keys(Rc::clone(&shared)));
        }
        while clients.join_next().await.is_some() {}
    });
    Ok((shared.keys.take(), shared.slowest.get()))
}

async fn known_keys(shared: Rc<Shared>) {
    let mut delivery = shared.delivery.clone();
    let mut connection = None;
    loop {
        // A binding of its own: the queue must be free again while this sender waits.
        let number = shared.due.borrow_mut().pop_front();
        let Some(number) = number else { return };
        let began = Instant::now();
        let done = loop {
            if connection.is_none() {
                connection = Connection::open(shared.to).await.ok();
            }
            let told = match &mut connection {
                Some(connection) => acknowledged(connection, delivery.numbered(number)).await,
                None => None,
            };
            if told == Some(true) {
                break true;
            }
            if told.is_none() {
                connection = None;
            }
            if began.elapsed() > PATIENCE {
                break false;
            }
            tokio::time::sleep(AGAIN).await;
        };
        shared.slowest.set(shared.slowest.get().max(began.elapsed()));
        shared.keys.borrow_mut().insert(number, done);
    }
}
