//! Replaces the credential of a mounted account (section 13.2): the new one is verified first, the envelope is
//! replaced as a whole, packages go on. What a check says of a credential is the new one's from then on; an active
//! account takes none that could not be activated. Leased, as mounting is.

use door::{Failure, Form, Steps};
use kernel::Time;
use kernel::money::Quota;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Value, Write, values};

use super::activate::unmet;
use super::checked::{Checked, Kind, noted, unreachable};
use super::create::{Ready, fingerprints, seal};
use super::state;
use super::threshold::fallen;
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::house::Live;
use crate::rows::{Account, AccountStatus, Reader};

/// Accounts with this credential, the rotated one included: the same again is no rotation.
const TAKEN: &str = "select count(*) from supply_accounts
where credential_fingerprint in ($1, $2) and (deleted_at is null or status = 'disabled')";

const ROTATE: &str = "update supply_accounts
set encrypted_credentials = $1, credential_cipher_algo = $2, credential_kms_key_alias = $3,
  credential_key_version = $4, credential_fingerprint = $5, last_rotation_at = $6, last_check_at = $7,
  is_verified = $8, verified_at = $9, risk_level = $10, risk_score = $11, tos_compliant = $12, tos_check_result = $13,
  total_quota = $14, available_quota = $15, version = version + 1,
  request_id = $16, idempotency_key = $17, audit_trace_id = $18, updated_ip = $19, updated_at = $20, updated_by = $21
where id = $22 and tenant_id = $23 and deleted_at is null and status <> 'disabled' and version = $24";

/// `POST /api/v1/supply/accounts/{accountId}/rotate-credential`.
#[derive(Clone, Debug)]
pub struct Rotate {
    /// Which account.
    pub account_id: i64,
    /// Its kind and `key_id`, which never change; `None` where there is no such account in the tenant.
    pub target: Option<(Kind, String)>,
    /// The new credential.
    pub secret: SecretString,
}

/// What was made before the transaction.
#[derive(Debug)]
pub enum Prepared {
    /// There is no such account.
    Missing,
    /// The provider is out of reach.
    Unreachable,
    /// Not to be taken.
    Rejected(Checked),
    /// Ready to be written.
    Ready(Box<Ready>),
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    account: Option<Account>,
    taken: i64,
}

/// `data` of the answer.
#[derive(Debug, Serialize)]
struct Rotated<'a> {
    account_id: i64,
    key_id: &'a str,
    status: &'static str,
    version: i64,
    last_rotation_at: Stamp,
    updated_at: Stamp,
}

/// The account as the check of its new credential leaves it.
fn renewed(account: &Account, checked: &Checked) -> Result<Account, Stop> {
    let (total, available) = quotas(account, checked.quota()?).unwrap_or((account.total, account.available));
    Ok(Account {
        is_verified: checked.passed(),
        tos_compliant: checked.tos,
        risk_level: checked.risk_level().to_owned(),
        risk_score: checked.risk_score,
        total,
        available,
        ..account.clone()
    })
}

/// Total and available quota with what the new credential has: packages keep what they hold of it. `None` where it
/// counts in another unit than the account, which then goes on with its figures.
fn quotas(account: &Account, told: Quota) -> Option<(Quota, Quota)> {
    if told.unit() != account.unit {
        return None;
    }
    let left = told.count().saturating_sub(account.frozen.count()).max(0);
    let available = Quota::from_count(left, account.unit).ok()?;
    let total = account.total.minus(account.available).ok()?.plus(available).ok()?;
    Some((total, available))
}

/// The row with the new credential, and what its check says. `renewed` has the version that was read.
fn row(context: &Context, ready: &Ready, renewed: &Account, at: Time) -> Write {
    let (sealed, [fingerprint, _]) = (&ready.sealed, &ready.fingerprints);
    let mut row = values![
        &sealed.envelope,
        sealed.cipher_algo,
        &sealed.kms_key_alias,
        i64::from(sealed.key_version),
        fingerprint,
        at,
        at,
        renewed.is_verified,
        renewed.is_verified.then_some(at),
        &renewed.risk_level,
        renewed.risk_score,
        renewed.tos_compliant,
        ready.checked.tos_result(),
    ];
    row.extend([renewed.total, renewed.available].map(|quota| Value::Money(quota.count())));
    row.extend(context.stamp(at));
    row.extend(values![context.caller.operator_id, renewed.id, renewed.tenant_id, renewed.version]);
    Write::one("account.rotate", ROTATE, row)
}

