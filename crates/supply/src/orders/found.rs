//! What the commands of an order find, and how they move quota: the order with the package and the account that
//! its quota came of.

use kernel::Time;
use kernel::money::{Prices, Quota};
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Value, Write, values};

use crate::action::{Context, Event, Refusal, Stop};
use crate::books;
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Account, Order, OrderStatus, Package, PackageStatus};

/// Whose the order is: its buyer's, or either side's for the platform.
const OF_ORDER: &str =
    "from supply_orders o where o.id = $1 and (o.buyer_tenant_id = $2 or o.tenant_id = $3)";

const PACKAGE_QUOTA: &str = "update supply_packages
set available_quota = $1, reserved_quota = $2, sold_quota = $3, total_orders = total_orders + $4,
  version = version + 1,
  request_id = $5, idempotency_key = $6, audit_trace_id = $7, updated_ip = $8, updated_at = $9
where id = $10 and tenant_id = $11 and version = $12";
const ACCOUNT_QUOTA: &str = "update supply_accounts
set available_quota = $1, frozen_quota = $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and version = $10";
const END: &str = "update supply_orders
set status = $1, close_reason = $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status in ('pending', 'paid', 'using') and version = $10";

/// An order and where its quota came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The mounted account.
    pub account: Account,
    /// The package.
    pub package: Package,
    /// The order.
    pub order: Order,
}

/// The three rows of an order, locked.
pub(super) fn load(context: &Context, order_id: i64) -> Vec<Query> {
    let tenant = context.caller.tenant_id;
    let by = values![order_id, tenant, context.caller.is_platform().then_some(tenant)];
    let account = format!(
        "select {} from supply_accounts a where a.id = (select o.supply_account_id {OF_ORDER}) {{for_update}}",
        Account::COLUMNS
    );
    let package = format!(
        "select {} from supply_packages p where p.id = (select o.supply_package_id {OF_ORDER}) {{for_update}}",
        Package::COLUMNS
    );
    let order = format!("select {} {OF_ORDER} {{for_update}}", Order::COLUMNS);
    vec![
        Query::new("order.account", account, by.clone()),
        Query::new("order.package", package, by.clone()),
        Query::new("order.find", order, by),
    ]
}

/// The escrow and the buyer's balance, locked.
pub(super) fn buyers_books(order_id: i64) -> Query {
    let condition = "(owner_type = 'order' and owner_id = $1)
        or (owner_type = 'buyer' and owner_id = (select o.buyer_user_id from supply_orders o where o.id = $2))";
    books::locked(condition, values![order_id, order_id])
}

/// The same and the supplier's balances.
pub(super) fn all_books(order_id: i64) -> Query {
    let condition = "(owner_type = 'order' and owner_id = $1)
        or (owner_type = 'buyer' and owner_id = (select o.buyer_user_id from supply_orders o where o.id = $2))
        or (owner_type = 'supplier'
          and owner_id = (select o.supplier_user_id from supply_orders o where o.id = $3))";
    books::locked(condition, values![order_id, order_id, order_id])
}

/// Reads what [`load`] found, and gives the rest of the answers.
pub(super) fn read(rows: &[Vec<Row>]) -> Result<(Option<Found>, &[Vec<Row>]), Error> {
    let [account, package, order, rest @ ..] = rows else { return Err(damaged()) };
    let found = match (account.first(), package.first(), order.first()) {
        (Some(account), Some(package), Some(order)) => Some(Found {
            account: Account::read(account)?,
            package: Package::read(package)?,
            order: Order::read(order)?,
        }),
        _ => None,
    };
    Ok((found, rest))
}

/// Another number of answers than was asked for.
pub(super) fn damaged() -> Error {
    Error::Corrupt { table: "supply_orders", column: "answers".into() }
}

/// The order, if there is one for this caller.
pub(super) fn known(found: Option<&Found>) -> Result<&Found, Refusal> {
    found.ok_or_else(|| Refusal::of(Code::OrdMissing))
}

impl Order {
    /// The order as an object of audit and outbox.
    pub(super) fn object(&self) -> Object {
        Object::row(Self::KIND, self.id)
    }

    /// Prices of the snapshot.
    pub(super) const fn prices(&self) -> Prices {
        Prices { input: self.price_input, output: self.price_output }
    }

    /// Its status does not allow what is asked.
    pub(super) fn conflict(&self) -> Refusal {
        self.refuse(Refusal::of(Code::OrdState).with("status", self.status.as_str()))
    }

