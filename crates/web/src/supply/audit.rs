//! One event of the audit log (section 8.5).

use auth::{Need, scope};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use supply::Code;

use super::accounts::unavailable;
use super::enter::{Gate, Who};
use super::read::missing;
use super::{Shared, envelope, rate};

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let need = Need::read(scope::SUPPLY_AUDIT_READ).or_admin(scope::PLATFORM_AUDIT_READ);
    let gate = Gate { need, kind: rate::Kind::Call, keys: None };
    Router::new().route("/api/v1/audit/events/{event_id}", gate.around(supply, get(event)))
}

async fn event(State(supply): State<Shared>, Path(text): Path<String>, who: Who) -> Response {
    let Ok(id) = uuid::Uuid::try_parse(&text) else { return missing(who.request_id(), Code::ComMissing) };
    let tenant = (!who.principal.is_admin()).then_some(who.principal.tenant_id);
    match supply::audit::get(supply.door.store(), tenant, *id.as_bytes()).await {
        Ok(Some(found)) => envelope::data(who.request_id(), &found),
        Ok(None) => missing(who.request_id(), Code::ComMissing),
        Err(error) => unavailable(&who, &error),
    }
}
