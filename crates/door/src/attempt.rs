//! One submission inside one transaction, without I/O: what it reads, what it sees there, what it
//! writes. Every branch of the table of answers (`kernel::meeting`) ends in one [`Seen`].

use std::sync::Arc;
use std::time::Duration;

use kernel::{Claim, Digest, Fingerprint, Lease, Meeting, Outcome, Random, Record, Standing, Time, meet};
use parking_lot::Mutex;
use store::{Error, Lock, Query, Raise, Row, Work, Write, Written, planted};
use tokio::sync::oneshot;

use crate::branch::Branch;
use crate::command::{Command, Key, Repeat};
use crate::decision::{Decision, Ruling};
use crate::entry::Failure;
use crate::record::{Anew, ClaimRow, FAILED, Held, Place, RUNNING, origin};

/// What this transaction is for.
pub(crate) enum Stage<C: Command> {
    /// Give a finished result again, if there is one.
    Look,
    /// Make the claim durable; again with the same token, when the commit's answer was lost.
    Claim { token: [u8; 16], length: Duration },
    /// Decide and settle; `held` is the durable claim of the leased form.
    Run { prepared: Arc<C::Prepared>, held: Option<Held> },
    /// As `Run`, after a check raised on what was decided.
    Refuse { prepared: Arc<C::Prepared>, held: Option<Held>, raise: Raise },
    /// Keep a failure, where no other attempt got ahead; `token` is that of a claim that may have been made.
    Fail { failure: Failure, held: Option<Held>, token: Option<[u8; 16]> },
}

/// What the transaction saw and did.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A formal result: a new one, or one that stood there.
    Finished { outcome: Outcome, replayed: bool, same: bool, kept: Kept },
    /// The command left the key open; with an answer for this time, perhaps.
    Open(Option<Outcome>),
    /// Nothing finished stands there: run.
    MustRun,
    /// Somebody else has a durable claim.
    Running { same: bool, retry_after: Duration },
    /// The record is orphaned.
    MustRecover,
    /// The claim is durable.
    Claimed(Held),
    /// The fence moved on: another attempt has the key.
    Lost,
    /// The failure is on record.
    Kept,
}

/// What is told beside a formal result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// When its key is free again.
    pub(crate) expires_at: Option<Time>,
    /// The request that it came of, of a repeat, where its table tells that.
    pub(crate) origin: Option<String>,
}

pub(crate) type Settled = Result<(Seen, Written), Error>;

pub(crate) struct Attempt<C: Command> {
    pub(crate) key: Option<Key>,
    pub(crate) command: Arc<C>,
    pub(crate) stage: Stage<C>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) seen: Option<Seen>,
    /// Of the record as it was found.
    pub(crate) kept: Kept,
    pub(crate) answer: Option<oneshot::Sender<Settled>>,
    /// Empty but for bugs on purpose.
    pub(crate) astray: Astray,
}

/// What bugs on purpose carry past the transaction.
#[derive(Default)]
pub(crate) struct Astray {
    /// The record as it was found before the lock.
    pub(crate) looked: Option<Vec<Row>>,
    /// Announcements to be written after the commit.
    pub(crate) told: Arc<Mutex<Vec<Write>>>,
}

impl<C: Command> Work for Attempt<C> {
    /// Whoever wants to begin takes both locks or hears who has them; whoever has the durable claim, or puts
    /// a failure on record, waits for both. Looks take turns among themselves: nobody is told that one of
    /// them is running.
    fn lock(&self) -> Lock {
        let Some(key) = &self.key else { return Lock::None };
        let digest = key.digest();
        let pair = Digest::of_fields(&[digest.as_bytes(), key.payload.as_bytes()]).word();
        match &self.stage {
            Stage::Look => Lock::Turn { word: Digest::of_fields(&[digest.as_bytes(), b"look"]).word() },
            Stage::Claim { .. } | Stage::Run { held: None, .. } | Stage::Refuse { held: None, .. } => {
                Lock::Try { pair, key: digest.word() }
            }
            Stage::Run { .. } | Stage::Refuse { .. } | Stage::Fail { .. } => {
                Lock::Wait { pair, key: digest.word() }
            }
        }
    }

    fn again(&self) -> bool {
        true
    }

    fn reads(&mut self) -> Vec<Query> {
        let mut reads: Vec<Query> = self.key.iter().map(|key| key.table.find(key)).collect();
        if let Stage::Run { prepared, .. } | Stage::Refuse { prepared, .. } = &self.stage {
            reads.extend(self.command.load(prepared));
        }
        reads
    }

