//! A submission's two round trips. COMMIT can lie: in a pipeline the commit of an undone transaction
//! answers without an error. So every answer is read, a check that fails raises in the server, and the
//! last statement before the commit is a guard that must give its row.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use kernel::{Clock, Time};

use super::Shared;
use super::connection::{Answer, Answering, Connection, first_fault, in_order};
use super::fault::Fault;
use crate::error::Error;
use crate::planted;
use crate::statement::{Query, Write};
use crate::value::Row;
use crate::values;
use crate::work::{Lock, Work, Written};

/// A round trip that took longer says little about the clocks, in microseconds.
const PROMPT: i64 = 100_000;
/// Answers of which the promptest tells how far the clocks are apart.
const CLOCK_LOOKS: usize = 3;
/// Commits that are to cover one whose wait for the standby was cancelled.
const COVERS_MAX: usize = 3;
/// A commit of its own, with something to write, so that it waits for the standby.
const COVER: &str = "select pg_logical_emit_message(true, 'onceseal', 'cover')";
/// What reads that go through everything may take.
const SURVEY_WITHIN: Duration = Duration::from_secs(15 * 60);
const SNAPSHOT: &str = "begin isolation level repeatable read read only";

pub(super) struct Transaction<'t> {
    pub(super) connection: &'t mut Connection,
    pub(super) work: &'t mut dyn Work,
    /// Set once the work was asked for its writes.
    pub(super) planned: &'t mut bool,
    pub(super) shared: &'t Shared,
}

impl Transaction<'_> {
    pub(super) async fn run(mut self) -> Result<Written, Fault> {
        let asked = catch_unwind(AssertUnwindSafe(|| (lock(self.work.lock()), self.work.reads())));
        let (first, reads) = asked.map_err(|_| Fault::Final(panicked()))?;
        let calls = std::iter::once(&first).chain(&reads).map(|query| (query.name, &query.sql, None));
        self.connection.ready(calls).await?;
        self.connection.at_rest = false;
        let (rows, now) = match self.look(&first, &reads).await {
            Ok(seen) => seen,
            Err(fault) => return Err(self.roll_back(fault).await),
        };
        *self.planned = true;
        let writes = catch_unwind(AssertUnwindSafe(|| self.work.writes(rows, now)));
        let writes = writes.unwrap_or_else(|_| Err(panicked()));
        let writes = match writes {
            Ok(writes) => writes,
            Err(error) => return Err(self.roll_back(Fault::Final(error)).await),
        };
        if writes.is_empty() {
            // Nothing to keep: how it ends only matters to the connection.
            self.connection.at_rest = self.connection.simple("commit").await.is_ok();
            return Ok(Written::default());
        }
        let guard = Query::new("guard", "select 1", Vec::new());
        let calls = writes.iter().map(|write| (write.name, &write.sql, Some(write.expect)));
        if let Err(fault) = self.connection.ready(calls.chain([(guard.name, &guard.sql, None)])).await {
            return Err(self.roll_back(fault).await);
        }
        let returned = self.keep(&writes, &guard).await?;
        self.cover().await?;
        Ok(Written { returned: writes.iter().map(|write| write.name).zip(returned).collect() })
    }

    /// First trip: begin, locks and time, reads. The reads come after the locks, each with a snapshot of
    /// its own, so that they see what the last holder committed.
    async fn look(&mut self, first: &Query, reads: &[Query]) -> Result<(Vec<Vec<Row>>, Time), Fault> {
        let connection = &*self.connection;
        let clock = &*self.shared.clock;
        let sent = clock.now();
        let mut trip = vec![connection.begin(), connection.read(first)];
        trip.extend(reads.iter().map(|query| connection.read(query)));
        let answers = connection.in_time(in_order(trip)).await?;
        let took = clock.now().micros().saturating_sub(sent.micros());
        first_fault(&answers)?;
        let mut answers = answers.into_iter().flatten().map(|answer| answer.rows).skip(1);
        let locked = answers.next().unwrap_or_default();
        let now = clock.judged(locked_at(&locked).map_err(Fault::Final)?);
        if (0..PROMPT).contains(&took) {
            self.shared.ahead.store(apart(now, sent, took), Ordering::Relaxed);
        }
        Ok((answers.collect(), now))
    }

    /// Second trip: writes, guard, commit. Gives the rows that each write returned.
    async fn keep(&mut self, writes: &[Write], guard: &Query) -> Result<Vec<Vec<Row>>, Fault> {
        let connection = &*self.connection;
        let mut trip: Vec<Answering<'_>> = writes.iter().map(|write| connection.write(write)).collect();
        trip.push(connection.read(guard));
        trip.push(connection.simple_in_flight("commit"));
        let mut answers = match connection.in_time(in_order(trip)).await {
            Ok(answers) => answers,
            Err(fault) => return Err(unknown(fault)),
        };
        let committed = answers.pop().unwrap_or(Err(Fault::Follows));
        self.connection.at_rest = committed.is_ok();
        if !planted::is("commit-without-guard") {
            kept(&answers)?;
        }
        match committed {
            Ok(_) => Ok(answers.into_iter().map(|answer| answer.unwrap_or_default().rows).collect()),
            // The session ended with the commit on the wire.
            Err(fault @ (Fault::Lost(_) | Fault::WrongServer(_))) => Err(unknown(fault)),
            Err(fault) => Err(fault),
        }
    }

    /// A commit whose wait for the standby was cancelled stands here and may be lost with this server. A
    /// further commit that did wait covers it, since the standby receives them in order.
    async fn cover(&mut self) -> Result<(), Fault> {
        for _ in 0..COVERS_MAX {
            if !self.connection.take_unreplicated() {
                return Ok(());
            }
            self.connection.at_rest = false;
            if let Err(fault) = self.connection.simple(COVER).await {
                return Err(unknown(fault));
            }
            self.connection.at_rest = true;
        }
        Err(unknown(Fault::Final(Error::Unavailable {
            cause: "the standby did not confirm the commit".into(),
        })))
    }

    async fn roll_back(&mut self, fault: Fault) -> Fault {
        if !matches!(fault, Fault::Lost(_) | Fault::WrongServer(_)) {
            self.connection.at_rest = self.connection.simple("rollback").await.is_ok();
        }
        fault
    }
}

