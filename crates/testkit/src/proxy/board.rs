//! What is switched on, for whom, and how often it fired.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::fault::{Fault, Reach, Rule};

/// What a call of `drop_all` is counted as.
const RESET: &str = "reset";

/// What all connections of one proxy share.
#[derive(Debug)]
pub(super) struct Board {
    target: Mutex<SocketAddr>,
    rules: watch::Sender<Vec<Arc<Live>>>,
    /// How often everything was dropped; a connection goes when this has grown since it came.
    drops: watch::Sender<u64>,
    totals: Mutex<BTreeMap<&'static str, u64>>,
    /// Number of the next connection.
    next: AtomicU64,
    next_rule: AtomicU64,
    pub(super) open: AtomicUsize,
    pub(super) commits: AtomicU64,
}

/// A rule that is switched on.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: u64,
    pub(super) rule: Rule,
    /// Number of the first connection that came after the rule.
    since: u64,
    fired: watch::Sender<u64>,
}

impl Board {
    pub(super) fn new(target: SocketAddr) -> Self {
        Self {
            target: Mutex::new(target),
            rules: watch::Sender::new(Vec::new()),
            drops: watch::Sender::new(0),
            totals: Mutex::default(),
            next: AtomicU64::new(0),
            next_rule: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            commits: AtomicU64::new(0),
        }
    }

    pub(super) fn point_at(&self, target: SocketAddr) {
        *self.target.lock() = target;
    }

    pub(super) fn target(&self) -> SocketAddr {
        *self.target.lock()
    }

    pub(super) fn set(board: &Arc<Self>, rule: Rule) -> Armed {
        let live = Arc::new(Live {
            id: board.next_rule.fetch_add(1, Ordering::SeqCst),
            rule,
            since: board.next.load(Ordering::SeqCst),
            fired: watch::Sender::new(0),
        });
        board.rules.send_modify(|rules| rules.push(Arc::clone(&live)));
        Armed { live, board: Arc::clone(board) }
    }

    pub(super) fn clear(&self) {
        self.rules.send_modify(Vec::clear);
    }

    pub(super) fn drop_all(&self) -> usize {
        let told = self.open.load(Ordering::SeqCst);
        self.drops.send_modify(|drops| *drops += 1);
        if told > 0 {
            *self.totals.lock().entry(RESET).or_default() += told as u64;
        }
        told
    }

    pub(super) fn fired(&self) -> BTreeMap<&'static str, u64> {
        self.totals.lock().clone()
    }

    /// Counts one firing of the rule; false when it has fired as often as it may.
    pub(super) fn fire(&self, live: &Live) -> bool {
        let may = live.fired.send_if_modified(|fired| {
            let may = *fired < live.rule.times;
            *fired += u64::from(may);
            may
        });
        if may {
            *self.totals.lock().entry(live.rule.fault.name()).or_default() += 1;
        }
        may
    }

    /// A new connection's number, and how often everything was dropped before it.
    pub(super) fn arrive(&self) -> (u64, watch::Receiver<u64>) {
        (self.next.fetch_add(1, Ordering::SeqCst), self.drops.subscribe())
    }

    pub(super) fn rules(&self) -> watch::Receiver<Vec<Arc<Live>>> {
        self.rules.subscribe()
    }

    /// The rules that reach the connection and whose fault is `wanted`.
    pub(super) fn matching(&self, number: u64, wanted: impl Fn(&Fault) -> bool) -> Vec<Arc<Live>> {
        let rules = self.rules.borrow();
        rules.iter().filter(|live| live.reaches(number) && wanted(&live.rule.fault)).cloned().collect()
    }

    /// Fires the first of [`Self::matching`] that still may.
    pub(super) fn strike(&self, number: u64, wanted: impl Fn(&Fault) -> bool) -> Option<Arc<Live>> {
        self.matching(number, wanted).into_iter().find(|live| self.fire(live))
    }
}

impl Live {
    fn reaches(&self, number: u64) -> bool {
        match self.rule.reach {
            Reach::All => true,
            Reach::Open => number < self.since,
            Reach::New => number >= self.since,
        }
    }
}

/// A fault that was switched on. Dropping this leaves it on.
#[derive(Clone, Debug)]
pub struct Armed {
    live: Arc<Live>,
    board: Arc<Board>,
}

impl Armed {
    /// How often it fired.
    #[must_use]
    pub fn fired(&self) -> u64 {
        *self.live.fired.borrow()
    }

    /// Waits until it has fired so many times. The caller bounds the wait.
    pub async fn reached(&self, times: u64) {
        // Fails only when the sender is gone, and `self` holds it.
        let _ = self.live.fired.subscribe().wait_for(|fired| *fired >= times).await;
    }

    /// Takes this fault away and leaves the others.
    pub fn lift(&self) {
        self.board.rules.send_modify(|rules| rules.retain(|live| live.id != self.live.id));
    }
}
