//! Mounts an upstream credential (sections 6.1, 8.1): verified again at the provider, sealed, and from then on
//! never shown. Leased, since the provider is asked between the claim and the one business transaction.

use custody::{Place, Sealed};
use door::{Failure, Form, Steps};
use kernel::Time;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Value, Write, values};

use super::checked::{Checked, Kind, noted, unreachable};
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::{Exact, Stamp};
use crate::house::Live;
use crate::rows::{Account, Reader, Supplier};

/// An account with this credential that is mounted, anywhere, or was blocked, deleted or not.
const TAKEN: &str = "select count(*) from supply_accounts
where credential_fingerprint in ($1, $2) and (deleted_at is null or status = 'disabled')";

const INSERT: &str = "insert into supply_accounts (id, tenant_id, user_id, platform, account_type, account_name,
  encrypted_credentials, key_id, status, risk_level, risk_score, quota_unit, total_quota, available_quota,
  min_quota_threshold, is_verified, verified_at, last_check_at, tos_compliant, tos_check_result, risk_ack_at,
  risk_ack_version, credential_cipher_algo, credential_kms_key_alias, credential_key_version,
  credential_fingerprint, currency_code, created_by, updated_by, request_id, idempotency_key, audit_trace_id,
  created_ip, updated_ip, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
  $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35)";

/// `POST /api/v1/supply/accounts`.
#[derive(Clone, Debug)]
pub struct Create {
    /// Whose credential, of which type.
    pub kind: Kind,
    /// The credential. `Debug` hides it.
    pub secret: SecretString,
    /// `account_alias`, trimmed, 1 to 100 characters.
    pub alias: Option<String>,
    /// Alert below it: a count of 10^-6 units.
    pub min_quota_threshold: Option<i64>,
    /// Whether the risk agreement is accepted.
    pub risk_ack: bool,
}

/// What was made before the transaction.
#[derive(Debug)]
pub enum Prepared {
    /// Not asked: the agreement is missing.
    NotAcknowledged,
    /// The provider is out of reach.
    Unreachable,
    /// Not to be mounted.
    Rejected(Checked),
    /// Ready to be written.
    Ready(Box<Ready>),
}

/// A credential that may be mounted.
#[derive(Debug)]
pub struct Ready {
    pub(super) checked: Checked,
    pub(super) key_id: String,
    pub(super) sealed: Sealed,
    /// Under the current pepper, and under the one before it (or the same again).
    pub(super) fingerprints: [String; 2],
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub(super) id: i64,
    pub(super) supplier: Option<Supplier>,
    pub(super) taken: i64,
}

/// `data` of the answer.
#[derive(Debug, Serialize)]
struct Mounted<'a> {
    account_id: i64,
    provider: &'static str,
    account_type: &'static str,
    account_alias: Option<&'a str>,
    key_id: &'a str,
    status: &'static str,
    available_quota: Exact,
    quota_unit: &'a str,
    risk_score: i64,
    is_verified: bool,
    version: i64,
    created_at: Stamp,
}

/// `ck_` and 22 characters of base62 (131 bits), made of nothing but chance (section 5.2).
fn key_id(context: &Context) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut id = String::from("ck_");
    while id.len() < 25 {
        let mut bytes = [0; 32];
        context.house.random.fill(&mut bytes);
        // What does not divide evenly is thrown away, so that no digit is likelier.
        let even = bytes.iter().filter(|byte| **byte < 248);
        let digits = even.filter_map(|byte| DIGITS.get(usize::from(byte % 62)).copied().map(char::from));
        id.extend(digits.take(25 - id.len()));
    }
    id
}

/// Fingerprints of a credential under the pepper and the one before it; without one, the same twice.
pub(super) fn fingerprints(context: &Context, kind: Kind, secret: &SecretString) -> [String; 2] {
    let subject = custody::Subject::Credential { provider: kind.provider, account_type: kind.account_type };
    let all = context.house.keys.fingerprints.all(subject, secret);
    let text =
        |n: usize| all.get(n).or_else(|| all.first()).map_or_else(String::new, |it| it.as_str().to_owned());
    [text(0), text(1)]
}

/// Seals a credential for the account called `key_id`.
pub(super) async fn seal(
    context: &Context,
    kind: Kind,
    key_id: &str,
    secret: &SecretString,
) -> Result<Sealed, Failure> {
    let (tenant_id, platform) = (context.caller.tenant_id, kind.provider.as_str());
    let place = Place { tenant_id, table: "supply_accounts", row: key_id, platform };
    let failed = |error: custody::EnvelopeError| Failure::Step { step: "seal", cause: error.to_string() };
    context.house.keys.custody.seal(&place, secret).await.map_err(failed)
}

