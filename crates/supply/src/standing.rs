//! Only an active supplier writes (section 5.1): the one place that asks, after all that a command refuses by itself, so
//! that each keeps its own order. Staff and the system act on a suspended supplier's objects all the same. Not here: open
//! risk cases, which hold back money and the suspension of accounts alone.

use store::{Error, Query, Row, values};

use crate::action::{Action, Change, Context, Refusal};
use crate::caller::Capacity;
use crate::code::Code;
use crate::rows::{Reader, SupplierStatus};

const OF_TENANT: &str = "select status from supply_suppliers where tenant_id = $1";

/// Where the caller's supplier stands; asked of suppliers' writes alone.
pub(crate) fn query(context: &Context, action: &impl Action) -> Option<Query> {
    let asked = context.caller.capacity == Capacity::User && action.is_write_of_supplier();
    asked.then(|| of_tenant(context))
}

/// Where the supplier of the caller's tenant stands.
pub(crate) fn of_tenant(context: &Context) -> Query {
    Query::new("supplier.standing", OF_TENANT, values![context.caller.tenant_id])
}

/// Why a supplier that stands so may not write. A tenant without one, a buyer's, has nothing to be suspended.
pub(crate) fn refused(rows: &[Row]) -> Result<Option<Refusal>, Error> {
    let status = rows.first().map(|row| SupplierStatus::read(Reader::new(row).text()?)).transpose()?;
    let blocked = status.filter(|status| *status != SupplierStatus::Active);
    Ok(blocked.map(|status| Refusal::of(Code::SetBlocked).with("supplier_status", status.as_str())))
}

/// The answers of the action's own queries, and why its change is not made all the same.
pub(crate) fn split<'a>(
    context: &Context,
    action: &impl Action,
    loaded: &'a [Vec<Row>],
) -> Result<(&'a [Vec<Row>], Option<Refusal>), Error> {
    match loaded.split_last().filter(|_| query(context, action).is_some()) {
        Some((standing, own)) => Ok((own, refused(standing)?)),
        None => Ok((loaded, None)),
    }
}

/// What is refused of a change that the action itself would make. What writes nothing is no write.
pub(crate) fn judged(
    change: Change,
    action: &impl Action,
    blocked: Option<Refusal>,
) -> Result<Change, Refusal> {
    match blocked.filter(|_| !change.writes.is_empty()) {
        Some(refusal) => Err(refusal.about(action.object(), change.before)),
        None => Ok(change),
    }
}
