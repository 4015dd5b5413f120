//! What the commands on an existing settlement have in common (section 6.4): they lock the supplier's balances,
//! move the settlement from one state to another by its version, post a journal, and move the parts of its
//! earnings. Each command is a [`Step`]; the transaction is the same.

use std::fmt;

use door::{Failure, Steps, planted};
use kernel::Time;
use ledger::Journal;
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Value, Write, values};

use super::parts::{self, Parts};
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::books::{self, Books};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::rows::{FailReason, Settlement, SettlementStatus, Supplier};

/// A command on a settlement.
pub trait Step: fmt::Debug + Send + Sync + 'static {
    /// Name of its audit event.
    const EVENT: &'static str;
    /// Name of what the outbox tells.
    const TOLD: &'static str;

    /// Whether every node tries it when its time has come ([`Action::comes_due`]).
    const COMES_DUE: bool = false;

    /// Which settlement.
    fn settlement_id(&self) -> i64;

    /// What the form of its own fields refuses.
    ///
    /// # Errors
    /// `SUP_COM_4001`.
    fn fields(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Whether the settlement may take it.
    ///
    /// # Errors
    /// The code of section 6.4.
    fn allows(&self, context: &Context, found: &Found<'_>, at: Time) -> Result<(), Refusal>;

    /// What becomes of it.
    ///
    /// # Errors
    /// `SUP_SET_5002`, when its amounts can't be posted.
    fn moved(&self, settlement: &Settlement, at: Time) -> Result<Moved, Stop>;

    /// More for the audit.
    fn metadata(&self) -> Json {
        json!({})
    }
}

/// A settlement and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// As it was read.
    pub settlement: &'a Settlement,
    /// Its supplier.
    pub supplier: Option<&'a Supplier>,
}

/// A settlement's new state and the rows for it.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The new state.
    pub(super) status: SettlementStatus,
    /// Why it failed, if it did.
    pub(super) fail_reason: Option<FailReason>,
    /// The update: first the `own` values, then the stamp, then id, tenant and version.
    pub(super) update: &'static str,
    /// The values that the update begins with.
    pub(super) own: Vec<Value>,
    /// What is posted, and where the items go.
    pub(super) posting: Option<(Journal, Parts)>,
    /// Rows of payout attempts.
    pub(super) more: Vec<Write>,
    /// The channel's number, where the answer has it.
    pub(super) payment_transaction_id: Option<String>,
}

/// What is decided from.
#[derive(Clone, Debug)]
pub struct State {
    books: Books,
    settlement: Option<Settlement>,
    supplier: Option<Supplier>,
}

/// `data` of the answers.
#[derive(Debug, Serialize)]
struct Stepped {
    settlement_id: i64,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fail_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_transaction_id: Option<String>,
    version: i64,
    updated_at: Stamp,
}

/// The settlement `id` as audit and outbox name it.
pub(super) fn object(id: i64) -> Object {
    Object::row(Settlement::KIND, id)
}

/// The settlement `id` of a tenant.
pub(super) fn found(id: i64, tenant_id: i64) -> Query {
    Query::new("settlement.found", by_id(""), values![id, tenant_id])
}

/// As [`found`], and locked.
pub(super) fn locked(id: i64, tenant_id: i64) -> Query {
    Query::new("settlement.locked", by_id(" {for_update}"), values![id, tenant_id])
}

fn by_id(lock: &str) -> String {
    let columns = Settlement::COLUMNS;
    format!("select {columns} from supply_settlements t where t.id = $1 and t.tenant_id = $2{lock}")
}

/// 409 `SUP_SET_4094`, with the state that was seen.
pub(super) fn state_conflict(settlement: &Settlement) -> Refusal {
    Refusal::of(Code::SetState).with("status", settlement.status.as_str())
}

/// The state that a step wants, or 409 `SUP_SET_4094`.
pub(super) fn wants(settlement: &Settlement, status: SettlementStatus) -> Result<(), Refusal> {
    if settlement.status == status { Ok(()) } else { Err(state_conflict(settlement)) }
}

/// Amounts of a stored settlement, or `SUP_SET_5002`.
pub(super) fn split(settlement: &Settlement) -> Result<ledger::Split, Stop> {
    Ok(ledger::Split::of_settlement(settlement.total, settlement.fee)?)
}

impl<S: Step> Action for S {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        S::EVENT
    }

    fn object(&self) -> Object {
        object(self.settlement_id())
    }

    fn comes_due(&self) -> bool {
        S::COMES_DUE
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let tenant = context.caller.tenant_id;
        vec![
            books::of_supplier(tenant),
            found(self.settlement_id(), tenant),
            Query::new("settlement.supplier", Supplier::OF_TENANT, values![tenant]),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [balances, settlement, supplier] = rows else {
            return Err(Error::Corrupt { table: "supply_settlements", column: "answers".into() });
        };
        Ok(State {
            books: Books::read(balances)?,
            settlement: settlement.first().map(Settlement::read).transpose()?,
            supplier: supplier.first().map(Supplier::read).transpose()?,
        })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        self.fields()?;
        let settlement = state.settlement.as_ref().ok_or_else(|| Refusal::of(Code::SetMissing))?;
        let found = Found { settlement, supplier: state.supplier.as_ref() };
        let object = object(settlement.id);
        let before = settlement.state();
        self.allows(context, &found, at).map_err(|refusal| refusal.about(object.clone(), before.clone()))?;
        let moved = self.moved(settlement, at)?;
        let version = settlement.version + 1;
        let (status, fail_reason) = (moved.status, moved.fail_reason);
        let after = Settlement { status, fail_reason, version, ..settlement.clone() }.state();
        let data = Stepped {
            settlement_id: settlement.id,
            status: status.as_str(),
            fail_reason: fail_reason.map(FailReason::as_str),
            payment_transaction_id: moved.payment_transaction_id.clone(),
            version,
            updated_at: Stamp(at),
        };
        let event = Event {
            name: S::TOLD,
            object: object.clone(),
            version,
            before: before.clone(),
            after: after.clone(),
        };
        let writes = written(context, state, settlement, moved, at)?;
        let change = Change { before, after, writes, events: vec![event], ..Change::of(object, &data)? };
        Ok(Change { metadata: self.metadata(), ..change })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let settlement = state.settlement.as_ref();
        match (write, settlement) {
            ("settlement.step", Some(found)) => {
                Some(state_conflict(found).about(object(found.id), found.state()))
            }
            _ => parts::unbalanced(write, settlement),
        }
    }
}

fn written(
    context: &Context,
    state: &State,
    settlement: &Settlement,
    moved: Moved,
    at: Time,
) -> Result<Vec<Write>, Stop> {
    let Moved { update, own, posting, more, .. } = moved;
    let key = values![settlement.id, settlement.tenant_id, settlement.version];
    let row = [own, context.stamp(at).into(), key].concat();
    let mut writes = vec![Write::one("settlement.step", update, row)];
    writes.extend(more);
    if let Some((journal, items)) = posting {
        writes.push(items.moved(settlement.id, context, at));
        if items == Parts::Thaw && planted::is("cancel-without-journal") {
            return Ok(writes);
        }
        let mut books = state.books.clone();
        writes.extend(books.post(context, &journal, at)?);
        writes.extend(books.balances(at));
        writes.push(parts::balanced(settlement.id));
    }
    Ok(writes)
}
