//! What a supplier's offers brought in a period, and the balances as they stand (section 8.4, operations 18 and
//! 19). One state of the store for all of it.

use kernel::money::{Currency, Money, Sum};
use ledger::Code as Chart;
use serde::Serialize;
use store::{Error, Query, Row, Store, values};

use super::period::Period;
use crate::exact::Exact;
use crate::rows::{Reader, Supplier};

/// By the commit of each call, as the ledger has it.
const BY_PLATFORM: &str = "select u.platform, {sum u.total_cost}, count(distinct u.order_id), sum(u.total_tokens), count(*),
  sum(case when u.success then 1 else 0 end)
from supply_usage_records u join supply_suppliers s on s.user_id = u.supplier_user_id and s.currency_code = u.currency_code
where s.tenant_id = $1 and u.created_at >= $2 and u.created_at < $3 group by u.platform order by u.platform";

const ORDERS: &str = "select count(distinct u.order_id)
from supply_usage_records u join supply_suppliers s on s.user_id = u.supplier_user_id and s.currency_code = u.currency_code
where s.tenant_id = $1 and u.created_at >= $2 and u.created_at < $3";

/// The fee legs of the calls that this supplier earned from.
const FEES: &str = "select {sum f.amount}
from billing_ledger_entries f join billing_accounts r on r.id = f.billing_account_id
where r.account_code = 'platform_fee_revenue' and f.direction = 'cr' and f.journal_id in (
  select p.journal_id from billing_ledger_entries p join billing_accounts a on a.id = p.billing_account_id
    join supply_suppliers s on s.user_id = a.owner_id and s.currency_code = a.currency_code
  where s.tenant_id = $1 and a.owner_type = 'supplier' and a.account_code = 'supplier_pending'
    and p.entry_type = 'J-USAGE' and p.occurred_at >= $2 and p.occurred_at < $3)";

/// The supplier's side of refunds.
const REFUNDS: &str = "select {sum p.amount}
from billing_ledger_entries p join billing_accounts a on a.id = p.billing_account_id
  join supply_suppliers s on s.user_id = a.owner_id and s.currency_code = a.currency_code
where s.tenant_id = $1 and a.owner_type = 'supplier' and p.direction = 'dr'
  and p.entry_type = 'J-REFUND' and p.occurred_at >= $2 and p.occurred_at < $3";

const BALANCES: &str = "select a.account_code, a.balance from billing_accounts a
  join supply_suppliers s on s.user_id = a.owner_id and s.currency_code = a.currency_code
where s.tenant_id = $1 and a.owner_type = 'supplier'";

const WITHDRAWN: &str = "select {sum e.withdrawn_amount} from supply_earnings e
  join supply_suppliers s on s.user_id = e.user_id and s.currency_code = e.currency_code where s.tenant_id = $1";

/// `data` of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Billing {
    /// The days.
    pub period: Days,
    /// Of all providers.
    pub summary: Summary,
    /// Of each provider.
    pub by_platform: Vec<Platform>,
    /// As it stands; not on the deprecated path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
    /// ISO 4217, of all amounts.
    pub currency_code: &'static str,
}

/// Both inclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Days {
    /// `2026-03-01`.
    pub start: String,
    /// `2026-03-30`.
    pub end: String,
}

/// Sums over a period. Amounts in major units, and in minor units beside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Gross charges.
    pub total_revenue: Exact,
    /// The same.
    pub total_revenue_minor: String,
    /// Different orders.
    pub total_orders: i64,
    /// Tokens of both directions.
    pub total_usage: i64,
    /// Calls.
    pub total_requests: i64,
    /// Percent of the calls that succeeded, to two decimals.
    pub avg_success_rate: Exact,
    /// The platform's, from the ledger.
    pub platform_fee: Exact,
    /// The same.
    pub platform_fee_minor: String,
    /// Revenue without the fee and without the supplier's part of refunds.
    pub net_earnings: Exact,
    /// The same.
    pub net_earnings_minor: String,
}

/// Sums of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// Provider.
    pub platform: String,
    /// Gross charges, major units.
    pub revenue: Exact,
    /// The same, minor units.
    pub revenue_minor: String,
    /// Different orders.
    pub orders: i64,
    /// Tokens of both directions.
    pub tokens: i64,
    /// Percent of the calls that succeeded.
    pub success_rate: Exact,
}

/// The supplier's balances: major units, and minor units beside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// May be withdrawn, but for a fraction of a minor unit.
    pub available_amount: Exact,
    /// The same.
    pub available_amount_minor: String,
    /// Earned, not yet released.
    pub pending_amount: Exact,
    /// The same.
    pub pending_amount_minor: String,
    /// In open settlements.
    pub frozen_amount: Exact,
    /// The same.
    pub frozen_amount_minor: String,
    /// Paid out, and not sent back.
    pub withdrawn_amount: Exact,
    /// The same.
    pub withdrawn_amount_minor: String,
    /// Owed after refunds.
    pub receivable_amount: Exact,
    /// The same.
    pub receivable_amount_minor: String,
}

