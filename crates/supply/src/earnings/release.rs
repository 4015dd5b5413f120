//! The hold of an earning is over (J-RELEASE), and what its supplier owes is taken out of what was released
//! (J-RECOVER). The system's, under the key `release:<id>`.

use door::{AuditRow, Failure, Steps};
use kernel::Time;
use kernel::money::Money;
use ledger::{Account, ids, posting};
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use super::reverse::{Reversed, Side, lots, reverse};
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::books::{self, Books};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Exact;
use crate::rows::{Earning, EarningStatus};

const RELEASE: &str = "update supply_earnings
set status = $1, available_amount = $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status = 'pending' and amount > 0 and version = $10";
/// The supplier, if it owes: without a debt there is nothing to look through.
const DEBTOR: &str = "(select b.owner_id from billing_accounts b where b.owner_type = 'supplier' and b.account_code = 'supplier_receivable' and b.balance > 0
    and b.owner_id = (select s.user_id from supply_suppliers s where s.tenant_id = $1) limit 1)";
const MOST: &str = "(select r.amount - r.reversed_amount from supply_earnings r where r.id = $2)";

/// One earning at the end of its hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Which earning.
    pub earning_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug)]
pub struct State {
    books: Books,
    earning: Option<Earning>,
    /// Released before, oldest first; only looked for when there is a debt.
    released: Vec<Earning>,
}

#[derive(Debug, Serialize)]
struct Released {
    earning_id: i64,
    status: &'static str,
    released_amount: Exact,
    released_amount_minor: String,
    recovered_amount: Exact,
    recovered_amount_minor: String,
    currency_code: &'static str,
    version: i64,
}

impl Release {
    fn allowed(self, state: &State, at: Time) -> Result<&Earning, Refusal> {
        let earning = state.earning.as_ref().ok_or_else(|| Refusal::of(Code::ComMissing))?;
        let seen = |refusal: Refusal| refusal.about(self.object(), earning.state());
        if earning.status != EarningStatus::Pending || !earning.amount.sign().is_gt() {
            return Err(seen(Refusal::of(Code::ComState).with("status", earning.status.as_str())));
        }
        if earning.available_at > at {
            let until = earning.available_at.to_rfc3339_millis();
            return Err(seen(Refusal::of(Code::ComState).with("available_at", until)));
        }
        Ok(earning)
    }

    /// The row as its release leaves it.
    fn released(earning: &Earning) -> Result<Earning, Stop> {
        let available = earning.amount.minus(earning.reversed)?;
        let left = available.sign().is_gt();
        let status = if left { EarningStatus::Available } else { EarningStatus::Withdrawn };
        Ok(Earning { status, available, version: earning.version + 1, ..earning.clone() })
    }

    fn write(context: &Context, before: &Earning, after: &Earning, at: Time) -> Write {
        let mut row = values![after.status.as_str()];
        row.push(Value::Money(after.available.count()));
        row.extend(context.stamp(at));
        row.extend(values![before.id, before.tenant_id, before.version]);
        Write::one("earning.release", RELEASE, row)
    }
}

/// What the journals of a release made.
struct Posted {
    writes: Vec<Write>,
    recovered: Money,
}

fn posted(context: &Context, books: &mut Books, after: &Earning, at: Time) -> Result<Posted, Stop> {
    let (supplier, id) = (ids::Supplier(after.user_id), ids::Earning(after.id));
    let debt = books.balance(Account::receivable(supplier), after.currency)?;
    let journals = [
        posting::release(id, supplier, after.available)?,
        posting::recover(id, supplier, after.available, debt)?,
    ];
    let mut writes = Vec::new();
    for journal in journals.iter().flatten() {
        writes.extend(books.post(context, journal, at)?);
    }
    Ok(Posted { writes, recovered: after.available.least(debt)? })
}

/// An audit event's name, and an earning before and after.
type Moved<'a> = (&'static str, &'a Earning, &'a Earning);

fn told((event, before, after): Moved<'_>) -> Event {
    let name = match event {
        "supply.earning.release" => "supply.earning.release.succeeded",
        _ => "supply.earning.reverse.succeeded",
    };
    let object = Object::row(Earning::KIND, after.id);
    Event { name, object, version: after.version, before: before.state(), after: after.state() }
}

fn audited(context: &Context, (event, before, after): Moved<'_>, recovered: Money) -> AuditRow {
    let mut row = context.caller.audit(event, &Object::row(Earning::KIND, after.id));
    (row.before_state, row.after_state) = (before.state(), after.state());
    row.metadata = json!({ "recovered_minor": recovered.minor() });
    row
}

impl Action for Release {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.earning.release"
    }

    fn object(&self) -> Object {
        Object::row(Earning::KIND, self.earning_id)
    }

    fn comes_due(&self) -> bool {
        true
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let tenant = context.caller.tenant_id;
        let earning = format!(
            "select {} from supply_earnings e where e.id = $1 and e.tenant_id = $2 {{for_update}}",
            Earning::COLUMNS
        );
        vec![
            books::of_supplier(tenant),
            Query::new("earning.release", earning, values![self.earning_id, tenant]),
            lots(Side::Released, DEBTOR, MOST, values![tenant, self.earning_id]),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [books, earning, released] = rows else {
            return Err(Error::Corrupt { table: "supply_earnings", column: "answers".into() });
        };
        Ok(State {
            books: Books::read(books)?,
            earning: earning.first().map(Earning::read).transpose()?,
            released: released.iter().map(Earning::read).collect::<Result<_, _>>()?,
        })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let earning = self.allowed(state, at)?;
        let after = Self::released(earning)?;
        let mut books = state.books.clone();
        let Posted { writes: journals, recovered } = posted(context, &mut books, &after, at)?;
        let mut writes = vec![Self::write(context, earning, &after, at)];
        let released = after.available;
        let mut taken = Reversed::default();
        if recovered.sign().is_gt() {
            let all: Vec<Earning> = state.released.iter().chain([&after]).cloned().collect();
            taken = reverse(context, (Side::Released, recovered), &all, at)?;
        }
        writes.append(&mut taken.writes);
        // The state between the two writes of this row is nobody's.
        let mut rows = vec![("supply.earning.release", earning, &after)];
        for (before, now) in &taken.earnings {
            let is_own = before.id == earning.id;
            if let Some(row) = rows.first_mut().filter(|_| is_own) {
                row.2 = now;
            }
            rows.push(("supply.earning.reverse", if is_own { earning } else { before }, now));
        }
        let after = rows.first().map_or(&after, |row| row.2);
        let events = rows.iter().map(|row| told(*row)).collect();
        let audit = rows.iter().skip(1).map(|row| audited(context, *row, recovered)).collect();
        writes.extend(journals);
        writes.extend(books.balances_of_a_call(at));
        let data = Released {
            earning_id: earning.id,
            status: after.status.as_str(),
            released_amount: released.into(),
            released_amount_minor: released.minor(),
            recovered_amount: recovered.into(),
            recovered_amount_minor: recovered.minor(),
            currency_code: after.currency.code(),
            version: after.version,
        };
        let metadata = json!({ "recovered_minor": recovered.minor() });
        let (before, after) = (earning.state(), after.state());
        Ok(Change { before, after, metadata, writes, audit, events, ..Change::of(self.object(), &data)? })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let earning = state.earning.as_ref()?;
        let lost = || (write == "earning.release").then(|| Refusal::of(Code::ComState));
        Some(books::unbalanced(write).or_else(lost)?.about(self.object(), earning.state()))
    }
}

#[cfg(test)]
mod tests;
