//! Publishes a draft, or resumes a paused package (sections 6.2, 8.2). Commits quota of the account, sets the
//! package's validity at its first publication.

use std::time::Duration;

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::Prices;
use store::{Error, Query, Row, Value, Write, values};

use super::floor::{self, Floor};
use super::found;
use crate::accounts::fallen;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::{Code, Invariant};
use crate::rows::{Account, AccountStatus, Package, PackageStatus};

/// Commits the account's quota. Relative, so that two packages of one account can be published side by side.
const COMMIT_QUOTA: &str = "update supply_accounts
set available_quota = available_quota - $1, frozen_quota = frozen_quota + $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status = 'active' and deleted_at is null and available_quota >= $10";

const PUBLISH: &str = "update supply_packages
set status = 'active', start_at = $1, end_at = $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status in ('draft', 'paused') and not platform_frozen and version = $10";

/// Where the account has a threshold, one after the other: what each leaves is compared with it.
const THRESHOLD: &str = "select a.id from supply_accounts a
where a.id = (select p.supply_account_id from supply_packages p where p.id = $1 and p.tenant_id = $2)
  and a.min_quota_threshold is not null {for_update}";

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
        let prices = Prices { input: package.price_input, output: package.price_output };
        floor::allowed(prices, floors, at)?;
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
        let by = values![self.package_id, context.caller.tenant_id];
        vec![
            Query::new("package.threshold", THRESHOLD, by.clone()),
            found::with_account(context, self.package_id),
            Query::new("package.floors", floor::select(floor::OF_PACKAGE), by),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [_, package, floors] = rows else { return Err(found::damaged()) };
        Ok(State {
            found: found::read_with_account(package)?,
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
        let (mut writes, mut alert) = (Vec::new(), None);
        if package.status == PackageStatus::Draft {
            let quota = Value::Money(package.total.count());
            let mut row = vec![quota.clone(), quota.clone()];
            row.extend(context.stamp(at));
            row.extend([account.id.into(), package.tenant_id.into(), quota]);
            writes.push(Write::one("package.quota", COMMIT_QUOTA, row));
            alert = account.available.minus(package.total).ok().and_then(|left| fallen(account, left));
        }
        let row = [values![start, end], found::bound(context, package, at)].concat();
        writes.push(Write::one("package.publish", PUBLISH, row));
        let dated = Package { start_at: Some(start), end_at: Some(end), ..package.clone() };
        let name = "supply.package.publish.succeeded";
        let mut change = found::moved(&dated, PackageStatus::Active, name, writes, at)?;
        change.events.extend(alert);
        Ok(change)
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
