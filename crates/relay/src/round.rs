//! One round of a channel: claim what is due, send it outside of any transaction, mark how it ended under
//! the fence. Not here: waiting (`run`), SQL (`claim`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use door::{Door, Failure};
use futures::FutureExt;
use futures::future::join_all;
use kernel::{Clock, Time};
use parking_lot::Mutex;
use store::{Error, Row};

use crate::channel::{Channel, Outcome};
use crate::claim::{self, Claimed, End, Fence, Terms};
use crate::lane::Lane;
use crate::measure;
use crate::message::{Message, State};
use crate::schedule;

/// Most rows claimed in one round, and rows looked at where a channel may send few: lapsed claims are
/// settled even while it rests.
const LOOK_MAX: u32 = 64;
const LOOK_MIN: u32 = 8;
/// Tries to write down how a send ended; what is not written is settled when its lease lapses.
const MARKS_MAX: usize = 3;
/// Between those tries.
const MARK_AGAIN: Duration = Duration::from_millis(200);

/// Times and limits.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a claim holds. Longer than `send_within` and the marks together.
    pub lease: Duration,
    /// How long one send may take.
    pub send_within: Duration,
    /// Attempts before a delivery is dead.
    pub attempts_max: i64,
    /// How many of its first failures are followed by a quick try.
    pub quick: u32,
    /// How long a stop waits for what is being sent.
    pub stop_within: Duration,
}

impl Default for Settings {
    /// 60 s lease, 45 s a send, [`schedule::ATTEMPTS_MAX`] attempts, [`schedule::QUICK`] quick tries, 50 s for a stop.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            send_within: Duration::from_secs(45),
            attempts_max: schedule::ATTEMPTS_MAX,
            quick: schedule::QUICK,
            stop_within: Duration::from_secs(50),
        }
    }
}

/// What one round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Rows claimed and sent.
    pub claimed: usize,
    /// The other side has them.
    pub delivered: usize,
    /// Will be tried again.
    pub retried: usize,
    /// Held: the other side said no.
    pub refused: usize,
    /// Held: the end is unclear, also that of a lapsed claim.
    pub uncertain: usize,
    /// Held: no attempts left, or a damaged row.
    pub dead: usize,
    /// Ends that were not written: somebody else holds the claim now, or the store took no writes.
    pub lost: usize,
    /// Rows that wait for a channel which is not configured.
    pub unconfigured: i64,
    /// When there may be work next, as far as the rows tell.
    pub next: Option<Time>,
}

impl Turn {
    fn count(&mut self, end: Option<State>) {
        *match end {
            Some(State::Delivered) => &mut self.delivered,
            Some(State::Pending | State::Sending) => &mut self.retried,
            Some(State::Refused) => &mut self.refused,
            Some(State::Uncertain) => &mut self.uncertain,
            Some(State::Dead) => &mut self.dead,
            None => &mut self.lost,
        } += 1;
    }

    fn and(self, other: Self) -> Self {
        Self {
            claimed: self.claimed + other.claimed,
            delivered: self.delivered + other.delivered,
            retried: self.retried + other.retried,
            refused: self.refused + other.refused,
            uncertain: self.uncertain + other.uncertain,
            dead: self.dead + other.dead,
            lost: self.lost + other.lost,
            unconfigured: self.unconfigured + other.unconfigured,
            next: [self.next, other.next].into_iter().flatten().min(),
        }
    }
}

/// The relay without tasks: rounds on demand.
pub struct Relay {
    door: Door,
    clock: Arc<dyn Clock>,
    roads: Vec<Road>,
    settings: Settings,
    node: [u8; 16],
}

struct Road {
    channel: Arc<dyn Channel>,
    lane: Mutex<Lane>,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("destinations", &self.destinations()).finish_non_exhaustive()
    }
}

impl Relay {
    /// A relay over `channels`, one for each destination name.
    #[must_use]
    pub fn new(
        door: Door,
        clock: Arc<dyn Clock>,
        channels: Vec<Arc<dyn Channel>>,
        settings: Settings,
    ) -> Self {
        let mut node = [0; 16];
        door.fill_random(&mut node);
        let road = |channel: Arc<dyn Channel>| Road { lane: Mutex::new(Lane::new(channel.pace())), channel };
        Self { door, clock, roads: channels.into_iter().map(road).collect(), settings, node }
    }

