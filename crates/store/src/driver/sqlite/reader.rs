//! Threads that read, each with a connection of its own, so that a read never waits for the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, InterruptHandle};
use tokio::sync::oneshot;

use super::connection;
use crate::error::Error;
use crate::statement::Query;
use crate::value::Row;

type Answer = Result<Vec<Vec<Row>>, Error>;

struct Read {
    queries: Vec<Query>,
    answer: oneshot::Sender<Answer>,
}

pub(super) struct Readers {
    /// `None` only while it is dropped.
    queue: Option<Sender<Read>>,
    threads: Vec<(JoinHandle<()>, InterruptHandle)>,
}

impl Readers {
    pub(super) fn start(path: &Path, count: usize, cache_kib: u32) -> Result<Self, Error> {
        let (queue, arrivals) = channel();
        // One queue for all: a long read keeps one thread, not those who happen to stand behind it.
        let arrivals = Arc::new(Mutex::new(arrivals));
        let mut threads = Vec::with_capacity(count);
        for number in 0..count {
            let connection = connection::open_reader(path, cache_kib)?;
            let arrivals = Arc::clone(&arrivals);
            let interrupt = connection.get_interrupt_handle();
            let thread = std::thread::Builder::new()
                .name(format!("reader-{number}"))
                .spawn(move || serve(&connection, &arrivals))
                .map_err(|cause| Error::Setup(format!("a reader thread can't be started: {cause}")))?;
            threads.push((thread, interrupt));
        }
        Ok(Self { queue: Some(queue), threads })
    }

    /// Runs the queries on the next free thread, all on one snapshot.
    pub(super) async fn run(&self, queries: Vec<Query>) -> Answer {
        let (answer, answered) = oneshot::channel();
        let stopped = || Error::Unavailable { cause: "the reader stopped".into() };
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(Read { queries, answer }).map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl Drop for Readers {
    /// Waits until the connections are closed, so that nobody touches the folder after its lock is free.
    /// A read that still runs is cut: whoever asked for it is gone.
    fn drop(&mut self) {
        self.queue = None;
        for (thread, interrupt) in self.threads.drain(..) {
            interrupt.interrupt();
            // The thread catches the panics of reads; its own end carries nothing to report.
            let _ = thread.join();
        }
    }
}

fn serve(connection: &Connection, arrivals: &Mutex<Receiver<Read>>) {
    loop {
        let next = arrivals.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Read { queries, answer }) = next else { return };
        if answer.is_closed() {
            continue;
        }
        let rows = catch_unwind(AssertUnwindSafe(|| snapshot(connection, &queries)));
        let stopped = |_| Err(Error::Unavailable { cause: "the read panicked".into() });
        // The asker may have gone meanwhile; its answer then goes nowhere.
        let _ = answer.send(rows.unwrap_or_else(stopped));
    }
}

fn snapshot(connection: &Connection, queries: &[Query]) -> Answer {
    if let [query] = queries {
        return Ok(vec![connection::read(connection, query)?]);
    }
    let transaction = connection.unchecked_transaction().map_err(|e| connection::running("snapshot", &e))?;
    let rows = queries.iter().map(|query| connection::read(&transaction, query)).collect();
    transaction.finish().map_err(|e| connection::running("snapshot", &e))?;
    rows
}