/// Reads on one committed state.
pub(super) async fn snapshot(connection: &mut Connection, queries: &[Query]) -> Result<Vec<Vec<Row>>, Fault> {
    prepared(connection, queries).await?;
    let connection = &*connection;
    // All of it is sent at once, the end included: whoever asked may go without leaving anything open.
    let reads = queries.iter().map(|query| connection.read(query));
    // One select is a snapshot by itself; anything else must be kept from writing.
    let single = matches!(queries, [query] if query.sql.starts_with("select "));
    let trip: Vec<Answering<'_>> = if single {
        reads.collect()
    } else {
        let (begin, end) = (connection.simple_in_flight(SNAPSHOT), connection.simple_in_flight("commit"));
        std::iter::once(begin).chain(reads).chain([end]).collect()
    };
    let skipped = usize::from(!single);
    let answers = connection.in_time(in_order(trip)).await?;
    first_fault(&answers)?;
    Ok(answers.into_iter().flatten().map(|answer| answer.rows).skip(skipped).take(queries.len()).collect())
}

/// As [`snapshot`], for reads that go through everything: their own bound, which the server keeps for each of them and
/// this side for all.
pub(super) async fn survey(connection: &mut Connection, queries: &[Query]) -> Result<Vec<Vec<Row>>, Fault> {
    prepared(connection, queries).await?;
    let connection = &*connection;
    let bound = format!("{SNAPSHOT}; set local statement_timeout = {}", SURVEY_WITHIN.as_millis());
    let reads = queries.iter().map(|query| connection.read(query));
    let (begin, end) = (connection.simple_in_flight(&bound), connection.simple_in_flight("commit"));
    let trip: Vec<Answering<'_>> = std::iter::once(begin).chain(reads).chain([end]).collect();
    let answers = connection.within(SURVEY_WITHIN, in_order(trip)).await?;
    first_fault(&answers)?;
    Ok(answers.into_iter().flatten().map(|answer| answer.rows).skip(1).take(queries.len()).collect())
}

