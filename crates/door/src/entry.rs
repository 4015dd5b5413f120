//! [`Door::submit`] and [`Door::maintain`]: the only two ways to a write transaction.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use kernel::{Meeting, Outcome, Random, Time, meet};
use store::{Error, Query, Row, Store, Write, Written};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::attempt::{Attempt, Seen, Settled, Stage};
use crate::command::{Command, Form, Key, Submission};
use crate::housekeeping::Housekeeping;
use crate::lock::{Guard, Locks};
use crate::record::{Held, RecordTable};
use crate::steps::Steps;

/// Rounds of looking, running and settling for one submission. Two are usual; more mean that others
/// keep getting ahead, and the asker is told to come again.
const ROUNDS_MAX: usize = 8;
/// Pause between looks at a claim that another process holds.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Longest wait for a twin; a longer one asked for is cut to it. Clients and proxies give up before.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Tries of one transaction whose commit's answer was lost. Each begins with a look.
const COMMITS_MAX: usize = 3;
/// How long a session whose commit's answer was lost is waited for: longer than the engine lets it live.
const UNKNOWN_WAIT: Duration = Duration::from_secs(12);
/// First pause before asking again for a key that a transaction of another node has.
const PAUSE: Duration = Duration::from_millis(5);
/// What somebody is told to wait while a twin runs that has no durable claim.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The door. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    store: Store,
    locks: Locks,
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
    Open(Written),
    /// A twin or another payload is running under the key.
    InProgress {
        /// Whether the running one has the same fingerprint.
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
    /// gives the writes and a value to return; all in one transaction.
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
        P: FnOnce(Vec<Vec<Row>>, Time) -> Result<(Vec<Write>, T), Error> + Send + 'static,
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

    async fn settle<C: Command>(&self, key: Option<&Key>, command: &Arc<C>, stage: Stage<C>) -> Settled {
        let (answer, answered) = oneshot::channel();
        self.store.enqueue(Box::new(Attempt {
            key: key.cloned(),
            command: Arc::clone(command),
            stage,
            random: Arc::clone(&self.random),
            seen: None,
            answer: Some(answer),
        }));
        // Gone without a word: it may have been committed.
        answered.await.unwrap_or_else(|_| Err(Error::Indeterminate { cause: "the writer stopped".into() }))
    }
}

/// One submission on its way.
struct Run<C> {
    door: Door,
    key: Option<Key>,
    command: Arc<C>,
    end: Instant,
}

impl<C: Command> Run<C> {
    async fn run(self) -> Result<Answer, Failure> {
        let Some(key) = &self.key else {
            let prepared = self.prepare(&Steps::atomic()).await?;
            return self.execute(prepared, None).await.map(|answer| answer.unwrap_or(Answer::Orphaned));
        };
        for round in 0..ROUNDS_MAX {
            // The look spares a repeat the preparation. Later rounds look in any case: they come from a
            // claim or a result of somebody else.
            if (round > 0 || self.command.prepares())
                && let Some(answer) = self.look(key).await?
            {
                return Ok(answer);
            }
            let ended = match self.door.locks.try_lock(key.digest(), key.fingerprint) {
                Ok(guard) => self.hold(key, guard).await?,
                Err(busy) => {
                    let same = busy.same;
                    match tokio::time::timeout_at(self.end, busy.gone()).await {
                        Ok(()) => None,
                        Err(_) => Some(self.busy(key, same).await?),
                    }
                }
            };
            if let Some(answer) = ended {
                return Ok(answer);
            }
        }
        Err(Failure::Crowded)
    }