/// One provider's row, with what only sums are made of.
struct Line {
    platform: Platform,
    revenue: Sum,
    requests: i64,
    succeeded: i64,
}

impl Billing {
    /// Of a tenant's supplier; `None` where the tenant has none.
    ///
    /// # Errors
    /// The store's.
    pub async fn of(store: &Store, tenant_id: i64, period: &Period) -> Result<Option<Self>, Error> {
        let within = || values![tenant_id, period.from, period.to];
        let reads = vec![
            Query::new("billing.supplier", Supplier::OF_TENANT, values![tenant_id]),
            Query::new("billing.platforms", BY_PLATFORM, within()),
            Query::new("billing.orders", ORDERS, within()),
            Query::new("billing.fees", FEES, within()),
            Query::new("billing.refunds", REFUNDS, within()),
            Query::new("billing.balances", BALANCES, values![tenant_id]),
            Query::new("billing.withdrawn", WITHDRAWN, values![tenant_id]),
        ];
        let answers = store.queries(reads).await?;
        let [supplier, platforms, orders, fees, refunds, balances, withdrawn] = answers.as_slice() else {
            return Err(damaged("answers"));
        };
        let Some(supplier) = supplier.first().map(Supplier::read).transpose()? else { return Ok(None) };
        let currency = supplier.currency;
        let lines = platforms.iter().map(|row| Line::read(row, currency));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let (fees, refunds) = (one(fees, currency)?, one(refunds, currency)?);
        let total_orders = orders.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(Some(Self {
            period: Days { start: period.start.clone(), end: period.end.clone() },
            summary: Summary::of(&lines, total_orders, fees, refunds),
            balance: Some(Balance::read(balances, one(withdrawn, currency)?)?),
            by_platform: lines.into_iter().map(|line| line.platform).collect(),
            currency_code: currency.code(),
        }))
    }

    /// As the deprecated path gives it.
    #[must_use]
    pub fn without_balance(self) -> Self {
        Self { balance: None, ..self }
    }
}

impl Line {
    fn read(row: &Row, currency: Currency) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let platform = reader.text()?.to_owned();
        let revenue = reader.sum(currency)?;
        let (orders, tokens) = (reader.int()?, reader.int()?);
        let (requests, succeeded) = (reader.int()?, reader.int()?);
        let platform = Platform {
            platform,
            revenue: revenue.into(),
            revenue_minor: revenue.minor(),
            orders,
            tokens,
            success_rate: rate(succeeded, requests),
        };
        Ok(Self { platform, revenue, requests, succeeded })
    }
}

impl Summary {
    fn of(lines: &[Line], total_orders: i64, fees: Sum, refunds: Sum) -> Self {
        let sum = |part: fn(&Line) -> i64| lines.iter().map(part).sum::<i64>();
        let count = lines.iter().map(|line| line.revenue.count()).sum::<i128>();
        let revenue = Sum::from_count(count, fees.currency());
        let net = Sum::from_count(count - fees.count() - refunds.count(), fees.currency());
        let requests = sum(|line| line.requests);
        Self {
            total_revenue: revenue.into(),
            total_revenue_minor: revenue.minor(),
            total_orders,
            total_usage: sum(|line| line.platform.tokens),
            total_requests: requests,
            avg_success_rate: rate(sum(|line| line.succeeded), requests),
            platform_fee: fees.into(),
            platform_fee_minor: fees.minor(),
            net_earnings: net.into(),
            net_earnings_minor: net.minor(),
        }
    }
}

impl Balance {
    fn read(rows: &[Row], withdrawn: Sum) -> Result<Self, Error> {
        let mut parts = [Money::zero(withdrawn.currency()); 4];
        let codes = [
            Chart::SupplierAvailable,
            Chart::SupplierPending,
            Chart::SupplierFrozen,
            Chart::SupplierReceivable,
        ];
        for row in rows {
            let mut reader = Reader::new(row);
            let (code, balance) = (reader.text()?, reader.money(withdrawn.currency())?);
            for (part, _) in parts.iter_mut().zip(codes).filter(|(_, known)| known.as_str() == code) {
                *part = balance;
            }
        }
        let [available, pending, frozen, receivable] = parts;
        Ok(Self {
            available_amount: available.into(),
            available_amount_minor: available.minor(),
            pending_amount: pending.into(),
            pending_amount_minor: pending.minor(),
            frozen_amount: frozen.into(),
            frozen_amount_minor: frozen.minor(),
            withdrawn_amount: withdrawn.into(),
            withdrawn_amount_minor: withdrawn.minor(),
            receivable_amount: receivable.into(),
            receivable_amount_minor: receivable.minor(),
        })
    }
}

/// The one figure of an answer.
fn one(rows: &[Row], currency: Currency) -> Result<Sum, Error> {
    rows.first().map_or(Ok(Sum::from_count(0, currency)), |row| Reader::new(row).sum(currency))
}

fn rate(part: i64, whole: i64) -> Exact {
    Exact::percent(part.unsigned_abs(), whole.unsigned_abs())
}

fn damaged(column: &str) -> Error {
    Error::Corrupt { table: "billing", column: column.into() }
}