async fn prepared(connection: &mut Connection, queries: &[Query]) -> Result<(), Fault> {
    connection.ready(queries.iter().map(|query| (query.name, &query.sql, None))).await
}

/// How far the server's clock is ahead of ours, in microseconds, by the promptest of a few answers.
pub(super) async fn ahead(connection: &mut Connection, clock: &dyn Clock) -> Result<i64, Error> {
    let mut best: Option<(i64, i64)> = None;
    for _ in 0..CLOCK_LOOKS {
        let query = [lock(Lock::None)];
        connection
            .ready([(query[0].name, &query[0].sql, None)].into_iter())
            .await
            .map_err(Fault::into_error)?;
        let sent = clock.now();
        let rows = snapshot(connection, &query).await.map_err(Fault::into_error)?;
        let took = clock.now().micros().saturating_sub(sent.micros()).max(0);
        let now = clock.judged(locked_at(rows.first().map_or(&[], Vec::as_slice))?);
        if best.is_none_or(|(quickest, _)| took < quickest) {
            best = Some((took, apart(now, sent, took)));
        }
    }
    Ok(best.map_or(0, |(_, apart)| apart))
}

/// The distance of a time that was told about half-way between question and answer.
const fn apart(now: Time, sent: Time, took: i64) -> i64 {
    now.micros().saturating_sub(sent.micros().saturating_add(took / 2))
}

/// The first statement: takes the locks and tells the time. The second lock is only tried with the first
/// one held, so that of two twins one gets both.
fn lock(lock: Lock) -> Query {
    match lock {
        Lock::None => Query::new("lock.none", "select true, true, clock_timestamp()", Vec::new()),
        Lock::Try { pair, key } => Query::new(
            "lock.try",
            "select p.got, case when p.got then pg_try_advisory_xact_lock($1) else false end, clock_timestamp()
from (select pg_try_advisory_xact_lock($2) as got offset 0) p",
            values![key, pair],
        ),
        Lock::Wait { pair, key } => Query::new(
            "lock.wait",
            "select l.pair is not null, l.key is not null, clock_timestamp()
from (select pg_advisory_xact_lock($1) as pair, pg_advisory_xact_lock($2) as key offset 0) l",
            values![pair, key],
        ),
        Lock::Turn { word } => Query::new(
            "lock.turn",
            "select true, l.got is not null, clock_timestamp() from (select pg_advisory_xact_lock($1) as got offset 0) l",
            values![word],
        ),
    }
}

/// The time under the locks.
fn locked_at(rows: &[Row]) -> Result<Time, Error> {
    let row = rows.first().ok_or(Error::Statement { name: "lock", cause: "no row came back".into() })?;
    match (row.flag(0)?, row.flag(1)?) {
        (true, true) => row.time(2),
        (pair, _) => Err(Error::Busy { same: !pair }),
    }
}

/// Whether all writes and the guard went through.
fn kept(answers: &[Result<Answer, Fault>]) -> Result<(), Fault> {
    match first_fault(answers) {
        Ok(()) => {}
        // The session ended, and the commit was on the wire.
        Err(fault @ Fault::Lost(_)) => return Err(unknown(fault)),
        Err(fault) => return Err(fault),
    }
    match answers.last() {
        Some(Ok(guard)) if guard.rows.len() == 1 => Ok(()),
        _ => Err(Fault::Final(Error::Statement { name: "guard", cause: "no row came back".into() })),
    }
}

fn panicked() -> Error {
    Error::Statement { name: "submission", cause: "the command panicked".into() }
}

fn unknown(fault: Fault) -> Fault {
    Fault::Unknown(Error::Indeterminate { cause: fault.into_error().to_string() })
}