    /// A plain look without the lock: a finished record can be given again at once.
    async fn look(&self, key: &Key) -> Result<Option<Answer>, Failure> {
        let found = self.door.store.query(key.table.find(key)).await?;
        let record = found.first().map(RecordTable::read).transpose()?;
        // Expiry and leases are judged again, by the store's time, inside the transaction.
        match meet(record, &key.fingerprint, Time::from_micros(i64::MIN)) {
            Meeting::First | Meeting::TakeOver { .. } => Ok(None),
            Meeting::Replay { .. } | Meeting::Running { .. } | Meeting::Recover { .. } => {
                self.repeat(key).await
            }
        }
    }

    /// The answer while the lock is held. A claim may have become durable during the wait.
    async fn busy(&self, key: &Key, same: bool) -> Result<Answer, Failure> {
        let seen = match self.command.form() {
            Form::Leased(_) => self.look(key).await?,
            Form::Atomic => None,
        };
        Ok(seen.unwrap_or(Answer::InProgress { same, durable: false, retry_after: RETRY_AFTER }))
    }

    /// Gives a finished result again, or tells who is running; `None` when there is work to do.
    async fn repeat(&self, key: &Key) -> Result<Option<Answer>, Failure> {
        loop {
            let (seen, written) = self.door.settle(Some(key), &self.command, Stage::Look).await?;
            let Seen::Running { same, retry_after } = seen else {
                return Ok(answer(seen, written));
            };
            if Instant::now() + LOOK_AGAIN > self.end {
                return Ok(Some(Answer::InProgress { same, durable: true, retry_after }));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Works under the lock. `None` when another attempt got ahead: look again.
    async fn hold(&self, key: &Key, guard: Guard) -> Result<Option<Answer>, Failure> {
        let (held, steps, length) = match self.command.form() {
            Form::Atomic => (None, Steps::atomic(), None),
            Form::Leased(length) => match self.claim(key, length).await {
                Ok(Claimed::Held(held)) => {
                    (Some(held), Steps::leased(self.door.clone(), key.clone(), held), Some(length))
                }
                Ok(Claimed::Not(answer)) => return Ok(answer),
                Err(Failure::Store(Error::Busy { same })) => return Ok(Some(elsewhere(same))),
                Err(failure) => return self.fail(key, failure, None).await,
            },
        };
        let prepared = match length {
            None => self.prepare(&steps).await,
            // Whoever is still at it when the lease ends has lost it; the key must not hang on them.
            Some(length) => match tokio::time::timeout(length, self.prepare(&steps)).await {
                Ok(prepared) => prepared,
                Err(_) => {
                    Err(Failure::Step { step: "prepare", cause: "it took longer than its lease".into() })
                }
            },
        };
        let ended = match prepared {
            Ok(prepared) => self.execute(prepared, held).await,
            Err(failure) => Err(failure),
        };
        let ended = match ended {
            Err(Failure::LeaseLost) => Ok(None),
            Err(Failure::Store(Error::Busy { same })) => Ok(Some(elsewhere(same))),
            Err(failure) => self.fail(key, failure, held).await,
            ended => ended,
        };
        drop(guard);
        ended
    }

    /// Prepares; a panic is a failure like any other, so that it is put on record.
    async fn prepare(&self, steps: &Steps) -> Result<C::Prepared, Failure> {
        let mut preparing = pin!(self.command.prepare(steps));
        poll_fn(|context| {
            catch_unwind(AssertUnwindSafe(|| preparing.as_mut().poll(context)))
                .unwrap_or_else(|_| Poll::Ready(Err(panicked("prepare"))))
        })
        .await
    }

    async fn claim(&self, key: &Key, length: Duration) -> Result<Claimed, Failure> {
        let mut token = [0; 16];
        self.door.random.fill(&mut token);
        let (seen, written) = self.surely(Some(key), || Stage::Claim { token, length }).await?;
        let row = ["record.insert", "record.replace"].iter().find_map(|name| written.row(name));
        Ok(match (seen, row) {
            (Seen::Claimed(held), Some(row)) => Claimed::Held(Held { id: row.int(0)?, ..held }),
            // Found again after a lost answer.
            (Seen::Claimed(held), None) => Claimed::Held(held),
            (seen, _) => Claimed::Not(answer(seen, written)),
        })
    }

    /// Runs a transaction; again, bounded, when its commit's answer was lost, or while another node has the
    /// key. Each try begins with the record, under the key's lock: what happened is seen there.
    async fn surely(&self, key: Option<&Key>, stage: impl Fn() -> Stage<C>) -> Settled {
        let mut unknown = None;
        let mut until = self.end;
        for lost in 1.. {
            let settled = match self.patiently(key, &stage, until).await {
                // The session whose commit is unknown may live on for a moment and hold the key.
                Err(Error::Busy { .. }) if unknown.is_some() => break,
                settled => settled,
            };
            match settled {
                Err(cause @ Error::Indeterminate { .. }) if key.is_some() && lost < COMMITS_MAX => {
                    unknown = Some(cause);
                    until = until.max(Instant::now() + UNKNOWN_WAIT);
                }
                settled => return settled,
            }
        }
        Err(unknown.unwrap_or(Error::Busy { same: true }))
    }

    /// Runs a transaction; again while a transaction of another node has the key, until `end`.
    async fn patiently(&self, key: Option<&Key>, stage: impl Fn() -> Stage<C>, end: Instant) -> Settled {
        let mut pause = PAUSE;
        loop {
            match self.door.settle(key, &self.command, stage()).await {
                Err(Error::Busy { .. }) if Instant::now() + pause <= end => tokio::time::sleep(pause).await,
                settled => return settled,
            }
            pause = LOOK_AGAIN.min(pause * 2);
        }
    }

    /// Decides and settles; after a raised check once more, with the refusal it stands for.
    async fn execute(&self, prepared: C::Prepared, held: Option<Held>) -> Result<Option<Answer>, Failure> {
        let prepared = Arc::new(prepared);
        let key = self.key.as_ref();
        let run = || Stage::Run { prepared: Arc::clone(&prepared), held };
        let settled = match self.surely(key, run).await {
            Err(Error::Raised(raise)) => {
                let refuse = || Stage::Refuse { prepared: Arc::clone(&prepared), held, raise: raise.clone() };
                self.surely(key, refuse).await
            }
            settled => settled,
        };
        let (seen, written) = settled?;
        Ok(answer(seen, written))
    }

    /// Puts a failure on record, in a transaction of its own, where no other attempt got ahead.
    async fn fail(&self, key: &Key, failure: Failure, held: Option<Held>) -> Result<Option<Answer>, Failure> {
        let stage = Stage::Fail { failure: failure.clone(), held };
        match self.door.settle(Some(key), &self.command, stage).await {
            Ok((Seen::Kept, _)) => Err(failure),
            // Somebody has finished or taken over meanwhile: their word counts.
            Ok((seen, written)) => Ok(answer(seen, written)),
            Err(error) => {
                tracing::warn!(%failure, %error, "a failure could not be put on record");
                Err(failure)
            }
        }
    }
}

/// What came of asking for the claim.
enum Claimed {
    Held(Held),
    /// The answer that stood there, if it can be given at once.
    Not(Option<Answer>),
}

/// The answer in what a transaction saw; `None` when it takes another look.
fn answer(seen: Seen, written: Written) -> Option<Answer> {
    match seen {
        Seen::Finished { outcome, replayed, same } => {
            Some(Answer::Done(Done { outcome, replayed, same, written }))
        }
        Seen::Open => Some(Answer::Open(written)),
        Seen::MustRecover => Some(Answer::Orphaned),
        _ => None,
    }
}

/// Another node's transaction has the key, and had it for as long as this submission would wait.
const fn elsewhere(same: bool) -> Answer {
    Answer::InProgress { same, durable: false, retry_after: RETRY_AFTER }
}

fn panicked(step: &'static str) -> Failure {
    Failure::Step { step, cause: "it panicked; the log has the place".into() }
}
