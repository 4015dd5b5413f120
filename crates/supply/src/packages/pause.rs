//! Pauses an active package (section 6.2): no new orders, those that are there go on. By its owner, or by the
//! system when its account leaves `active`.

use door::{Failure, Steps};
use kernel::Time;
use store::{Error, Query, Row, Write};

use super::found;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::{Code, Invariant};
use crate::rows::{Package, PackageStatus};

const PAUSE: &str = "update supply_packages
set status = 'paused', version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where id = $6 and tenant_id = $7 and status = 'active' and not platform_frozen and version = $8";

/// `POST /api/v1/supply/packages/{packageId}/pause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Which package.
    pub package_id: i64,
}

impl Pause {
    fn allowed(package: &Package) -> Result<(), Refusal> {
        match package.status {
            PackageStatus::Active if package.platform_frozen => Err(Refusal::of(Code::PkgLocked)),
            PackageStatus::Active => Ok(()),
            PackageStatus::SoldOut => Err(Refusal::broken(Invariant::Pkg001)),
            PackageStatus::Draft | PackageStatus::Paused | PackageStatus::Expired => {
                Err(Refusal::of(Code::PkgState))
            }
        }
    }
}

impl Action for Pause {
    type Prepared = ();
    type State = Option<Package>;

    fn event(&self) -> &'static str {
        "supply.package.pause"
    }

    fn object(&self) -> Object {
        found::object(self.package_id)
    }

    fn comes_due(&self) -> bool {
        true
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        vec![found::package(context, self.package_id)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Option<Package>, Error> {
        let [package] = rows else { return Err(found::damaged()) };
        found::read(package)
    }

    fn decide(&self, context: &Context, (): &(), state: &Option<Package>, at: Time) -> Result<Change, Stop> {
        let package = state.as_ref().ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        Self::allowed(package).map_err(|refusal| found::refused(refusal, package))?;
        let writes = vec![Write::one("package.pause", PAUSE, found::bound(context, package, at))];
        found::moved(package, PackageStatus::Paused, "supply.package.pause.succeeded", writes, at)
    }

    fn outrun(&self, write: &'static str, state: &Option<Package>) -> Option<Refusal> {
        let package = state.as_ref()?;
        (write == "package.pause").then(|| found::refused(Refusal::of(Code::PkgState), package))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::NOW;
    use crate::packages::fixture::{in_state, operator, refusal};

    fn decided(package: Package) -> Result<Change, Stop> {
        Pause { package_id: 17 }.decide(&operator(), &(), &Some(package), NOW)
    }

    #[test]
    fn only_an_active_package_is_paused() {
        use PackageStatus::{Active, Draft, Expired, Paused, SoldOut};
        let change = decided(in_state(Active)).unwrap();
        assert_eq!(change.after["status"], "paused");
        assert!(change.data.contains(r#""end_at":"2026-03-27T02:04:04.000Z""#));
        let nothing = Pause { package_id: 17 }.decide(&operator(), &(), &None, NOW);
        assert_eq!(refusal(nothing).0, "SUP_PKG_4041");
        for (status, wanted) in [
            (Draft, ("SUP_PKG_4091", None)),
            (Paused, ("SUP_PKG_4091", None)),
            (Expired, ("SUP_PKG_4091", None)),
            (SoldOut, ("SUP_PKG_4092", Some("INV-PKG-001"))),
            (Active, ("SUP_PKG_4094", None)),
        ] {
            // The freeze is asked last.
            let frozen = Package { platform_frozen: true, ..in_state(status) };
            assert_eq!(refusal(decided(frozen)), wanted, "{status:?}");
        }
    }
}
