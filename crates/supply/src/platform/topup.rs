//! A buyer paid the platform (J-TOPUP). The caller's tenant is the buyer's.

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::Money;
use ledger::ids::{Buyer, Topup};
use ledger::{Account, posting};
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, values};

use super::buyer::KIND;
use super::fields;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books::{self, Books};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::{Exact, Stamp};

/// Money facts without a table of their own are counted with the journals.
pub(crate) const NEXT_FACT: &str = "select {next_id billing_journals} as next";

/// `POST /api/v1/platform/buyers/{buyerId}/topups`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopUp {
    /// Whose balance: `iam_users.id`.
    pub buyer_id: i64,
    /// What was paid: above zero, in whole minor units.
    pub amount: Money,
}

/// What it decides from.
#[derive(Clone, Debug)]
pub struct State {
    books: Books,
    /// Whether the buyer has a prepaid balance, in which currency ever.
    found: bool,
    topup: i64,
}

#[derive(Debug, Serialize)]
struct ToppedUp {
    topup_id: i64,
    buyer_id: i64,
    amount: Exact,
    amount_minor: String,
    balance: Exact,
    balance_minor: String,
    currency_code: &'static str,
    created_at: Stamp,
}

impl Action for TopUp {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "platform.buyer.top_up"
    }

    fn object(&self) -> Object {
        Object::row(KIND, self.buyer_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let condition = "owner_type = 'buyer' and owner_id = $1 and tenant_id = $2";
        let by = values![self.buyer_id, context.caller.tenant_id];
        vec![books::locked(condition, by), Query::new("topup.next", NEXT_FACT, vec![])]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let damaged = || Error::Corrupt { table: "billing_accounts", column: "answers".into() };
        let [balances, next] = rows else { return Err(damaged()) };
        let topup = next.first().ok_or_else(damaged)?.int(0)?;
        Ok(State { books: Books::read(balances)?, found: !balances.is_empty(), topup })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let (buyer, amount) = (Buyer(self.buyer_id), self.amount);
        if !state.found {
            return Err(Refusal::of(Code::ComMissing).into());
        }
        if !amount.sign().is_gt() {
            return Err(fields::refused("amount", "above_zero").into());
        }
        if !amount.is_whole_minor() {
            return Err(fields::refused("amount", "decimals").into());
        }
        let Ok(before) = state.books.balance(Account::prepaid(buyer), amount.currency()) else {
            return Err(Refusal::of(Code::ComCurrency)
                .with("currency_code", amount.currency().code())
                .into());
        };
        let after = before.plus(amount).map_err(|_| fields::refused("amount", "too_large"))?;
        let mut books = state.books.clone();
        let mut writes = books.post(context, &posting::topup(Topup(state.topup), buyer, amount)?, at)?;
        writes.extend(books.balances(at));
        let data = ToppedUp {
            topup_id: state.topup,
            buyer_id: buyer.0,
            amount: amount.into(),
            amount_minor: amount.minor(),
            balance: after.into(),
            balance_minor: after.minor(),
            currency_code: amount.currency().code(),
            created_at: Stamp(at),
        };
        let seen = |balance: Money| json!({ "status": "active", "prepaid_minor": balance.minor() });
        let change = Change::of(self.object(), &data)?;
        Ok(Change { before: seen(before), after: seen(after), writes, status: 201, ..change })
    }
}
