//! A bonus for a supplier (J-BONUS): it pends as any earning does. The caller's tenant is the supplier's.

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::Money;
use ledger::{Account, ids, posting};
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, values};

use super::insert::{NewEarning, Origin, insert};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books::{self, Books};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::{Exact, Stamp};
use crate::platform::fields::{self, is_text};
use crate::rows::{Earning, Supplier};

const NEXT: &str = "select {next_id supply_earnings} as next";

/// Longest description of an earning, in characters.
pub(super) const DESCRIPTION_MAX: usize = 200;

/// What a supplier gets beside what its calls earn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bonus {
    /// Above zero.
    pub amount: Money,
    /// What for: `1..=200` characters, shown to the supplier.
    pub description: String,
}

/// What it decides from.
#[derive(Clone, Debug)]
pub struct State {
    books: Books,
    supplier: Option<Supplier>,
    next: i64,
}

#[derive(Debug, Serialize)]
struct Granted {
    earning_id: i64,
    status: &'static str,
    amount: Exact,
    amount_minor: String,
    currency_code: &'static str,
    available_at: Stamp,
}

/// The amount and description of what the platform gives.
pub(super) fn given(amount: Money, description: &str) -> Result<(), Refusal> {
    fields::checked(&[
        ("amount", "above_zero", amount.sign().is_gt()),
        ("description", "text", is_text(description, DESCRIPTION_MAX)),
    ])
}

/// Whether a balance can take it in: otherwise it would be an alarm and not a refusal.
pub(super) fn fits(balance: Money, amount: Money) -> Result<(), Refusal> {
    balance.plus(amount).map(|_| ()).map_err(|_| fields::refused("amount", "too_large"))
}

impl Action for Bonus {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.earning.bonus"
    }

    fn object(&self) -> Object {
        Object::new_of(Earning::KIND)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let tenant = context.caller.tenant_id;
        vec![
            books::of_supplier(tenant),
            Query::new("supplier.of_tenant", Supplier::OF_TENANT, values![tenant]),
            Query::new("earning.next", NEXT, vec![]),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let damaged = || Error::Corrupt { table: "supply_earnings", column: "answers".into() };
        let [books, supplier, next] = rows else { return Err(damaged()) };
        let supplier = supplier.first().map(Supplier::read).transpose()?;
        Ok(State { books: Books::read(books)?, supplier, next: next.first().ok_or_else(damaged)?.int(0)? })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let supplier = state.supplier.as_ref().ok_or_else(|| Refusal::of(Code::ComMissing))?;
        given(self.amount, &self.description)?;
        if self.amount.currency() != supplier.currency {
            return Err(Refusal::of(Code::ComCurrency).into());
        }
        let (id, owner) = (state.next, ids::Supplier(supplier.user_id));
        fits(state.books.balance(Account::pending(owner), supplier.currency)?, self.amount)?;
        let mut books = state.books.clone();
        let journal = posting::bonus(ids::Earning(id), owner, self.amount)?;
        let available_at = at.plus(context.house.policy.earnings_hold);
        let earning = NewEarning {
            id,
            owner: (supplier.tenant_id, supplier.user_id),
            origin: Origin::default(),
            kind: "bonus",
            amount: self.amount,
            available: Money::zero(supplier.currency),
            status: "pending",
            description: &self.description,
            available_at,
            request_id: &context.caller.request_id,
        };
        let mut writes = vec![insert(context, &earning, at)];
        writes.extend(books.post(context, &journal, at)?);
        writes.extend(books.balances(at));
        let data = Granted {
            earning_id: id,
            status: "pending",
            amount: self.amount.into(),
            amount_minor: self.amount.minor(),
            currency_code: self.amount.currency().code(),
            available_at: Stamp(available_at),
        };
        let after = json!({ "status": "pending", "version": 0, "amount_minor": self.amount.minor() });
        let object = Object::row(Earning::KIND, id);
        Ok(Change { after, writes, status: 201, ..Change::of(object, &data)? })
    }
}