    /// A refusal about this order.
    pub(super) fn refuse(&self, refusal: Refusal) -> Refusal {
        refusal.about(self.object(), self.state())
    }

    /// Whether it is paid and not over.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.status, OrderStatus::Paid | OrderStatus::Using)
    }

    /// As [`Order::state`], of the version to come.
    pub(super) fn after(&self, status: OrderStatus, close_reason: Option<&'static str>) -> Json {
        let (status, version) = (status.as_str(), self.version + 1);
        close_reason.map_or_else(
            || json!({ "status": status, "version": version }),
            |reason| json!({ "status": status, "version": version, "close_reason": reason }),
        )
    }

    /// What the outbox tells of a change to `after`.
    pub(super) fn told(&self, name: &'static str, after: &Json) -> Event {
        let (object, version) = (self.object(), self.version + 1);
        Event { name, object, version, before: self.state(), after: after.clone() }
    }

    /// Ends it.
    pub(super) fn end(&self, context: &Context, status: OrderStatus, reason: &str, at: Time) -> Write {
        let mut row = values![status.as_str(), reason];
        row.extend(context.stamp(at));
        row.extend(values![self.id, self.tenant_id, self.version]);
        Write::one("order.end", END, row)
    }
}

/// The parts of a package's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) available: Quota,
    pub(super) reserved: Quota,
    pub(super) sold: Quota,
}

/// How quota moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    /// Bought, not paid: available to reserved.
    Reserve,
    /// Paid: reserved to sold; the account's is consumed.
    Sell,
    /// Not paid after all: reserved to available.
    GiveBack,
    /// Paid back: sold to available; the account's comes back.
    Return,
}

impl Shift {
    pub(super) fn parts(self, package: &Package, quota: Quota) -> Result<Parts, Stop> {
        let Package { available, reserved, sold, .. } = package;
        let (available, reserved, sold) = match self {
            Self::Reserve => (available.minus(quota)?, reserved.plus(quota)?, *sold),
            Self::Sell => (*available, reserved.minus(quota)?, sold.plus(quota)?),
            Self::GiveBack => (available.plus(quota)?, reserved.minus(quota)?, *sold),
            Self::Return => (available.plus(quota)?, *reserved, sold.minus(quota)?),
        };
        Ok(Parts { available, reserved, sold })
    }

    /// The package's row.
    pub(super) fn package(
        self,
        context: &Context,
        package: &Package,
        quota: Quota,
        at: Time,
    ) -> Result<Write, Stop> {
        let Parts { available, reserved, sold } = self.parts(package, quota)?;
        let orders = i64::from(self == Self::Sell);
        let mut row: Vec<Value> =
            [available, reserved, sold].iter().map(|part| Value::Money(part.count())).collect();
        row.extend(values![orders]);
        row.extend(context.stamp(at));
        row.extend(values![package.id, package.tenant_id, package.version]);
        Ok(Write::one("package.shift", PACKAGE_QUOTA, row))
    }

    /// Available and frozen quota of the account, if they change. What a package gave back when it ended is not
    /// committed to it any more, so what comes later goes the same way.
    pub(super) fn account(self, found: &Found, quota: Quota) -> Result<Option<(Quota, Quota)>, Stop> {
        let Account { available, frozen, .. } = &found.account;
        let over = found.package.status == PackageStatus::Expired;
        Ok(match self {
            Self::Sell => Some((*available, frozen.minus(quota)?)),
            Self::GiveBack if over => Some((available.plus(quota)?, frozen.minus(quota)?)),
            Self::Return if over => Some((available.plus(quota)?, *frozen)),
            Self::Return => Some((*available, frozen.plus(quota)?)),
            Self::Reserve | Self::GiveBack => None,
        })
    }

    /// Account and package of an order, in the order of locks.
    pub(super) fn writes(
        self,
        context: &Context,
        found: &Found,
        quota: Quota,
        at: Time,
    ) -> Result<Vec<Write>, Stop> {
        let mut writes = Vec::new();
        if let Some((available, frozen)) = self.account(found, quota)? {
            let mut row = vec![Value::Money(available.count()), Value::Money(frozen.count())];
            row.extend(context.stamp(at));
            row.extend(values![found.account.id, found.account.tenant_id, found.account.version]);
            writes.push(Write::one("account.shift", ACCOUNT_QUOTA, row));
        }
        writes.push(self.package(context, &found.package, quota, at)?);
        Ok(writes)
    }
}