    /// The destinations it sends to.
    #[must_use]
    pub fn destinations(&self) -> Vec<String> {
        self.roads.iter().map(|road| road.channel.name().to_owned()).collect()
    }

    /// One round of every channel, side by side. Dropping the future is like a crash: what was claimed stays
    /// so until its lease lapses.
    ///
    /// # Errors
    /// The first channel's [`Failure`] of the store; other channels have had their round all the same.
    pub async fn turn(&self) -> Result<Turn, Failure> {
        let mut turn = Turn::default();
        for round in join_all((0..self.roads.len()).map(|index| self.round(index))).await {
            turn = turn.and(round?);
        }
        turn.unconfigured = self.measure().await?.unconfigured(&self.destinations());
        Ok(turn)
    }

    /// The numbers of the tables, set as metrics.
    ///
    /// # Errors
    /// A [`Failure`] of the store.
    pub async fn measure(&self) -> Result<measure::Measure, Failure> {
        measure::Measure::take(&self.door, self.clock.now(), &self.destinations()).await
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn lanes(&self) -> usize {
        self.roads.len()
    }

    /// One round of one channel.
    pub(crate) async fn round(&self, index: usize) -> Result<Turn, Failure> {
        let Some(road) = self.roads.get(index) else { return Ok(Turn::default()) };
        if self.door.store().is_closed() {
            // What is being sent gets its mark; nothing new is begun.
            return Ok(Turn::default());
        }
        let now = self.clock.now();
        let permits = road.lane.lock().permits(now).min(LOOK_MAX);
        let limit = permits.max(LOOK_MIN);
        // A plain read first: an idle relay opens no write transaction.
        let heads = self.door.store().query(claim::heads(road.channel.name(), limit)).await?;
        let opens_at = road.lane.lock().opens_at(now);
        let idle = |next| Ok(Turn { next, ..Turn::default() });
        let Some(first) = heads.first().map(claim::due_at).transpose()? else { return idle(None) };
        if first > now {
            return idle(Some(first.max(opens_at)));
        }
        let due = due(&heads, now, permits)?;
        if due.is_empty() {
            return idle(Some(opens_at));
        }
        let claimed = match self.claim(road, permits, due).await {
            Ok(claimed) => claimed,
            // Another relay was faster with one of them.
            Err(Failure::Store(Error::Raised(_))) => return idle(Some(now)),
            Err(failure) => return Err(failure),
        };
        let mut turn = Turn { claimed: claimed.messages.len(), ..Turn::default() };
        for (id, state, cause) in &claimed.ended {
            measure::count(road.channel.name(), state.as_str());
            held(road, *id, *state, cause.as_deref());
            turn.count(Some(*state));
        }
        let sends = claimed.messages.iter().map(|(message, fence)| self.carry(road, message, *fence));
        join_all(sends).await.into_iter().for_each(|end| turn.count(end));
        turn.next = Some(road.lane.lock().opens_at(self.clock.now()));
        Ok(turn)
    }

    async fn claim(&self, road: &Road, permits: u32, due: Vec<i64>) -> Result<Claimed, Failure> {
        let terms = Terms {
            node: self.node,
            lease: self.settings.lease,
            attempts_max: self.settings.attempts_max,
            retakes: road.channel.retakes(),
            permits,
        };
        let reads = due.into_iter().map(claim::head).collect();
        let channel = Arc::clone(&road.channel);
        let told = move |message: &Message, state, now| channel.held(message, state, now);
        let plan = move |rows: Vec<Vec<Row>>, now| claim::plan(&rows.concat(), now, &terms, &told);
        let (claimed, _) = self.door.maintain("relay.claim", reads, plan).await?;
        let mut lane = road.lane.lock();
        claimed.messages.iter().for_each(|_| lane.spend(self.clock.now()));
        Ok(claimed)
    }

    /// Sends one message and marks its end; `None` when the mark was not written.
    async fn carry(&self, road: &Road, message: &Message, fence: Fence) -> Option<State> {
        let sending = AssertUnwindSafe(road.channel.send(message)).catch_unwind();
        let unclear = |cause: &str| Outcome::Uncertain { cause: cause.into() };
        let outcome = match tokio::time::timeout(self.settings.send_within, sending).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => unclear("the channel panicked; the log has the place"),
            Err(_) => unclear("no end in time; the message may have arrived"),
        };
        let outcome = match outcome {
            // The other side removes repeats.
            Outcome::Uncertain { cause } if road.channel.retakes() => Outcome::Retry { cause, after: None },
            outcome => outcome,
        };
        let now = self.clock.now();
        road.lane.lock().learn(&outcome, now, &*self.door.random());
        let end = self.end(message, &outcome, now);
        let cause = end.error.clone();
        let state = self.mark(road, message, fence, end).await;
        measure::count(road.channel.name(), state.map_or("lost", word));
        match state {
            Some(state) => held(road, message.delivery_id, state, cause.as_deref()),
            // The only trace of a message that arrived while its claim was lost.
            None => {
                let (channel, delivery_id) = (road.channel.name(), message.delivery_id);
                tracing::warn!(channel, delivery_id, ?outcome, "the end of a send was not written down");
            }
        }
        state
    }