impl Create {
    fn row(
        &self,
        context: &Context,
        ready: &Ready,
        supplier: &Supplier,
        new: (i64, Time),
    ) -> Result<Write, Stop> {
        let ((id, at), checked) = (new, &ready.checked);
        let quota = Value::Money(checked.quota()?.count());
        let verified = checked.passed();
        let [fingerprint, _] = &ready.fingerprints;
        let (caller, policy) = (&context.caller, &context.house.policy);
        let mut row = values![
            id,
            supplier.tenant_id,
            supplier.user_id,
            self.kind.provider.as_str(),
            self.kind.account_type.as_str(),
            self.alias.clone(),
            &ready.sealed.envelope,
            &ready.key_id,
            checked.risk_level(),
            checked.risk_score,
            checked.unit.as_str(),
        ];
        row.extend([quota.clone(), quota, self.min_quota_threshold.map_or(Value::Null, Value::Money)]);
        row.extend(values![
            verified,
            verified.then_some(at),
            at,
            checked.tos,
            checked.tos_result(),
            at,
            &policy.risk_ack_version,
            ready.sealed.cipher_algo,
            &ready.sealed.kms_key_alias,
            i64::from(ready.sealed.key_version),
            fingerprint,
            supplier.currency.code(),
            caller.operator_id,
            caller.operator_id,
            &caller.request_id,
            caller.idempotency_key.clone(),
            &caller.trace_id,
            caller.client_ip.clone(),
            caller.client_ip.clone(),
            at,
            at,
        ]);
        Ok(Write::one("account.insert", INSERT, row))
    }
}

impl Action for Create {
    type Prepared = Prepared;
    type State = State;

    fn event(&self) -> &'static str {
        "supply.account.create"
    }

    fn object(&self) -> Object {
        Object::new_of(Account::KIND)
    }

    fn form(&self, context: &Context) -> Form {
        Form::Leased(context.house.policy.lease)
    }

    fn prepares(&self) -> bool {
        true
    }

    async fn prepare(&self, context: &Context, steps: &Steps) -> Result<Prepared, Failure> {
        let shape = custody::format::check(self.kind.provider, self.kind.account_type, &self.secret).mark;
        if shape != custody::Mark::Fail && !self.risk_ack {
            return Ok(Prepared::NotAcknowledged);
        }
        let Some(checked) = Checked::ask(context, steps, self.kind, &self.secret).await? else {
            return Ok(Prepared::Unreachable);
        };
        if checked.accepted().is_err() {
            return Ok(Prepared::Rejected(checked));
        }
        let key_id = key_id(context);
        let sealed = seal(context, self.kind, &key_id, &self.secret).await?;
        let fingerprints = fingerprints(context, self.kind, &self.secret);
        Ok(Prepared::Ready(Box::new(Ready { checked, key_id, sealed, fingerprints })))
    }

    fn load(&self, context: &Context, prepared: &Prepared) -> Vec<Query> {
        let mut loads = vec![
            Query::new("account.id", "select {next_id supply_accounts}", values![]),
            Query::new("supplier", Supplier::OF_TENANT, values![context.caller.tenant_id]),
        ];
        if let Prepared::Ready(ready) = prepared {
            let [current, former] = &ready.fingerprints;
            loads.push(Query::new("account.taken", TAKEN, values![current, former]));
        }
        loads
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let first = |n: usize| rows.get(n).and_then(|rows| rows.first());
        Ok(State {
            id: first(0).map_or(Ok(0), |row| Reader::new(row).int())?,
            supplier: first(1).map(Supplier::read).transpose()?,
            taken: first(2).map_or(Ok(0), |row| Reader::new(row).int())?,
        })
    }

    fn decide(
        &self,
        context: &Context,
        prepared: &Prepared,
        state: &State,
        at: Time,
    ) -> Result<Change, Stop> {
        let ready = match prepared {
            Prepared::NotAcknowledged => {
                return Err(Refusal::of(Code::AccRiskAck).with("field", "risk_ack").into());
            }
            Prepared::Unreachable => return Err(unreachable().into()),
            Prepared::Rejected(checked) => {
                checked.accepted()?;
                return Err(Refusal::of(Code::AccRefused).into());
            }
            Prepared::Ready(ready) => ready,
        };
        // Every tenant with a token has its principal; without one there is nothing to mount for.
        let supplier = state.supplier.as_ref().ok_or_else(|| Refusal::of(Code::ComMissing))?;
        if state.taken > 0 {
            return Err(Refusal::of(Code::AccMounted).into());
        }
        let checked = &ready.checked;
        let data = Mounted {
            account_id: state.id,
            provider: self.kind.provider.as_str(),
            account_type: self.kind.account_type.as_str(),
            account_alias: self.alias.as_deref(),
            key_id: &ready.key_id,
            status: "pending",
            available_quota: checked.quota()?.into(),
            quota_unit: &checked.unit,
            risk_score: checked.risk_score,
            is_verified: checked.passed(),
            version: 0,
            created_at: Stamp(at),
        };
        let object = Object::row(Account::KIND, state.id);
        let after = json!({ "status": "pending", "version": 0 });
        let event = Event {
            name: "supply.account.create.succeeded",
            object: object.clone(),
            version: 0,
            before: json!({}),
            after: after.clone(),
        };
        let writes = vec![self.row(context, ready, supplier, (state.id, at))?];
        let change = Change::of(object, &data)?;
        Ok(Change { after, writes, events: vec![event], status: 201, ..change })
    }

    fn noted(&self, context: &Context, prepared: &Prepared) -> Json {
        let checked = match prepared {
            Prepared::Rejected(checked) => Some(checked),
            Prepared::Ready(ready) => Some(&ready.checked),
            _ => None,
        };
        noted(context, self.kind, &self.secret, checked)
    }

    fn live(&self) -> Option<Live> {
        Some(Live::Taken(self.secret.clone()))
    }

    fn outrun(&self, write: &'static str, _: &State) -> Option<Refusal> {
        (write == "account.insert").then(|| Refusal::of(Code::AccMounted))
    }
}

#[cfg(test)]
mod tests;
