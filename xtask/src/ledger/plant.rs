//! Spoils: what the comparison must find. Each is one row behind the product's back, after the first batch.

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use kernel::Clock as _;
use store::{Value, Write, values};

use super::stage::Market;

/// What is spoilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Planted {
    /// A cached balance has a millionth of a minor unit more
    CachedBalance,
    /// An entry without its other leg
    LoneEntry,
    /// A settlement's fee is one minor unit higher, its net amount one lower
    SwappedFee,
    /// An earning's part stands under another name
    MovedPart,
    /// An order counts a fee that it has not paid
    OrderFee,
}

const BALANCE: &str = "update billing_accounts set balance = balance + $1 where id = $2";
const LONE: &str = "insert into billing_ledger_entries (journal_id, billing_account_id, tenant_id, request_id, trace_id, entry_type, direction, amount, currency_code, ref_type, ref_id, occurred_at, created_at)
select e.journal_id, e.billing_account_id, e.tenant_id, 'planted', 'planted', e.entry_type, e.direction, e.amount, e.currency_code, e.ref_type, e.ref_id, $1, $2 from billing_ledger_entries e where e.id = $3";
const FEE: &str =
    "update supply_settlements set fee_amount = fee_amount + $1, net_amount = net_amount - $2 where id = $3";
const PART: &str = "update supply_earnings set available_amount = 0, reversed_amount = reversed_amount + available_amount, status = 'withdrawn' where id = $1";
const ORDER: &str = "update supply_orders set platform_fee = platform_fee + $1 where id = $2";

impl Planted {
    /// Which row: the first that fits.
    const fn row(self) -> &'static str {
        match self {
            Self::CachedBalance => {
                "select min(id) from billing_accounts where account_code = 'supplier_available' and balance > 0"
            }
            Self::LoneEntry => "select min(id) from billing_ledger_entries",
            Self::SwappedFee => "select min(id) from supply_settlements",
            Self::MovedPart => {
                "select min(id) from supply_earnings where available_amount > 0 and frozen_amount = 0"
            }
            Self::OrderFee => "select min(id) from supply_orders",
        }
    }

    /// Spoils it.
    pub(super) async fn plant(self, market: &Market) -> Result<()> {
        let rows = market.rows(self.row(), vec![]).await?;
        let row = rows.first().context("no row")?.int_or_null(0)?;
        let row = row.with_context(|| format!("nothing to spoil for {self:?}: take a larger batch"))?;
        let (at, one) = (market.clock.now(), Value::Money(1));
        let (sql, by) = match self {
            Self::CachedBalance => (BALANCE, vec![one, row.into()]),
            Self::LoneEntry => (LONE, values![at, at, row]),
            Self::SwappedFee => (FEE, vec![Value::Money(1_000_000), Value::Money(1_000_000), row.into()]),
            Self::MovedPart => (PART, values![row]),
            Self::OrderFee => (ORDER, vec![one, row.into()]),
        };
        market.force(vec![Write::one("ledger.spoil", sql, by)]).await
    }
}
