//! The SQL of the relay: which rows are next, claiming them, and marking how they ended. Rows are found by
//! state, never by a watermark of ids, since rows commit out of order. Not here: sending.
//!
//! While a row is `sending`, its `next_attempt_at` is the end of its lease: one index in the order of time
//! then finds what is due, whether it waits or has lapsed.

use std::time::Duration;

use door::planted;
use kernel::Time;
use store::{Error, Query, Row, Write, values};
use uuid::Uuid;

use crate::message::{Message, State};

/// First unfinished row of each object, in the order of their times: a later row of the same object to the
/// same destination waits, whatever its own time is. Held rows are finished, so they block nothing.
///
/// The earlier row's state is asked for by the states that it must not have, so that no database can take the index of
/// what is due for it: with a queue that was empty when its statistics were made, PostgreSQL did, and read the whole
/// queue for each of its heads.
const HEADS: &str = "select d.id, d.status, d.fence, d.attempt, d.next_attempt_at, o.event_id, o.event_name,
  o.object_type, o.object_id, o.request_id, o.payload, o.occurred_at
from outbox_deliveries d
cross join outbox o
where o.id = d.outbox_id
  and d.status in ('pending', 'sending')
  and not exists (
    select 1
    from outbox_deliveries e
    where e.object_key = d.object_key
      and e.destination = d.destination
      and e.outbox_id < d.outbox_id
      and e.status not in ('delivered', 'refused', 'uncertain', 'dead'))";

const CLAIM: &str = "update outbox_deliveries
set status = 'sending', attempt = $1, fence = $2, claimed_by = $3, claimed_until = $4,
  next_attempt_at = $5, updated_at = $6
where id = $7 and fence = $8 and status in ('pending', 'sending')";

const END: &str = "update outbox_deliveries
set status = $1, next_attempt_at = $2, fence = $3, claimed_by = null, claimed_until = null, outcome = $4,
  error = coalesce($5, error), updated_at = $6
where id = $7 and fence = $8 and status in ('pending', 'sending')";

/// A bug on purpose: new rows are those above the highest one that was ever taken up.
const WATERMARK: &str = "
  and (d.attempt > 0
    or d.id > coalesce((select max(m.id) from outbox_deliveries m where m.destination = d.destination and m.attempt > 0), 0))";

/// The heads of a destination, due or not.
pub(crate) fn heads(destination: &str, limit: u32) -> Query {
    let marked = if planted::is("id-watermark") { WATERMARK } else { "" };
    let sql = format!("{HEADS}{marked}\n  and d.destination = $1\norder by d.next_attempt_at\nlimit $2");
    Query::new("relay.heads", sql, values![destination, i64::from(limit)])
}

/// One of them again, inside the claim's transaction: by its number, so that a long queue costs the writer
/// nothing. No row when it is not a head any more.
pub(crate) fn head(id: i64) -> Query {
    Query::new("relay.head", format!("{HEADS}\n  and d.id = $1\n{{skip_locked d}}"), values![id])
}

/// When a head is to be looked at.
pub(crate) fn due_at(head: &Row) -> Result<Time, Error> {
    head.time(4)
}

/// Whether a head is claimed by somebody.
pub(crate) fn is_sending(head: &Row) -> Result<bool, Error> {
    Ok(head.text(1)? == State::Sending.as_str())
}

/// By whom, for how long, and with which limits a claim is made.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) node: [u8; 16],
    pub(crate) lease: Duration,
    pub(crate) attempts_max: i64,
    pub(crate) retakes: bool,
    /// Messages that may be sent now.
    pub(crate) permits: u32,
}

/// What a claim took, and what it had to give up on the way.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    pub(crate) messages: Vec<(Message, Fence)>,
    /// Number, state and cause of each row that ended without a send.
    pub(crate) ended: Vec<(i64, State, Option<String>)>,
}

/// Which claim of a row somebody holds; another claim has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence(i64);

/// Decides over the heads that are due at `now`; `told` are a channel's own rows for what ends up held.
pub(crate) fn plan(
    heads: &[Row],
    now: Time,
    terms: &Terms,
    told: &impl Fn(&Message, State, Time) -> Vec<Write>,
) -> Result<(Vec<Write>, Claimed), Error> {
    let (mut writes, mut claimed) = (Vec::new(), Claimed::default());
    for head in heads {
        if due_at(head)? > now {
            continue;
        }
        let (id, fence, attempt) = (head.int(0)?, head.int(2)?, head.int(3)?);
        let next = fence.saturating_add(1);
        let end = |state, cause: String| End { state, at: now, outcome: None, error: Some(cause) };
        let lapsed = is_sending(head)?;
        let end = if lapsed && !terms.retakes {
            let cause = "the sender stopped, or took longer than its lease; the message may have arrived";
            end(State::Uncertain, cause.into())
        } else if attempt >= terms.attempts_max {
            let last = if lapsed { "the end of the last one is not known" } else { "no more are allowed" };
            end(State::Dead, format!("gave up after {attempt} attempts: {last}"))
        } else {
            match message(head, id, attempt.saturating_add(1)) {
                Ok(_) if claimed.messages.len() >= terms.permits as usize => continue,
                Ok(message) => {
                    writes.push(claim(&message, next, now, terms));
                    claimed.messages.push((message, Fence(next)));
                    continue;
                }
                // One damaged row must not stop the others.
                Err(error) => end(State::Dead, format!("the row can't be read: {error}")),
            }
        };
        claimed.ended.push((id, end.state, end.error.clone()));
        if let Ok(message) = message(head, id, attempt) {
            writes.extend(told(&message, end.state, now));
        }
        writes.push(end.write(id, Fence(fence), next, now));
    }
    Ok((writes, claimed))
}

