//! The one thread that writes: it drains its queue, runs each submission in a savepoint, and one commit
//! (one fsync) answers them all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use kernel::{Clock, Time};
use rusqlite::Connection;

use super::connection;
use crate::error::Error;
use crate::work::{Work, Written};

/// Submissions in one commit. More would only lengthen the wait of the first.
const BATCH_MAX: usize = 512;

#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<Sender<Box<dyn Work>>>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
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
        Ok(Self { queue: Mutex::new(Some(queue)), waiting, thread: Some(thread) })
    }

    pub(super) fn enqueue(&self, work: Box<dyn Work>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = match queue.as_ref() {
            Some(queue) => queue.send(work).err().map(|refused| refused.0),
            None => Some(work),
        };
        if let Some(work) = refused {
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
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(thread) = self.thread.take() {
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
        commit(connection, batch, clock);
    }
}

fn commit(connection: &Connection, batch: Vec<Box<dyn Work>>, clock: &dyn Clock) {
    if let Err(error) = batch_statement(connection, "begin immediate") {
        return batch.into_iter().for_each(|work| work.settled(Err(error.clone())));
    }
    let mut done: Vec<(Box<dyn Work>, Written)> = Vec::with_capacity(batch.len());
    let mut rest = batch.into_iter();
    for mut work in rest.by_ref() {
        match attempt(connection, &mut *work, clock.now()) {
            Ok(written) => done.push((work, written)),
            Err(error) if connection.is_autocommit() => {
                // The engine rolled the whole transaction back by itself (disk full, I/O error): what
                // the others wrote in it is gone too.
                let lost = done.into_iter().map(|(work, _)| work).chain([work]).chain(rest);
                return lost.for_each(|work| work.settled(Err(unavailable(&error))));
            }
            Err(error) => work.settled(Err(error)),
        }
    }
    match batch_statement(connection, "commit") {
        Ok(()) => done.into_iter().for_each(|(work, written)| work.settled(Ok(written))),
        Err(error) => {
            if !connection.is_autocommit() {
                // Nothing to do about a failed rollback: the next `begin` will report it.
                let _ = batch_statement(connection, "rollback");
            }
            tracing::error!(error = %error, submissions = done.len(), "commit failed");
            done.into_iter().for_each(|(work, _)| work.settled(Err(unavailable(&error))));
        }
    }
}

/// One submission in a savepoint: all of it or nothing.
fn attempt(connection: &Connection, work: &mut dyn Work, now: Time) -> Result<Written, Error> {
    batch_statement(connection, "savepoint submission")?;
    let result = catch_unwind(AssertUnwindSafe(|| run(connection, work, now))).unwrap_or_else(|_| {
        Err(Error::Statement { name: "submission", cause: "the command panicked".into() })
    });
    if result.is_err() && !connection.is_autocommit() {
        batch_statement(connection, "rollback to submission")?;
    }
    if !connection.is_autocommit() {
        batch_statement(connection, "release submission")?;
    }
    result
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

fn batch_statement(connection: &Connection, sql: &'static str) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql).map_err(|e| connection::running(sql, &e))?;
    statement.execute([]).map(|_| ()).map_err(|e| connection::running(sql, &e))
}

fn unavailable(error: &Error) -> Error {
    Error::Unavailable { cause: error.to_string() }
}
