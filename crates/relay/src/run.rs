//! The relay in tasks: one for each channel, woken by a nudge after commits and by the next due time.
//! Timers only wait; what is due is decided by the clock. Not here: what a round does.

use std::sync::Arc;
use std::time::Duration;

use door::Door;
use kernel::{Clock, Time};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::channel::Channel;
use crate::round::{Relay, Settings};

/// Longest wait between looks: rows of other nodes come without a nudge.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Shortest wait where a round found nothing it could take.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Between the numbers for metrics.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, Default)]
struct Signal {
    nudges: u64,
    stopping: bool,
}

/// Wakes a running relay. Cheap to clone; useless, and harmless, after its end.
#[derive(Clone, Debug)]
pub struct Nudge(Arc<watch::Sender<Signal>>);

impl Nudge {
    /// There are new rows. Many nudges during one round are one.
    pub fn nudge(&self) {
        self.0.send_modify(|signal| signal.nudges = signal.nudges.wrapping_add(1));
    }
}

/// A running relay. Dropping it cuts what is being sent, like a crash: [`Handle::stop`] is the way.
#[derive(Debug)]
pub struct Handle {
    nudge: Nudge,
    tasks: JoinSet<()>,
    stop_within: Duration,
    relay: Arc<Relay>,
}

/// How a stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything that was being sent has its mark.
    Clean,
    /// The bound passed; what was cut lapses with its lease.
    Cut,
}

impl Relay {
    /// Starts a task for each channel. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(
        door: Door,
        clock: Arc<dyn Clock>,
        channels: Vec<Arc<dyn Channel>>,
        settings: Settings,
    ) -> Handle {
        let relay = Arc::new(Self::new(door, clock, channels, settings));
        let nudge = Nudge(Arc::new(watch::Sender::new(Signal::default())));
        let mut tasks = JoinSet::new();
        for lane in 0..relay.lanes() {
            tasks.spawn(run(Arc::clone(&relay), lane, nudge.0.subscribe()));
        }
        tasks.spawn(measure(Arc::clone(&relay), nudge.0.subscribe()));
        Handle { nudge, tasks, stop_within: relay.settings().stop_within, relay }
    }
}

impl Handle {
    /// There are new rows.
    pub fn nudge(&self) {
        self.nudge.nudge();
    }

    /// For whoever commits.
    #[must_use]
    pub fn nudger(&self) -> Nudge {
        self.nudge.clone()
    }

    /// The relay itself: its destinations and numbers.
    #[must_use]
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Claims nothing more and waits, within the settings' bound, for what is being sent.
    pub async fn stop(mut self) -> Stopped {
        self.nudge.0.send_modify(|signal| signal.stopping = true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        match tokio::time::timeout(self.stop_within, all).await {
            Ok(()) => Stopped::Clean,
            Err(_) => Stopped::Cut,
        }
    }
}

async fn run(relay: Arc<Relay>, lane: usize, mut signal: watch::Receiver<Signal>) {
    while !signal.borrow_and_update().stopping {
        let wait = match relay.round(lane).await {
            Ok(turn) if turn.claimed == 0 => until(turn.next, relay.clock().now()).max(LOOK_AGAIN),
            Ok(turn) => until(turn.next, relay.clock().now()),
            Err(failure) => {
                tracing::warn!(%failure, "a round of the relay failed; it goes on");
                LOOK_EVERY
            }
        };
        if tokio::time::timeout(wait, signal.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
    }
}

async fn measure(relay: Arc<Relay>, mut signal: watch::Receiver<Signal>) {
    while !signal.borrow_and_update().stopping {
        if let Err(failure) = relay.measure().await {
            tracing::warn!(%failure, "the relay's numbers could not be read");
        }
        let stopping = signal.wait_for(|signal| signal.stopping);
        if tokio::time::timeout(MEASURE_EVERY, stopping).await.is_ok() {
            return;
        }
    }
}

fn until(next: Option<Time>, now: Time) -> Duration {
    next.map_or(LOOK_EVERY, |next| next.since(now).min(LOOK_EVERY))
}
