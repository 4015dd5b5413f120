//! How requests of the supply API are counted (sections 18, 19): at the outermost place, where a panic is an answer,
//! too. What the way in and the door know of a request beyond its status stands on its [`Trail`]. Not here: what
//! counts against the service ([`supply::slo`]), and which rules watch the counters.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use door::{Answer, Failure};
use onceseal_http::answer::REPLAYED;
use parking_lot::Mutex;
use serde_json::Value as Json;
use store::{Query, Value};
use supply::exit::{BLOCKED, UNTOLD};
use supply::slo::tally::STUCK_AFTER;
use supply::slo::{BUTTONS, Button, End};

use super::Supply;
use super::query_key::{DETECTED, REJECTED};

/// Counter of a button's requests by how they ended.
pub(crate) const REQUESTS: &str = "onceseal_supply_requests_total";
/// Histogram of the time that they took.
pub(crate) const SECONDS: &str = "onceseal_supply_request_seconds";
/// Counter of requests that reached a handler, by what told who calls.
pub(crate) const INGRESS: &str = "onceseal_supply_ingress_requests_total";

/// Shows all counters from the start, so that a first error is an increase.
pub(crate) fn begin() {
    for button in &BUTTONS {
        for end in End::ALL {
            metrics::counter!(REQUESTS, "button" => button.id, "outcome" => end.as_str()).increment(0);
        }
    }
    for credential in ["platform", "none"] {
        metrics::counter!(INGRESS, "credential" => credential).increment(0);
    }
    for name in [DETECTED, REJECTED, BLOCKED, UNTOLD] {
        metrics::counter!(name).increment(0);
    }
}

/// What a request met on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail(Arc<Mutex<Marks>>);

#[derive(Clone, Debug, Default)]
struct Marks {
    passage: Passage,
    end: Option<End>,
}

#[derive(Clone, Debug, Default)]
enum Passage {
    /// Nobody was asked who calls.
    #[default]
    Unasked,
    /// It reached no handler.
    TurnedAway,
    /// A platform credential told who calls; the request's id.
    Passed(String),
}

impl Trail {
    /// It reaches no handler, unless it says otherwise.
    pub(crate) fn turned_away(&self) {
        self.0.lock().passage = Passage::TurnedAway;
    }

    /// A platform credential told who calls, and they may.
    pub(super) fn passed(&self, request_id: &str) {
        self.0.lock().passage = Passage::Passed(request_id.to_owned());
    }

    pub(super) fn ended(&self, end: Option<End>) {
        self.0.lock().end = end;
    }
}

/// Marks a request that no route takes.
pub(crate) fn no_route(request: &Request) {
    if let Some(trail) = request.extensions().get::<Trail>() {
        trail.turned_away();
    }
}

/// What is counted of a request before it is answered.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) trail: Trail,
    button: Option<usize>,
    is_ours: bool,
}

impl Asked {
    /// Of a request that has its route, and puts the trail into it.
    pub(crate) fn of(request: &mut Request) -> Self {
        let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
        let path = path.as_deref().unwrap_or_default();
        let trail = Trail::default();
        let method = request.method().as_str();
        let asked =
            Self { trail: trail.clone(), button: Button::of(method, path), is_ours: super::owns(path) };
        request.extensions_mut().insert(trail);
        asked
    }

    /// Counts the answer.
    pub(crate) fn answered(self, supply: &Supply, response: &Response, took: Duration) {
        let Marks { passage, end } = self.trail.0.lock().clone();
        let now = supply.clock.now();
        let reached = !matches!(passage, Passage::TurnedAway);
        if self.is_ours && reached {
            let (credential, id) = match passage {
                Passage::Passed(id) => ("platform", Some(id)),
                _ => ("none", None),
            };
            metrics::counter!(INGRESS, "credential" => credential).increment(1);
            supply.tally.reached(now, id);
        }
        let Some((button, id)) = self.button.and_then(|at| Some((at, BUTTONS.get(at)?.id))) else { return };
        let end = told(response, end);
        metrics::counter!(REQUESTS, "button" => id, "outcome" => end.as_str()).increment(1);
        if reached {
            metrics::histogram!(SECONDS, "button" => id).record(took.as_secs_f64());
        }
        supply.tally.answered(now, button, end, reached.then_some(took));
    }
}

fn told(response: &Response, end: Option<End>) -> End {
    let status = response.status();
    match end {
        _ if status.is_server_error() => End::Failed,
        Some(end) => end,
        None if response.headers().contains_key(REPLAYED) => End::Replayed,
        None if status.is_client_error() => End::Refused,
        None => End::Done,
    }
}

/// What a status alone does not tell of a submission under the key with these values.
pub(super) async fn end(
    supply: &Supply,
    key: Option<Vec<Value>>,
    ended: &Result<Answer, Failure>,
) -> Option<End> {
    let outcome = match ended {
        Ok(Answer::InProgress { same: true, .. }) => return Some(twin(supply, key).await),
        Ok(Answer::Done(done)) if !done.replayed => &done.outcome,
        // The key stays open: whoever comes again may be faster.
        Ok(Answer::Open { outcome: Some(outcome), .. }) => outcome,
        _ => return None,
    };
    let body: Json = serde_json::from_str(&outcome.body).ok().filter(|_| outcome.code == 409)?;
    let lost = body.pointer("/error/details/lost_race").and_then(Json::as_bool);
    lost.unwrap_or(false).then_some(End::LostRace)
}

const RUNNING_SINCE: &str = "select case when attempt_no = 1 and claim_generation = 1 then created_at else updated_at end from supply_idempotency_record where tenant_id = $1 and operator_id = $2 and api_path = $3 and idempotency_key = $4 and status = 'processing'";

/// How long the first one has been running; what has no durable claim yet began a moment ago.
async fn twin(supply: &Supply, key: Option<Vec<Value>>) -> End {
    let Some(key) = key else { return End::Running };
    let rows = supply.door.store().query(Query::new("slo.running", RUNNING_SINCE, key)).await;
    let since = rows.ok().and_then(|rows| rows.first()?.time(0).ok());
    let is_stuck = since.is_some_and(|since| supply.clock.now().since(since) > STUCK_AFTER);
    if is_stuck { End::Stuck } else { End::Running }
}
