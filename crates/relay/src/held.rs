//! What a person sees of deliveries and does with those that are held. Each act is refused with a reason
//! where it makes no sense, and leaves an audit row in its own transaction. Not here: who may do so, pages.

use door::{AuditRow, Door, Failure};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Write, values};
use uuid::Uuid;

use crate::message::State;

/// Most rows of one list.
pub const LIST_MAX: u32 = 1_000;

/// A delivery as a person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What [`redrive`] and [`settle`] take.
    pub id: i64,
    /// Id of the outbox row, which the receiver gets.
    pub event_id: Uuid,
    /// `{chain}.{domain}.{action}.{result}`.
    pub event_name: String,
    /// Kind and id of the object, with a colon between.
    pub object_key: String,
    /// The channel.
    pub destination: String,
    /// Where it stands.
    pub state: State,
    /// Attempts since it was written or re-driven.
    pub attempt: i64,
    /// When it is due, where it waits; the end of the lease, where it is being sent.
    pub next_attempt_at: Time,
    /// The receipt.
    pub outcome: Option<String>,
    /// Why the last attempt that failed did so; redacted.
    pub error: Option<String>,
    /// When it was written.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
}

/// Who acts, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// User id, above zero.
    pub id: i64,
    /// `user`, `admin` or `system`.
    pub kind: &'static str,
    /// Role it acts in.
    pub role: &'static str,
    /// Id of the request.
    pub request_id: String,
}

/// What a person says about a delivery whose end is unclear or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It has arrived; somebody looked.
    Delivered,
    /// It shall not be sent any more.
    Dead,
}

/// Why an act was not done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Denied {
    /// No such row. An event without destinations has none, and nothing to re-drive.
    #[error("there is no delivery {0}; list the held ones for their numbers")]
    Unknown(i64),
    /// The row is not in a state from which this can be done.
    #[error("delivery {id} is {state}; only {allowed} can be {act}", state = .state.as_str())]
    State {
        /// Which.
        id: i64,
        /// Where it stands.
        state: State,
        /// The states that can.
        allowed: &'static str,
        /// What was asked for.
        act: &'static str,
    },
    /// Nobody would send it.
    #[error(
        "delivery {id} goes to {destination:?}, which is not configured; configure it, or settle it as dead"
    )]
    Destination {
        /// Which.
        id: i64,
        /// The missing channel.
        destination: String,
    },
    /// The store.
    #[error(transparent)]
    Failure(#[from] Failure),
}

const COLUMNS: &str =
    "select d.id, o.event_id, o.event_name, d.object_key, d.destination, d.status, d.attempt,
  d.next_attempt_at, d.outcome, d.error, d.created_at, d.updated_at
from outbox_deliveries d
join outbox o on o.id = d.outbox_id";
const FIND: &str =
    "select id, destination, status, fence, attempt, error from outbox_deliveries where id = $1 {for_update}";
const REDRIVE: &str = "update outbox_deliveries
set status = 'pending', attempt = 0, next_attempt_at = $1, fence = fence + 1, claimed_by = null,
  claimed_until = null, outcome = null, updated_at = $2
where id = $3 and fence = $4 and status in ('refused', 'uncertain', 'dead')";
const SETTLE: &str = "update outbox_deliveries
set status = $1, fence = fence + 1, claimed_by = null, claimed_until = null, outcome = $2, updated_at = $3
where id = $4 and fence = $5 and status in ('pending', 'refused', 'uncertain', 'dead')";

/// Deliveries in any of `states`, the oldest first, at most `limit` and [`LIST_MAX`].
///
/// # Errors
/// [`Failure::Store`] when they can't be read.
pub async fn list(door: &Door, states: &[State], limit: u32) -> Result<Vec<Delivery>, Failure> {
    let limit = limit.min(LIST_MAX);
    let query = |state: &State| {
        // The class is there for the index of the class.
        let class = match state {
            State::Pending | State::Sending => "and d.status in ('pending', 'sending')",
            State::Refused | State::Uncertain | State::Dead => {
                "and d.status in ('refused', 'uncertain', 'dead')"
            }
            State::Delivered => "",
        };
        let sql = format!("{COLUMNS}\nwhere d.status = $1 {class}\norder by d.id\nlimit $2");
        Query::new("relay.list", sql, values![state.as_str(), i64::from(limit)])
    };
    let mut found = Vec::new();
    for row in door.store().queries(states.iter().map(query).collect()).await?.concat() {
        found.push(delivery(&row)?);
    }
    found.sort_by_key(|delivery| delivery.id);
    found.dedup_by_key(|delivery| delivery.id);
    found.truncate(limit as usize);
    Ok(found)
}

