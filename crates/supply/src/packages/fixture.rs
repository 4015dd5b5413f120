//! What the tables of these commands' tests begin with beside [`crate::fixtures`].

use crate::action::{Change, Context, Stop};
use crate::caller::Capacity;
use crate::code::Invariant;
use crate::fixtures::{NOW, package, price};
use crate::rows::{Package, PackageStatus};

use super::floor::Floor;

/// An operator of the tenant.
pub(super) fn operator() -> Context {
    crate::fixtures::context(Capacity::User)
}

/// The platform itself.
pub(super) fn system() -> Context {
    crate::fixtures::context(Capacity::System)
}

/// The package in a state, ending in a minute.
pub(super) fn in_state(status: PackageStatus) -> Package {
    let dated = status != PackageStatus::Draft;
    let end = NOW.plus(std::time::Duration::from_secs(60));
    Package { status, start_at: dated.then_some(NOW), end_at: dated.then_some(end), ..package() }
}

/// Floors in force from now on.
pub(super) fn floors(input: &str, output: &str) -> Vec<Floor> {
    let floor = |direction: &str, text| Floor { direction: direction.into(), price: price(text), from: NOW };
    vec![floor("input", input), floor("output", output)]
}

/// Code and rule of what must be a refusal.
pub(super) fn refusal(decided: Result<Change, Stop>) -> (&'static str, Option<&'static str>) {
    match decided {
        Err(Stop::Refused(refusal)) => (refusal.code.as_str(), refusal.rule.map(Invariant::as_str)),
        other => panic!("not refused: {other:?}"),
    }
}

/// Names of the writes, in order.
pub(super) fn writes(change: &Change) -> Vec<&'static str> {
    change.writes.iter().map(|write| write.name).collect()
}
