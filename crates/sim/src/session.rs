//! One transaction on the store: begin, locks, time and reads on the first trip; writes and commit on the
//! second. Whatever the client hears of it, the store's side goes on to its own end.

use std::sync::Arc;

use kernel::Time;
use store::{Error, Lock, Query, Raise, RaiseKind, Row, Work, Write, Written, planted};
use tokio::time::Instant;

use crate::driver::{Fault, unavailable};
use crate::locks::{IDLE, Subject};
use crate::mishap::Mishap;
use crate::process::{Dead, Process};
use crate::rows::{self, Locking};
use crate::world::World;

/// Of a hundred sessions whose client is gone, so many are noticed at once.
const NOTICED: u64 = 60;
/// Longest time, in milliseconds, that a commit is under way after its client was told that it is lost. A
/// wait for a standby knows no bound; mostly it is less than a session lives.
const LATE: u64 = 9_000;
const VERY_LATE: u64 = 50_000;

type Ended<T> = Result<Result<T, Fault>, Dead>;

/// Between which process and the store.
#[derive(Clone, Copy)]
pub(crate) struct Session<'s> {
    pub(crate) world: &'s Arc<World>,
    pub(crate) process: &'s Arc<Process>,
}

impl Session<'_> {
    /// Runs a work; `planned` is set once it was asked for its writes.
    pub(crate) async fn run(self, work: &mut dyn Work, planned: &mut bool) -> Ended<Written> {
        let mishap = self.world.mishap(self.process.node);
        if mishap == Some(Mishap::Unavailable) {
            self.happened(Mishap::Unavailable);
            return Ok(Err(Fault::Final(unavailable("no connection"))));
        }
        self.world.way().await;
        if mishap == Some(Mishap::LostBefore) {
            self.happened(Mishap::LostBefore);
            return Ok(Err(Fault::Lost(unavailable("the connection is lost"))));
        }
        let (session, lock) = (self.world.locks.open(), work.lock());
        let reads = work.reads();
        let (rows, now) = match self.look(session, lock, &reads).await {
            Ok(seen) => seen,
            Err(fault) => {
                self.world.locks.close(session);
                self.world.way().await;
                return Ok(Err(fault));
            }
        };
        self.process.measure();
        if mishap == Some(Mishap::LostAfter) {
            self.happened(Mishap::LostAfter);
            self.leave(session, lock);
            self.world.way().await;
            return Ok(Err(Fault::Lost(unavailable("the connection is lost"))));
        }
        self.world.locks.ends_at(session, Some(Instant::now() + IDLE));
        self.world.way().await;
        if let Err(Dead) = self.process.gate().await {
            self.leave(session, lock);
            return Err(Dead);
        }
        *planned = true;
        let writes = match work.writes(rows, now) {
            Ok(writes) if !writes.is_empty() => writes,
            end => {
                self.world.locks.close(session);
                return Ok(end.map(|_| Written::default()).map_err(Fault::Final));
            }
        };
        self.keep(session, lock, writes, mishap).await
    }

    /// First trip. Reads come after the locks, each on what is committed when its turn comes.
    async fn look(&self, session: u64, lock: Lock, reads: &[Query]) -> Result<(Vec<Vec<Row>>, Time), Fault> {
        let locks = &self.world.locks;
        match lock {
            Lock::None => {}
            Lock::Try { pair, key } => {
                let same = !locks.take(session, Subject::Number(pair));
                if same || !locks.take(session, Subject::Number(key)) {
                    return Err(Fault::Final(Error::Busy { same }));
                }
            }
            Lock::Wait { pair, key } => {
                for number in [pair, key] {
                    if !locks.wait(session, &Subject::Number(number)).await {
                        return Err(Fault::Again(unavailable("a lock was not free in time")));
                    }
                }
            }
            Lock::Turn { word } => {
                if !locks.wait(session, &Subject::Number(word)).await {
                    return Err(Fault::Again(unavailable("a lock was not free in time")));
                }
            }
        }
        let now = self.world.now();
        let mut rows = Vec::new();
        for query in reads {
            if self.world.chance(5) {
                self.world.way().await;
            }
            rows.push(self.read(session, query).await?);
        }
        Ok((rows, now))
    }

    async fn read(&self, session: u64, query: &Query) -> Result<Vec<Row>, Fault> {
        let found = || self.world.read(query).map_err(Fault::Final);
        let (table, waits) = match Locking::of(&query.sql) {
            Locking::None => return found(),
            Locking::Wait(table) => (table, true),
            Locking::Skip(table) => (table, false),
        };
        let mut kept = Vec::new();
        for row in found()? {
            let subject = rows::subject(&table, &row).map_err(Fault::Final)?;
            if !waits {
                if self.world.locks.take(session, subject) {
                    kept.push(row);
                }
            } else if !self.world.locks.wait(session, &subject).await {
                return Err(Fault::Again(unavailable("a row was not free in time")));
            }
        }
        // Who waited sees the rows as they are by now.
        if waits { found() } else { Ok(kept) }
    }

    /// Waits for the rows that the writes touch. They are written at one instant, so it is before the first.
    async fn free(&self, session: u64, writes: &[Write]) -> bool {
        for subject in writes.iter().filter_map(rows::touched) {
            if !self.world.locks.wait(session, &subject).await {
                return false;
            }
        }
        true
    }

    /// Second trip: writes, guard, commit.
    async fn keep(
        &self,
        session: u64,
        lock: Lock,
        writes: Vec<Write>,
        mishap: Option<Mishap>,
    ) -> Ended<Written> {
        let (world, process) = (self.world, self.process);
        let unknown = || Ok(Err(Fault::Unknown(Error::Indeterminate { cause: "connection lost".into() })));
        world.way().await;
        if process.is_dead() && world.chance(50) {
            // It died with the trip still in its hands.
            self.leave(session, lock);
            return Err(Dead);
        }
        if !world.locks.stands(session) {
            return Ok(Err(Fault::Lost(unavailable("the session was idle for too long"))));
        }
        world.locks.ends_at(session, None);
        if !self.free(session, &writes).await {
            world.locks.close(session);
            world.way().await;
            return Ok(Err(Fault::Again(unavailable("a row was not free in time"))));
        }
        if let Some(mishap) = mishap {
            self.happened(mishap);
        }
        match mishap {
            Some(Mishap::Deadlock | Mishap::Full) => {
                world.locks.close(session);
                world.way().await;
                let deadlock = mishap == Some(Mishap::Deadlock);
                return Ok(Err(if deadlock {
                    Fault::Again(unavailable("a deadlock"))
                } else {
                    Fault::Final(unavailable("no space is left"))
                }));
            }
            Some(Mishap::CommitNever) => {
                self.leave(session, lock);
                world.way().await;
                return unknown();
            }
            Some(Mishap::CommitLate) => {
                self.land_later(session, lock, writes);
                world.way().await;
                return unknown();
            }
            _ => {}
        }
        let numbers = world.number(&writes);
        world.way().await;
        let end = world.commit(&writes, numbers);
        world.locks.close(session);
        tell(world, process, &writes, &end);
        world.way().await;
        if mishap == Some(Mishap::CommitDone) {
            return unknown();
        }
        Ok(told(&writes, end))
    }

    /// The commit happens when its client has long been told that it is lost.
    fn land_later(&self, session: u64, lock: Lock, writes: Vec<Write>) {
        let numbers = self.world.number(&writes);
        let after = self.world.millis(if self.world.chance(10) { VERY_LATE } else { LATE });
        self.world.haunted(key_of(lock));
        let (world, process) = (Arc::clone(self.world), Arc::clone(self.process));
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let end = world.commit(&writes, numbers);
            world.locks.close(session);
            world.tell(|| format!("{} lost commit lands after {after:?}", process.name));
            tell(&world, &process, &writes, &end);
        });
    }

    /// The client is gone; the store notices now or when the session has been idle for too long.
    fn leave(&self, session: u64, lock: Lock) {
        if self.world.chance(NOTICED) {
            self.world.locks.close(session);
        } else {
            let after = self.world.millis(u64::try_from(IDLE.as_millis()).unwrap_or(u64::MAX));
            self.world.locks.ends_at(session, Some(Instant::now() + after));
            self.world.haunted(key_of(lock));
        }
    }

    fn happened(&self, mishap: Mishap) {
        self.world.mishaps.lock().happened(mishap);
        self.world.tell(|| format!("{} mishap: {}", self.process.name, mishap.as_str()));
    }
}

