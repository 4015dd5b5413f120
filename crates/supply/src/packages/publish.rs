//! Publishes a draft, or resumes a paused package (sections 6.2, 8.2). Commits quota of the account, sets the
//! package's validity at its first publication.

use std::time::Duration;

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::Price;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::{Code, Invariant};
use crate::exact::Stamp;
use crate::rows::{Account, AccountStatus, Package, PackageStatus, Reader};

/// Floors looked at: those of two directions, the ones to come included.
const FLOORS: &str = "select f.direction, f.floor_price, f.effective_from
from supply_price_protection f join supply_packages p
  on p.platform = f.provider and p.model = f.model and p.currency_code = f.currency_code
where p.id = $1 and p.tenant_id = $2 order by f.effective_from desc limit 64";

/// Commits the account's quota. Relative, so that two packages of one account can be published side by side.
const COMMIT_QUOTA: &str = "update supply_accounts
set available_quota = available_quota - $1, frozen_quota = frozen_quota + $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status = 'active' and deleted_at is null and available_quota >= $10";

const PUBLISH: &str = "update supply_packages
set status = 'active', start_at = $1, end_at = $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status in ('draft', 'paused') and not platform_frozen and version = $10";

const DAY: Duration = Duration::from_secs(24 * 3600);

/// `POST /api/v1/supply/packages/{packageId}/publish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish {
    /// Which package.
    pub package_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    found: Option<(Package, Account)>,
    floors: Vec<Floor>,
}

/// The lowest allowed price of a direction, from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Floor {
    pub(crate) direction: String,
    pub(crate) price: Price,
    pub(crate) from: Time,
}

impl Floor {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        Ok(Self { direction: reader.text()?.to_owned(), price: reader.price()?, from: reader.time()? })
    }
}

/// INV-PKG-003 for both prices, also of zero; a model without floors is not on the list (section 4). `floors`
/// are the newest first.
pub(crate) fn allowed((input, output): (Price, Price), floors: &[Floor], at: Time) -> Result<(), Refusal> {
    let prices = [("input", "price_per_1m_input", input), ("output", "price_per_1m_output", output)];
    let in_force = |direction: &str| {
        floors.iter().find(|floor| floor.direction == direction && floor.from <= at).map(|floor| floor.price)
    };
    for (direction, _, _) in prices {
        in_force(direction).ok_or_else(|| Refusal::of(Code::PkgModel).with("field", "model"))?;
    }
    for (direction, field, price) in prices {
        if let Some(floor) = in_force(direction).filter(|floor| price.is_below(*floor)) {
            let refusal = Refusal::broken(Invariant::Pkg003);
            return Err(refusal.with("field", field).with("floor", floor).with("given", price));
        }
    }
    Ok(())
}

/// `data` of the answer, and of pausing and unlisting.
#[derive(Debug, Serialize)]
pub(crate) struct Moved {
    pub(crate) package_id: i64,
    pub(crate) status: &'static str,
    pub(crate) version: i64,
    pub(crate) start_at: Option<Stamp>,
    pub(crate) end_at: Option<Stamp>,
    pub(crate) updated_at: Stamp,
}

impl Publish {
    /// Refusals of the package's own state, in their order.
    fn state_allows(package: &Package, at: Time) -> Result<(), Refusal> {
        match package.status {
            PackageStatus::Draft => Ok(()),
            PackageStatus::Paused if package.end_at.is_some_and(|end| end <= at) => {
                Err(Refusal::broken(Invariant::Pkg002))
            }
            PackageStatus::Paused => Ok(()),
            PackageStatus::Active => Err(Refusal::of(Code::PkgState)),
            PackageStatus::SoldOut => Err(Refusal::broken(Invariant::Pkg001)),
            PackageStatus::Expired => Err(Refusal::broken(Invariant::Pkg002)),
        }
        .map_err(|refusal| refusal.with("status", package.status.as_str()))
    }

    /// The guards of section 6.2, in the order of its table.
    fn guards(package: &Package, account: &Account, floors: &[Floor], at: Time) -> Result<(), Refusal> {
        if account.status != AccountStatus::Active {
            return Err(Refusal::of(Code::PkgAccount).with("status", account.status.as_str()));
        }
        allowed((package.price_input, package.price_output), floors, at)?;
        let short = account.available.count() < package.total.count() || account.unit != package.unit;
        if package.status == PackageStatus::Draft && short {
            return Err(Refusal::of(Code::PkgQuota).with("available", account.available));
        }
        if package.platform_frozen || account.is_frozen {
            return Err(Refusal::of(Code::PkgLocked));
        }
        Ok(())
    }
}

impl Action for Publish {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.package.publish"
    }

    fn object(&self) -> Object {
        Object::row(Package::KIND, self.package_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let found = format!(
            "select {}, {} from supply_packages p join supply_accounts a on a.id = p.supply_account_id
             where p.id = $1 and p.tenant_id = $2",
            Package::COLUMNS,
            Account::COLUMNS
        );
        let by = values![self.package_id, context.caller.tenant_id];
        vec![Query::new("package.publish", found, by.clone()), Query::new("package.floors", FLOORS, by)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [found, floors] = rows else {
            return Err(Error::Corrupt { table: "supply_packages", column: "answers".into() });
        };
        let both = |row: &Row| {
            let mut reader = Reader::new(row);
            Ok::<_, Error>((Package::next(&mut reader)?, Account::next(&mut reader)?))
        };
        Ok(State {
            found: found.first().map(both).transpose()?,
            floors: floors.iter().map(Floor::read).collect::<Result<_, _>>()?,
        })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let (package, account) = state.found.as_ref().ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        let seen = |refusal: Refusal| refusal.about(self.object(), package.state());
        Self::state_allows(package, at).map_err(seen)?;
        Self::guards(package, account, &state.floors, at).map_err(seen)?;
        let start = package.start_at.unwrap_or(at);
        let days = u32::try_from(package.valid_days).unwrap_or_default();
        let end = package.end_at.unwrap_or_else(|| at.plus(DAY * days));
        let (version, object) = (package.version + 1, self.object());
        let after = json!({ "status": "active", "version": version });
        let mut writes = Vec::new();
        let stamp = context.stamp(at);
        if package.status == PackageStatus::Draft {
            let quota = Value::Money(package.total.count());
            let mut row = vec![quota.clone(), quota.clone()];
            row.extend(stamp.clone());
            row.extend([account.id.into(), package.tenant_id.into(), quota]);
            writes.push(Write::one("package.quota", COMMIT_QUOTA, row));
        }
        let mut row = values![start, end];
        row.extend(stamp);
        row.extend(values![package.id, package.tenant_id, package.version]);
        writes.push(Write::one("package.publish", PUBLISH, row));
        let data = Moved {
            package_id: package.id,
            status: "active",
            version,
            start_at: Some(Stamp(start)),
            end_at: Some(Stamp(end)),
            updated_at: Stamp(at),
        };
        let name = "supply.package.publish.succeeded";
        let (before, told) = (package.state(), object.clone());
        let event = Event { name, object: told, version, before: before.clone(), after: after.clone() };
        Ok(Change { before, after, writes, events: vec![event], ..Change::of(object, &data)? })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let (package, account) = state.found.as_ref()?;
        let refusal = match write {
            "package.quota" => Refusal::of(Code::PkgQuota).with("available", account.available),
            "package.publish" => Refusal::of(Code::PkgState).with("status", package.status.as_str()),
            _ => return None,
        };
        Some(refusal.about(self.object(), package.state()))
    }
}

#[cfg(test)]
mod tests;
