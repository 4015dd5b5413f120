//! What whoever watches the consumers' networks tells of calls past the platform (sections 16.2 and 19, M-015). Not
//! here: that they are counted ([`supply::slo`]).

use auth::{Need, scope};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use custody::Provider;
use onceseal_http::Call;
use supply::platform::ReportEgress;
use supply::tenants::Owned;

use super::Shared;
use super::enter::{Gate, Who};
use super::platform::act;
use super::read::instant;
use super::texts::{named, prose};

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let risk = Gate::write(Need::write(scope::PLATFORM_RISK));
    Router::new().route("/api/v1/platform/egress-events", risk.around(supply, post(report)))
}

async fn report(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let read = call.fields(|fields| {
        let guard = &supply.guard;
        let event_id = named(guard, fields, "event_id", 1..=64);
        let consumer = fields.whole("consumer_tenant_id", 1..=i64::MAX);
        let provider = fields.word("provider", Provider::WORDS);
        let (host, source) = (named(guard, fields, "host", 1..=253), fields.line("source", 1..=200));
        let occurred_at = instant(fields, "occurred_at");
        Some(ReportEgress {
            event_id: event_id?.to_owned(),
            consumer_tenant_id: consumer?,
            provider: provider?.to_owned(),
            host: host?.to_owned(),
            occurred_at: occurred_at?,
            // A line of a proxy may hold the credential that was used.
            source: prose(guard, source?, 200),
        })
    });
    match read {
        Ok(action) => {
            let consumer = Owned::Consumer(action.consumer_tenant_id);
            act(&supply, &call, (&who, consumer), action).await
        }
        Err(rejected) => rejected.into_response(),
    }
}
