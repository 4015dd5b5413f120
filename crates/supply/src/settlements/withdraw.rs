//! Asks for a payout of available earnings (sections 11.4 and 12): one transaction that locks the supplier's
//! balances, asks every rule, takes the earnings oldest first, freezes them, and uses up the SMS code. Not here:
//! the payout ([`super::step`]), and the sending of the code ([`super::SendCode`]).

use custody::payout::{Account as PayoutAccount, Method};
use custody::{Place, Sealed, fingerprint::Subject};
use door::{Failure, Steps};
use kernel::Time;
use kernel::money::{Currency, Money};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row};

use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::{Exact, Stamp};
use crate::house::House;
use crate::policy::Policy;
use crate::rows::Settlement;

use super::parts;

mod rows;
mod rules;
mod state;

pub(super) use rules::seconds_up;
use state::State;

/// `POST /api/v1/supply/settlements/withdraw`. `Debug` shows neither account nor code.
#[derive(Clone, Debug)]
pub struct Withdraw {
    /// `withdraw_amount`: the text of the JSON number, or of the string. Major units.
    pub amount: String,
    /// `payment_method`.
    pub method: String,
    /// `payment_account`, as it was typed.
    pub account: SecretString,
    /// `sms_code`.
    pub code: SecretString,
}

/// What is made before the transaction.
#[derive(Clone, Debug)]
pub struct Prepared {
    settlement_no: String,
    /// `None` where a field is refused anyway.
    payee: Option<Payee>,
}

/// A payout account, sealed for its settlement.
#[derive(Clone, Debug)]
pub(crate) struct Payee {
    method: Method,
    masked: String,
    sealed: Sealed,
    fingerprint: String,
}

/// `data` of the answer (section 8.4, operation 22).
#[derive(Debug, Serialize)]
struct Asked<'a> {
    settlement_id: i64,
    settlement_no: &'a str,
    status: &'static str,
    total_amount: Exact,
    total_amount_minor: String,
    fee_amount: Exact,
    fee_amount_minor: String,
    net_amount: Exact,
    net_amount_minor: String,
    currency_code: &'static str,
    payment_method: &'static str,
    payment_account_masked: &'a str,
    version: i64,
    created_at: Stamp,
}

impl Withdraw {
    /// The rules of the fields alone, in their order: switched on, amount, method and account, limits of one.
    fn fields(&self, house: &House) -> Result<(Money, PayoutAccount), Refusal> {
        let Policy { currency, withdraw_enabled, withdraw_min, withdraw_single_max, .. } = house.policy;
        if !withdraw_enabled || house.keys.sms.is_none() {
            return Err(Refusal::of(Code::SetOff));
        }
        let total = self.total(currency)?;
        let payee = |field: &'static str| Refusal::of(Code::SetPayee).with("field", field);
        let method = Method::parse(&self.method).ok_or_else(|| payee("payment_method"))?;
        let account = PayoutAccount::parse(method, &self.account)
            .map_err(|wrong| payee("payment_account").with("rule", wrong.rule()))?;
        // All of one currency, so that counts compare as amounts do.
        if total.count() < withdraw_min.count() {
            return Err(Refusal::of(Code::SetMinimum).with("minimum", withdraw_min));
        }
        if total.count() > withdraw_single_max.count() {
            return Err(Refusal::of(Code::SetSingle).with("maximum", withdraw_single_max));
        }
        Ok((total, account))
    }

    /// The amount. The edge asks before the key is claimed (section 7.3, step 6): `1e1` and `10` make one payload, so
    /// that a refusal kept for the one would be the answer to the other.
    ///
    /// # Errors
    /// `SUP_SET_4004`: it is no amount above 0 with as many decimals as the currency has.
    pub fn total(&self, currency: Currency) -> Result<Money, Refusal> {
        let refused = |rule: &'static str| {
            Refusal::of(Code::SetAmount).with("field", "withdraw_amount").with("rule", rule)
        };
        let total = Money::parse_major(&self.amount, currency, currency.exponent())
            .map_err(|malformed| refused(malformed.rule()))?;
        if total.sign().is_gt() { Ok(total) } else { Err(refused("positive")) }
    }
}

