//! Unlists a package for good (section 6.2): no new orders, those that are paid go on to their end, the unsold
//! quota goes back to the account. An order that waits for its payment blocks it.

use door::{Failure, Steps};
use kernel::Time;
use store::{Error, Query, Row, Write, values};

use super::found;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::{Code, Invariant};
use crate::rows::{Package, PackageStatus};

const PENDING: &str = "select count(*) from supply_orders o
where o.supply_package_id = $1 and o.tenant_id = $2 and o.status = 'pending'";

const UNLIST: &str = "update supply_packages
set status = 'expired', close_reason = 'unlisted', version = version + 1,
  request_id = $1, idempotency_key = $2, audit_trace_id = $3, updated_ip = $4, updated_at = $5
where id = $6 and tenant_id = $7 and status in ('active', 'paused') and reserved_quota = 0 and version = $8";

/// `POST /api/v1/supply/packages/{packageId}/unlist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlist {
    /// Which package.
    pub package_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    found: Option<Package>,
    pending: i64,
}

impl Unlist {
    fn allowed(package: &Package, pending: i64) -> Result<(), Refusal> {
        match package.status {
            PackageStatus::Active | PackageStatus::Paused => {}
            PackageStatus::SoldOut => return Err(Refusal::broken(Invariant::Pkg001)),
            PackageStatus::Draft | PackageStatus::Expired => return Err(Refusal::of(Code::PkgState)),
        }
        // What is reserved is an order's that is not paid.
        let waits = pending > 0 || !package.reserved.is_zero();
        if waits { Err(Refusal::of(Code::PkgLocked).with("pending_orders", pending)) } else { Ok(()) }
    }
}

impl Action for Unlist {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.package.unlist"
    }

    fn object(&self) -> Object {
        found::object(self.package_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let by = values![self.package_id, context.caller.tenant_id];
        vec![found::package(context, self.package_id), Query::new("package.pending_orders", PENDING, by)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [package, pending] = rows else { return Err(found::damaged()) };
        let pending = pending.first().ok_or_else(found::damaged)?.int(0)?;
        Ok(State { found: found::read(package)?, pending })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let package = state.found.as_ref().ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        Self::allowed(package, state.pending).map_err(|refusal| found::refused(refusal, package))?;
        let mut writes: Vec<Write> = found::returned(context, package, at).into_iter().collect();
        writes.push(Write::one("package.unlist", UNLIST, found::bound(context, package, at)));
        found::moved(package, PackageStatus::Expired, "supply.package.unlist.succeeded", writes, at)
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let package = state.found.as_ref()?;
        (write == "package.unlist").then(|| found::refused(Refusal::of(Code::PkgState), package))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, tokens};
    use crate::packages::fixture::{in_state, operator, refusal, writes};

    fn decided(found: Option<Package>, pending: i64) -> Result<Change, Stop> {
        Unlist { package_id: 17 }.decide(&operator(), &(), &State { found, pending }, NOW)
    }

    #[test]
    fn what_is_offered_or_paused_ends_and_gives_its_unsold_quota_back() {
        for status in [PackageStatus::Active, PackageStatus::Paused] {
            let change = decided(Some(in_state(status)), 0).unwrap();
            assert_eq!(change.after["status"], "expired");
            assert_eq!(writes(&change), ["package.quota", "package.unlist"]);
        }
        let sold = Package { available: tokens(0), sold: tokens(1000), ..in_state(PackageStatus::Active) };
        assert_eq!(writes(&decided(Some(sold), 0).unwrap()), ["package.unlist"]);
    }

    #[test]
    fn every_refusal_comes_before_those_that_are_asked_later() {
        use PackageStatus::{Active, Draft, Expired, Paused, SoldOut};
        assert_eq!(refusal(decided(None, 1)).0, "SUP_PKG_4041");
        for (status, wanted) in [
            (Draft, ("SUP_PKG_4091", None)),
            (Expired, ("SUP_PKG_4091", None)),
            (SoldOut, ("SUP_PKG_4092", Some("INV-PKG-001"))),
            (Active, ("SUP_PKG_4094", None)),
            (Paused, ("SUP_PKG_4094", None)),
        ] {
            assert_eq!(refusal(decided(Some(in_state(status)), 1)), wanted, "{status:?}");
        }
        let reserved = Package { available: tokens(999), reserved: tokens(1), ..in_state(Active) };
        assert_eq!(refusal(decided(Some(reserved), 0)).0, "SUP_PKG_4094");
    }
}
