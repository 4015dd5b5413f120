//! Foreign steps and slices of leased work. What a step returned is on record, under the fence, before the
//! next one begins, so that a take-over goes on where the last holder stopped instead of calling again; a
//! slice is a transaction of its own under the same fence.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kernel::Time;
use parking_lot::Mutex;
use store::{Error, Query, Row, Write};
use tokio::time::Instant;

use crate::command::Key;
use crate::decision::{AuditRow, OutboxRow};
use crate::entry::{Door, Failure};
use crate::record::Held;

/// Tries of one slice whose commit's answer was lost.
const SLICE_TRIES: usize = 3;

/// Given to [`crate::Command::prepare`].
#[derive(Clone, Debug)]
pub struct Steps {
    door: Door,
    leased: Option<Leased>,
}

#[derive(Clone, Debug)]
struct Leased {
    key: Key,
    held: Held,
    length: Duration,
    /// Until when the lease holds, by this process's clock.
    end: Arc<Mutex<Instant>>,
}

/// What one slice of a long piece of work wants in its transaction.
#[derive(Debug)]
pub struct Slice<T> {
    /// Rows of the domain, in order.
    pub writes: Vec<Write>,
    /// What happened, for the audit.
    pub audit: Vec<AuditRow>,
    /// Who is to be told, and what.
    pub outbox: Vec<OutboxRow>,
    /// What the work goes on with.
    pub value: T,
}

impl Steps {
    pub(crate) const fn atomic(door: Door) -> Self {
        Self { door, leased: None }
    }

    pub(crate) fn leased(door: Door, key: Key, held: Held, length: Duration) -> Self {
        let end = Arc::new(Mutex::new(Instant::now() + length));
        Self { door, leased: Some(Leased { key, held, length, end }) }
    }

    /// Number of this attempt: 1 for the first.
    #[must_use]
    pub fn attempt(&self) -> i64 {
        self.leased.as_ref().map_or(1, |leased| leased.held.claim.attempt)
    }

    /// Row id and generation of the record, for rows that belong to this use of the key; `None` in the atomic
    /// form, which has none yet.
    #[must_use]
    pub fn record(&self) -> Option<(i64, i64)> {
        self.leased.as_ref().map(|leased| (leased.held.id, leased.held.generation))
    }

    /// Waits for `work` as long as the lease holds; `None` when it ended before.
    pub(crate) async fn while_leased<F: Future>(&self, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        let Some(leased) = &self.leased else { return Some(work.await) };
        loop {
            let end = *leased.end.lock();
            match tokio::time::timeout_at(end, work.as_mut()).await {
                Ok(output) => return Some(output),
                // A slice may have moved it meanwhile.
                Err(_) if *leased.end.lock() > end => {}
                Err(_) => return None,
            }
        }
    }

    /// Runs one slice in a transaction of its own: the reads, then what `plan` makes of them. In the leased
    /// form the lease is extended in the same transaction, which a fence that moved on undoes. `plan` is asked
    /// again, with newer rows, when the transaction was undone for reasons that lie in others, or when its
    /// commit's answer was lost: what it reads must tell it what is there already.
    ///
    /// # Errors
    /// [`Failure::LeaseLost`] when another attempt has taken over; [`Failure::Store`], with
    /// [`Error::Raised`] when a check raised on one of its writes.
    pub async fn slice<T, P>(&self, name: &'static str, reads: Vec<Query>, plan: P) -> Result<T, Failure>
    where
        T: Send + 'static,
        P: Fn(&[Vec<Row>], Time) -> Result<Slice<T>, Error> + Clone + Send + 'static,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.slice_once(name, reads.clone(), plan.clone()).await {
                Err(Failure::Store(Error::Indeterminate { .. })) if tries < SLICE_TRIES => {}
                Err(Failure::Store(Error::Raised(raise))) if raise.write == "record.extend" => {
                    return Err(Failure::LeaseLost);
                }
                ended => return ended,
            }
        }
    }

    async fn slice_once<T, P>(&self, name: &'static str, reads: Vec<Query>, plan: P) -> Result<T, Failure>
    where
        T: Send + 'static,
        P: Fn(&[Vec<Row>], Time) -> Result<Slice<T>, Error> + Send + 'static,
    {
        let fence = self.leased.as_ref().map(|leased| (leased.key.table, leased.held, leased.length));
        let random = self.door.random();
        let begun = Instant::now();
        // First of all: a commit of this slice whose answer was lost may still be under way, and what comes
        // after must see what it wrote.
        let kept: Vec<Query> = fence.iter().map(|(table, held, _)| table.fence_kept(*held)).collect();
        let own = kept.len();
        let reads = [kept, reads].concat();
        let planned = move |rows: Vec<Vec<Row>>, now: Time| {
            let Slice { writes: rows, audit, outbox, value } =
                plan(rows.get(own..).unwrap_or_default(), now)?;
            let mut writes: Vec<Write> = fence
                .iter()
                .map(|(table, held, length)| table.extend(*held, now.plus(*length), now))
                .collect();
            writes.extend(rows);
            writes.extend(audit.into_iter().map(|row| row.write(now, &*random)));
            writes.extend(outbox.into_iter().flat_map(|row| row.writes(now, &*random)));
            Ok((writes, value))
        };
        let (value, _) = self.door.maintain(name, reads, planned).await?;
        if let Some(leased) = &self.leased {
            *leased.end.lock() = begun + leased.length;
        }
        Ok(value)
    }

    /// Runs a foreign step unless an earlier attempt's result is on record, and keeps the result before
    /// returning it. In the atomic form it just runs.
    ///
    /// The step must be bounded in time well below the lease, and must carry a token that is the same in
    /// every attempt: it runs again when an attempt died between the call and the record.
    ///
    /// # Errors
    /// The step's own failure; [`Failure::LeaseLost`] when another attempt has taken over.
    pub async fn once<F>(&self, name: &'static str, step: F) -> Result<Vec<u8>, Failure>
    where
        F: Future<Output = Result<Vec<u8>, Failure>> + Send,
    {
        let Some(Leased { key, held, .. }) = &self.leased else {
            return step.await;
        };
        let looks = vec![key.table.fence(*held), key.table.step_find(held.id, name)];
        let found = self.door.store().queries(looks).await?;
        let [fence, kept] = found.as_slice() else { return Err(Failure::LeaseLost) };
        if fence.is_empty() {
            return Err(Failure::LeaseLost);
        }
        if let Some(row) = kept.first() {
            return Ok(row.bytes(0)?.to_vec());
        }
        let result = step.await?;
        let (table, held, bytes) = (key.table, *held, result.clone());
        let kept = self
            .door
            .maintain("step", Vec::new(), move |_, now| {
                Ok((vec![table.step_insert(held, name, &bytes, now)], ()))
            })
            .await;
        match kept {
            Ok(_) => Ok(result),
            Err(Failure::Store(Error::Raised(_))) => Err(Failure::LeaseLost),
            Err(other) => Err(other),
        }
    }
}
