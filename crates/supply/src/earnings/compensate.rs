//! A broken service level is made good (J-COMPENSATE): into a buyer's prepaid balance, or into a supplier's
//! available one, where a bonus that is released at once stands for it (section 11.5, check 4). The caller's
//! tenant is that of whoever is compensated.

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::Money;
use ledger::posting::{self, Beneficiary};
use ledger::{Account, ids};
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Value, values};

use super::bonus::{fits, given};
use super::insert::{NewEarning, Origin, insert};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books::{self, Books};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Exact;
use crate::rows::Reader;

/// A compensation is counted with the journals, its earning with the earnings.
const NEXT: &str = "select {next_id billing_journals} as fact, {next_id supply_earnings} as earning";

/// What the platform owes for a service that was not as promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compensate {
    /// Who gets it.
    pub to: Beneficiary,
    /// Above zero.
    pub amount: Money,
    /// What for: `1..=200` characters, shown to whoever gets it.
    pub description: String,
}

/// What it decides from.
#[derive(Clone, Debug)]
pub struct State {
    books: Books,
    found: bool,
    fact: i64,
    earning: i64,
}

#[derive(Debug, Serialize)]
struct Compensated {
    compensation_id: i64,
    earning_id: Option<i64>,
    amount: Exact,
    amount_minor: String,
    currency_code: &'static str,
}

impl Compensate {
    const fn owner(&self) -> (&'static str, i64, Account) {
        match self.to {
            Beneficiary::Buyer(buyer) => ("buyer", buyer.0, Account::prepaid(buyer)),
            Beneficiary::Supplier(supplier) => ("supplier", supplier.0, Account::available(supplier)),
        }
    }

    fn earning<'a>(&'a self, context: &'a Context, id: i64, user_id: i64, at: Time) -> NewEarning<'a> {
        NewEarning {
            id,
            owner: (context.caller.tenant_id, user_id),
            origin: Origin::default(),
            kind: "bonus",
            amount: self.amount,
            available: self.amount,
            status: "available",
            description: &self.description,
            available_at: at,
            request_id: &context.caller.request_id,
        }
    }
}

impl Action for Compensate {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.earning.compensate"
    }

    fn object(&self) -> Object {
        let (kind, id, _) = self.owner();
        Object::row(kind, id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let (kind, id, _) = self.owner();
        let condition = "owner_type = $1 and owner_id = $2 and tenant_id = $3";
        let by: Vec<Value> = values![kind, id, context.caller.tenant_id];
        vec![books::locked(condition, by), Query::new("compensation.next", NEXT, vec![])]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let damaged = || Error::Corrupt { table: "billing_accounts", column: "answers".into() };
        let [balances, next] = rows else { return Err(damaged()) };
        let mut reader = Reader::new(next.first().ok_or_else(damaged)?);
        let (fact, earning) = (reader.int()?, reader.int()?);
        Ok(State { books: Books::read(balances)?, found: !balances.is_empty(), fact, earning })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        if !state.found {
            return Err(Refusal::of(Code::ComMissing).into());
        }
        given(self.amount, &self.description)?;
        let (_, owner, account) = self.owner();
        let Ok(balance) = state.books.balance(account, self.amount.currency()) else {
            return Err(Refusal::of(Code::ComCurrency).into());
        };
        fits(balance, self.amount)?;
        let mut books = state.books.clone();
        let journal = posting::compensate(ids::Compensation(state.fact), self.to, self.amount)?;
        let earning = matches!(self.to, Beneficiary::Supplier(_)).then_some(state.earning);
        let mut writes: Vec<_> = earning
            .map(|id| insert(context, &self.earning(context, id, owner, at), at))
            .into_iter()
            .collect();
        writes.extend(books.post(context, &journal, at)?);
        writes.extend(books.balances(at));
        let data = Compensated {
            compensation_id: state.fact,
            earning_id: earning,
            amount: self.amount.into(),
            amount_minor: self.amount.minor(),
            currency_code: self.amount.currency().code(),
        };
        let after = json!({ "status": "active", "compensation_id": state.fact,
            "earning_id": earning, "amount_minor": self.amount.minor() });
        let change = Change::of(self.object(), &data)?;
        Ok(Change { after, writes, status: 201, ..change })
    }
}
