//! The one thread that writes: it drains its queue, runs each submission in a savepoint, and one commit
//! (one fsync) answers them all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::vec::IntoIter;

use kernel::{Clock, Time};
use rusqlite::Connection;

use super::connection;
use crate::error::Error;
use crate::work::{Work, Written};

/// Submissions in one commit. More would only lengthen the wait of the first.
const BATCH_MAX: usize = 512;
/// Submissions that may wait: a few seconds of work on a slow disk. Whoever comes later is told to come
/// again instead of filling the memory.
const QUEUE_MAX: usize = 16_384;

#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Queue>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// Where submissions go in.
#[derive(Debug)]
struct Queue {
    /// `None` once the writer ends.
    sender: Option<Sender<Box<dyn Work>>>,
    /// The fence stands: whoever comes is told so.
    closed: bool,
}

impl Writer {
    pub(super) fn start(connection: Connection, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let (queue, arrivals) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&waiting);
        let thread = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || serve(&connection, &arrivals, &counter, &*clock))
            .map_err(|cause| Error::Setup(format!("the writer thread can't be started: {cause}")))?;
        Ok(Self {
            queue: Mutex::new(Queue { sender: Some(queue), closed: false }),
            waiting,
            thread: Some(thread),
        })
    }

    pub(super) fn enqueue(&self, work: Box<dyn Work>) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= QUEUE_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return work.settled(Err(Error::Unavailable { cause: "too many submissions wait".into() }));
        }
        let queue = self.queue();
        if queue.closed {
            drop(queue);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return work.settled(Err(Error::Fenced));
        }
        self.send(queue, work);
    }

    /// Takes nothing after `last`, which goes behind what waits already.
    pub(super) fn close(&self, last: Box<dyn Work>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut queue = self.queue();
        queue.closed = true;
        self.send(queue, last);
    }

    /// Hands in what may pass the fence.
    pub(super) fn push(&self, work: Box<dyn Work>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.send(self.queue(), work);
    }

    pub(super) fn open(&self) {
        self.queue().closed = false;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue().closed
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, queue: MutexGuard<'_, Queue>, work: Box<dyn Work>) {
        let refused = match queue.sender.as_ref() {
            Some(sender) => sender.send(work).err().map(|refused| refused.0),
            None => Some(work),
        };
        drop(queue);
        if let Some(work) = refused {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            work.settled(Err(Error::Unavailable { cause: "the server is stopping".into() }));
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Writer {
    /// Closes the queue and waits until what was in it is committed and answered.
    fn drop(&mut self) {
        self.queue().sender = None;
        if let Some(thread) = self.thread.take()
            // A submission that owned the store may be its last owner, on the writer's own thread.
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches the panics of submissions; its own end carries nothing to report.
            let _ = thread.join();
        }
    }
}

fn serve(
    connection: &Connection,
    arrivals: &Receiver<Box<dyn Work>>,
    waiting: &AtomicUsize,
    clock: &dyn Clock,
) {
    while let Ok(first) = arrivals.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Ok(next) = arrivals.try_recv()
        {
            batch.push(next);
        }
        waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        let mut rest = batch.into_iter();
        // Another round only when the engine dropped a transaction; each takes at least one away.
        while rest.len() > 0 {
            commit(connection, &mut rest, clock);
        }
    }
}

/// One transaction over the submissions of `rest`. Those that did not get their turn stay in it.
fn commit(connection: &Connection, rest: &mut IntoIter<Box<dyn Work>>, clock: &dyn Clock) {
    if let Err(error) = begin(connection) {
        return rest.for_each(|work| answer(work, Err(error.clone())));
    }
    let mut done: Vec<(Box<dyn Work>, Written)> = Vec::with_capacity(rest.len());
    for mut work in rest.by_ref() {
        match attempt(connection, &mut *work, clock) {
            Ok(written) => done.push((work, written)),
            Err(End::Refused(error)) => answer(work, Err(error)),
            Err(End::Dropped(error)) => {
                // The whole transaction is gone (disk full, I/O error), and with it what the others
                // wrote. Those still to come are not touched by it.
                roll_back(connection);
                let error = unavailable(error);
                let lost = done.into_iter().map(|(work, _)| work).chain([work]);
                return lost.for_each(|work| answer(work, Err(error.clone())));
            }
        }
    }
    if done.is_empty() {
        return roll_back(connection);
    }
    match statement(connection, "commit").map_err(|e| connection::committing(&e)) {
        Ok(()) => done.into_iter().for_each(|(work, written)| answer(work, Ok(written))),
        Err(error) => {
            roll_back(connection);
            tracing::error!(error = %error, submissions = done.len(), "commit failed");
            done.into_iter().for_each(|(work, _)| answer(work, Err(error.clone())));
        }
    }
}

/// Begins, after ending what an earlier failure may have left open.
fn begin(connection: &Connection) -> Result<(), Error> {
    roll_back(connection);
    statement(connection, "begin immediate").map_err(|e| connection::running("begin", &e))
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = statement(connection, "rollback")
    {
        // Tried again before the next transaction begins; until then nothing is acknowledged.
        tracing::error!(%error, "rollback failed");
    }
}

/// Tells a submission its end. One that panics there must not take the writer with it.
fn answer(work: Box<dyn Work>, end: Result<Written, Error>) {
    if catch_unwind(AssertUnwindSafe(|| work.settled(end))).is_err() {
        tracing::error!("a submission panicked when it was told its end");
    }
}

/// How a submission ended without being kept.
enum End {
    /// Only its own savepoint is undone.
    Refused(Error),
    /// The transaction is gone, or its state unknown.
    Dropped(Error),
}

/// One submission in a savepoint: all of it or nothing.
fn attempt(connection: &Connection, work: &mut dyn Work, clock: &dyn Clock) -> Result<Written, End> {
    let savepoint =
        |sql| statement(connection, sql).map_err(|e| End::Dropped(connection::running("savepoint", &e)));
    savepoint("savepoint submission")?;
    let result = catch_unwind(AssertUnwindSafe(|| run(connection, work, clock.now()))).unwrap_or_else(|_| {
        Err(Error::Statement { name: "submission", cause: "the command panicked".into() })
    });
    match result {
        Ok(written) => savepoint("release submission").map(|()| written),
        // Some errors end the transaction by themselves; the savepoint is gone with it.
        Err(error) if connection.is_autocommit() => Err(End::Dropped(error)),
        Err(error) => {
            savepoint("rollback to submission")?;
            savepoint("release submission")?;
            Err(End::Refused(error))
        }
    }
}

fn run(connection: &Connection, work: &mut dyn Work, now: Time) -> Result<Written, Error> {
    let mut rows = Vec::new();
    for query in work.reads() {
        rows.push(connection::read(connection, &query)?);
    }
    let mut written = Written::default();
    for write in work.writes(rows, now)? {
        written.returned.push((write.name, connection::write(connection, &write)?));
    }
    Ok(written)
}

fn statement(connection: &Connection, sql: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn unavailable(error: Error) -> Error {
    match error {
        known @ Error::Unavailable { .. } => known,
        other => Error::Unavailable { cause: other.to_string() },
    }
}
