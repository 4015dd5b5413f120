//! The rows of a withdrawal: the settlement, its items, the earnings' parts, the journal, the used-up code, and
//! the check at the end.

use std::collections::BTreeSet;

use kernel::Time;
use kernel::money::Money;
use ledger::draw::{self, Item, Lot};
use ledger::{Split, ids, posting};
use store::{Error, Value, Write, values};

use crate::action::{Context, Stop};

use super::rules::Allowed;
use super::state::{Portion, State};
use super::{Payee, Prepared};
use crate::settlements::parts::{self, Parts};

const INSERT: &str = "insert into supply_settlements (id, settlement_no, tenant_id, user_id, total_amount, fee_amount, net_amount, status, payment_method, payment_account, payment_account_masked, payment_account_cipher_algo, payment_account_kms_key_alias, payment_account_key_version, payment_account_fingerprint, period_start, period_end, total_orders, total_usage_records, currency_code, request_id, idempotency_key, audit_trace_id, updated_ip, updated_at, created_ip, created_at)
values ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)";

/// Items of the earnings that are taken whole: all that stand before the last one.
const ITEMS: &str = "insert into supply_settlement_items (settlement_id, earning_id, tenant_id, amount, created_at)
select t.id, e.id, t.tenant_id, e.available_amount, t.created_at
from supply_settlements t join supply_earnings e on e.user_id = t.user_id and e.currency_code = t.currency_code
where t.id = $1 and e.available_amount > 0
  and (e.available_at < $2 or (e.available_at = $3 and e.id < $4))";

const LAST: &str =
    "insert into supply_settlement_items (settlement_id, earning_id, tenant_id, amount, created_at)
values ($1, $2, $3, $4, $5)";

const CONSUME: &str = "update supply_sms_codes set consumed_at = $1
where id = $2 and consumed_at is null and attempts < 5 and expires_at > $3";

/// What is taken from where.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    state: &'a State,
    pub(super) split: Split,
    pub(super) items: Vec<Item>,
    taken: Vec<&'a Portion>,
}

impl<'a> Plan<'a> {
    /// Oldest first.
    pub(super) fn of(context: &Context, state: &'a State, total: Money) -> Result<Self, Stop> {
        let split = Split::of_withdrawal(total, context.house.policy.withdraw_fee_rate)?;
        let lots: Vec<Lot> = state.portions.iter().map(|portion| portion.lot).collect();
        let items = draw::oldest_first(total, &lots)?;
        let ids: BTreeSet<_> = items.iter().map(|item| item.earning).collect();
        let taken = state.portions.iter().filter(|portion| ids.contains(&portion.lot.earning)).collect();
        Ok(Self { state, split, items, taken })
    }

    /// All rows, in the order in which their checks are to raise.
    pub(super) fn writes(
        &self,
        context: &Context,
        (prepared, payee): (&Prepared, &Payee),
        allowed: &Allowed<'_>,
        at: Time,
    ) -> Result<Vec<Write>, Stop> {
        let Allowed { supplier, code } = *allowed;
        let id = self.state.id;
        let mut writes = vec![self.settlement(context, (prepared, payee), supplier.user_id, at)?];
        writes.extend(self.items(context.caller.tenant_id, at)?);
        writes.push(Parts::Freeze.moved(id, context, at));
        let mut books = self.state.books.clone();
        let (settlement, user) = (ids::Settlement(id), ids::Supplier(supplier.user_id));
        let journal = posting::withdraw(settlement, user, self.split.whole())?;
        writes.extend(books.post(context, &journal, at)?);
        writes.extend(books.balances(at));
        writes.push(Write::one("settlement.code", CONSUME, values![at, code.id, at]));
        writes.push(parts::balanced(id));
        Ok(writes)
    }

    fn settlement(
        &self,
        context: &Context,
        (prepared, payee): (&Prepared, &Payee),
        user_id: i64,
        at: Time,
    ) -> Result<Write, Stop> {
        let money = |amount: Money| Value::Money(amount.count());
        let days = || self.taken.iter().map(|portion| portion.earned_at.shanghai_day());
        let (first, last) = days().min().zip(days().max()).ok_or_else(damaged)?;
        let orders: BTreeSet<_> = self.taken.iter().filter_map(|portion| portion.order_id).collect();
        let usage = self.taken.iter().filter(|portion| portion.usage_record_id.is_some()).count();
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let Payee { method, masked, sealed, fingerprint } = payee;
        let row = [
            values![self.state.id, &prepared.settlement_no, context.caller.tenant_id, user_id],
            [self.split.whole(), self.split.fee(), self.split.rest()].map(money).into(),
            values![method.as_str(), &sealed.envelope, masked, sealed.cipher_algo, &sealed.kms_key_alias],
            values![i64::from(sealed.key_version), fingerprint, first, last],
            values![count(orders.len()), count(usage), self.split.whole().currency().code()],
            context.stamp(at).into(),
            values![context.caller.client_ip.clone(), at],
        ]
        .concat();
        Ok(Write::one("settlement.insert", INSERT, row))
    }

    /// The last one may be taken in part; whatever stands before it is taken whole.
    fn items(&self, tenant_id: i64, at: Time) -> Result<Vec<Write>, Stop> {
        let (item, portion) = self.items.last().zip(self.taken.last()).ok_or_else(damaged)?;
        let (id, since, earning) = (self.state.id, portion.lot.available_at, item.earning.0);
        let last = values![id, earning, tenant_id, Value::Money(item.amount.count()), at];
        Ok(vec![
            Write::any("settlement.items", ITEMS, values![id, since, since, earning]),
            Write::one("settlement.last", LAST, last),
        ])
    }
}

/// An allocation has at least one item, since its sum is above zero.
fn damaged() -> Stop {
    Stop::Broken(Error::Corrupt { table: "supply_earnings", column: "available_amount".into() })
}
