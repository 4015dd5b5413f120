//! What stands around every handler of the supply API: who calls, how often, whether they may, and at the way out
//! that nothing leaves that looks like a credential.

use std::net::IpAddr;
use std::sync::Arc;

use auth::{Need, Principal};
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::MethodRouter;
use guard::Verdict;
use onceseal_http::headers::{Asked, IdempotencyKey};
use percent_encoding::percent_decode_str;
use serde_json::Value as Json;
use supply::{Caller, Capacity};

use super::act::{self, Submitted};
use super::attempt::Attempt;
use super::count::Trail;
use super::envelope::{self, Fixed, KEY_INVALID, ROUTE_UNKNOWN, TOO_MANY, WITHHELD};
use super::rate::Kind;
use super::{Shared, Supply, ingress};
use crate::arrival::Arrived;

/// Largest answer of this API: 200 items of a list.
const ANSWER_MAX: usize = 4 * 1024 * 1024;
/// Longest user agent that is kept (section 16.1).
const AGENT_MAX: usize = 256;

/// What a route asks of its callers.
#[derive(Clone, Copy)]
pub(super) struct Gate {
    /// `None` where a good token is all: what it asks for is of this very token.
    pub(super) need: Option<Need>,
    pub(super) kind: Kind,
    /// What the protocol asks of its headers; `None` for reads.
    pub(super) keys: Option<onceseal_http::Need>,
}

impl Gate {
    /// A read.
    pub(super) const fn read(scope: &'static str) -> Self {
        Self { need: Some(Need::read(scope)), kind: Kind::Call, keys: None }
    }

    /// A write whose key is optional.
    pub(super) const fn write(need: Need) -> Self {
        Self { need: Some(need), kind: Kind::Call, keys: Some(onceseal_http::Need::Optional) }
    }

    /// A write, with an optional key, that is about the token of its caller and no more.
    pub(super) const fn of_the_token() -> Self {
        Self { need: None, kind: Kind::Call, keys: Some(onceseal_http::Need::Optional) }
    }

    /// One of the five critical writes.
    pub(super) const fn critical(need: Need) -> Self {
        Self { need: Some(need), kind: Kind::Call, keys: Some(onceseal_http::Need::Required) }
    }

    /// Puts it around a route.
    pub(super) fn around(self, supply: &Shared, route: MethodRouter<Shared>) -> MethodRouter<Shared> {
        let entered = axum::middleware::from_fn_with_state((Arc::clone(supply), self), enter);
        match self.keys {
            Some(need) => route.layer(supply.protocol.layer(need)).layer(entered),
            None => route.layer(entered),
        }
    }

    fn is_critical(self) -> bool {
        self.keys == Some(onceseal_http::Need::Required)
    }
}

/// Marks the answer of a handler that found a part of a credential in the key: nothing of the key is kept or sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnfitKey;

impl UnfitKey {
    /// An answer of which nothing but the mark counts.
    pub(super) fn response() -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(Self);
        response
    }
}

/// Who calls, under which request.
#[derive(Clone, Debug)]
pub(super) struct Who {
    pub(super) principal: Principal,
    pub(super) asked: Asked,
    pub(super) trail: Trail,
    pub(super) attempt: Attempt,
    client: Option<IpAddr>,
    agent: Option<String>,
}

impl Who {
    /// As the caller of a command on objects of this tenant.
    pub(super) fn caller(&self, tenant_id: i64) -> Caller {
        let Self { principal, asked, client, agent, .. } = self;
        Caller {
            tenant_id,
            operator_id: principal.operator_id,
            capacity: if principal.is_admin() { Capacity::Admin } else { Capacity::User },
            role: principal.role.as_str(),
            request_id: asked.request_id.clone(),
            trace_id: asked.trace_id().to_owned(),
            idempotency_key: asked.key.as_ref().map(|key| key.as_str().to_owned()),
            client_ip: client.map(|client| client.to_string()),
            user_agent: agent.clone(),
        }
    }

    /// As the caller of a command on objects of its own tenant.
    pub(super) fn own(&self) -> Caller {
        self.caller(self.principal.tenant_id)
    }

    pub(super) fn request_id(&self) -> &str {
        &self.asked.request_id
    }
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        // A route without its gate would be open; it answers nothing.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| envelope::plain("", envelope::INTERNAL))
    }
}

async fn enter(State((supply, gate)): State<(Shared, Gate)>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let trail = parts.extensions.get::<Trail>().cloned().unwrap_or_default();
    trail.turned_away();
    let asked = supply.protocol.asked(&parts, onceseal_http::Need::Optional);
    let mut asked = asked.unwrap_or_else(|refused| refused.asked);
    // A key is kept and audited as it came: one that looks like a credential, or like a part of one that is live, goes
    // no further than this.
    let passes = |text: &str| supply.guard.passes(text);
    let is_unfit = |key: &IdempotencyKey| !passes(key.as_str()) || !key.echo().to_str().is_ok_and(passes);
    let unfit = asked.key.take_if(|key| is_unfit(key)).is_some();
    if gate.keys.is_some()
        && let Err(rejection) = supply.protocol.stated(&parts.headers, &body)
    {
        return supply.protocol.answers.rejected(&asked, &rejection);
    }
    let who = match who(&supply, &parts, (asked, trail)).await {
        Ok(who) => who,
        Err(response) => return *response,
    };
    if let Some(refused) = refused(&supply, gate, &who).await {
        return refused;
    }
    if percent_decode_str(parts.uri.path()).decode_utf8().is_err() {
        return envelope::plain(who.request_id(), ROUTE_UNKNOWN);
    }
    if unfit {
        return unfit_key(&supply, &who).await;
    }
    who.trail.passed(who.request_id());
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let route = format!("{} {route}", parts.method);
    parts.extensions.insert(who.clone());
    let response = next.run(Request::from_parts(parts, body)).await;
    leave(&supply, (gate, &route), &who, response).await
}

