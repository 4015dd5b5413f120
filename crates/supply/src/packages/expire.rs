//! Ends a package whose validity is over (section 6.2): by the system, in any state that was ever offered. What
//! was not sold goes back to the account; orders that are there go on to their own end.

use door::{Failure, Steps};
use kernel::Time;
use store::{Error, Query, Row, Write};

use super::found;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::{Capacity, Object};
use crate::code::Code;
use crate::rows::{Package, PackageStatus};

const EXPIRE: &str = "update supply_packages
set status = 'expired', close_reason = 'validity_ended', version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where id = $6 and tenant_id = $7 and status in ('active', 'paused', 'sold_out') and version = $8";

/// Of the system: see [`super::Due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expire {
    /// Which package.
    pub package_id: i64,
}

impl Action for Expire {
    type Prepared = ();
    type State = Option<Package>;

    fn event(&self) -> &'static str {
        "supply.package.expire"
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
        let offered = !matches!(package.status, PackageStatus::Draft | PackageStatus::Expired);
        let over = package.end_at.is_some_and(|end| end <= at);
        if !(offered && over && context.caller.capacity == Capacity::System) {
            return Err(found::refused(Refusal::of(Code::PkgState), package).into());
        }
        let mut writes: Vec<Write> = found::returned(context, package, at).into_iter().collect();
        writes.push(Write::one("package.expire", EXPIRE, found::bound(context, package, at)));
        found::moved(package, PackageStatus::Expired, "supply.package.expire.succeeded", writes, at)
    }

    fn outrun(&self, write: &'static str, state: &Option<Package>) -> Option<Refusal> {
        let package = state.as_ref()?;
        (write == "package.expire").then(|| found::refused(Refusal::of(Code::PkgState), package))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixtures::NOW;
    use crate::packages::fixture::{in_state, operator, refusal, system, writes};

    const END: Time = Time::from_seconds(1_774_576_984 + 60);

    fn decided(context: &Context, package: Package, at: Time) -> Result<Change, Stop> {
        Expire { package_id: 17 }.decide(context, &(), &Some(package), at)
    }

    #[test]
    fn what_was_ever_offered_ends_with_its_validity_and_not_before() {
        use PackageStatus::{Active, Draft, Expired, Paused, SoldOut};
        for status in [Active, Paused, SoldOut] {
            let change = decided(&system(), in_state(status), END).unwrap();
            assert_eq!(change.after["status"], "expired");
            assert_eq!(writes(&change), ["package.quota", "package.expire"]);
            let early = END.minus(Duration::from_micros(1));
            assert_eq!(refusal(decided(&system(), in_state(status), early)), ("SUP_PKG_4091", None));
            assert_eq!(refusal(decided(&operator(), in_state(status), END)).0, "SUP_PKG_4091");
        }
        for status in [Draft, Expired] {
            assert_eq!(refusal(decided(&system(), in_state(status), END)).0, "SUP_PKG_4091");
        }
        let nothing = Expire { package_id: 17 }.decide(&system(), &(), &None, NOW);
        assert_eq!(refusal(nothing).0, "SUP_PKG_4041");
    }
}