    fn writes(&mut self, rows: Vec<Vec<Row>>, now: Time) -> Result<Vec<Write>, Error> {
        let Some(key) = self.key.clone() else {
            return self.run(None, &rows, now);
        };
        let mut rows = rows.into_iter();
        let found = rows.next().unwrap_or_default();
        let found = self.astray.looked.take().unwrap_or(found);
        let record = found.first().map(|row| key.table.read(row)).transpose()?;
        let origin = found.first().map(origin).transpose()?.flatten();
        let expires_at = match record.as_ref().map(|record| &record.standing) {
            Some(Standing::Finished { expires_at, .. }) => *expires_at,
            _ => None,
        };
        self.kept = Kept { expires_at, origin };
        let loaded: Vec<Vec<Row>> = rows.collect();
        let writes = self.meet(&key, record.map(|record| recognised(record, &key)), &loaded, now)?;
        if planted::is("ack-before-commit") {
            self.answer_early();
        }
        Ok(writes)
    }

    fn settled(mut self: Box<Self>, end: Result<Written, Error>) {
        let seen = self.seen.take().unwrap_or(Seen::MustRun);
        let answer = self.answer.take();
        // The command may own the store: it goes before the answer, so that whoever asked is the last
        // owner and closes the store in its own time.
        drop(self);
        if let Some(answer) = answer {
            // The submission's task waits for this; it may only be gone with the whole runtime.
            let _ = answer.send(end.map(|written| (seen, written)));
        }
    }
}

impl<C: Command> Attempt<C> {
    fn meet(
        &mut self,
        key: &Key,
        record: Option<Record>,
        loaded: &[Vec<Row>],
        now: Time,
    ) -> Result<Vec<Write>, Error> {
        if let Some(held) = self.held() {
            return match record {
                Some(record) if holds(&record, held) => {
                    Branch::Held.taken();
                    self.go(key, &Place::Settle(held), loaded, now)
                }
                _ => {
                    Branch::Lost.taken();
                    Ok(self.see(Seen::Lost))
                }
            };
        }
        if let Some(held) = self.claimed_before(record.as_ref()) {
            return match self.stage {
                Stage::Fail { .. } => self.go(key, &Place::Settle(held), loaded, now),
                _ => Ok(self.see(Seen::Claimed(held))),
            };
        }
        branch(record.as_ref(), key, now).taken();
        let found = record.as_ref().map_or(0, |record| record.attempt);
        let has_ended = record.as_ref().is_some_and(|record| record.standing.has_ended(now));
        let anew = match &record {
            Some(Record {
                fingerprint, standing: Standing::Failed { .. } | Standing::Running(_), ..
            }) if *fingerprint == key.fingerprint && !has_ended => Anew::No,
            _ => Anew::Yes,
        };
        match meet(record, &key.fingerprint, key.table.binding(), now) {
            Meeting::First => self.go(key, &Place::Insert, loaded, now),
            Meeting::TakeOver { id, attempts, .. } => {
                self.go(key, &Place::Replace { id, found, attempts, anew }, loaded, now)
            }
            Meeting::Replay { id, outcome, same } => {
                let repeat = Repeat { record: id, outcome: outcome.clone(), same };
                let mut writes = self.command.repeat(&repeat, now);
                let audit = self.command.repeat_audit(&repeat, now);
                writes.extend(audit.into_iter().map(|row| row.write(now, &*self.random)));
                let kept = std::mem::take(&mut self.kept);
                self.seen = Some(Seen::Finished { outcome, replayed: true, same, kept });
                Ok(writes)
            }
            Meeting::Running { same, retry_after, .. } => Ok(self.see(Seen::Running { same, retry_after })),
            Meeting::Recover { .. } => Ok(self.see(Seen::MustRecover)),
        }
    }

    /// The claim of this very submission, whose commit's answer was lost.
    fn claimed_before(&self, record: Option<&Record>) -> Option<Held> {
        let own = match &self.stage {
            Stage::Claim { token, .. } => Some(*token),
            Stage::Fail { token, .. } => *token,
            _ => None,
        };
        match record {
            Some(Record { id, generation, standing: Standing::Running(lease), .. })
                if Some(lease.claim.token) == own =>
            {
                Some(Held { id: *id, generation: *generation, claim: lease.claim })
            }
            _ => None,
        }
    }

    /// A bug on purpose: whoever asked hears of the result while its commit is still to come.
    fn answer_early(&mut self) {
        if matches!(self.seen, Some(Seen::Finished { .. }))
            && let (Some(seen), Some(answer)) = (self.seen.take(), self.answer.take())
        {
            let _ = answer.send(Ok((seen, Written::default())));
        }
    }

    fn see(&mut self, seen: Seen) -> Vec<Write> {
        self.seen = Some(seen);
        Vec::new()
    }

    const fn held(&self) -> Option<Held> {
        match &self.stage {
            Stage::Run { held, .. } | Stage::Refuse { held, .. } | Stage::Fail { held, .. } => *held,
            Stage::Look | Stage::Claim { .. } => None,
        }
    }