impl Payee {
    async fn seal(context: &Context, account: &PayoutAccount, number: &str) -> Result<Self, Failure> {
        let (keys, method) = (&context.house.keys, account.method());
        let place = Place {
            tenant_id: context.caller.tenant_id,
            table: "supply_settlements",
            row: number,
            platform: method.as_str(),
        };
        let failed = |error: custody::EnvelopeError| Failure::Step { step: "seal", cause: error.to_string() };
        let sealed = keys.custody.seal(&place, account.secret()).await.map_err(failed)?;
        let fingerprint = keys.fingerprints.of(Subject::Payout { method }, account.secret());
        let masked = account.masked().to_owned();
        Ok(Self { method, masked, sealed, fingerprint: fingerprint.as_str().to_owned() })
    }
}

impl Action for Withdraw {
    type Prepared = Prepared;
    type State = State;

    fn event(&self) -> &'static str {
        "supply.settlement.withdraw.create"
    }

    fn object(&self) -> Object {
        Object::new_of("supplier")
    }

    fn prepares(&self) -> bool {
        true
    }

    /// The number comes first: the envelope is bound to it.
    async fn prepare(&self, context: &Context, _: &Steps) -> Result<Prepared, Failure> {
        let house = &context.house;
        let settlement_no = house.number("STL", &house.clock.now().shanghai_day());
        let payee = match self.fields(house) {
            Ok((_, account)) => Some(Payee::seal(context, &account, &settlement_no).await?),
            Err(_) => None,
        };
        Ok(Prepared { settlement_no, payee })
    }

    fn load(&self, context: &Context, _: &Prepared) -> Vec<Query> {
        // No more earnings than it takes; none for what its fields alone refuse.
        let none = |_| Money::zero(context.house.policy.currency);
        State::load(context, self.fields(&context.house).map_or_else(none, |(total, _)| total))
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        State::read(rows)
    }

    fn decide(
        &self,
        context: &Context,
        prepared: &Prepared,
        state: &State,
        at: Time,
    ) -> Result<Change, Stop> {
        let seen = |refusal: Refusal| state.seen(refusal);
        let (total, _) = self.fields(&context.house).map_err(seen)?;
        let Prepared { settlement_no, payee } = prepared;
        let payee = payee.as_ref().ok_or_else(|| seen(Refusal::of(Code::SetPayee)))?;
        let allowed = rules::all(context, state, (total, &self.code), at)?;
        // What the ledger does not take is about this supplier, too.
        let about = |stop: Stop| match stop {
            Stop::Refused(refusal) => Stop::from(state.seen(*refusal)),
            broken @ Stop::Broken(_) => broken,
        };
        let plan = rows::Plan::of(context, state, total).map_err(about)?;
        let data = Asked {
            settlement_id: state.id,
            settlement_no,
            status: "pending",
            total_amount: total.into(),
            total_amount_minor: total.minor(),
            fee_amount: plan.split.fee().into(),
            fee_amount_minor: plan.split.fee().minor(),
            net_amount: plan.split.rest().into(),
            net_amount_minor: plan.split.rest().minor(),
            currency_code: total.currency().code(),
            payment_method: payee.method.as_str(),
            payment_account_masked: &payee.masked,
            version: 0,
            created_at: Stamp(at),
        };
        let object = Object::row(Settlement::KIND, state.id);
        let after = json!({ "status": "pending", "version": 0 });
        let event = Event {
            name: "supply.settlement.withdraw.succeeded",
            object: object.clone(),
            version: 0,
            before: json!({}),
            after: after.clone(),
        };
        let metadata = json!({ "settlement_no": settlement_no, "total_amount_minor": total.minor(),
            "fee_amount_minor": plan.split.fee().minor(), "earnings": plan.items.len(),
            "payment_method": payee.method.as_str() });
        let writes = plan.writes(context, (prepared, payee), &allowed, at).map_err(about)?;
        let change = Change { after, metadata, writes, events: vec![event], ..Change::of(object, &data)? };
        Ok(Change { status: 201, ..change })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let refusal = match write {
            // Either of the indexes on open settlements.
            "settlement.insert" => Refusal::of(Code::SetOpen),
            "settlement.code" => Refusal::of(Code::SetCode),
            _ => parts::unbalanced(write, None)?,
        };
        Some(state.seen(refusal))
    }
}

#[cfg(test)]
mod tests;