/// The refusal of a key that is a credential or a part of one.
async fn unfit_key(supply: &Supply, who: &Who) -> Response {
    let kept = act::audited(supply, who, "supply.write.refused", KEY_INVALID.name).await;
    kept.map_or_else(|later| *later, |()| envelope::plain(who.request_id(), KEY_INVALID))
}

/// Step 3: bearer, token, standing.
async fn who(supply: &Supply, parts: &Parts, (asked, trail): (Asked, Trail)) -> Result<Who, Box<Response>> {
    let values = parts.headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    let now = supply.clock.now();
    let principal = match supply.callers.identify(values, now).await {
        Ok(principal) => principal,
        Err(refusal) => {
            let code = refusal.code();
            supply.tally.unauthenticated(now, code.name());
            metrics::counter!("onceseal_token_authn_failed_total", "code" => code.name()).increment(1);
            tracing::info!(request_id = asked.request_id, %refusal, "caller_refused");
            if code == auth::Code::UpstreamCredential {
                ingress::told(supply, parts, &asked.request_id).await;
            }
            let fixed = Fixed::from(code);
            return Err(Box::new(match code.retry_after() {
                Some(after) => envelope::later(&asked.request_id, fixed, u64::from(after).max(1)),
                None => envelope::plain(&asked.request_id, fixed),
            }));
        }
    };
    supply.tally.authenticated(now);
    let (client, agent) = sender(supply, parts);
    let attempt = Attempt::of(parts, &principal, &supply.guard);
    Ok(Who { principal, asked, trail, attempt, client, agent })
}

/// Address and user agent of whoever sent it, as they are kept.
pub(super) fn sender(supply: &Supply, parts: &Parts) -> (Option<IpAddr>, Option<String>) {
    let client = parts.extensions.get::<Arrived>().and_then(|arrived| arrived.client);
    let agent = parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    (client, agent.map(|agent| supply.guard.redact(agent).chars().take(AGENT_MAX).collect()))
}

/// Step 4: rate, scope, role.
async fn refused(supply: &Supply, gate: Gate, who: &Who) -> Option<Response> {
    let (operator, now) = (who.principal.operator_id, supply.clock.now());
    let taken = supply.rates.take(Kind::Call, operator, now);
    let taken = taken.and_then(|()| match gate.kind {
        Kind::Verify => supply.rates.take(Kind::Verify, operator, now),
        Kind::Call => Ok(()),
    });
    if let Err(after) = taken {
        metrics::counter!("onceseal_rate_limited_total").increment(1);
        if gate.is_critical() {
            supply.tally.limited(now, &who.own());
        }
        return Some(envelope::later(who.request_id(), TOO_MANY, after.as_secs() + 1));
    }
    let refusal = gate.need?.judge(&who.principal).err()?;
    let fixed = Fixed::from(refusal.code());
    let mut kept = act::audited(supply, who, "token.authz.denied", fixed.name).await;
    if kept.is_ok() && gate.is_critical() {
        kept = act::audited(supply, who, "supply.write.refused", fixed.name).await;
    }
    Some(kept.map_or_else(|later| *later, |()| envelope::plain(who.request_id(), fixed)))
}

/// The way out: nothing leaves that looks like a credential (section 15); a critical write that was refused before
/// the door is audited (section 7.3).
async fn leave(supply: &Supply, (gate, route): (Gate, &str), who: &Who, response: Response) -> Response {
    if response.extensions().get::<UnfitKey>().is_some() {
        let mut who = who.clone();
        who.asked.key = None;
        return unfit_key(supply, &who).await;
    }
    let submitted = response.extensions().get::<Submitted>().is_some();
    let (parts, body) = response.into_parts();
    let Ok(mut bytes) = to_bytes(body, ANSWER_MAX).await else {
        return envelope::plain(who.request_id(), envelope::INTERNAL);
    };
    let is_refused = parts.status.is_client_error() && !submitted;
    if is_refused && let Some(clean) = unnamed(supply, &bytes) {
        bytes = clean.into();
    }
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        supply.guard.body(route, &format!("header/{name}"), value.as_bytes())
    };
    let verdicts = parts.headers.iter().map(header).chain([supply.guard.body(route, "body", &bytes)]);
    if let Err(exposure) = verdicts.map(Verdict::clean).collect::<Result<Vec<()>, _>>() {
        act::exposed(supply, who, &exposure).await;
        return envelope::plain(who.request_id(), WITHHELD);
    }
    if gate.is_critical() && is_refused {
        let code = serde_json::from_slice::<Json>(&bytes).ok();
        let code = code.as_ref().and_then(|body| body.pointer("/error/code").or(body.get("code"))?.as_str());
        let kept = act::audited(supply, who, "supply.write.refused", code.unwrap_or("SUP_COM_4000")).await;
        if let Err(later) = kept {
            return *later;
        }
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// A refusal without the names of the client's own that can't be told again; `None` where all can.
fn unnamed(supply: &Supply, body: &[u8]) -> Option<Vec<u8>> {
    if supply.guard.text("body", body) == Verdict::Clean {
        return None;
    }
    let mut told: Json = serde_json::from_slice(body).ok()?;
    // Of the envelope, or of a problem.
    let details = if told.get("error").is_some() { "/error/details/fields" } else { "/details/fields" };
    for fault in told.pointer_mut(details)?.as_array_mut()? {
        let field = fault.get_mut("field")?;
        if field.as_str().is_none_or(|name| !supply.guard.passes(name)) {
            *field = "?".into();
        }
    }
    serde_json::to_vec(&told).ok()
}
