//! One submission on its way: look, lock, claim, prepare, run, put on record; again, bounded, while others
//! get ahead. Not here: what a transaction does (`attempt`).

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use kernel::{Meeting, Time, meet};
use store::{Error, Written, planted};
use tokio::time::Instant;

use crate::attempt::{Kept, Seen, Settled, Stage};
use crate::branch::Branch;
use crate::command::{Command, Form, Key};
use crate::entry::{Answer, Done, Door, Failure};
use crate::lock::Guard;
use crate::record::{Held, REPLACED};
use crate::steps::Steps;

/// Rounds of looking, running and settling for one submission. Two are usual; more mean that others
/// keep getting ahead, and the asker is told to come again.
pub(crate) const ROUNDS_MAX: usize = 8;
/// Pause between looks at a claim that another process holds.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Longest wait for a twin; a longer one asked for is cut to it. Clients and proxies give up before.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(300);
/// Tries of one transaction whose commit's answer was lost. Each begins with a look.
const COMMITS_MAX: usize = 3;
/// How long a session whose commit's answer was lost is waited for: longer than the engine lets it live.
const UNKNOWN_WAIT: Duration = Duration::from_secs(12);
/// First pause before asking again for a key that a transaction of another node has.
const PAUSE: Duration = Duration::from_millis(5);
/// What somebody is told to wait while a twin runs that has no durable claim.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// One submission on its way.
pub(crate) struct Run<C> {
    pub(crate) door: Door,
    pub(crate) key: Option<Key>,
    pub(crate) command: Arc<C>,
    /// Until when it waits for others.
    pub(crate) end: Instant,
}

impl<C: Command> Run<C> {
    pub(crate) async fn run(self) -> Result<Answer, Failure> {
        let Some(key) = &self.key else {
            let prepared = self.prepare(&Steps::atomic(self.door.clone())).await?;
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
            let ended = match self.door.locks.try_lock(key.digest(), key.payload) {
                Ok(guard) => self.hold(key, guard).await?,
                Err(busy) => {
                    let same = busy.same;
                    match tokio::time::timeout_at(self.end, busy.gone()).await {
                        Ok(()) => {
                            Branch::Waited.taken();
                            None
                        }
                        Err(_) => Some(self.busy(key, same).await?),
                    }
                }
            };
            if let Some(answer) = ended {
                return Ok(answer);
            }
        }
        Branch::Crowded.taken();
        Err(Failure::Crowded)
    }

