//! Wakes the announcements soon after a new result, and after a code that somebody at a phone waits for, at a
//! bounded rate: under load the relay finds work by itself, and each wake-up costs the writer a turn.

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

/// Whether what a request brings is told at once.
fn is_awaited(request: &Request) -> bool {
    let path = request.uri().path();
    request.method() == Method::POST && (path.starts_with("/webhooks/") || path == web::supply::SMS_CODE)
}

async fn note(State(fresh): State<Arc<Notify>>, request: Request, next: Next) -> Response {
    let awaited = is_awaited(&request);
    let answer = next.run(request).await;
    if awaited && answer.status() == StatusCode::OK && !answer.headers().contains_key(REPLAYED) {
        fresh.notify_one();
    }
    answer
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn results_and_codes_are_told_at_once_and_nothing_else_is() {
        let awaited = |method: Method, path: &str| {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            *request.uri_mut() = path.parse().unwrap();
            is_awaited(&request)
        };
        assert!(awaited(Method::POST, "/webhooks/stripe") && awaited(Method::POST, web::supply::SMS_CODE));
        assert!(!awaited(Method::GET, "/webhooks/stripe"));
        assert!(!awaited(Method::POST, "/api/v1/supply/settlements/withdraw"));
    }
}
