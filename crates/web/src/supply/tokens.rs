//! Platform tokens (section 3.3): issued, renewed, revoked, looked at. A token goes out once, in the answer of the
//! call that made it; a repeat of that call has `access_token: null`.

use std::sync::Arc;
use std::time::Duration;

use auth::token::TOKEN_MAX;
use auth::{Grant, Need, Refusal, Role, Scopes, Token, UserType, Verified, scope};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use guard::Guard;
use kernel::Time;
use onceseal_http::{Call, Fields, Node};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::json;
use supply::Code;
use supply::tokens::{By, Issue, Known, Refresh, Revoke, Shown};

use super::Shared;
use super::accounts::unavailable;
use super::act::{Kept, audited, own, submit, succeeded};
use super::enter::{Gate, Who};
use super::envelope::{self, Fixed};
use super::read::{id, missing};
use super::texts;

/// Who may issue for others: the platform's staff.
const ISSUE: &str = "platform:token:write";
/// Seconds of a token's life, and where nothing is said.
const TTL: std::ops::RangeInclusive<i64> = 60..=259_200;
const TTL_USUAL: i64 = 900;
/// Room for the answer around a token.
const ANSWER_MAX: usize = 64 * 1024;

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let staff = Gate::write(Need::write(ISSUE));
    // A question, whatever its method: people of a tenant ask about its tokens, the platform's staff about all.
    let looking = Gate::write(Need::read(scope::SUPPLY_AUDIT_READ).or_admin(ISSUE));
    // Whoever was given a token may renew it, a reader too: no more is opened by it than before.
    let renewing = Gate::of_the_token();
    let router = Router::new()
        .route("/api/v1/platform/tokens/{tokenId}/revoke", staff.around(supply, post(revoke)))
        .route("/api/v1/platform/tokens/introspect", looking.around(supply, post(introspect)));
    if supply.issuer.is_none() {
        return router;
    }
    router
        .route("/api/v1/platform/tokens/issue", staff.around(supply, post(issue)))
        .route("/api/v1/platform/tokens/{tokenId}/refresh", renewing.around(supply, post(refresh)))
}

enum Asked {
    Token(Token),
    Row(i64),
}

/// `data` of an answer about a token.
#[derive(Serialize)]
struct Introspection {
    active: bool,
    #[serde(flatten)]
    claims: Option<Known>,
}

/// Reads what a token is to say.
fn grant(guard: &Guard, fields: &mut Fields<'_>) -> Option<Grant> {
    let (tenant, user) = (fields.whole("tenant_id", 1..=i64::MAX), fields.whole("user_id", 1..=i64::MAX));
    let role = fields.word("role", ["owner", "viewer", "admin"]);
    let user_type = fields.word("user_type", ["supply", "consumer", "platform"]);
    let scopes = fields.node("scope");
    let ttl = fields.optional("ttl_seconds", |fields, name| fields.whole(name, TTL));
    let Node::List(list) = scopes? else { return fields.fault("scope", "array") };
    let texts: Option<Vec<&str>> = list
        .iter()
        .map(|node| if let Node::Text(text) = node { Some(text.as_str()) } else { None })
        .collect();
    let Some(Ok(scopes)) = texts.map(Scopes::new) else { return fields.fault("scope", "scopes") };
    for scope in scopes.iter() {
        texts::kept(guard.scanner(), fields, "scope", scope)?;
    }
    let ttl = u64::try_from(ttl?.unwrap_or(TTL_USUAL)).ok()?;
    let (role, user_type) = (Role::from_name(role?)?, UserType::from_name(user_type?)?);
    // What the issuer would not sign.
    if user_type != UserType::Platform && role == Role::Admin {
        return fields.fault("role", "platform_only");
    }
    if user_type != UserType::Platform && scopes.have_wildcard() {
        return fields.fault("scope", "platform_only");
    }
    Some(Grant {
        operator_id: user?,
        tenant_id: tenant?,
        role,
        user_type,
        scopes,
        ttl: Duration::from_secs(ttl),
    })
}

async fn issue(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let Some(issuer) = &supply.issuer else { return missing(who.request_id(), Code::ComMissing) };
    let grant = match call.fields(|fields| grant(&supply.guard, fields)) {
        Ok(grant) => grant,
        Err(rejected) => return rejected.into_response(),
    };
    // Nobody hands out what they have not.
    if !who.principal.may_grant(&grant.scopes, grant.user_type) {
        let fixed = Fixed::from(auth::Code::ScopeDenied);
        let kept = audited(&supply, &who, "token.authz.denied", fixed.name).await;
        return kept.map_or_else(|later| *later, |()| envelope::plain(who.request_id(), fixed));
    }
    let shown = Shown::default();
    let caller = who.caller(grant.tenant_id);
    let action = Issue { grant, issuer: Arc::clone(issuer), shown: shown.clone() };
    let response = submit(&supply, &call, (&who, caller), action, Kept::Usual).await;
    with_token(response, shown.take()).await
}