/// Has a held delivery sent anew, with all its attempts. For an `uncertain` one that is a knowing second
/// send. `destinations` are the configured ones ([`crate::Relay::destinations`]).
///
/// # Errors
/// [`Denied`], with the reason.
pub async fn redrive(
    door: &Door,
    id: i64,
    operator: &Operator,
    destinations: &[String],
) -> Result<(), Denied> {
    let (operator, destinations, random) = (operator.clone(), destinations.to_vec(), door.random());
    let act = move |row: &Held, now: Time| {
        if !row.state.is_held() {
            let allowed = "refused, uncertain and dead ones";
            return Err(Denied::State { id, state: row.state, allowed, act: "re-driven" });
        }
        if !destinations.contains(&row.destination) {
            return Err(Denied::Destination { id, destination: row.destination.clone() });
        }
        let update = Write::one("relay.redrive", REDRIVE, values![now, now, id, row.fence]);
        let audit = audit("relay.delivery.redrive", row, State::Pending, &operator);
        Ok(vec![update, audit.write(now, &*random)])
    };
    change(door, id, act).await
}

/// Writes down what a person knows or decides: an unclear delivery has arrived, or one is given up.
///
/// # Errors
/// [`Denied`], with the reason.
pub async fn settle(door: &Door, id: i64, as_: Settlement, operator: &Operator) -> Result<(), Denied> {
    let (operator, random) = (operator.clone(), door.random());
    let act = move |row: &Held, now: Time| {
        let (state, fine, allowed, act) = match as_ {
            Settlement::Delivered => {
                (State::Delivered, row.state.is_held(), "held ones", "settled as delivered")
            }
            Settlement::Dead => {
                let fine = matches!(row.state, State::Pending | State::Refused | State::Uncertain);
                (State::Dead, fine, "pending, refused and uncertain ones", "settled as dead")
            }
        };
        if !fine {
            return Err(Denied::State { id, state: row.state, allowed, act });
        }
        let outcome = format!("{act} by operator {}", operator.id);
        let values = values![state.as_str(), outcome, now, id, row.fence];
        let update = Write::one("relay.settle", SETTLE, values);
        let audit = audit("relay.delivery.settle", row, state, &operator);
        Ok(vec![update, audit.write(now, &*random)])
    };
    change(door, id, act).await
}

/// A row before an act.
struct Held {
    id: i64,
    destination: String,
    state: State,
    fence: i64,
    attempt: i64,
    error: Option<String>,
}

/// Reads, decides and writes in one transaction.
async fn change<A>(door: &Door, id: i64, act: A) -> Result<(), Denied>
where
    A: Fn(&Held, Time) -> Result<Vec<Write>, Denied> + Send + 'static,
{
    let reads = vec![Query::new("relay.find", FIND, values![id])];
    let plan = move |rows: Vec<Vec<Row>>, now| {
        let Some(row) = rows.first().and_then(|rows| rows.first()) else {
            return Ok((Vec::new(), Err(Denied::Unknown(id))));
        };
        match act(&held(row)?, now) {
            Ok(writes) => Ok((writes, Ok(()))),
            Err(denied) => Ok((Vec::new(), Err(denied))),
        }
    };
    door.maintain("relay.act", reads, plan).await?.0
}

fn held(row: &Row) -> Result<Held, Error> {
    Ok(Held {
        id: row.int(0)?,
        destination: row.text(1)?.to_owned(),
        state: state(row, 2)?,
        fence: row.int(3)?,
        attempt: row.int(4)?,
        error: row.text_or_null(5)?.map(ToOwned::to_owned),
    })
}

fn audit(name: &'static str, row: &Held, after: State, operator: &Operator) -> AuditRow {
    let object = row.id.to_string();
    let mut audit = AuditRow::system(name, "outbox_delivery", object, operator.request_id.clone());
    audit.operator_id = operator.id;
    audit.operator_type = operator.kind;
    audit.operator_role = operator.role;
    audit.before_state = json!({ "status": row.state.as_str(), "attempt": row.attempt, "error": row.error });
    audit.after_state = json!({ "status": after.as_str() });
    audit.metadata = json!({ "destination": row.destination });
    audit
}

fn delivery(row: &Row) -> Result<Delivery, Error> {
    let damaged = |_| Error::Corrupt { table: "outbox", column: "event_id".into() };
    Ok(Delivery {
        id: row.int(0)?,
        event_id: Uuid::from_slice(row.bytes(1)?).map_err(damaged)?,
        event_name: row.text(2)?.to_owned(),
        object_key: row.text(3)?.to_owned(),
        destination: row.text(4)?.to_owned(),
        state: state(row, 5)?,
        attempt: row.int(6)?,
        next_attempt_at: row.time(7)?,
        outcome: row.text_or_null(8)?.map(ToOwned::to_owned),
        error: row.text_or_null(9)?.map(ToOwned::to_owned),
        created_at: row.time(10)?,
        updated_at: row.time(11)?,
    })
}

fn state(row: &Row, column: usize) -> Result<State, Error> {
    let damaged = || Error::Corrupt { table: "outbox_deliveries", column: "status".into() };
    State::parse(row.text(column)?).ok_or_else(damaged)
}
