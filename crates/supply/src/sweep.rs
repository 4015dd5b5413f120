//! Idempotency records that nobody comes back for (sections 7.4, 7.6). A claim whose lease has lapsed is given up: its
//! record is `failed` and may be tried again, so that it ends, too; what its slices did stays, with their receipts,
//! and a repeat goes on behind them. Records whose key has ended go an hour later. Correctness depends on neither.
//!
//! Any node may do it at any time: each write asks for the row's state once more. Not here: who does it when
//! (the binary's scheduler).

use std::time::Duration;

use door::{Door, Failure};
use kernel::Time;
use store::{Error, Query, Row, Write, values};

/// After the end of a key, before its record goes.
const KEPT: Duration = Duration::from_secs(3600);

const LAPSED: &str = "select id from supply_idempotency_record
where status = 'processing' and locked_until <= $1 order by locked_until limit $2";
const GIVE_UP: &str =
    "update supply_idempotency_record set status = 'failed', claim_token = null, locked_until = null, updated_at = $1
where id = $2 and status = 'processing' and locked_until <= $3";

// The last row stays, so that no engine gives its number again: batches are known by it.
const ENDED: &str = "select id from supply_idempotency_record
where status <> 'processing' and expires_at <= $1 and id < (select max(id) from supply_idempotency_record)
order by expires_at limit $2";
const DROP_STEPS: &str = "delete from supply_steps where event in
  (select id from supply_idempotency_record where id = $1 and status <> 'processing' and expires_at <= $2)";
const DROP: &str =
    "delete from supply_idempotency_record where id = $1 and status <> 'processing' and expires_at <= $2";

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Claims that were given up.
    pub lapsed: usize,
    /// Records that are gone.
    pub ended: usize,
}

/// One round over at most `limit` records of either kind. `now` is the reader's; the store's own time decides.
///
/// # Errors
/// The store's.
pub async fn sweep(door: &Door, now: Time, limit: i64) -> Result<Swept, Failure> {
    let lapsed = give_up(door, now, limit).await?;
    let ended = drop_ended(door, now, limit).await?;
    Ok(Swept { lapsed, ended })
}

async fn give_up(door: &Door, now: Time, limit: i64) -> Result<usize, Failure> {
    let found = ids(door, Query::new("record.lapsed", LAPSED, values![now, limit])).await?;
    let count = found.len();
    if count > 0 {
        let plan = move |_: Vec<Vec<Row>>, now: Time| {
            let each = |id: &i64| Write::any("record.give_up", GIVE_UP, values![now, *id, now]);
            Ok((found.iter().map(each).collect(), ()))
        };
        door.maintain("sweep", Vec::new(), plan).await?;
    }
    Ok(count)
}

async fn drop_ended(door: &Door, now: Time, limit: i64) -> Result<usize, Failure> {
    let ended = Query::new("record.ended", ENDED, values![now.minus(KEPT), limit]);
    let found = ids(door, ended).await?;
    let count = found.len();
    if count > 0 {
        let plan = move |_: Vec<Vec<Row>>, now: Time| {
            let until = now.minus(KEPT);
            let each = |id: &i64| {
                [("steps.drop", DROP_STEPS), ("record.drop", DROP)]
                    .map(|(name, sql)| Write::any(name, sql, values![*id, until]))
            };
            Ok((found.iter().flat_map(each).collect(), ()))
        };
        door.maintain("sweep", Vec::new(), plan).await?;
    }
    Ok(count)
}

/// Looked for outside of a transaction: most rounds find nothing.
async fn ids(door: &Door, query: Query) -> Result<Vec<i64>, Error> {
    door.store().query(query).await?.iter().map(|row| row.int(0)).collect()
}
