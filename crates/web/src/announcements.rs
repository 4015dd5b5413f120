//! Announcements that wait for a person: see them, send one anew, say how one ended.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Uri;
use relay::held::{self, Denied, Settlement};
use relay::{Nudge, State as Standing};
use serde_json::{Value as Json, json};

use crate::arrival::Arrived;
use crate::codes::{ANNOUNCEMENT_STATE, ANNOUNCEMENT_UNKNOWN};
use crate::edge::Edge;
use crate::operator::{
    Answer, Named, asked, input, named, nothing_asked, nothing_left, number, shown, text, unusable,
};
use crate::problem::Problem;
use crate::token::Operator;

type Shared = State<Arc<Edge>>;

/// Announcements on one page when nothing else is asked for.
const PAGE: i64 = 50;

/// The running relay, as far as the edge needs it.
#[derive(Clone, Debug, Default)]
pub struct Announcements {
    /// Channels that are configured: only to these an announcement can be sent anew.
    pub destinations: Vec<String>,
    /// Wakes the relay after one was.
    pub nudge: Option<Nudge>,
}

pub(crate) async fn list(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    let asked = asked(uri.query().unwrap_or_default(), &["status", "limit"])?;
    let states = match asked.get("status").and_then(Json::as_str) {
        None => Standing::HELD.to_vec(),
        Some(word) => vec![Standing::parse(word).ok_or_else(|| {
            let known = Standing::ALL.map(Standing::as_str).join(", ");
            crate::operator::invalid(format!("status: {word:?} is not one of {known}"))
        })?],
    };
    let limit = u32::try_from(number(&asked, "limit")?.unwrap_or(PAGE)).unwrap_or(1).max(1);
    let found = held::list(edge.visa.door(), &states, limit).await?;
    let announcements: Vec<Json> = found.iter().map(announcement).collect();
    Ok(shown(&json!({ "announcements": announcements })))
}

pub(crate) async fn redrive(operator: Operator, State(edge): Shared, id: Named, request: Request) -> Answer {
    nothing_asked(request.uri())?;
    let id = numbered(id)?;
    let by = acting(&operator, &request, "redrive");
    held::redrive(edge.visa.door(), id, &by, &edge.announcements.destinations).await?;
    if let Some(nudge) = &edge.announcements.nudge {
        nudge.nudge();
    }
    Ok(shown(&json!({ "id": id, "status": "pending" })))
}

pub(crate) async fn settle(operator: Operator, State(edge): Shared, id: Named, request: Request) -> Answer {
    let id = numbered(id)?;
    let by = acting(&operator, &request, "settle");
    let mut input = input(&edge, request).await?;
    let (settlement, status) = match text(&mut input, "as")?.as_str() {
        "delivered" => (Settlement::Delivered, "delivered"),
        "dead" => (Settlement::Dead, "dead"),
        _ => return Err(unusable("as must be \"delivered\" or \"dead\"")),
    };
    nothing_left(&input)?;
    held::settle(edge.visa.door(), id, settlement, &by).await?;
    Ok(shown(&json!({ "id": id, "status": status })))
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let code = match denied {
            Denied::Unknown(_) => ANNOUNCEMENT_UNKNOWN,
            Denied::State { .. } | Denied::Destination { .. } => ANNOUNCEMENT_STATE,
            Denied::Failure(failure) => return failure.into(),
        };
        Self::new(code).saying(denied.to_string())
    }
}

fn numbered(id: Named) -> Result<i64, Problem> {
    named(id)?.parse().map_err(|_| Problem::new(ANNOUNCEMENT_UNKNOWN))
}

/// Tokens have names and no user ids: the name stands in the audit's request id, as for every other act.
fn acting(operator: &Operator, request: &Request, act: &str) -> held::Operator {
    let id = request.extensions().get::<Arrived>().map_or("", |arrived| arrived.request_id.as_str());
    let request_id = format!("{act}:{}:{id}", operator.name);
    held::Operator { id: 1, kind: "admin", role: "operator", request_id }
}

fn announcement(held: &held::Delivery) -> Json {
    json!({
        "id": held.id,
        "event_id": held.event_id.to_string(),
        "event_name": held.event_name,
        "object": held.object_key,
        "destination": held.destination,
        "status": held.state.as_str(),
        "attempts": held.attempt,
        "next_attempt_at": held.next_attempt_at.to_rfc3339_seconds(),
        "outcome": held.outcome,
        "error": held.error,
        "created_at": held.created_at.to_rfc3339_seconds(),
        "updated_at": held.updated_at.to_rfc3339_seconds(),
    })
}
