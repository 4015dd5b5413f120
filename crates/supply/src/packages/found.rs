//! What commands on one package share: how it is found, how an update is bound to what was read, what a move
//! answers, and the quota that goes back to its account.

use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use crate::action::{Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::exact::Stamp;
use crate::rows::{Account, Package, PackageStatus, Reader};

/// Gives quota back to the account. Relative, so that packages of one account don't meet in it.
const RETURN_QUOTA: &str = "update supply_accounts
set available_quota = available_quota + $1, frozen_quota = frozen_quota - $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and frozen_quota >= $10";

/// A package of the caller's tenant.
pub(super) fn package(context: &Context, package_id: i64) -> Query {
    let sql =
        format!("select {} from supply_packages p where p.id = $1 and p.tenant_id = $2", Package::COLUMNS);
    Query::new("package.one", sql, values![package_id, context.caller.tenant_id])
}

/// A package of the caller's tenant and its account.
pub(super) fn with_account(context: &Context, package_id: i64) -> Query {
    let sql = format!(
        "select {}, {} from supply_packages p join supply_accounts a on a.id = p.supply_account_id
         where p.id = $1 and p.tenant_id = $2",
        Package::COLUMNS,
        Account::COLUMNS
    );
    Query::new("package.with_account", sql, values![package_id, context.caller.tenant_id])
}

/// Reads what [`package`] found.
pub(super) fn read(rows: &[Row]) -> Result<Option<Package>, Error> {
    rows.first().map(Package::read).transpose()
}

/// Reads what [`with_account`] found.
pub(super) fn read_with_account(rows: &[Row]) -> Result<Option<(Package, Account)>, Error> {
    let both = |row: &Row| {
        let mut reader = Reader::new(row);
        Ok((Package::next(&mut reader)?, Account::next(&mut reader)?))
    };
    rows.first().map(both).transpose()
}

/// Another number of answers than queries.
pub(super) fn damaged() -> Error {
    Error::Corrupt { table: "supply_packages", column: "answers".into() }
}

/// The package as an object.
pub(super) fn object(package_id: i64) -> Object {
    Object::row(Package::KIND, package_id)
}

/// A refusal by this package's state, with the state.
pub(super) fn refused(refusal: Refusal, package: &Package) -> Refusal {
    about(refusal.with("status", package.status.as_str()), package)
}

/// A refusal about this package in the state that was seen.
pub(super) fn about(refusal: Refusal, package: &Package) -> Refusal {
    refusal.about(object(package.id), package.state())
}

/// The end of each update's values: the stamp, then `id`, `tenant_id`, `version`.
pub(super) fn bound(context: &Context, package: &Package, at: Time) -> Vec<Value> {
    let mut row = Vec::from(context.stamp(at));
    row.extend(values![package.id, package.tenant_id, package.version]);
    row
}

/// What the account gets back when the package ends; nothing where all is sold or reserved. What is reserved
/// goes back when its order ends. Stands before the package's own update: account, then package.
pub(super) fn returned(context: &Context, package: &Package, at: Time) -> Option<Write> {
    if package.available.is_zero() {
        return None;
    }
    let quota = Value::Money(package.available.count());
    let mut row = vec![quota.clone(), quota.clone()];
    row.extend(context.stamp(at));
    row.extend(values![package.supply_account_id, package.tenant_id]);
    row.push(quota);
    Some(Write::one("package.quota", RETURN_QUOTA, row))
}

/// `data` of publishing, pausing, unlisting and what the system does.
#[derive(Debug, Serialize)]
pub(super) struct Moved {
    pub(super) package_id: i64,
    pub(super) status: &'static str,
    pub(super) version: i64,
    pub(super) start_at: Option<Stamp>,
    pub(super) end_at: Option<Stamp>,
    pub(super) updated_at: Stamp,
}

/// A package, as it was found, in another state. `name` is the outbox's.
pub(super) fn moved(
    package: &Package,
    to: PackageStatus,
    name: &'static str,
    writes: Vec<Write>,
    at: Time,
) -> Result<Change, Stop> {
    let (version, status, object) = (package.version + 1, to.as_str(), object(package.id));
    let data = Moved {
        package_id: package.id,
        status,
        version,
        start_at: package.start_at.map(Stamp),
        end_at: package.end_at.map(Stamp),
        updated_at: Stamp(at),
    };
    let (before, after) = (package.state(), json!({ "status": status, "version": version }));
    let told = object.clone();
    let event = Event { name, object: told, version, before: before.clone(), after: after.clone() };
    Ok(Change { before, after, writes, events: vec![event], ..Change::of(object, &data)? })
}
