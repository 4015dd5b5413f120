//! A store with a clock to move, rows to send, and channels that follow a script.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use door::{Door, OutboxRow};
use futures::future::BoxFuture;
use kernel::{Clock, Time};
use relay::held::{self, Delivery, Operator};
use relay::{Channel, Message, Outcome, Pace, Relay, Repeats, Settings, State};
use serde_json::{Value as Json, json};
use store::{Query, Store, Value, Write};
use tempfile::TempDir;
use testkit::{CountingRandom, MovableClock};
use tokio::sync::Semaphore;

pub(crate) struct World {
    pub(crate) door: Door,
    pub(crate) clock: Arc<MovableClock>,
    _folder: TempDir,
}

pub(crate) async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(MovableClock::at(1_772_358_554));
    let settings = testkit::postgres::settings(folder.path());
    let store = Store::open(&settings, &[store::migration::CORE], clock.clone()).await.unwrap();
    let door = Door::new(store, Arc::new(CountingRandom::default()));
    World { door, clock, _folder: folder }
}

pub(crate) fn issued(reference: &str) -> Json {
    json!({
        "kind": "issued", "event_id": "evt_1", "ref": reference, "sid": "cs_live_1", "mode": "live",
        "amount": "9.90 EUR", "html_url": "https://d.example/x.html", "zip_url": "https://d.example/x.zip",
    })
}

impl World {
    /// One fact about an object for these destinations.
    pub(crate) async fn tell(&self, object: &str, payload: Json, destinations: &[&str]) {
        let row = OutboxRow {
            event_name: "certify.certificate.issue.succeeded",
            object_type: "certify_event",
            object_id: object.to_owned(),
            aggregate_version: 1,
            tenant_id: 1,
            operator_id: 1,
            request_id: "req_1".into(),
            payload,
            occurred_at: self.clock.now(),
            destinations: destinations.iter().map(ToString::to_string).collect(),
        };
        let random = self.door.random();
        self.door
            .maintain("test.tell", vec![], move |_, at| Ok((row.clone().writes(at, &*random), ())))
            .await
            .unwrap();
    }

    /// `count` facts about as many objects.
    pub(crate) async fn tell_many(&self, count: usize, destination: &str) {
        for number in 0..count {
            let object = format!("{destination}_{number}");
            self.tell(&object, issued(&object), &[destination]).await;
        }
    }

    pub(crate) fn relay(&self, channels: Vec<Arc<dyn Channel>>) -> Relay {
        self.relay_with(channels, Settings::default())
    }

    pub(crate) fn relay_with(&self, channels: Vec<Arc<dyn Channel>>, settings: Settings) -> Relay {
        Relay::new(self.door.clone(), self.clock.clone(), channels, settings)
    }

    pub(crate) fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Rounds until nothing is due, moving the clock to each next time, up to `until`.
    pub(crate) async fn run_until(&self, relay: &Relay, until: Time) {
        while let Some(next) = relay.turn().await.unwrap().next.filter(|next| *next <= until) {
            self.clock.advance(next.since(self.clock.now()));
        }
    }

    pub(crate) async fn list(&self, states: &[State]) -> Vec<Delivery> {
        held::list(&self.door, states, 1_000).await.unwrap()
    }

    pub(crate) async fn only(&self) -> Delivery {
        let all = self.list(&State::ALL).await;
        assert_eq!(all.len(), 1);
        all.into_iter().next().unwrap()
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        self.door.store().query(Query::new("test.count", sql, vec![])).await.unwrap()[0].int(0).unwrap()
    }

    /// Writes by hand, as no code does.
    pub(crate) async fn tamper(&self, sql: &'static str, values: Vec<Value>) {
        let write = Write::any("test.tamper", sql, values);
        self.door.maintain("test.tamper", vec![], move |_, _| Ok((vec![write.clone()], ()))).await.unwrap();
    }
}

