//! Wakes the announcements soon after a new result, at a bounded rate: under load the relay finds work by
//! itself, and each wake-up costs the writer a turn.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Between two wake-ups.
const PAUSE: Duration = Duration::from_millis(200);
/// Header of a repeat's answer: nothing new is announced then.
const REPLAYED: &str = "idempotent-replayed";

/// Wraps the routes; the task runs until it is aborted.
pub fn wake(router: Router, nudge: relay::Nudge) -> (Router, JoinHandle<()>) {
    let fresh = Arc::new(Notify::new());
    let waiting = Arc::clone(&fresh);
    let task = tokio::spawn(async move {
        loop {
            waiting.notified().await;
            nudge.nudge();
            tokio::time::sleep(PAUSE).await;
        }
    });
    (router.layer(from_fn_with_state(fresh, note)), task)
}

async fn note(State(fresh): State<Arc<Notify>>, request: Request, next: Next) -> Response {
    let delivery = request.method() == Method::POST && request.uri().path().starts_with("/webhooks/");
    let answer = next.run(request).await;
    if delivery && answer.status() == StatusCode::OK && !answer.headers().contains_key(REPLAYED) {
        fresh.notify_one();
    }
    answer
}
