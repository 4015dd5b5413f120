//! One submission's life inside a transaction, without I/O: it names its reads, sees their rows, names
//! its writes. The driver runs both, so a driver may pipeline, group or repeat them.

use kernel::Time;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::statement::{Query, Write};
use crate::value::Row;

/// Which locks a work takes before its first read, where other processes write the same store. They are
/// taken on 64 bits of a digest: two keys that share them wait for one another, and no more. Where one
/// process owns the store, its writer is lock enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// None: the writes' own checks suffice.
    None,
    /// On the pair (key, fingerprint) and on the key, without waiting: [`Error::Busy`] if one is taken.
    Try {
        /// First half of the digest of key and fingerprint.
        pair: i64,
        /// First half of the key's digest.
        key: i64,
    },
    /// On both, waiting as long as the engine's lock time-out allows: for works that settle what they hold,
    /// whoever else tries.
    Wait {
        /// As above.
        pair: i64,
        /// As above.
        key: i64,
    },
    /// On a word of their own, waiting as above: works that only add to what stands there take turns, and
    /// nobody takes them for one that holds the key.
    Turn {
        /// First half of a digest that the key does not share.
        word: i64,
    },
}

/// What the driver runs: all reads, then all writes, in one transaction.
pub trait Work: Send {
    /// Which locks to take first.
    fn lock(&self) -> Lock {
        Lock::None
    }

    /// Whether [`Work::writes`] may be called again with newer rows, when the engine undid the
    /// transaction for reasons that lie in others (a deadlock, a serialization failure).
    fn again(&self) -> bool {
        false
    }

    /// The reads. The first is the look-up of the key's record where there is a key.
    fn reads(&mut self) -> Vec<Query>;

    /// The writes, from the rows of each read and the store's time. May be empty.
    ///
    /// # Errors
    /// A damaged row, or the work's own refusal to go on; nothing is written then.
    fn writes(&mut self, rows: Vec<Vec<Row>>, now: Time) -> Result<Vec<Write>, Error>;

    /// Told once, after the commit or the failure. Must not block.
    fn settled(self: Box<Self>, end: Result<Written, Error>);
}

/// What committed: for each write, by its name, the rows it returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub(crate) returned: Vec<(&'static str, Vec<Row>)>,
}

impl Written {
    /// First row that the write called `name` returned.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.returned.iter().find(|(write, _)| *write == name).and_then(|(_, rows)| rows.first())
    }

    /// All rows that the write called `name` returned.
    #[must_use]
    pub fn rows(&self, name: &str) -> &[Row] {
        self.returned.iter().find(|(write, _)| *write == name).map_or(&[], |(_, rows)| rows)
    }
}

/// Writes that need no look first, and somebody who waits for their end.
pub(crate) struct Batch {
    writes: Vec<Write>,
    answer: oneshot::Sender<Result<Written, Error>>,
}

impl Batch {
    pub(crate) fn new(writes: Vec<Write>) -> (Box<Self>, oneshot::Receiver<Result<Written, Error>>) {
        let (answer, answered) = oneshot::channel();
        (Box::new(Self { writes, answer }), answered)
    }
}

impl Work for Batch {
    fn again(&self) -> bool {
        true
    }

    fn reads(&mut self) -> Vec<Query> {
        Vec::new()
    }

    fn writes(&mut self, _: Vec<Vec<Row>>, _: Time) -> Result<Vec<Write>, Error> {
        Ok(self.writes.clone())
    }

    fn settled(self: Box<Self>, end: Result<Written, Error>) {
        // Whoever asked may have gone; it is done all the same.
        let _ = self.answer.send(end);
    }
}