pub(crate) fn operator() -> Operator {
    Operator { id: 7, kind: "admin", role: "operations", request_id: "req_op".into() }
}

/// A channel that ends as scripted, then as its last entry for ever, and keeps what it got.
pub(crate) struct Scripted {
    pub(crate) name: &'static str,
    pub(crate) repeats: Repeats,
    pub(crate) pace: Pace,
    script: Mutex<VecDeque<Outcome>>,
    pub(crate) got: Mutex<Vec<Message>>,
    /// A permit for each send that may end; plenty by default.
    pub(crate) gate: Semaphore,
    pub(crate) arrived: Semaphore,
    open: AtomicUsize,
    pub(crate) open_max: AtomicUsize,
}

impl Scripted {
    pub(crate) fn new(name: &'static str, repeats: Repeats, script: &[Outcome]) -> Arc<Self> {
        Self::paced(name, repeats, script, Pace { parallel: 8, burst: 8, every: Duration::ZERO })
    }

    pub(crate) fn paced(name: &'static str, repeats: Repeats, script: &[Outcome], pace: Pace) -> Arc<Self> {
        Arc::new(Self {
            name,
            repeats,
            pace,
            script: Mutex::new(script.iter().cloned().collect()),
            got: Mutex::default(),
            gate: Semaphore::new(1_000_000),
            arrived: Semaphore::new(0),
            open: AtomicUsize::new(0),
            open_max: AtomicUsize::new(0),
        })
    }

    /// Sends do not end before [`Scripted::gate`] gets a permit for each.
    pub(crate) fn shut(self: Arc<Self>) -> Arc<Self> {
        self.gate.forget_permits(usize::MAX);
        self
    }

    pub(crate) fn then(&self, script: &[Outcome]) {
        *self.script.lock().unwrap() = script.iter().cloned().collect();
    }

    pub(crate) fn objects(&self) -> Vec<String> {
        self.got.lock().unwrap().iter().map(|message| message.object_id.clone()).collect()
    }

    /// Waits until so many sends have begun since the last such wait.
    pub(crate) async fn begun(&self, count: u32) {
        self.arrived.acquire_many(count).await.unwrap().forget();
    }
}

impl Channel for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn repeats(&self) -> Repeats {
        self.repeats
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.open_max.fetch_max(open, Ordering::SeqCst);
            self.got.lock().unwrap().push(message.clone());
            self.arrived.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
            self.open.fetch_sub(1, Ordering::SeqCst);
            let mut script = self.script.lock().unwrap();
            if script.len() > 1 { script.pop_front() } else { script.front().cloned() }
                .unwrap_or_else(delivered)
        })
    }
}

/// Sends through the channel inside, and never returns: the program dies between send and mark.
pub(crate) struct Dies<C>(pub(crate) C, pub(crate) Semaphore);

impl<C: Channel> Channel for Dies<C> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn repeats(&self) -> Repeats {
        self.0.repeats()
    }

    fn pace(&self) -> Pace {
        self.0.pace()
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            self.0.send(message).await;
            self.1.add_permits(1);
            futures::future::pending().await
        })
    }
}

/// Runs a turn up to the point where the message is sent, then drops it unmarked.
pub(crate) async fn die_after_send<C: Channel + 'static>(world: &World, channel: C) {
    let dying = Arc::new(Dies(channel, Semaphore::new(0)));
    let relay = world.relay(vec![dying.clone()]);
    tokio::select! {
        _ = relay.turn() => panic!("the send came back"),
        sent = dying.1.acquire() => sent.unwrap().forget(),
    }
}

pub(crate) fn delivered() -> Outcome {
    Outcome::Delivered { receipt: "r1".into() }
}

pub(crate) fn retry() -> Outcome {
    Outcome::Retry { cause: "no connection".into(), after: None }
}

pub(crate) fn refused() -> Outcome {
    Outcome::Refused { cause: "no".into(), reach: relay::Reach::Message }
}
