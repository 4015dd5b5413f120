//! Accounts (section 8.1).

use auth::{Need, scope};
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use custody::{AccountType, Provider};
use guard::{Guard, holds_part};
use kernel::money::{Quota, QuotaUnit};
use onceseal_http::{Call, Fields, Node};
use secrecy::SecretString;
use serde_json::json;
use supply::accounts::{Activate, Create, Delete, Kind, Rotate, Suspend, Verify, view};
use supply::rows::Account;
use supply::{Code, Object};

use super::act::{self, own};
use super::enter::{Gate, UnfitKey, Who};
use super::rate;
use super::read::{Params, id, missing, pagination};
use super::{Shared, envelope};

/// Bytes of a credential (section 8.1); its exact shape is the verification's to judge.
const CREDENTIAL: std::ops::RangeInclusive<usize> = 8..=4096;

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let write = Need::write(scope::ACCOUNT_WRITE);
    let verifying = Gate { kind: rate::Kind::Verify, ..Gate::write(write) };
    let read = Gate::read(scope::ACCOUNT_READ);
    let one = delete(remove);
    let list = Gate::critical(write).around(supply, post(create)).merge(read.around(supply, get(all)));
    let single = Gate::write(write).around(supply, one).merge(read.around(supply, get(single)));
    let activating = Gate::write(write.or_admin(scope::PLATFORM_RISK));
    let managing = Gate::write(Need::write(scope::CREDENTIAL_MANAGE));
    let auditing = Gate::read(scope::SUPPLY_AUDIT_READ);
    Router::new()
        .route("/api/v1/supply/accounts/verify", verifying.around(supply, post(verify)))
        .route("/api/v1/supply/accounts", list)
        .route("/api/v1/supply/accounts/{account_id}", single)
        .route("/api/v1/supply/accounts/{account_id}/activate", activating.around(supply, post(activate)))
        .route(
            "/api/v1/supply/accounts/{account_id}/suspend",
            Gate::write(write).around(supply, post(suspend)),
        )
        .route(
            "/api/v1/supply/accounts/{account_id}/rotate-credential",
            managing.around(supply, post(rotate)),
        )
        .route("/api/v1/supply/accounts/{account_id}/audit-logs", auditing.around(supply, get(audit_logs)))
}

/// Provider, type and credential.
fn credential(fields: &mut Fields<'_>) -> Option<(Kind, SecretString)> {
    let provider = fields.word("provider", Provider::WORDS);
    let account_type = fields.word("account_type", ["api_key", "oauth"]);
    let secret = fields.secret("credential_input", CREDENTIAL);
    let (provider, account_type) = (Provider::parse(provider?)?, AccountType::parse(account_type?)?);
    Some((Kind { provider, account_type }, secret?))
}

/// The credential that a request brings, as far as a part of it could be told apart.
fn brought(call: &Call) -> Option<&str> {
    let Node::Object(members) = call.body() else { return None };
    let Some(Node::Text(secret)) = members.get("credential_input") else { return None };
    (secret.len() >= *CREDENTIAL.start()).then_some(secret)
}

/// The refusal of a key that is a part of the credential that comes with it: it would be kept in clear.
fn unfit_key(call: &Call) -> Option<Response> {
    let key = call.asked().key.as_ref()?;
    holds_part(key.as_str(), brought(call)?).then(UnfitKey::response)
}

/// A threshold of the account's quota, in any unit: a count of 10^-6.
fn threshold(fields: &mut Fields<'_>) -> Option<Option<i64>> {
    let text = fields.optional("min_quota_threshold", |fields, name| fields.decimal(name, 6))?;
    match text.map(|text| Quota::parse(&text, QuotaUnit::Credit)).transpose() {
        Ok(quota) => Some(quota.map(Quota::count)),
        Err(malformed) => fields.fault("min_quota_threshold", malformed.rule()),
    }
}

/// 1 to 100 characters after trimming, none of them a control character; no credential, no part of a live one or of
/// the one that is mounted.
fn alias(fields: &mut Fields<'_>, guard: &Guard, mounted: Option<&str>) -> Option<Option<String>> {
    let text = fields.optional("account_alias", |fields, name| fields.text(name, 1..=200))?;
    let Some(text) = text.map(str::trim) else { return Some(None) };
    if text.is_empty() || text.chars().count() > 100 {
        return fields.fault("account_alias", "length 1..100");
    }
    if text.chars().any(char::is_control) {
        return fields.fault("account_alias", "no_control_characters");
    }
    if !guard.passes(text) || mounted.is_some_and(|secret| holds_part(text, secret)) {
        return fields.fault("account_alias", "no_credential");
    }
    Some(Some(text.to_owned()))
}

