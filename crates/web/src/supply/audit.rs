//! What the platform's auditors read (sections 3.3, 8.5, 19): one event of the audit log, the log of tokens, and the
//! metrics of the gate over a period.

use std::time::Duration;

use auth::{Need, scope};
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use serde_json::{Map, json};
use supply::Code;
use supply::slo::{Metric, Period};

use super::accounts::unavailable;
use super::enter::{Gate, Who};
use super::read::{Params, missing, pagination, rfc3339};
use super::{Shared, envelope, rate};

/// What is looked at where nothing is said.
const USUAL: Duration = Duration::from_secs(30 * 24 * 3600);

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let need = Need::read(scope::SUPPLY_AUDIT_READ).or_admin(scope::PLATFORM_AUDIT_READ);
    let gate = Gate { need: Some(need), kind: rate::Kind::Call, keys: None };
    let auditors = Gate::read(scope::PLATFORM_AUDIT_READ);
    Router::new()
        .route("/api/v1/audit/events/{event_id}", gate.around(supply, get(event)))
        .route("/api/v1/audit/metrics/{metric}", auditors.around(supply, get(metric)))
        .route("/api/v1/platform/tokens/audit-events", auditors.around(supply, get(tokens)))
}

/// Whose events this caller sees: administrators all, others those of their own tenant.
fn tenant(who: &Who) -> Option<i64> {
    (!who.principal.is_admin()).then_some(who.principal.tenant_id)
}

async fn event(State(supply): State<Shared>, Path(text): Path<String>, who: Who) -> Response {
    let Ok(id) = uuid::Uuid::try_parse(&text) else { return missing(who.request_id(), Code::ComMissing) };
    match supply::audit::get(supply.door.store(), tenant(&who), *id.as_bytes()).await {
        Ok(Some(found)) => envelope::data(who.request_id(), &found),
        Ok(None) => missing(who.request_id(), Code::ComMissing),
        Err(error) => unavailable(&who, &error),
    }
}

async fn tokens(State(supply): State<Shared>, query: RawQuery, who: Who) -> Response {
    let mut params = Params::of(query);
    let page = params.page();
    if let Err(refused) = params.close(who.request_id()) {
        return *refused;
    }
    match supply::audit::tokens(supply.door.store(), tenant(&who), page).await {
        Ok((events, total)) => envelope::page(who.request_id(), &events, pagination(page, total)),
        Err(error) => unavailable(&who, &error),
    }
}

async fn metric(
    State(supply): State<Shared>,
    Path(slug): Path<String>,
    query: RawQuery,
    who: Who,
) -> Response {
    let Some(metric) = Metric::of(&slug) else { return missing(who.request_id(), Code::ComMissing) };
    let mut params = Params::of(query);
    let instant = |text: &str| rfc3339(text).filter(|time| time.micros() >= 0);
    let (start, end) = (params.read("start", instant), params.read("end", instant));
    if let Err(refused) = params.close(who.request_id()) {
        return *refused;
    }
    // What this server has counted so far is part of it.
    if let Err(failure) = supply.tally.keep(&supply.door).await {
        tracing::error!(request_id = who.request_id(), %failure, "counts_not_kept");
        return envelope::later(who.request_id(), envelope::DEPENDENCY, 2);
    }
    // The store's clock may be ahead of what is known of it, and what was just written counts.
    let to = end.unwrap_or_else(|| supply.clock.now().plus(Duration::from_secs(1)));
    let period = Period { from: start.unwrap_or_else(|| to.minus(USUAL)), to };
    if let Some(wrong) = unfit(period) {
        let mut details = Map::new();
        details.insert("fields".into(), json!([{ "field": "end", "rule": wrong }]));
        return envelope::error(who.request_id(), Code::ComField.into(), &details);
    }
    match metric.read(supply.door.store(), period).await {
        Ok(reading) => envelope::data(who.request_id(), &reading),
        Err(error) => unavailable(&who, &error),
    }
}

/// The rule that a period breaks.
fn unfit(Period { from, to }: Period) -> Option<&'static str> {
    match () {
        () if to <= from => Some("order"),
        () if to.since(from) > Period::LONGEST => Some("span"),
        () => None,
    }
}
