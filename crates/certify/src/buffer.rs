//! Buffered arrivals, off by default: a repeat of a certified event is answered from memory, and its
//! arrival is written with others a moment later.
//!
//! What is given up, and no more: arrivals of the last [`FLUSH_EVERY`] and at most [`ROWS_MAX`] of them
//! are lost when the process is killed (twice as many when the store failed just then). Results are never answered from memory before their commit, and
//! a full buffer makes repeats durable again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kernel::{Digest, Outcome};
use metrics::counter;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use source::Kind;
use store::Write;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::answer::{self, Reply};
use crate::intake::AuditVisa;

/// Results kept in memory; about 1.2 kB each.
const RESULTS_MAX: usize = 8192;
/// Arrivals that wait to be written.
pub const ROWS_MAX: usize = 4096;
/// Arrivals written in one work.
const PIECE: usize = 128;
/// Longest wait of an arrival before it is written.
pub const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// Results and waiting arrivals.
pub(crate) struct Buffer {
    results: Cache<Digest, Arc<Hot>>,
    rows: Mutex<Vec<Write>>,
    full: Notify,
}

struct Hot {
    outcome: Outcome,
    arrivals: AtomicI64,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self { results: Cache::new(RESULTS_MAX), rows: Mutex::new(Vec::new()), full: Notify::new() }
    }

    /// The key of a delivery: account and body. `None` where a header carries the id.
    pub(crate) fn key(kind: Kind, account: &str, payload: Digest) -> Option<Digest> {
        let by_body = matches!(kind, Kind::Stripe | Kind::Paddle | Kind::Internal);
        by_body.then(|| Digest::of_fields(&[account.as_bytes(), payload.as_bytes()]))
    }

    /// A committed, certified result, from now on answered from memory.
    pub(crate) fn keep(&self, key: Digest, outcome: &Outcome, arrivals: i64) {
        if answer::is_certified(&outcome.body) {
            let hot = Hot { outcome: outcome.clone(), arrivals: AtomicI64::new(arrivals) };
            self.results.insert(key, Arc::new(hot));
        }
    }

    /// The answer for a repeat, once its arrival is in the buffer; `None` when it must go the durable way.
    pub(crate) fn repeat(&self, key: &Digest, arrival: impl FnOnce(&str) -> Option<Write>) -> Option<Reply> {
        let hot = self.results.get(key)?;
        let row = arrival(&hot.outcome.body)?;
        {
            let mut rows = self.rows.lock();
            if rows.len() >= ROWS_MAX {
                return None;
            }
            rows.push(row);
            if rows.len() == ROWS_MAX / 2 {
                self.full.notify_one();
            }
        }
        let arrivals = hot.arrivals.fetch_add(1, Ordering::Relaxed) + 1;
        Some(answer::reply(&hot.outcome, true, arrivals, false))
    }
}

impl Buffer {
    /// Rows that could not be written wait again; a buffer that is full of them makes repeats durable, and
    /// so fail while the store does.
    fn put_back(&self, mut again: Vec<Write>) {
        let mut rows = self.rows.lock();
        again.append(&mut rows);
        let lost = again.len().saturating_sub(2 * ROWS_MAX);
        if lost > 0 {
            counter!("certify_arrivals_lost_total").increment(lost as u64);
            again.truncate(2 * ROWS_MAX);
        }
        *rows = again;
    }

    /// Forgets all results: what was erased must not be answered from memory.
    pub(crate) fn forget(&self) {
        self.results.clear();
    }
}

/// Writes the buffer out until it is stopped.
#[derive(Debug)]
pub struct Flusher {
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl AuditVisa {
    /// Switches buffered arrivals on; keep the handle and stop it last.
    #[must_use]
    pub fn buffer_arrivals(self: &Arc<Self>) -> Flusher {
        let buffer = Arc::new(Buffer::new());
        *self.buffer.write() = Some(Arc::clone(&buffer));
        let stop = Arc::new(Notify::new());
        let task = tokio::spawn(flush(Arc::clone(self), buffer, Arc::clone(&stop)));
        Flusher { stop, task }
    }
}

impl Flusher {
    /// Writes what is left.
    pub async fn stop(self) {
        self.stop.notify_one();
        // A flusher that panicked has been logged by the runtime; stopping goes on.
        let _ = self.task.await;
    }
}

async fn flush(visa: Arc<AuditVisa>, buffer: Arc<Buffer>, stop: Arc<Notify>) {
    loop {
        let stopping = tokio::select! {
            () = stop.notified() => true,
            () = buffer.full.notified() => false,
            () = tokio::time::sleep(FLUSH_EVERY) => false,
        };
        let rows = std::mem::take(&mut *buffer.rows.lock());
        // Small works, so that deliveries that must be durable don't wait behind one large one.
        let pieces: Vec<Vec<Write>> = rows.chunks(PIECE).map(<[Write]>::to_vec).collect();
        futures::future::join_all(pieces.into_iter().map(|piece| write(&visa, &buffer, piece))).await;
        if stopping {
            *visa.buffer.write() = None;
            return;
        }
    }
}

async fn write(visa: &AuditVisa, buffer: &Buffer, piece: Vec<Write>) {
    let again = piece.clone();
    let plan = move |_, _| Ok((piece.clone(), ()));
    if let Err(cause) = visa.door.maintain("arrivals", Vec::new(), plan).await {
        tracing::error!(%cause, count = again.len(), "arrivals_not_written");
        buffer.put_back(again);
    }
}