/// Puts the token where the stored answer has null.
async fn with_token(response: Response, token: Option<Token>) -> Response {
    let Some(token) = token.filter(|_| succeeded(&response)) else { return response };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, ANSWER_MAX).await else {
        parts.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(parts, Body::empty());
    };
    let text = String::from_utf8_lossy(&bytes);
    // The engine may have put blanks between name and value.
    let shown = json!(token.expose()).to_string();
    let filled = text.replacen(r#""access_token":null"#, &format!(r#""access_token":{shown}"#), 1).replacen(
        r#""access_token": null"#,
        &format!(r#""access_token":{shown}"#),
        1,
    );
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(filled))
}

/// Renews the very token that calls.
async fn refresh(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let (Some(token_id), Some(issuer)) = (id(&text), &supply.issuer) else {
        return missing(who.request_id(), Code::ComMissing);
    };
    let ttl = call.fields(|fields| fields.optional("ttl_seconds", |fields, name| fields.whole(name, TTL)));
    let ttl = match ttl {
        Ok(ttl) => Duration::from_secs(u64::try_from(ttl.unwrap_or(TTL_USUAL)).unwrap_or(900)),
        Err(rejected) => return rejected.into_response(),
    };
    let principal = &who.principal;
    let ids = (principal.tenant_id, principal.operator_id);
    let kinds = (principal.role, principal.user_type);
    let shown = Shown::default();
    let action = Refresh {
        token_id,
        fingerprint: principal.fingerprint,
        grant: Refresh::grant(ids, kinds, principal.scopes.clone(), ttl),
        issuer: Arc::clone(issuer),
        shown: shown.clone(),
    };
    let response = own(&supply, &call, &who, action).await;
    if succeeded(&response) {
        // Another took its place; other servers see it by themselves, as a revocation.
        supply.callers.statuses().revoke(principal.fingerprint, supply.clock.now());
    }
    with_token(response, shown.take()).await
}

async fn revoke(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let Some(token_id) = id(&text) else { return missing(who.request_id(), Code::ComMissing) };
    if let Err(rejected) = call.fields(|_| Some(())) {
        return rejected.into_response();
    }
    let found = match supply::tokens::of(supply.door.store(), token_id).await {
        Ok(found) => found,
        Err(error) => return unavailable(&who, &error),
    };
    let tenant = found.map_or(who.principal.tenant_id, |(tenant, _)| tenant);
    let caller = who.caller(tenant);
    let response = submit(&supply, &call, (&who, caller), Revoke { token_id }, Kept::Usual).await;
    if let (Some((_, fingerprint)), true) = (found, succeeded(&response)) {
        supply.callers.statuses().revoke(fingerprint, supply.clock.now());
    }
    response
}

/// Which token is asked about: the one in the body, which is neither logged nor kept, or the one of a row.
fn asked(fields: &mut Fields<'_>) -> Option<Asked> {
    let token = fields.optional("token", |fields, name| fields.secret(name, 1..=TOKEN_MAX));
    let id = fields.optional("token_id", |fields, name| fields.whole(name, 1..=i64::MAX));
    match (token?, id?) {
        (Some(token), None) => Some(Asked::Token(Token::new(token.expose_secret()))),
        (None, Some(id)) => Some(Asked::Row(id)),
        (None, None) => fields.fault("token", "required"),
        (Some(_), Some(_)) => fields.fault("token_id", "only_one"),
    }
}

/// A token that opens something.
async fn verified(supply: &Shared, token: &Token, now: Time) -> Result<Verified, Refusal> {
    let verified = supply.callers.verify(token, now).await?;
    supply.callers.statuses().check(&verified, now).await?;
    Ok(verified)
}

/// What a token says, while it is good; of another tenant's only the platform's staff hear. Whatever else is asked
/// about, it is not active and nothing more.
async fn introspect(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let asked = match call.fields(asked) {
        Ok(asked) => asked,
        Err(rejected) => return rejected.into_response(),
    };
    let now = supply.clock.now();
    let store = supply.door.store();
    let known = match asked {
        Asked::Row(id) => Known::find(store, By::Id(id), now).await,
        // Anybody could write the rest of a token that was issued; its signature nobody.
        Asked::Token(token) => match verified(&supply, &token, now).await {
            Ok(token) if supply.issuer.is_none() => Ok(Some(Known::of_outside_issuer(&token))),
            Ok(token) => Known::find(store, By::Fingerprint(token.fingerprint), now).await,
            Err(refusal) if refusal.code() == auth::Code::TokenStatusUnavailable => {
                return envelope::later(who.request_id(), Fixed::from(refusal.code()), 1);
            }
            Err(_) => Ok(None),
        },
    };
    let principal = &who.principal;
    let may_hear = |known: &Known| principal.is_admin() || known.tenant_id == principal.tenant_id;
    match known {
        Ok(known) => {
            let claims = known.filter(may_hear);
            envelope::data(who.request_id(), &Introspection { active: claims.is_some(), claims })
        }
        Err(error) => unavailable(&who, &error),
    }
}