    /// A plain look without the lock: a finished record can be given again at once.
    async fn look(&self, key: &Key) -> Result<Option<Answer>, Failure> {
        let found = self.door.store().query(key.table.find(key)).await?;
        let record = found.first().map(|row| key.table.read(row)).transpose()?;
        // Expiry and leases are judged again, by the store's time, inside the transaction.
        match meet(record, &key.fingerprint, key.table.binding(), Time::from_micros(i64::MIN)) {
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
        Ok(seen.unwrap_or_else(|| {
            if same { Branch::HereSame } else { Branch::HereOther }.taken();
            Answer::InProgress { same, durable: false, retry_after: RETRY_AFTER }
        }))
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
        let early = match self.command.form() {
            Form::Leased(_) if planted::is("claim-after-effect") => {
                Some(self.prepare(&Steps::atomic(self.door.clone())).await)
            }
            _ => None,
        };
        let (held, steps, length) = match self.command.form() {
            Form::Atomic => (None, Steps::atomic(self.door.clone()), None),
            Form::Leased(length) => {
                let mut token = [0; 16];
                self.door.fill_random(&mut token);
                match self.claim(key, token, length).await {
                    Ok(Claimed::Held(held)) => (
                        Some(held),
                        Steps::leased(self.door.clone(), key.clone(), held, length),
                        Some(length),
                    ),
                    Ok(Claimed::Not(answer)) => return Ok(answer),
                    Err(Failure::Store(Error::Busy { same })) => return Ok(Some(elsewhere(same))),
                    Err(Failure::Store(Error::Raised(raise))) if raise.write == REPLACED => return Ok(None),
                    Err(failure) => return self.fail(key, failure, None, Some(token)).await,
                }
            }
        };
        let prepared = match (early, length) {
            (Some(early), _) => early,
            (None, None) => self.prepare(&steps).await,
            // Whoever is still at it when the lease ends has lost it; the key must not hang on them.
            (None, Some(_)) => match steps.while_leased(self.prepare(&steps)).await {
                Some(prepared) => prepared,
                None => {
                    Branch::Outlived.taken();
                    Err(Failure::Step { step: "prepare", cause: "it took longer than its lease".into() })
                }
            },
        };
        let ended = match prepared {
            Ok(prepared) => self.execute(prepared, held).await,
            Err(failure) => Err(failure),
        };
        let ended = match ended {
            Err(Failure::LeaseLost) => {
                Branch::LostInStep.taken();
                Ok(None)
            }
            Err(Failure::Store(Error::Busy { same })) => Ok(Some(elsewhere(same))),
            Err(failure) => self.fail(key, failure, held, None).await,
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

    async fn claim(&self, key: &Key, token: [u8; 16], length: Duration) -> Result<Claimed, Failure> {
        let (seen, written) = self.surely(Some(key), || Stage::Claim { token, length }).await?;
        let row = ["record.insert", "record.replace"].iter().find_map(|name| written.row(name));
        Ok(match (seen, row) {
            (Seen::Claimed(held), Some(row)) => {
                Claimed::Held(Held { id: row.int(0)?, generation: row.int(1)?, ..held })
            }
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
                settled => {
                    if unknown.is_some() {
                        looked_up(&settled).taken();
                    }
                    return settled;
                }
            }
        }
        Branch::UnknownLeft.taken();
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
            // Swept between the look at it and the write: there is another place now.
            Err(Error::Raised(raise)) if raise.write == REPLACED => return Ok(None),
            Err(Error::Raised(raise)) => {
                let refuse = || Stage::Refuse { prepared: Arc::clone(&prepared), held, raise: raise.clone() };
                let settled = self.surely(key, refuse).await;
                match &settled {
                    Ok((Seen::Finished { replayed: false, .. }, _)) => Branch::RaisedRefused.taken(),
                    Ok((Seen::Finished { .. }, _)) => Branch::RaisedReplayed.taken(),
                    _ => {}
                }
                settled
            }
            settled => settled,
        };
        let (seen, written) = settled?;
        Ok(answer(seen, written))
    }

    /// Puts a failure on record, in a transaction of its own, where no other attempt got ahead. A claim with
    /// `token`, whose commit's answer was lost, is this attempt's own.
    async fn fail(
        &self,
        key: &Key,
        failure: Failure,
        held: Option<Held>,
        token: Option<[u8; 16]>,
    ) -> Result<Option<Answer>, Failure> {
        let stage = Stage::Fail { failure: failure.clone(), held, token };
        match self.door.settle(Some(key), &self.command, stage).await {
            Ok((Seen::Kept, _)) => {
                Branch::FailKept.taken();
                Err(failure.kept())
            }
            // Somebody has finished or taken over meanwhile: their word counts.
            Ok((seen, written)) => {
                Branch::FailPassed.taken();
                Ok(answer(seen, written))
            }
            Err(error) => {
                Branch::FailLost.taken();
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
        Seen::Finished { outcome, replayed, same, kept: Kept { expires_at, origin } } => {
            Some(Answer::Done(Done { outcome, replayed, same, expires_at, origin, written }))
        }
        Seen::Open(outcome) => {
            Branch::Open.taken();
            Some(Answer::Open { outcome, written })
        }
        Seen::MustRecover => Some(Answer::Orphaned),
        _ => None,
    }
}

/// What the look after a lost commit found.
const fn looked_up(settled: &Settled) -> Branch {
    match settled {
        Ok((Seen::Finished { replayed: true, .. }, _)) => Branch::UnknownFound,
        Ok(_) => Branch::UnknownAgain,
        Err(_) => Branch::UnknownLeft,
    }
}

/// Another node's transaction has the key, and had it for as long as this submission would wait.
fn elsewhere(same: bool) -> Answer {
    if same { Branch::ElsewhereSame } else { Branch::ElsewhereOther }.taken();
    Answer::InProgress { same, durable: false, retry_after: RETRY_AFTER }
}

pub(crate) fn panicked(step: &'static str) -> Failure {
    Failure::Step { step, cause: "it panicked; the log has the place".into() }
}