    fn end(&self, message: &Message, outcome: &Outcome, now: Time) -> End {
        let end = |state, at, outcome, error| End { state, at, outcome, error };
        let held = |state, cause: &String| end(state, now, None, Some(cause.clone()));
        match outcome {
            Outcome::Delivered { receipt } => end(State::Delivered, now, Some(receipt.clone()), None),
            Outcome::Refused { cause, .. } => held(State::Refused, cause),
            Outcome::Uncertain { cause } => held(State::Uncertain, cause),
            Outcome::Retry { cause, .. } if message.attempt >= self.settings.attempts_max => {
                held(State::Dead, &format!("gave up after {} attempts: {cause}", message.attempt))
            }
            Outcome::Retry { cause, after } => {
                let wait = schedule::wait(message.attempt, self.settings.quick, &*self.door.random());
                let told = after.unwrap_or_default().min(schedule::AFTER_MAX);
                end(State::Pending, now.plus(wait.max(told)), None, Some(cause.clone()))
            }
        }
    }

    async fn mark(&self, road: &Road, message: &Message, fence: Fence, end: End) -> Option<State> {
        let (state, id) = (end.state, message.delivery_id);
        for _ in 0..MARKS_MAX {
            let (end, channel, message) = (end.clone(), Arc::clone(&road.channel), message.clone());
            let plan = move |_, now| {
                let told = if state.is_held() { channel.held(&message, state, now) } else { Vec::new() };
                Ok(([vec![end.clone().mark(id, fence, now)], told].concat(), ()))
            };
            match self.door.maintain("relay.mark", Vec::new(), plan).await {
                Ok(_) => return Some(state),
                Err(Failure::Store(Error::Unavailable { .. } | Error::Indeterminate { .. })) => {
                    tokio::time::sleep(MARK_AGAIN).await;
                }
                Err(failure) => {
                    tracing::warn!(channel = road.channel.name(), delivery_id = id, %failure, "a mark failed");
                    return None;
                }
            }
        }
        None
    }
}

/// Says that somebody must act, where a row is held.
fn held(road: &Road, delivery_id: i64, state: State, cause: Option<&str>) {
    if state.is_held() {
        let (channel, state) = (road.channel.name(), state.as_str());
        tracing::error!(channel, delivery_id, state, cause, "a delivery is held; re-drive or settle it");
    }
}

/// Those that a claim is to take up: what is due, as many as may be sent, and every lapsed one.
fn due(heads: &[Row], now: Time, permits: u32) -> Result<Vec<i64>, Error> {
    let (mut due, mut waiting) = (Vec::new(), 0);
    for head in heads {
        if claim::due_at(head)? > now {
            break;
        }
        let lapsed = claim::is_sending(head)?;
        waiting += u32::from(!lapsed);
        if lapsed || waiting <= permits {
            due.push(head.int(0)?);
        }
    }
    Ok(due)
}

const fn word(state: State) -> &'static str {
    match state {
        State::Pending | State::Sending => "retry",
        held => held.as_str(),
    }
}
