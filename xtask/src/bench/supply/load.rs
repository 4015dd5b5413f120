//! So many requests over so many connections, each sent once; how fast and how late the answers came.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::task::LocalSet;

use crate::bench::connection::Connection;

/// What came of a load. Latencies are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// A second.
    pub(super) rate: u64,
    pub(super) p50: u64,
    pub(super) p95: u64,
    pub(super) p99: u64,
    /// Everything else than the expected answer.
    pub(super) failures: u64,
}

impl Sample {
    /// Of latencies in microseconds, in any order.
    pub(super) fn of(mut latencies: Vec<u64>, elapsed: Duration, failures: u64) -> Self {
        latencies.sort_unstable();
        let at = |percent: usize| {
            let rank = (latencies.len() * percent).div_ceil(100).max(1);
            latencies.get(rank - 1).copied().unwrap_or_default()
        };
        let count = u128::try_from(latencies.len()).unwrap_or_default();
        let rate = count * 1_000_000_000 / elapsed.as_nanos().max(1);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        Self { rate, p50: at(50), p95: at(95), p99: at(99), failures }
    }
}

struct Shared {
    to: SocketAddr,
    requests: Vec<Vec<u8>>,
    expected: u16,
    next: Cell<usize>,
    latencies: RefCell<Vec<u64>>,
    failures: Cell<u64>,
    /// The first answer that was not expected.
    strange: RefCell<Option<String>>,
}

/// Sends all requests, as many at once as there are clients.
///
/// # Errors
/// Nobody listens; or more than one answer in a hundred is another than expected.
pub(super) fn run(to: SocketAddr, clients: usize, requests: Vec<Vec<u8>>, expected: u16) -> Result<Sample> {
    let count = requests.len();
    let shared = Rc::new(Shared {
        to,
        requests,
        expected,
        next: Cell::new(0),
        latencies: RefCell::new(Vec::with_capacity(count)),
        failures: Cell::new(0),
        strange: RefCell::new(None),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let elapsed = LocalSet::new().block_on(&runtime, all(&shared, clients))?;
    let failures = shared.failures.get();
    if let Some(strange) = shared.strange.borrow().as_ref()
        && failures * 100 > u64::try_from(count)?
    {
        bail!("{failures} of {count} answers are not {expected}; the first: {strange}");
    }
    Ok(Sample::of(shared.latencies.take(), elapsed, failures))
}

async fn all(shared: &Rc<Shared>, clients: usize) -> Result<Duration> {
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Connection::open(shared.to).await.context("the server can't be reached")?);
    }
    let began = Instant::now();
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|connection| tokio::task::spawn_local(client(Rc::clone(shared), connection)))
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(began.elapsed())
}

async fn client(shared: Rc<Shared>, mut connection: Connection) -> Result<()> {
    loop {
        let number = shared.next.replace(shared.next.get() + 1);
        let Some(request) = shared.requests.get(number) else { return Ok(()) };
        let began = Instant::now();
        let (status, body) = connection.exchange(request).await.context("an answer")?;
        let took = u64::try_from(began.elapsed().as_micros())?;
        ensure!(status >= 200, "no final answer");
        if status == shared.expected {
            shared.latencies.borrow_mut().push(took);
        } else {
            shared.failures.set(shared.failures.get() + 1);
            let mut strange = shared.strange.borrow_mut();
            strange.get_or_insert_with(|| format!("{status} {}", String::from_utf8_lossy(body)));
        }
    }
}
