//! [`Door::submit`] and [`Door::maintain`]: the only two ways to a write transaction.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Outcome, Random, Time};
use store::{Error, Query, Row, Store, Write, Written, planted};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::attempt::{Astray, Attempt, Kept, Settled, Stage};
use crate::command::{Command, Key, Submission};
use crate::housekeeping::Housekeeping;
use crate::lock::Locks;
use crate::run::{ROUNDS_MAX, Run, WAIT_MAX, panicked};

/// The door. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    store: Store,
    pub(crate) locks: Locks,
    random: Arc<dyn Random>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("store", &self.store).finish_non_exhaustive()
    }
}

/// How a submission ended, if it did not fail.
#[derive(Debug)]
pub enum Answer {
    /// There is a formal result.
    Done(Done),
    /// The command kept its rows and left the key open.
    Open {
        /// What whoever asked gets this time, if the command said so.
        outcome: Option<Outcome>,
        /// What its rows returned.
        written: Written,
    },
    /// A twin is running under the key, or another payload has it.
    InProgress {
        /// Whether the one that has it is of the same fingerprint.
        same: bool,
        /// Whether its claim survives a crash: only then may a sender be told 2xx.
        durable: bool,
        /// When to ask again.
        retry_after: Duration,
    },
    /// The record is orphaned: recovery comes first.
    Orphaned,
}

/// A formal result.
#[derive(Debug)]
pub struct Done {
    /// Status and content.
    pub outcome: Outcome,
    /// Whether it stood there before.
    pub replayed: bool,
    /// Whether this submission's fingerprint is the record's.
    pub same: bool,
    /// When the key is free again; `None` for ever.
    pub expires_at: Option<Time>,
    /// Of a repeat: the request that the result came of, where the record's table tells it.
    pub origin: Option<String>,
    /// What this submission's own rows returned.
    pub written: Written,
}

/// Why a submission has no answer. A failure is ours: nothing formal came of it, the asker may come
/// again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
    /// The store broke off in the middle of the work, and kept that failure under the key since: what is gone is not
    /// the store of keys.
    #[error(transparent)]
    Undone(Error),
    /// Building, writing files, or a foreign side.
    #[error("{step}: {cause}")]
    Step {
        /// What was being done.
        step: &'static str,
        /// What went wrong; no secret, no value of a person.
        cause: String,
    },
    /// Another attempt has taken the key over.
    #[error("another attempt has taken over; ask again")]
    LeaseLost,
    /// Others kept getting ahead.
    #[error("the key changed hands {ROUNDS_MAX} times while this submission waited; ask again")]
    Crowded,
    /// The server is stopping.
    #[error("the server is stopping; ask again")]
    Stopping,
}

impl Failure {
    /// As it is told after it was put on record.
    pub(crate) fn kept(self) -> Self {
        match self {
            Self::Store(error @ (Error::Unavailable { .. } | Error::Indeterminate { .. })) => {
                Self::Undone(error)
            }
            other => other,
        }
    }
}

impl Door {
    /// A door to `store`.
    #[must_use]
    pub fn new(store: Store, random: Arc<dyn Random>) -> Self {
        Self { store, locks: Locks::default(), random }
    }

    /// For reads; writes go through the door.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Runs a command under its key exactly once, or gives the result that stands there. The work runs
    /// in a task of its own: dropping the returned future (a client that hangs up) does not cut it.
    ///
    /// # Errors
    /// A [`Failure`]: nothing formal came of this submission. If the store works, it is on record.
    pub async fn submit<C: Command>(&self, submission: Submission<C>) -> Result<Answer, Failure> {
        let door = self.clone();
        let Submission { key, command, wait } = submission;
        let run = async move {
            let end = Instant::now() + wait.min(WAIT_MAX);
            Run { door, key, command: Arc::new(command), end }.run().await
        };
        match tokio::spawn(run).await {
            Ok(answer) => answer,
            Err(panic) if panic.is_panic() => Err(panicked("submission")),
            // The runtime shuts down.
            Err(_) => Err(Failure::Stopping),
        }
    }

    /// Housekeeping without a key: relay marks, sweeps, counters. `plan` sees the rows of `reads` and
    /// gives the writes and a value to return; all in one transaction. It is asked again, with newer rows,
    /// when the engine undid the transaction for reasons that lie in others.
    ///
    /// # Errors
    /// [`Failure::Store`], with [`Error::Raised`] when a write's check raised.
    pub async fn maintain<T, P>(
        &self,
        name: &'static str,
        reads: Vec<Query>,
        plan: P,
    ) -> Result<(T, Written), Failure>
    where
        T: Send + 'static,
        P: Fn(Vec<Vec<Row>>, Time) -> Result<(Vec<Write>, T), Error> + Send + 'static,
    {
        let (work, answered) = Housekeeping::new(name, reads, plan);
        self.store.enqueue(Box::new(work));
        Ok(answered.await.map_err(|_| Failure::Stopping)??)
    }

    /// Random bytes from the door's source.
    pub fn fill_random(&self, bytes: &mut [u8]) {
        self.random.fill(bytes);
    }

    /// Where random bytes come from.
    #[must_use]
    pub fn random(&self) -> Arc<dyn Random> {
        Arc::clone(&self.random)
    }

    pub(crate) async fn settle<C: Command>(
        &self,
        key: Option<&Key>,
        command: &Arc<C>,
        stage: Stage<C>,
    ) -> Settled {
        let (answer, answered) = oneshot::channel();
        let astray = self.astray(key).await;
        let told = Arc::clone(&astray.told);
        self.store.enqueue(Box::new(Attempt {
            key: key.cloned(),
            command: Arc::clone(command),
            stage,
            random: Arc::clone(&self.random),
            seen: None,
            kept: Kept::default(),
            answer: Some(answer),
            astray,
        }));
        // Gone without a word: it may have been committed.
        let stopped = |_| Err(Error::Indeterminate { cause: "the writer stopped".into() });
        let settled = answered.await.unwrap_or_else(stopped);
        if settled.is_ok() && planted::is("outbox-outside-transaction") {
            let told = std::mem::take(&mut *told.lock());
            // As somebody would write it who has this bug: what fails here is nobody's business.
            let _ = self.maintain("outbox", Vec::new(), move |_, _| Ok((told.clone(), ()))).await;
        }
        settled
    }

    /// What bugs on purpose do before a transaction.
    async fn astray(&self, key: Option<&Key>) -> Astray {
        let mut astray = Astray::default();
        if let Some(key) = key.filter(|_| planted::is("look-before-lock")) {
            astray.looked = self.store.query(key.table.find(key)).await.ok();
        }
        astray
    }
}
