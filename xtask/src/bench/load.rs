//! Load on one address: so many connections, each with one request under way.
//!
//! One thread carries them all, as the cores are the server's. Latency is from
//! the first byte written to the last byte read. It is a closed loop: a slow
//! server is asked less often, so its tail looks better than arrivals at a fixed
//! rate would show; all subjects are measured the same way.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::{JoinSet, LocalSet};

use super::connection::Connection;
use super::delivery::Delivery;
use super::response;

/// How long after its end a run waits for the answers still due.
const GRACE: Duration = Duration::from_secs(15);

/// Longest time for a load that ends by count.
const COUNT_BOUND: Duration = Duration::from_secs(900);

/// Connections a client opens anew before it gives up.
const RECONNECTS: u32 = 20;

/// When a load ends.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    /// After this time.
    Time(Duration),
    /// After this many requests.
    Count(u64),
}

/// Which events are delivered.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    /// From this number on, each once.
    From(u64),
    /// The first so many, again and again.
    Among(u64),
    /// This one, again and again.
    Only(u64),
}

/// One load.
pub(crate) struct Load {
    pub(crate) to: SocketAddr,
    /// Connections, each with one request under way.
    pub(crate) clients: usize,
    pub(crate) limit: Limit,
    pub(crate) delivery: Delivery,
    pub(crate) numbers: Numbers,
    /// What the answer's `status` has to be; `None` where it is fixed.
    pub(crate) status: Option<&'static str>,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Tally {
    /// Answers by HTTP status.
    pub(crate) answers: BTreeMap<u16, u64>,
    /// Answers 2xx with another `status` than expected.
    pub(crate) unexpected: u64,
    /// Requests whose connection broke or that never got an answer.
    pub(crate) unanswered: u64,
    /// Requests sent.
    pub(crate) sent: u64,
    /// Latencies of 2xx answers, in microseconds, ascending.
    pub(crate) latencies: Vec<u32>,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
}

impl Tally {
    /// Answers 2xx a second.
    pub(crate) fn rate(&self) -> u64 {
        let count = u128::try_from(self.latencies.len()).unwrap_or_default();
        let rate = count * 1_000_000_000 / self.elapsed.as_nanos().max(1);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Nearest-rank percentile in microseconds, 0 without answers.
    pub(crate) fn percentile(&self, percent: usize) -> u32 {
        let rank = (self.latencies.len() * percent).div_ceil(100).max(1);
        self.latencies.get(rank - 1).copied().unwrap_or_default()
    }

    /// Everything that is not an expected 2xx.
    pub(crate) fn failures(&self) -> u64 {
        let refused: u64 =
            self.answers.iter().filter(|(it, _)| **it / 100 != 2).map(|(_, count)| count).sum();
        refused + self.unexpected + self.unanswered
    }
}

/// What the connections of one load share.
struct Shared {
    to: SocketAddr,
    numbers: Numbers,
    /// Requests by number, for as many as are made beforehand.
    ready: Vec<Vec<u8>>,
    status: Option<&'static str>,
    until: Option<Instant>,
    count: u64,
    next: Cell<u64>,
    /// When the last answer came.
    last: Cell<Instant>,
    tally: RefCell<Tally>,
}

impl Load {
    /// Opens all connections, then starts; returns when the last answer is in.
    ///
    /// # Errors
    /// The server doesn't accept the connections.
    pub(crate) fn run(self) -> Result<Tally> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, self.carried_out())
    }

    /// Repeats are the same few requests: signed once, not at every delivery.
    fn ready(&self) -> Vec<Vec<u8>> {
        match self.numbers {
            Numbers::From(_) | Numbers::Only(_) => Vec::new(),
            Numbers::Among(known) => {
                let mut delivery = self.delivery.clone();
                (0..known).map(|number| delivery.numbered(number).to_vec()).collect()
            }
        }
    }

    async fn carried_out(self) -> Result<Tally> {
        let mut connections = Vec::with_capacity(self.clients);
        for _ in 0..self.clients {
            connections.push(Connection::open(self.to).await.context("the server takes no connection")?);
        }
        let ready = self.ready();
        let start = Instant::now();
        let (until, count, bound) = match self.limit {
            Limit::Time(time) => (Some(start + time), u64::MAX, time + GRACE),
            Limit::Count(count) => (None, count, COUNT_BOUND),
        };
        let (to, numbers, status) = (self.to, self.numbers, self.status);
        let (next, last, tally) = (Cell::default(), Cell::new(start), RefCell::default());
        let shared = Rc::new(Shared { to, numbers, ready, status, until, count, next, last, tally });
        let mut clients = JoinSet::new();
        for connection in connections {
            clients.spawn_local(client(connection, self.delivery.clone(), Rc::clone(&shared)));
        }
        // Clients that are still waiting at the bound end with the set.
        let all_done = async { while clients.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(bound, all_done).await;
        let mut tally = shared.tally.take();
        tally.elapsed = shared.last.get().duration_since(start);
        tally.sent = shared.next.get();
        tally.unanswered = tally.sent - tally.answers.values().sum::<u64>();
        tally.latencies.sort_unstable();
        Ok(tally)
    }
}

impl Shared {
    /// The number of the next delivery, or `None` when the load is over.
    fn next(&self) -> Option<u64> {
        let sent = self.next.get();
        let over = sent >= self.count || self.until.is_some_and(|it| Instant::now() >= it);
        if over {
            return None;
        }
        self.next.set(sent + 1);
        Some(match self.numbers {
            Numbers::From(first) => first + sent,
            Numbers::Among(known) => sent % known.max(1),
            Numbers::Only(number) => number,
        })
    }

    fn answered(&self, status: u16, body: &[u8], asked: Instant) {
        let now = Instant::now();
        self.last.set(now);
        let mut tally = self.tally.borrow_mut();
        *tally.answers.entry(status).or_default() += 1;
        if status / 100 != 2 {
            return;
        }
        if self.status.is_some_and(|expected| !response::says(body, expected)) {
            tally.unexpected += 1;
        }
        tally.latencies.push(u32::try_from((now - asked).as_micros()).unwrap_or(u32::MAX));
    }
}

/// One connection's part; ends with the load or when it can't reconnect.
async fn client(mut connection: Connection, mut delivery: Delivery, shared: Rc<Shared>) {
    let mut reconnects = 0;
    while let Some(number) = shared.next() {
        let ready = usize::try_from(number).ok().and_then(|number| shared.ready.get(number));
        let request = match ready {
            Some(request) => request.as_slice(),
            None => delivery.numbered(number),
        };
        let asked = Instant::now();
        if let Ok((status, body)) = connection.exchange(request).await {
            shared.answered(status, body, asked);
            continue;
        }
        reconnects += 1;
        match Connection::open(shared.to).await {
            Ok(new) if reconnects <= RECONNECTS => connection = new,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let tally = Tally { latencies: (1..=200).collect(), ..Tally::default() };
        assert_eq!([50, 99, 100].map(|it| tally.percentile(it)), [100, 198, 200]);
        assert_eq!(Tally::default().percentile(99), 0);
    }

    #[test]
    fn whatever_is_not_an_expected_answer_is_a_failure() {
        let answers = BTreeMap::from([(200, 90), (204, 1), (401, 3), (503, 4)]);
        let tally = Tally { answers, unexpected: 2, unanswered: 5, ..Tally::default() };
        assert_eq!(tally.failures(), 14);
    }
}