async fn verify(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    if let Some(refused) = unfit_key(&call) {
        return refused;
    }
    let read = call.fields(|fields| {
        let (found, _) = (credential(fields), threshold(fields));
        found
    });
    match read {
        Ok((kind, secret)) => own(&supply, &call, &who, Verify { kind, secret }).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn create(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    if let Some(refused) = unfit_key(&call) {
        return refused;
    }
    let read = call.fields(|fields| {
        let (found, threshold) = (credential(fields), threshold(fields));
        let alias = alias(fields, &supply.guard, brought(&call));
        let risk_ack = fields.optional("risk_ack", Fields::flag);
        let (kind, secret) = found?;
        let risk_ack = risk_ack?.unwrap_or(false);
        Some(Create { kind, secret, alias: alias?, min_quota_threshold: threshold?, risk_ack })
    });
    match read {
        Ok(action) => own(&supply, &call, &who, action).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn activate(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let Some(account_id) = id(&text) else { return missing(who.request_id(), Code::AccMissing) };
    if let Err(rejected) = call.fields(|_| Some(())) {
        return rejected.into_response();
    }
    let tenant = match tenant(&supply, &who, account_id).await {
        Ok(tenant) => tenant,
        Err(response) => return *response,
    };
    act::submit(&supply, &call, (&who, who.caller(tenant)), Activate { account_id }, act::Kept::Usual).await
}

/// An administrator acts on the object's tenant, everybody else on their own.
async fn tenant(supply: &Shared, who: &Who, account_id: i64) -> Result<i64, Box<Response>> {
    if !who.principal.is_admin() {
        return Ok(who.principal.tenant_id);
    }
    match view::tenant_of(supply.door.store(), account_id).await {
        Ok(found) => Ok(found.unwrap_or(who.principal.tenant_id)),
        Err(error) => Err(Box::new(unavailable(who, &error))),
    }
}

/// The store did not answer a read.
pub(super) fn unavailable(who: &Who, error: &store::Error) -> Response {
    tracing::error!(request_id = who.request_id(), %error, "read_failed");
    envelope::later(who.request_id(), envelope::DEPENDENCY, 2)
}

async fn suspend(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let Some(account_id) = id(&text) else { return missing(who.request_id(), Code::AccMissing) };
    match call.fields(|_| Some(())) {
        Ok(()) => own(&supply, &call, &who, Suspend { account_id }).await,
        Err(rejected) => rejected.into_response(),
    }
}

/// 204, or why not; a body is refused.
async fn remove(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let Some(account_id) = id(&text) else { return missing(who.request_id(), Code::AccMissing) };
    match call.fields(|fields| if call.is_bare() { Some(()) } else { fields.fault("", "no_body") }) {
        Ok(()) => own(&supply, &call, &who, Delete { account_id }).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn rotate(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let Some(account_id) = id(&text) else { return missing(who.request_id(), Code::AccMissing) };
    if let Some(refused) = unfit_key(&call) {
        return refused;
    }
    let secret = match call.fields(|fields| fields.secret("credential_input", CREDENTIAL)) {
        Ok(secret) => secret,
        Err(rejected) => return rejected.into_response(),
    };
    // Provider and key id never change, so that they can be read before the claim.
    let target = match view::kind_of(supply.door.store(), who.principal.tenant_id, account_id).await {
        Ok(target) => target,
        Err(error) => return unavailable(&who, &error),
    };
    own(&supply, &call, &who, Rotate { account_id, target, secret }).await
}

async fn all(State(supply): State<Shared>, query: RawQuery, who: Who) -> Response {
    let mut params = Params::of(query);
    let page = params.page();
    let status = params.read("status", supply::rows::AccountStatus::parse);
    let provider =
        params.read("provider", |word| Provider::parse(word).map(|provider| provider.as_str().to_owned()));
    if let Err(refused) = params.close(who.request_id()) {
        return *refused;
    }
    let (tenant_id, (number, size)) = (who.principal.tenant_id, page);
    let list = view::List { tenant_id, status, provider, page: number, page_size: size };
    match list.page(supply.door.store()).await {
        Ok(found) => envelope::page(who.request_id(), &found.items, pagination(page, found.total)),
        Err(error) => unavailable(&who, &error),
    }
}

async fn single(State(supply): State<Shared>, Path(text): Path<String>, who: Who) -> Response {
    let Some(account_id) = id(&text) else { return missing(who.request_id(), Code::AccMissing) };
    match view::get(supply.door.store(), who.principal.tenant_id, account_id).await {
        Ok(Some(found)) => envelope::data(who.request_id(), &found),
        Ok(None) => missing(who.request_id(), Code::AccMissing),
        Err(error) => unavailable(&who, &error),
    }
}

async fn audit_logs(
    State(supply): State<Shared>,
    Path(text): Path<String>,
    query: RawQuery,
    who: Who,
) -> Response {
    let Some(account_id) = id(&text) else { return missing(who.request_id(), Code::AccMissing) };
    let mut params = Params::of(query);
    let page = params.page();
    if let Err(refused) = params.close(who.request_id()) {
        return *refused;
    }
    let store = supply.door.store();
    match view::get(store, who.principal.tenant_id, account_id).await {
        Ok(Some(_)) => {}
        Ok(None) => return missing(who.request_id(), Code::AccMissing),
        Err(error) => return unavailable(&who, &error),
    }
    let of = supply::audit::Of {
        tenant_id: who.principal.tenant_id,
        object_type: Account::KIND,
        object_id: account_id.to_string(),
    };
    let (events, total) = match supply::audit::list(store, &of, page).await {
        Ok(found) => found,
        Err(error) => return unavailable(&who, &error),
    };
    let viewed = json!({ "page": page.0, "page_size": page.1, "items": events.len(), "total": total });
    let object = Object::row(Account::KIND, account_id);
    match act::viewed(&supply, &who, ("supply.account.audit.view", object), viewed).await {
        Ok(()) => envelope::page(who.request_id(), &events, pagination(page, total)),
        Err(later) => *later,
    }
}
