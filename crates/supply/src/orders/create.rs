//! A buyer orders quota of a package (section 6.3): the quota is reserved, prices and escrow are fixed. The
//! caller's tenant is the buyer's; the package may be anybody's.

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::{Currency, Money, Price, Prices, Quota, QuotaUnit};
use ledger::ids;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use super::found::{Shift, damaged};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books;
use crate::caller::Object;
use crate::code::Code;
use crate::exact::{Exact, Stamp};
use crate::rows::{Order, Package, PackageStatus, Reader};

/// The account is locked before its package, as everywhere: the order's row refers to both.
const ACCOUNT: &str = "select a.id from supply_accounts a
where a.id = (select p.supply_account_id from supply_packages p where p.id = $1) {for_update}";
/// Currencies that the buyer has a prepaid balance in.
const BUYER: &str = "select b.currency_code from iam_users u
join billing_accounts b on b.owner_type = 'buyer' and b.owner_id = u.id
where u.id = $1 and u.tenant_id = $2 and u.status = 'active'";
const NEXT: &str = "select {next_id supply_orders} as next";
const INSERT: &str = "insert into supply_orders (id, order_no, tenant_id, buyer_user_id, buyer_tenant_id, supply_account_id, supplier_user_id, supply_package_id, platform, model, quota_unit, currency_code, quota_amount, quota_tokens, remaining_quota, price_per_1m_input, price_per_1m_output, unit_price, total_amount, request_id, idempotency_key, audit_trace_id, updated_ip, updated_at, created_ip, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)";

/// `POST /api/v1/platform/orders`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Create {
    /// Who buys: `iam_users.id`.
    pub buyer_id: i64,
    /// Of which package.
    pub package_id: i64,
    /// How much, in steps of 10^-6 of the package's unit, which who asks need not know.
    pub quota_count: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub(super) package: Option<Package>,
    pub(super) currencies: Vec<Currency>,
    pub(super) order: i64,
}

/// `data` of the answer; nothing of the supplier in it (section 1.1).
#[derive(Debug, Serialize)]
struct Ordered<'a> {
    order_id: i64,
    order_no: &'a str,
    status: &'static str,
    package_id: i64,
    provider: &'a str,
    model: &'a str,
    quota_amount: Exact,
    quota_unit: &'static str,
    price_per_1m_input: Exact,
    price_per_1m_output: Exact,
    total_amount: Exact,
    total_amount_minor: String,
    currency_code: &'static str,
    pay_before: Stamp,
    version: i64,
    created_at: Stamp,
}

/// What is bought for how much.
struct Bought {
    quota: Quota,
    prices: Prices,
    total: Money,
}

impl Create {
    fn package(state: &State, at: Time) -> Result<&Package, Refusal> {
        // A draft is nobody's business but its owner's.
        let package = state.package.as_ref().filter(|package| package.status != PackageStatus::Draft);
        let package = package.ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        let seen = |refusal: Refusal| refusal.about(Object::row(Package::KIND, package.id), package.state());
        if package.status != PackageStatus::Active {
            return Err(seen(Refusal::of(Code::PkgState).with("status", package.status.as_str())));
        }
        if package.platform_frozen {
            return Err(seen(Refusal::of(Code::PkgLocked)));
        }
        if package.end_at.is_none_or(|end| end <= at) {
            // The sweeper is late.
            return Err(seen(Refusal::of(Code::PkgState).with("status", PackageStatus::Expired.as_str())));
        }
        if !state.currencies.contains(&package.currency) {
            return Err(seen(Refusal::of(Code::ComCurrency).with("currency_code", package.currency.code())));
        }
        Ok(package)
    }

