//! Threads that read, each with a connection of its own, so that a read never waits for the writer.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
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

#[derive(Debug)]
pub(super) struct Readers {
    queues: Vec<Sender<Read>>,
    next: AtomicUsize,
}

impl Readers {
    pub(super) fn start(path: &Path, count: usize, cache_kib: u32) -> Result<Self, Error> {
        let mut queues = Vec::with_capacity(count);
        for number in 0..count {
            let connection = connection::open_reader(path, cache_kib)?;
            let (queue, arrivals) = channel();
            std::thread::Builder::new()
                .name(format!("reader-{number}"))
                .spawn(move || serve(&connection, &arrivals))
                .map_err(|cause| Error::Setup(format!("a reader thread can't be started: {cause}")))?;
            queues.push(queue);
        }
        Ok(Self { queues, next: AtomicUsize::new(0) })
    }

    /// Runs the queries on the next thread in turn, all on one snapshot.
    pub(super) async fn run(&self, queries: Vec<Query>) -> Answer {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.queues.len().max(1);
        let (answer, answered) = oneshot::channel();
        let stopped = || Error::Unavailable { cause: "the reader stopped".into() };
        let queue = self.queues.get(turn).ok_or_else(stopped)?;
        queue.send(Read { queries, answer }).map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

fn serve(connection: &Connection, arrivals: &Receiver<Read>) {
    while let Ok(Read { queries, answer }) = arrivals.recv() {
        // The asker may have gone; its answer then goes nowhere.
        let _ = answer.send(snapshot(connection, &queries));
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