impl Action for Rotate {
    type Prepared = Prepared;
    type State = State;

    fn event(&self) -> &'static str {
        "supply.credential.rotate"
    }

    fn object(&self) -> Object {
        state::object(self.account_id)
    }

    fn form(&self, context: &Context) -> Form {
        Form::Leased(context.house.policy.lease)
    }

    fn prepares(&self) -> bool {
        true
    }

    async fn prepare(&self, context: &Context, steps: &Steps) -> Result<Prepared, Failure> {
        let Some((kind, key_id)) = &self.target else { return Ok(Prepared::Missing) };
        let Some(checked) = Checked::ask(context, steps, *kind, &self.secret).await? else {
            return Ok(Prepared::Unreachable);
        };
        if checked.accepted().is_err() {
            return Ok(Prepared::Rejected(checked));
        }
        let sealed = seal(context, *kind, key_id, &self.secret).await?;
        let fingerprints = fingerprints(context, *kind, &self.secret);
        Ok(Prepared::Ready(Box::new(Ready { checked, key_id: key_id.clone(), sealed, fingerprints })))
    }

    fn load(&self, context: &Context, prepared: &Prepared) -> Vec<Query> {
        let mut loads = vec![state::load(context, self.account_id)];
        if let Prepared::Ready(ready) = prepared {
            let [current, former] = &ready.fingerprints;
            loads.push(Query::new("account.taken", TAKEN, values![current, former]));
        }
        loads
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let taken = rows.get(1).and_then(|rows| rows.first());
        let taken = taken.map_or(Ok(0), |row| Reader::new(row).int())?;
        Ok(State { account: state::read(rows.first())?, taken })
    }

    fn decide(
        &self,
        context: &Context,
        prepared: &Prepared,
        state: &State,
        at: Time,
    ) -> Result<Change, Stop> {
        let account = state::found(state.account.as_ref())?;
        let seen = |refusal: Refusal| refusal.about(self.object(), account.state());
        if account.status == AccountStatus::Disabled {
            return Err(state::conflict(account).into());
        }
        let ready = match prepared {
            Prepared::Missing => return Err(Refusal::of(Code::AccMissing).into()),
            Prepared::Unreachable => return Err(seen(unreachable()).into()),
            Prepared::Rejected(checked) => {
                checked.accepted().map_err(seen)?;
                return Err(seen(Refusal::of(Code::AccRefused)).into());
            }
            Prepared::Ready(ready) => ready,
        };
        if state.taken > 0 {
            return Err(seen(Refusal::of(Code::AccMounted)).into());
        }
        let checked = &ready.checked;
        let renewed = renewed(account, checked)?;
        if account.status == AccountStatus::Active && !checked.passed() {
            return Err(seen(Refusal::of(Code::AccGuard).with("unmet", unmet(&renewed))).into());
        }
        let (object, version, key_version) = (self.object(), account.version + 1, ready.sealed.key_version);
        let before = account.state();
        let after =
            json!({ "status": account.status.as_str(), "version": version, "key_version": key_version });
        let (name, told) = ("supply.credential.rotate.succeeded", object.clone());
        let event = Event { name, object: told, version, before: before.clone(), after: after.clone() };
        let data = Rotated {
            account_id: account.id,
            key_id: &account.key_id,
            status: account.status.as_str(),
            version,
            last_rotation_at: Stamp(at),
            updated_at: Stamp(at),
        };
        let events = [event].into_iter().chain(fallen(account, renewed.available)).collect();
        let writes = vec![row(context, ready, &renewed, at)];
        Ok(Change { before, after, writes, events, ..Change::of(object, &data)? })
    }

    fn noted(&self, context: &Context, prepared: &Prepared) -> Json {
        let Some((kind, _)) = self.target else { return Json::Null };
        let checked = match prepared {
            Prepared::Rejected(checked) => Some(checked),
            Prepared::Ready(ready) => Some(&ready.checked),
            _ => None,
        };
        noted(context, kind, &self.secret, checked)
    }

    fn live(&self) -> Option<Live> {
        Some(Live::Taken(self.secret.clone()))
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        match write {
            "account.rotate" => state.account.as_ref().map(state::conflict),
            _ => None,
        }
    }
}
