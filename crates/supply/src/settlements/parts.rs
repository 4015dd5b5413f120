//! What every settlement's posting does to the earnings it was taken from (section 6.5), and the check that
//! stands at its end (section 11.5).

use kernel::Time;
use store::{Value, Write, values};

use crate::action::{Context, Refusal};
use crate::code::Invariant;
use crate::rows::Settlement;

/// From which part of the earnings to which one the settlement's items go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// A withdrawal: available to frozen.
    Freeze,
    /// Not paid: frozen to available.
    Thaw,
    /// Paid: frozen to withdrawn.
    Pay,
    /// Sent back by the bank: withdrawn to available.
    Return,
}

const FREEZE: &str = "update supply_earnings
set available_amount = available_amount - i.amount, frozen_amount = frozen_amount + i.amount, status = 'frozen',
  version = version + 1, request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
from supply_settlement_items i where i.settlement_id = $6 and i.earning_id = supply_earnings.id";

const THAW: &str = "update supply_earnings
set frozen_amount = frozen_amount - i.amount, available_amount = available_amount + i.amount,
  status = case when frozen_amount > i.amount then 'frozen' else 'available' end,
  version = version + 1, request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
from supply_settlement_items i where i.settlement_id = $6 and i.earning_id = supply_earnings.id";

const PAY: &str = "update supply_earnings
set frozen_amount = frozen_amount - i.amount, withdrawn_amount = withdrawn_amount + i.amount,
  status = case when frozen_amount > i.amount then 'frozen' when available_amount > 0 then 'available' else 'withdrawn' end,
  version = version + 1, request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
from supply_settlement_items i where i.settlement_id = $6 and i.earning_id = supply_earnings.id";

const RETURN: &str = "update supply_earnings
set withdrawn_amount = withdrawn_amount - i.amount, available_amount = available_amount + i.amount,
  status = case when frozen_amount > 0 then 'frozen' else 'available' end,
  version = version + 1, request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
from supply_settlement_items i where i.settlement_id = $6 and i.earning_id = supply_earnings.id";

/// Hits its row only where the settlement is the sum of its items and of its J-WITHDRAW, and where the frozen
/// balance is the sum of the supplier's open settlements.
const BALANCED: &str = "update supply_settlements set updated_at = updated_at
where id = $1 and total_amount = fee_amount + net_amount
  and total_amount = (select sum(i.amount) from supply_settlement_items i where i.settlement_id = $2)
  and total_amount = (select sum(e.amount) from billing_journals j join billing_ledger_entries e on e.journal_id = j.id
    where j.journal_type = 'J-WITHDRAW' and j.source_type = 'settlement' and j.source_id = $3 and e.direction = 'dr')
  and (select a.balance from billing_accounts a
    where a.owner_type = 'supplier' and a.owner_id = supply_settlements.user_id
      and a.account_code = 'supplier_frozen' and a.currency_code = supply_settlements.currency_code)
    = (select coalesce(sum(o.total_amount), 0) from supply_settlements o
    where o.user_id = supply_settlements.user_id and o.currency_code = supply_settlements.currency_code
      and o.status in ('pending', 'processing'))";

impl Parts {
    /// Moves the items of a settlement. The earnings change only under the lock of the supplier's balances, which
    /// the command holds.
    pub(super) fn moved(self, settlement_id: i64, context: &Context, at: Time) -> Write {
        let sql = match self {
            Self::Freeze => FREEZE,
            Self::Thaw => THAW,
            Self::Pay => PAY,
            Self::Return => RETURN,
        };
        let mut row = Vec::from(context.stamp(at));
        row.push(Value::Int(settlement_id));
        Write::any("settlement.parts", sql, row)
    }
}

/// Checks 2 and 3 of section 11.5, as the last row of every posting of a settlement; 4 stands in the balances' own
/// rows ([`Books::balances`](crate::books::Books::balances)).
pub(super) fn balanced(settlement_id: i64) -> Write {
    let row = values![settlement_id, settlement_id, settlement_id.to_string()];
    Write::one("settlement.balanced", BALANCED, row)
}

/// What a raised check of a posting means: INV-SET-003, whoever was there.
pub(super) fn unbalanced(write: &'static str, settlement: Option<&Settlement>) -> Option<Refusal> {
    const POSTED: [&str; 8] = [
        "settlement.items",
        "settlement.last",
        "settlement.parts",
        "settlement.balanced",
        "books.journal",
        "books.balance",
        "books.available",
        "books.pending",
    ];
    if !POSTED.contains(&write) {
        return None;
    }
    let refusal = Refusal::broken(Invariant::Set003);
    Some(match settlement {
        Some(found) => refusal.about(super::step::object(found.id), found.state()),
        None => refusal,
    })
}
