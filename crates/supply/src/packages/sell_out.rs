//! Marks a package of which nothing is left (section 6.2, INV-PKG-001): by the system, once all is sold and nothing
//! reserved.

use door::{Failure, Steps};
use kernel::Time;
use store::{Error, Query, Row, Write};

use super::found;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::{Capacity, Object};
use crate::code::{Code, Invariant};
use crate::rows::{Package, PackageStatus};

const SELL_OUT: &str = "update supply_packages
set status = 'sold_out', version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where id = $6 and tenant_id = $7 and status = 'active' and available_quota = 0 and reserved_quota = 0
  and version = $8";

/// Of the system: see [`super::Due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SellOut {
    /// Which package.
    pub package_id: i64,
}

impl Action for SellOut {
    type Prepared = ();
    type State = Option<Package>;

    fn event(&self) -> &'static str {
        "supply.package.sold_out"
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
        if context.caller.capacity != Capacity::System {
            return Err(found::refused(Refusal::broken(Invariant::Pkg001), package).into());
        }
        let gone = package.available.is_zero() && package.reserved.is_zero();
        if package.status != PackageStatus::Active || !gone {
            return Err(found::refused(Refusal::of(Code::PkgState), package).into());
        }
        let writes = vec![Write::one("package.sold_out", SELL_OUT, found::bound(context, package, at))];
        found::moved(package, PackageStatus::SoldOut, "supply.package.sold_out.succeeded", writes, at)
    }

    fn outrun(&self, write: &'static str, state: &Option<Package>) -> Option<Refusal> {
        let package = state.as_ref()?;
        (write == "package.sold_out").then(|| found::refused(Refusal::of(Code::PkgState), package))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, tokens};
    use crate::packages::fixture::{in_state, operator, refusal, system};

    fn of(status: PackageStatus, available: u64, reserved: u64) -> Package {
        let (available, reserved) = (tokens(available), tokens(reserved));
        Package { available, reserved, ..in_state(status) }
    }

    fn decided(context: &Context, package: Package) -> Result<Change, Stop> {
        SellOut { package_id: 17 }.decide(context, &(), &Some(package), NOW)
    }

    #[test]
    fn an_active_package_sells_out_with_its_last_unit() {
        let change = decided(&system(), of(PackageStatus::Active, 0, 0)).unwrap();
        assert_eq!(change.after["status"], "sold_out");
        for package in [of(PackageStatus::Active, 1, 0), of(PackageStatus::Active, 0, 1)] {
            assert_eq!(refusal(decided(&system(), package)), ("SUP_PKG_4091", None));
        }
        for &status in PackageStatus::ALL.iter().filter(|status| **status != PackageStatus::Active) {
            assert_eq!(refusal(decided(&system(), of(status, 0, 0))), ("SUP_PKG_4091", None));
        }
    }

    #[test]
    fn nobody_but_the_system_sells_out() {
        let got = refusal(decided(&operator(), of(PackageStatus::Active, 0, 0)));
        assert_eq!(got, ("SUP_PKG_4092", Some("INV-PKG-001")));
    }
}