    fn bought(&self, package: &Package) -> Result<Bought, Refusal> {
        let refused = || {
            let refusal = Refusal::of(Code::OrdQuota).with("minimum", package.min_purchase);
            refusal.with("available", package.available).with("quota_unit", package.unit.as_str())
        };
        let quota = Quota::from_count(self.quota_count, package.unit).map_err(|_| refused())?;
        let most = package.available.count();
        if quota.count() < package.min_purchase.count() || quota.count() > most || quota.is_zero() {
            return Err(refused());
        }
        let prices = Prices { input: package.price_input, output: package.price_output };
        let total = prices.escrow(quota, package.currency).map_err(|_| refused())?;
        Ok(Bought { quota, prices, total })
    }

    fn insert(
        &self,
        context: &Context,
        package: &Package,
        (id, order_no, bought): (i64, &str, &Bought),
        at: Time,
    ) -> Write {
        let Bought { quota, prices, total } = bought;
        let tokens = (package.unit == QuotaUnit::Token).then_some(quota.count() / 1_000_000);
        let quota = Value::Money(quota.count());
        let price = |price: Price| Value::Money(price.count());
        let row = [
            values![id, order_no, package.tenant_id, self.buyer_id, context.caller.tenant_id],
            values![package.supply_account_id, package.user_id, package.id],
            values![&package.platform, &package.model, package.unit.as_str(), package.currency.code()],
            vec![quota.clone(), tokens.into(), quota],
            vec![price(prices.input), price(prices.output), price(prices.unit())],
            vec![Value::Money(total.count())],
            context.stamp(at).to_vec(),
            values![context.caller.client_ip.clone(), at],
        ];
        Write::one("order.insert", INSERT, row.concat())
    }
}

impl Action for Create {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.order.create"
    }

    fn object(&self) -> Object {
        Object::new_of(Order::KIND)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let package =
            format!("select {} from supply_packages p where p.id = $1 {{for_update}}", Package::COLUMNS);
        vec![
            Query::new("order.account", ACCOUNT, values![self.package_id]),
            Query::new("order.package", package, values![self.package_id]),
            Query::new("order.buyer", BUYER, values![self.buyer_id, context.caller.tenant_id]),
            Query::new("order.next", NEXT, vec![]),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [_, package, currencies, next] = rows else { return Err(damaged()) };
        Ok(State {
            package: package.first().map(Package::read).transpose()?,
            currencies: currencies.iter().map(|row| Reader::new(row).currency()).collect::<Result<_, _>>()?,
            order: next.first().ok_or_else(damaged)?.int(0)?,
        })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        if state.currencies.is_empty() {
            return Err(Refusal::of(Code::ComMissing).with("field", "buyer_id").into());
        }
        let package = Self::package(state, at)?;
        let about = |refusal: Refusal| refusal.about(Object::row(Package::KIND, package.id), package.state());
        let bought = self.bought(package).map_err(about)?;
        let (id, order_no) = (state.order, context.house.number("ORD", &at.shanghai_day()));
        let escrow = ledger::Account::escrow(ids::Order(id));
        let writes = vec![
            Shift::Reserve.package(context, package, bought.quota, at)?,
            self.insert(context, package, (id, &order_no, &bought), at),
            // There before it is paid, so that paying has a row to lock.
            books::open(context.caller.tenant_id, escrow, package.currency, at),
        ];
        let data = Ordered {
            order_id: id,
            order_no: &order_no,
            status: "pending",
            package_id: package.id,
            provider: &package.platform,
            model: &package.model,
            quota_amount: bought.quota.into(),
            quota_unit: package.unit.as_str(),
            price_per_1m_input: bought.prices.input.into(),
            price_per_1m_output: bought.prices.output.into(),
            total_amount: bought.total.into(),
            total_amount_minor: bought.total.minor(),
            currency_code: package.currency.code(),
            pay_before: Stamp(at.plus(context.house.policy.order_pay)),
            version: 0,
            created_at: Stamp(at),
        };
        let after = json!({ "status": "pending", "version": 0 });
        let object = Object::row(Order::KIND, id);
        Ok(Change { after, writes, status: 201, ..Change::of(object, &data)? })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let package = state.package.as_ref().filter(|_| write == "package.shift")?;
        Some(Refusal::of(Code::PkgState).with("status", package.status.as_str()))
    }
}
