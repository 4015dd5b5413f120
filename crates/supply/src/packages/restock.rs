//! Offers a sold-out package again once a refund or a payment that never came returned quota to it (section 6.2,
//! INV-PKG-001): by the system. While its account is not active, or the platform froze one of the two, it stays
//! as it is and is looked at again later.

use door::{Failure, Steps};
use kernel::Time;
use store::{Error, Query, Row, Write, values};

use super::found;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::{Capacity, Object};
use crate::code::{Code, Invariant};
use crate::rows::{Account, AccountStatus, Package, PackageStatus};

const RESTOCK: &str = "update supply_packages
set status = 'active', version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where id = $6 and tenant_id = $7 and status = 'sold_out' and available_quota > 0 and not platform_frozen
  and version = $8 and end_at > $9";

/// Of the system: see [`super::Due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restock {
    /// Which package.
    pub package_id: i64,
}

impl Restock {
    fn allowed(package: &Package, account: &Account, at: Time) -> Result<(), Refusal> {
        let over = package.end_at.is_none_or(|end| end <= at);
        if package.status != PackageStatus::SoldOut || package.available.is_zero() || over {
            return Err(Refusal::of(Code::PkgState));
        }
        if account.status != AccountStatus::Active {
            return Err(Refusal::of(Code::PkgAccount));
        }
        if package.platform_frozen || account.is_frozen {
            return Err(Refusal::of(Code::PkgLocked));
        }
        Ok(())
    }
}

impl Action for Restock {
    type Prepared = ();
    type State = Option<(Package, Account)>;

    fn event(&self) -> &'static str {
        "supply.package.restock"
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
        vec![found::with_account(context, self.package_id)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Self::State, Error> {
        let [both] = rows else { return Err(found::damaged()) };
        found::read_with_account(both)
    }

    fn decide(&self, context: &Context, (): &(), state: &Self::State, at: Time) -> Result<Change, Stop> {
        let (package, account) = state.as_ref().ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        if context.caller.capacity != Capacity::System {
            return Err(found::refused(Refusal::broken(Invariant::Pkg001), package).into());
        }
        Self::allowed(package, account, at).map_err(|refusal| found::refused(refusal, package))?;
        let row = [found::bound(context, package, at), values![at]].concat();
        let writes = vec![Write::one("package.restock", RESTOCK, row)];
        found::moved(package, PackageStatus::Active, "supply.package.restock.succeeded", writes, at)
    }

    fn outrun(&self, write: &'static str, state: &Self::State) -> Option<Refusal> {
        let (package, _) = state.as_ref()?;
        (write == "package.restock").then(|| found::refused(Refusal::of(Code::PkgState), package))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, account, tokens};
    use crate::packages::fixture::{in_state, operator, refusal, system};

    fn decided(context: &Context, change: impl Fn(&mut Package, &mut Account)) -> Result<Change, Stop> {
        let (mut package, mut account) = (in_state(PackageStatus::SoldOut), account());
        change(&mut package, &mut account);
        Restock { package_id: 17 }.decide(context, &(), &Some((package, account)), NOW)
    }

    #[test]
    fn quota_that_came_back_is_offered_again_until_the_same_end() {
        let change = decided(&system(), |_, _| {}).unwrap();
        assert_eq!(change.after["status"], "active");
        assert!(change.data.contains(r#""end_at":"2026-03-27T02:04:04.000Z""#));
    }

    #[test]
    fn every_refusal_comes_before_those_that_are_asked_later() {
        let wrong = |package: &mut Package, account: &mut Account| {
            account.status = AccountStatus::Suspended;
            package.platform_frozen = true;
        };
        assert_eq!(refusal(decided(&operator(), wrong)), ("SUP_PKG_4092", Some("INV-PKG-001")));
        let state: [fn(&mut Package); 3] = [
            |package| package.status = PackageStatus::Active,
            |package| package.available = tokens(0),
            |package| package.end_at = Some(NOW),
        ];
        for spoil in state {
            let got = refusal(decided(&system(), |package, account| {
                wrong(package, account);
                spoil(package);
            }));
            assert_eq!(got, ("SUP_PKG_4091", None));
        }
        assert_eq!(refusal(decided(&system(), wrong)).0, "SUP_PKG_4003");
        assert_eq!(
            refusal(decided(&system(), |package, _| package.platform_frozen = true)).0,
            "SUP_PKG_4094"
        );
        assert_eq!(refusal(decided(&system(), |_, account| account.is_frozen = true)).0, "SUP_PKG_4094");
    }
}