fn tell(world: &World, process: &Process, writes: &[Write], end: &Result<Written, Error>) {
    world.tell(|| {
        let names: Vec<&str> = writes.iter().map(|write| write.name).collect();
        match end {
            Ok(_) => format!("{} commits {}", process.name, names.join(", ")),
            Err(error) => format!("{} does not commit {}: {error}", process.name, names.join(", ")),
        }
    });
}

/// What the client makes of the answers.
fn told(writes: &[Write], end: Result<Written, Error>) -> Result<Written, Fault> {
    match end {
        Ok(written) => Ok(written),
        // The tag of a commit that undid everything looks like any other.
        Err(Error::Raised(_)) if planted::is("commit-without-guard") => Ok(Written::default()),
        Err(Error::Raised(Raise { write, kind: RaiseKind::Unique })) if numbered(writes, write) => {
            Err(Fault::Again(unavailable("the number is taken")))
        }
        Err(error) => Err(Fault::Final(error)),
    }
}

fn numbered(writes: &[Write], name: &str) -> bool {
    writes.iter().any(|write| write.name == name && write.numbered)
}

const fn key_of(lock: Lock) -> Option<i64> {
    match lock {
        Lock::None | Lock::Turn { .. } => None,
        Lock::Try { key, .. } | Lock::Wait { key, .. } => Some(key),
    }
}
