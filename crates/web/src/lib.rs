//! The HTTP edge: webhooks in, certificates out, operators' orders, health. Everything that comes from
//! outside is bounded in size and time here, and every error leaves in one shape.
//!
//! Modules in reading order: [`codes`] (every error there is), [`problem`] (how an error is written),
//! `arrival` (request id, trace, client), `edge` (what stands around every handler), `webhook`, `delivery`,
//! [`token`] and `operator` (who may order what), `admin`, `announcements`, `market`, [`supply`] (the supply API),
//! [`health`], `meters`, [`mod@serve`], `stall` and [`tls`] (sockets).
//!
//! [`router`] depends on no socket: the command line calls it in its own process.
//!
//! Not here: what an event means (`certify`), configuration files and start-up (`onceseal`).

pub mod codes;
pub mod health;
pub mod problem;
pub mod serve;
pub mod tls;
pub mod token;

mod admin;
mod announcements;
mod arrival;
mod body;
mod delivery;
mod edge;
mod market;
mod meters;
mod operator;
mod stall;
pub mod supply;
mod webhook;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};

pub use admin::{NEXT_AFTER, Rebuild};
pub use announcements::Announcements;
pub use edge::{Limits, State};
pub use meters::recorder;
pub use serve::{ServeSettings, Stopped, serve};

use crate::codes::{METHOD_NOT_ALLOWED, ROUTE_UNKNOWN};
use crate::edge::{AroundLayer, Edge};
use crate::problem::Problem;

/// All routes. Works with or without a connection: where an
/// [`axum::extract::ConnectInfo`]`<SocketAddr>` is in the request, it is the peer.
pub fn router(state: State) -> Router {
    let supply = state.supply.clone();
    let edge = Arc::new(Edge::new(state));
    let routes = Router::new()
        .route("/webhooks/{source}", post(webhook::receive))
        .route("/d/{file}", get(delivery::fetch))
        .route("/.well-known/onceseal/keys.json", get(delivery::keys))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/actuator/health", get(health::up))
        .route("/actuator/health/live", get(health::live))
        .route("/actuator/health/ready", get(health::up))
        .nest("/api/v1/certify", orders())
        .with_state(Arc::clone(&edge));
    let routes = match &supply {
        Some(supply) => routes.merge(supply::routes(supply)),
        None => routes,
    };
    routes
        .method_not_allowed_fallback(async |request: Request| refused(&request, METHOD_NOT_ALLOWED))
        .fallback(async |request: Request| refused(&request, ROUTE_UNKNOWN))
        .layer(AroundLayer(edge))
}

/// What no route takes, in the shape that its path's API has.
fn refused(request: &Request, code: codes::Code) -> Response {
    supply::count::no_route(request);
    if !supply::owns(request.uri().path()) {
        return Problem::new(code).into_response();
    }
    let request_id = arrival::of(request);
    let fixed =
        if code == METHOD_NOT_ALLOWED { supply::envelope::METHOD } else { supply::envelope::ROUTE_UNKNOWN };
    supply::envelope::plain(&request_id, fixed)
}

fn orders() -> Router<Arc<Edge>> {
    Router::new()
        .route("/events", get(operator::events))
        .route("/events/{event}", get(operator::event))
        .route("/events/{event}/retry", post(operator::retry))
        .route("/events/{event}/inspect", get(operator::inspect))
        .route("/events/{event}/erase", post(operator::erase))
        .route("/status", get(operator::status))
        .route("/reconcile", post(admin::reconcile))
        .route("/check", post(admin::check))
        .route("/export", get(admin::export))
        .route("/export/rebuild", post(admin::rebuild))
        .route("/import", post(admin::import))
        .route("/announcements", get(announcements::list))
        .route("/announcements/{id}/redrive", post(announcements::redrive))
        .route("/announcements/{id}/settle", post(announcements::settle))
        .route("/keys", get(admin::keys))
        .route("/keys/rotate", post(admin::rotate_keys))
        .route("/keys/announce", post(admin::announce_key))
        .route("/keys/activate", post(admin::activate_key))
        .route("/keys/withdraw", post(admin::withdraw_key))
        .route("/backup", post(admin::backup))
        .route("/fence", post(admin::fence))
        .route("/fence/lift", post(admin::lift_fence))
        .route("/tokens", get(operator::tokens).post(operator::issue))
        .route("/tokens/{name}/revoke", post(operator::revoke))
        .route("/platform-admins", post(market::administrator))
        .route("/platform-tokens", post(market::issue))
        .route("/wrapping-keys", get(market::wrapping_keys))
        .route("/wrapping-keys/rewrap", post(market::rewrap))
        .route("/ledger", get(market::ledger))
        .route("/slo", get(market::slo))
}
