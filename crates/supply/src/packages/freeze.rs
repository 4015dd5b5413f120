//! The platform's freeze of a package, and its end (sections 6.2, 8.5): by staff. An active package is paused with
//! it, a sold-out one keeps its state. What was paused so stays paused until its owner publishes it again.

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Write};

use super::found;
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::rows::{Package, PackageStatus};

const FREEZE: &str = "update supply_packages
set platform_frozen = true, status = case when status = 'active' then 'paused' else status end,
  version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where id = $6 and tenant_id = $7 and status <> 'expired' and not platform_frozen and version = $8";

const UNFREEZE: &str = "update supply_packages
set platform_frozen = false, version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where id = $6 and tenant_id = $7 and platform_frozen and version = $8";

/// `POST /api/v1/platform/supply/packages/{id}/freeze`, `/unfreeze`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeze {
    /// Freezes this package.
    On(i64),
    /// Ends this package's freeze.
    Off(i64),
}

#[derive(Debug, Serialize)]
struct Frozen {
    package_id: i64,
    status: &'static str,
    platform_frozen: bool,
    version: i64,
    updated_at: Stamp,
}

impl Freeze {
    const fn package_id(self) -> i64 {
        match self {
            Self::On(id) | Self::Off(id) => id,
        }
    }

    /// The state that follows, and the update to it; `None` where there is nothing to do.
    fn next(self, package: &Package) -> Option<(Package, &'static str)> {
        let status = match (self, package.status) {
            (Self::On(_), PackageStatus::Active) => PackageStatus::Paused,
            (Self::On(_), PackageStatus::Expired) => return None,
            (_, status) => status,
        };
        let (frozen, sql) = match self {
            Self::On(_) => (true, FREEZE),
            Self::Off(_) => (false, UNFREEZE),
        };
        let version = package.version + 1;
        let next = Package { status, version, platform_frozen: frozen, ..package.clone() };
        (package.platform_frozen != frozen).then_some((next, sql))
    }
}

/// What audit and outbox say: the freeze stands beside the state.
fn state(package: &Package) -> serde_json::Value {
    json!({
        "status": package.status.as_str(), "version": package.version,
        "platform_frozen": package.platform_frozen,
    })
}

impl Action for Freeze {
    type Prepared = ();
    type State = Option<Package>;

    fn event(&self) -> &'static str {
        match self {
            Self::On(_) => "supply.package.freeze",
            Self::Off(_) => "supply.package.unfreeze",
        }
    }

    fn object(&self) -> Object {
        found::object(self.package_id())
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        vec![found::package(context, self.package_id())]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Option<Package>, Error> {
        let [package] = rows else { return Err(found::damaged()) };
        found::read(package)
    }

    fn decide(&self, context: &Context, (): &(), loaded: &Option<Package>, at: Time) -> Result<Change, Stop> {
        // Nobody else is to learn whether it is there.
        let found = loaded.as_ref().filter(|_| context.caller.is_platform());
        let package = found.ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        let conflict = || found::refused(Refusal::of(Code::PkgState), package);
        let (next, sql) = self.next(package).ok_or_else(conflict)?;
        let (before, after, version) = (state(package), state(&next), next.version);
        let data = Frozen {
            package_id: next.id,
            status: next.status.as_str(),
            platform_frozen: next.platform_frozen,
            version,
            updated_at: Stamp(at),
        };
        let name = match self {
            Self::On(_) => "supply.package.freeze.succeeded",
            Self::Off(_) => "supply.package.unfreeze.succeeded",
        };
        let (object, told) = (self.object(), self.object());
        let event = Event { name, object: told, version, before: before.clone(), after: after.clone() };
        let writes = vec![Write::one("package.freeze", sql, found::bound(context, package, at))];
        Ok(Change { before, after, writes, events: vec![event], ..Change::of(object, &data)? })
    }

    fn outrun(&self, write: &'static str, state: &Option<Package>) -> Option<Refusal> {
        let package = state.as_ref()?;
        (write == "package.freeze").then(|| found::refused(Refusal::of(Code::PkgState), package))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Capacity;
    use crate::fixtures::{NOW, context};
    use crate::packages::fixture::{in_state, operator, refusal};

    fn decided(freeze: Freeze, package: Package) -> Result<Change, Stop> {
        freeze.decide(&context(Capacity::Admin), &(), &Some(package), NOW)
    }

    fn frozen(status: PackageStatus) -> Package {
        Package { platform_frozen: true, ..in_state(status) }
    }

    #[test]
    fn a_freeze_pauses_what_is_active_and_leaves_every_other_state() {
        use PackageStatus::{Active, Draft, Expired, Paused, SoldOut};
        for (status, then) in [(Active, Paused), (Paused, Paused), (SoldOut, SoldOut), (Draft, Draft)] {
            let change = decided(Freeze::On(17), in_state(status)).unwrap();
            assert_eq!(change.after["status"], then.as_str());
            assert_eq!(
                (&change.before["platform_frozen"], &change.after["platform_frozen"]),
                (&json!(false), &json!(true))
            );
            assert_eq!(refusal(decided(Freeze::On(17), frozen(status))).0, "SUP_PKG_4091");
        }
        assert_eq!(refusal(decided(Freeze::On(17), in_state(Expired))).0, "SUP_PKG_4091");
    }

    #[test]
    fn its_end_gives_no_state_back() {
        for &status in PackageStatus::ALL {
            let change = decided(Freeze::Off(17), frozen(status)).unwrap();
            assert_eq!(change.after["status"], status.as_str());
            assert_eq!(refusal(decided(Freeze::Off(17), in_state(status))).0, "SUP_PKG_4091");
        }
    }

    #[test]
    fn to_everybody_else_the_package_is_missing() {
        let package = Some(in_state(PackageStatus::Active));
        assert_eq!(refusal(Freeze::On(17).decide(&operator(), &(), &package, NOW)).0, "SUP_PKG_4041");
    }
}