    fn go(&mut self, key: &Key, place: &Place, loaded: &[Vec<Row>], now: Time) -> Result<Vec<Write>, Error> {
        match &self.stage {
            Stage::Look => Ok(self.see(Seen::MustRun)),
            Stage::Claim { token, length } => {
                let (token, length) = (*token, *length);
                let claim = Claim { token, attempt: place.attempt() };
                Ok(self.claim(key, place, Lease { claim, until: now.plus(length) }, now))
            }
            Stage::Run { .. } | Stage::Refuse { .. } => self.run(Some((key, place)), loaded, now),
            Stage::Fail { failure, .. } => {
                let row = ClaimRow {
                    facts: self.command.facts(),
                    status: FAILED,
                    lease: None,
                    attempt: place.attempt(),
                    outcome: None,
                };
                let mut writes = vec![key.table.write(key, place, row, now)];
                writes.extend(key.table.clear(place));
                writes.extend(self.command.failed(failure, now));
                self.seen = Some(Seen::Kept);
                Ok(writes)
            }
        }
    }

    fn claim(&mut self, key: &Key, place: &Place, lease: Lease, now: Time) -> Vec<Write> {
        let row = ClaimRow {
            facts: self.command.facts(),
            status: RUNNING,
            lease: Some(lease),
            attempt: lease.claim.attempt,
            outcome: None,
        };
        let mut writes = vec![key.table.claim(key, place, row, now)];
        writes.extend(key.table.clear(place));
        writes.extend(self.command.claimed(now));
        self.seen = Some(Seen::Claimed(Held { id: 0, generation: 0, claim: lease.claim }));
        writes
    }

    fn run(
        &mut self,
        record: Option<(&Key, &Place)>,
        loaded: &[Vec<Row>],
        now: Time,
    ) -> Result<Vec<Write>, Error> {
        let decision = match &self.stage {
            Stage::Run { prepared, .. } => self.command.decide(prepared, loaded, now)?,
            Stage::Refuse { prepared, raise, .. } => self.command.raised(prepared, raise, loaded, now)?,
            _ => return Ok(self.see(Seen::MustRun)),
        };
        let Decision { status, facts, ruling, writes: rows, audit, outbox } = decision;
        let expires_at = record.and_then(|(key, _)| key.life).map(|life| now.plus(life));
        let kept = Kept { expires_at, origin: None };
        let mut writes = Vec::with_capacity(rows.len() + 4);
        if let Some((key, place)) = record {
            let attempt = place.attempt();
            let row = ClaimRow { facts, status, lease: None, attempt, outcome: ruling.formal().cloned() };
            writes.push(key.table.write(key, place, row, now));
            writes.extend(key.table.clear(place));
        }
        writes.extend(rows);
        writes.extend(audit.into_iter().map(|row| row.write(now, &*self.random)));
        let told = outbox.into_iter().flat_map(|row| row.writes(now, &*self.random));
        if planted::is("outbox-outside-transaction") {
            *self.astray.told.lock() = told.collect();
        } else {
            writes.extend(told);
        }
        self.seen = Some(match ruling {
            Ruling::Formal(outcome) => Seen::Finished { outcome, replayed: false, same: true, kept },
            Ruling::Passing(outcome) => Seen::Open(Some(outcome)),
            Ruling::Open => Seen::Open(None),
        });
        Ok(writes)
    }
}

fn holds(record: &Record, held: Held) -> bool {
    matches!(&record.standing, Standing::Running(lease) if record.id == held.id && lease.claim == held.claim)
        || planted::is("no-fence-check")
}

/// What stands under the key, for whoever counts.
fn branch(record: Option<&Record>, key: &Key, now: Time) -> Branch {
    let Some(record) = record else { return Branch::First };
    let same = record.fingerprint == key.fingerprint || record.fingerprint == Fingerprint::UNKNOWN;
    let pick = |yes, no| if same { yes } else { no };
    match &record.standing {
        Standing::Running(lease) if lease.holds(now) => pick(Branch::RunningSame, Branch::RunningOther),
        Standing::Running(_) => pick(Branch::LapsedSame, Branch::LapsedOther),
        ended if ended.has_ended(now) => pick(Branch::ExpiredSame, Branch::ExpiredOther),
        Standing::Finished { .. } => pick(Branch::ReplaySame, Branch::ReplayOther),
        Standing::Failed { .. } => pick(Branch::FailedSame, Branch::FailedOther),
        Standing::Orphaned => Branch::Recover,
    }
}

/// The record, with a fingerprint under a former secret taken for what it is. Also bugs on purpose: the
/// record as somebody reads it who forgot a rule.
fn recognised(mut record: Record, key: &Key) -> Record {
    if key.former.contains(&record.fingerprint) || planted::is("no-mismatch-check") {
        record.fingerprint = key.fingerprint;
    }
    match &mut record.standing {
        Standing::Finished { expires_at, .. } | Standing::Failed { expires_at }
            if planted::is("expiry-ignored") =>
        {
            *expires_at = None;
        }
        _ => {}
    }
    record
}
