//! Protected prices (section 4, INV-PKG-003): which models a provider's packages may be of, and below which
//! price none of them is offered. Not here: how floors are set (`platform::price_protection`).

use kernel::Time;
use kernel::money::{Price, Prices};
use store::{Error, Row};

use crate::action::Refusal;
use crate::code::{Code, Invariant};
use crate::rows::Reader;

/// Floors of a package's model.
pub(super) const OF_PACKAGE: &str = "join supply_packages p
  on p.platform = f.provider and p.model = f.model and p.currency_code = f.currency_code
where p.id = $1 and p.tenant_id = $2";

/// Floors of a model that an account's provider has.
pub(super) const OF_ACCOUNT: &str = "join supply_accounts a
  on a.platform = f.provider and a.currency_code = f.currency_code
where a.id = $1 and a.tenant_id = $2 and f.model = $3";

/// Reads floors `f` that are chosen by the rest of a statement, the newest first: all that may be in force when it is
/// decided, however many are planned. Left out is what eight newer ones had replaced when the model's last floor was
/// set: by the store's own clock, since a node's may be wrong by any time, and eight because even the store's may step.
pub(crate) fn select(chosen: &str) -> String {
    format!(
        "select x.provider, x.model, x.currency_code, x.direction, x.floor_price, x.effective_from
from (select f.provider, f.model, f.currency_code, f.direction, f.floor_price, f.effective_from,
    max(f.created_at) over (partition by f.provider, f.model, f.currency_code) as told,
    lead(f.effective_from, 8) over (partition by f.provider, f.model, f.currency_code, f.direction
      order by f.effective_from) as replaced
  from supply_price_protection f {chosen}) x
where x.replaced is null or x.replaced > x.told order by x.effective_from desc"
    )
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
        Self::next(&mut Reader::after(row, 3))
    }

    /// Behind provider, model and currency.
    pub(crate) fn next(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self { direction: reader.text()?.to_owned(), price: reader.price()?, from: reader.time()? })
    }
}

/// The floor of a direction at an instant. `floors` are the newest first.
pub(crate) fn in_force(floors: &[Floor], direction: &str, at: Time) -> Option<Price> {
    floors.iter().find(|floor| floor.direction == direction && floor.from <= at).map(|floor| floor.price)
}

/// Whether the model is on the provider's list: with a floor in each direction (section 4, fail closed).
pub(crate) fn listed(floors: &[Floor], at: Time) -> Result<(), Refusal> {
    let both = ["input", "output"].iter().all(|direction| in_force(floors, direction, at).is_some());
    if both { Ok(()) } else { Err(Refusal::of(Code::PkgModel).with("field", "model")) }
}

/// INV-PKG-003 for both prices, also of zero; a model without floors is not on the list.
pub(crate) fn allowed(prices: Prices, floors: &[Floor], at: Time) -> Result<(), Refusal> {
    listed(floors, at)?;
    for (direction, field, price) in
        [("input", "price_per_1m_input", prices.input), ("output", "price_per_1m_output", prices.output)]
    {
        if let Some(floor) = in_force(floors, direction, at).filter(|floor| price.is_below(*floor)) {
            let refusal = Refusal::broken(Invariant::Pkg003);
            return Err(refusal.with("field", field).with("floor", floor).with("given", price));
        }
    }
    Ok(())
}