fn claim(message: &Message, fence: i64, now: Time, terms: &Terms) -> Write {
    let until = now.plus(terms.lease);
    let row = values![
        message.attempt,
        fence,
        terms.node,
        until,
        until,
        now,
        message.delivery_id,
        fence.saturating_sub(1),
    ];
    Write::one("relay.claim", CLAIM, row)
}

fn message(head: &Row, delivery_id: i64, attempt: i64) -> Result<Message, Error> {
    let damaged = |column: &str| Error::Corrupt { table: "outbox", column: column.into() };
    Ok(Message {
        delivery_id,
        event_id: Uuid::from_slice(head.bytes(5)?).map_err(|_| damaged("event_id"))?,
        event_name: head.text(6)?.to_owned(),
        object_type: head.text(7)?.to_owned(),
        object_id: head.text(8)?.to_owned(),
        request_id: head.text(9)?.to_owned(),
        payload: serde_json::from_str(head.text(10)?).map_err(|_| damaged("payload"))?,
        occurred_at: head.time(11)?,
        attempt,
    })
}

/// How an attempt is written down.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) state: State,
    /// When it is due again, where it is.
    pub(crate) at: Time,
    pub(crate) outcome: Option<String>,
    /// Redacted; `None` keeps what an earlier attempt left.
    pub(crate) error: Option<String>,
}

impl End {
    /// The mark of the claim's holder. It hits no row when somebody else has claimed the row meanwhile.
    pub(crate) fn mark(self, id: i64, fence: Fence, now: Time) -> Write {
        self.write(id, fence, fence.0, now)
    }

    fn write(self, id: i64, held: Fence, fence: i64, now: Time) -> Write {
        let row = values![self.state.as_str(), self.at, fence, self.outcome, self.error, now, id, held.0];
        Write::one("relay.end", END, row)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use door::Door;
    use store::{Store, Value};
    use testkit::{CountingRandom, MovableClock};

    use super::*;

    const DELIVERED: [&str; 2] = [
        "with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000)
insert into outbox (id, event_id, event_name, object_type, object_id, aggregate_version, tenant_id, operator_id,
  request_id, payload, occurred_at, created_at)
select i, {event}, 'e', 'o', 'o', 1, 1, 1, 'r', '{}', $1, $2 from n",
        "insert into outbox_deliveries (outbox_id, destination, object_key, status, next_attempt_at, created_at, updated_at)
select id, 'a', 'o:' || id, 'delivered', occurred_at, created_at, created_at from outbox",
    ];

    /// How the engine goes about the heads of a destination, as it tells it.
    async fn plan_of_the_heads(door: &Door, postgres: bool) -> String {
        let Query { sql, .. } = heads("a", 64);
        let sql = sql.replace("$1", "'a'").replace("$2", "64");
        let (verb, column) = if postgres { ("explain", 0) } else { ("explain query plan", 3) };
        let rows =
            door.store().query(Query::new("test.plan", format!("{verb} {sql}"), vec![])).await.unwrap();
        rows.iter().map(|row| row.text(column).unwrap().to_owned() + "\n").collect()
    }

    #[tokio::test]
    async fn a_head_is_told_by_its_object_even_where_the_queue_was_empty_when_statistics_were_made() {
        let folder = tempfile::tempdir().unwrap();
        let settings = testkit::postgres::settings(folder.path());
        let clock = Arc::new(MovableClock::at(1_772_358_554));
        let store = Store::open(&settings, &[store::migration::CORE], clock).await.unwrap();
        let door = Door::new(store, Arc::new(CountingRandom::default()));
        let database = testkit::postgres::beside(folder.path());
        let event = if database.is_some() { "decode(md5(cast(i as text)), 'hex')" } else { "randomblob(16)" };
        let fill = move |_, now| {
            let [outbox, deliveries] = DELIVERED;
            let times: Vec<Value> = values![now, now];
            let outbox = Write::any("test.outbox", outbox.replace("{event}", event), times);
            Ok((vec![outbox, Write::any("test.deliveries", deliveries, vec![])], ()))
        };
        door.maintain("test.fill", vec![], fill).await.unwrap();
        if let Some(database) = &database {
            testkit::postgres::execute(&database.direct, "vacuum analyze");
        }
        let plan = plan_of_the_heads(&door, database.is_some()).await;
        assert!(plan.contains("ix_outbox_deliveries_object"), "{plan}");
    }
}
