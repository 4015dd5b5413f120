//! What is taken back out of a supplier's earnings by a refund or for a debt: oldest first, over all of the
//! supplier's earnings (section 11.5, check 4). What a settlement has frozen is not touched.

use std::collections::HashMap;

use kernel::Time;
use kernel::money::Money;
use ledger::draw::{self, Lot};
use ledger::ids;
use store::{Query, Value, Write, values};

use crate::action::{Context, Stop};
use crate::rows::{Earning, EarningStatus};

/// All but the last are taken whole. One statement, since a refund may reach over many calls; the balance rows
/// are held, so nobody changes them meanwhile.
const HELD_BEFORE: &str = "update supply_earnings
set reversed_amount = amount, version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where tenant_id = $6 and user_id = $7 and status = 'pending' and amount > reversed_amount
  and (available_at < $8 or (available_at = $9 and id < $10))";
const RELEASED_BEFORE: &str = "update supply_earnings
set reversed_amount = reversed_amount + available_amount, available_amount = 0,
  status = case when frozen_amount > 0 then 'frozen' else 'withdrawn' end, version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where tenant_id = $6 and user_id = $7 and available_amount > 0
  and (available_at < $8 or (available_at = $9 and id < $10))";
const LAST: &str = "update supply_earnings
set reversed_amount = $1, available_amount = $2, status = $3, version = version + 1,
  request_id = $4, idempotency_key = $5, audit_trace_id = $6, updated_ip = $7, updated_at = $8
where id = $9 and tenant_id = $10 and version = $11";

/// Which earnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Those whose hold runs: they stand in the pending balance.
    Held,
    /// Those released: they stand in the available balance.
    Released,
}

impl Side {
    /// What can be taken of an earning of this side.
    fn of(self, earning: &Earning) -> Result<Money, Stop> {
        Ok(match self {
            Self::Held => earning.amount.minus(earning.reversed)?,
            Self::Released => earning.available,
        })
    }
}

/// The earnings of the supplier that the SQL `user` gives, oldest first, until they hold what the SQL `bound`
/// gives: the most that will be taken. `values` are those of `user`, then of `bound`.
pub(crate) fn lots(side: Side, user: &str, bound: &str, values: Vec<Value>) -> Query {
    let (name, there, part) = match side {
        Side::Held => {
            ("earnings.held", "status = 'pending' and amount > reversed_amount", "amount - reversed_amount")
        }
        Side::Released => ("earnings.released", "available_amount > 0", "available_amount"),
    };
    let sql = format!(
        "select {} from supply_earnings e
         join (select id, sum({part}) over (order by available_at, id) - ({part}) as ahead
               from supply_earnings where user_id = {user} and {there}) w on w.id = e.id
         where w.ahead < {bound} order by e.available_at, e.id",
        Earning::COLUMNS
    );
    Query::new(name, sql, values)
}

/// What was taken back.
#[derive(Debug, Default)]
pub(crate) struct Reversed {
    /// The rows.
    pub(crate) writes: Vec<Write>,
    /// Each earning that is touched, before and after.
    pub(crate) earnings: Vec<(Earning, Earning)>,
}

/// Takes `total` out of the lots, the oldest first.
pub(crate) fn reverse(
    context: &Context,
    (side, total): (Side, Money),
    found: &[Earning],
    at: Time,
) -> Result<Reversed, Stop> {
    let lot = |earning: &Earning| {
        let (id, available_at) = (ids::Earning(earning.id), earning.available_at);
        Ok::<_, Stop>(Lot { earning: id, available_at, amount: side.of(earning)? })
    };
    let items = draw::oldest_first(total, &found.iter().map(lot).collect::<Result<Vec<_>, _>>()?)?;
    // An order has an earning for each of its calls: many.
    let by_id: HashMap<i64, &Earning> = found.iter().map(|earning| (earning.id, earning)).collect();
    let mut earnings = Vec::new();
    for item in items {
        if let Some(earning) = by_id.get(&item.earning.0) {
            let earning = Earning::clone(earning);
            let after = taken(&earning, (side, item.amount))?;
            earnings.push((earning, after));
        }
    }
    let Some(((earning, after), whole)) = earnings.split_last() else { return Ok(Reversed::default()) };
    let mut writes = Vec::new();
    if !whole.is_empty() {
        let sql = if side == Side::Held { HELD_BEFORE } else { RELEASED_BEFORE };
        let mut row = context.stamp(at).to_vec();
        let until = earning.available_at;
        row.extend(values![earning.tenant_id, earning.user_id, until, until, earning.id]);
        writes.push(Write::any("earnings.reverse", sql, row));
    }
    writes.push(last_of(context, earning, after, at));
    Ok(Reversed { writes, earnings })
}

/// An earning as it is without `amount`.
fn taken(earning: &Earning, (side, amount): (Side, Money)) -> Result<Earning, Stop> {
    let reversed = earning.reversed.plus(amount)?;
    let available = match side {
        Side::Held => earning.available,
        Side::Released => earning.available.minus(amount)?,
    };
    let status = match side {
        Side::Held => EarningStatus::Pending,
        Side::Released if earning.frozen.sign().is_gt() => EarningStatus::Frozen,
        Side::Released if available.sign().is_gt() => EarningStatus::Available,
        Side::Released => EarningStatus::Withdrawn,
    };
    Ok(Earning { reversed, available, status, version: earning.version + 1, ..earning.clone() })
}

fn last_of(context: &Context, earning: &Earning, after: &Earning, at: Time) -> Write {
    let mut row = vec![Value::Money(after.reversed.count()), Value::Money(after.available.count())];
    row.extend(values![after.status.as_str()]);
    row.extend(context.stamp(at));
    row.extend(values![earning.id, earning.tenant_id, earning.version]);
    Write::one("earning.reverse", LAST, row)
}
