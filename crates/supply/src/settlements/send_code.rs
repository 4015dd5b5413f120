//! Sends the code that a withdrawal asks for (section 12, row 9): to the supplier's registered phone, never to
//! the payout account. Here only its reference and its keyed hash come to be; the outbox's consumer derives the
//! code from the reference when it sends it, so that it stands nowhere.

use custody::sms::CodeError;
use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::withdraw::seconds_up;
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::books;
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Reader, Supplier};

/// Codes sent lately, the newest first.
const SENT: &str =
    "select c.created_at from supply_sms_codes c join supply_suppliers s on s.id = c.supplier_id
where s.tenant_id = $1 and c.purpose = 'withdraw' order by c.created_at desc, c.id desc limit $2";

const INSERT: &str = "insert into supply_sms_codes (tenant_id, supplier_id, purpose, code_ref, code_hash, key_version, expires_at, request_id, created_at, created_by)
values ($1, $2, 'withdraw', $3, $4, $5, $6, $7, $8, $9)";

/// Name of what the sender hears: `code_ref`, `key_version` and the supplier, never code or phone.
const TOLD: &str = "supply.settlement.sms_code.succeeded";
const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// `POST /api/v1/supply/settlements/withdraw/sms-code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendCode;

/// A reference, and what the code derived from it hashes to.
#[derive(Clone, Debug)]
pub struct Prepared(Option<Reference>);

#[derive(Clone, Debug)]
struct Reference {
    code_ref: String,
    code_hash: String,
    key_version: u32,
}

/// What is decided from.
#[derive(Clone, Debug)]
pub struct State {
    supplier: Option<Supplier>,
    sent: Vec<Time>,
}

#[derive(Debug, Serialize)]
struct Sent {
    expires_in_seconds: u64,
}

impl SendCode {
    /// Rows 9 of section 12: a pause between two, and so many a day in Shanghai.
    fn rate(context: &Context, sent: &[Time], at: Time) -> Result<(), Refusal> {
        let policy = &context.house.policy;
        let later = |end| Refusal::of(Code::SetCodes).with("retry_after_seconds", seconds_up(at, end));
        let midnight = at.shanghai_midnight();
        let today = sent.iter().filter(|sent| **sent >= midnight).count();
        if today >= usize::try_from(policy.sms_per_day).unwrap_or(usize::MAX) {
            return Err(later(midnight.plus(DAY)));
        }
        let pause = sent.first().map(|last| last.plus(policy.sms_pause));
        match pause {
            Some(end) if at < end => Err(later(end)),
            _ => Ok(()),
        }
    }
}

impl Action for SendCode {
    type Prepared = Prepared;
    type State = State;

    fn event(&self) -> &'static str {
        "supply.settlement.sms.send"
    }

    fn object(&self) -> Object {
        Object::new_of("supplier")
    }

    async fn prepare(&self, context: &Context, _: &Steps) -> Result<Prepared, Failure> {
        let Some(codes) = &context.house.keys.sms else { return Ok(Prepared(None)) };
        // 120 random bits.
        let code_ref = context.house.number("C", "") + &context.house.number("", "");
        let key_version = codes.current();
        let failed = |error: CodeError| Failure::Step { step: "code", cause: error.to_string() };
        let code_hash = codes.hash(key_version, &code_ref).map_err(failed)?;
        Ok(Prepared(Some(Reference { code_ref, code_hash, key_version })))
    }

    /// The balances are locked for the sake of their lock: one command of a supplier at a time counts.
    fn load(&self, context: &Context, _: &Prepared) -> Vec<Query> {
        let tenant = context.caller.tenant_id;
        let most = i64::from(context.house.policy.sms_per_day.max(1));
        vec![
            books::of_supplier(tenant),
            Query::new("code.supplier", Supplier::OF_TENANT, values![tenant]),
            Query::new("code.sent", SENT, values![tenant, most]),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [_, supplier, sent] = rows else {
            return Err(Error::Corrupt { table: "supply_sms_codes", column: "answers".into() });
        };
        Ok(State {
            supplier: supplier.first().map(Supplier::read).transpose()?,
            sent: sent.iter().map(|row| Reader::new(row).time()).collect::<Result<_, _>>()?,
        })
    }

    fn decide(
        &self,
        context: &Context,
        prepared: &Prepared,
        state: &State,
        at: Time,
    ) -> Result<Change, Stop> {
        let policy = &context.house.policy;
        let object = |supplier: &Supplier| Object::row(Supplier::KIND, supplier.user_id);
        let seen = |refusal: Refusal| match &state.supplier {
            Some(supplier) => refusal.about(object(supplier), json!({ "status": supplier.status.as_str() })),
            None => refusal,
        };
        let off = || seen(Refusal::of(Code::SetOff));
        let reference = prepared.0.as_ref().filter(|_| policy.withdraw_enabled).ok_or_else(off)?;
        let supplier = state.supplier.as_ref().filter(|supplier| !supplier.is_blocked());
        let supplier = supplier.ok_or_else(|| seen(Refusal::of(Code::SetBlocked)))?;
        Self::rate(context, &state.sent, at).map_err(seen)?;
        let Reference { code_ref, code_hash, key_version } = reference;
        let (caller, expires_at) = (&context.caller, at.plus(policy.sms_life));
        let key_version = i64::from(*key_version);
        let row = [
            values![caller.tenant_id, supplier.id, code_ref, code_hash, key_version],
            values![expires_at, &caller.request_id, at, caller.operator_id],
        ]
        .concat();
        let after = json!({ "code_ref": code_ref, "key_version": key_version, "supplier_id": supplier.id,
            "expires_at": expires_at.to_rfc3339_millis() });
        let object = object(supplier);
        let event = Event { name: TOLD, object: object.clone(), version: 0, before: json!({}), after };
        let data = Sent { expires_in_seconds: policy.sms_life.as_secs() };
        let state = json!({ "status": supplier.status.as_str() });
        Ok(Change {
            before: state.clone(),
            after: state,
            writes: vec![Write::one("code.insert", INSERT, row)],
            events: vec![event],
            ..Change::of(object, &data)?
        })
    }
}
