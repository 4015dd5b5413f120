//! The door over HTTP: one route, with the key in its header.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use door::{Answer, Door, Submission};
use serde::Deserialize;
use tokio::net::TcpListener;

use crate::transfer::Transfer;

/// Longest key, in characters.
const KEY_MAX: usize = 255;

/// How long a request waits for its twin.
const WAIT: Duration = Duration::from_secs(5);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Deserialize)]
struct Order {
    account: i64,
    amount: i64,
}

/// Serves until it is killed.
///
/// # Errors
/// The address can't be listened on.
pub(crate) async fn run(door: Door, listen: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let routes = Router::new()
        .route("/transfers", post(transfer))
        .route("/health", get(|| async { "up" }))
        .with_state(Arc::new(door));
    // A failure to switch Nagle's algorithm off costs time, not correctness.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn transfer(State(door): State<Arc<Door>>, headers: HeaderMap, body: Bytes) -> Response {
    let key = headers.get("idempotency-key").and_then(|it| it.to_str().ok()).map(str::trim);
    let Some(key) = key.filter(|it| (1..=KEY_MAX).contains(&it.len())) else {
        return refused(StatusCode::BAD_REQUEST, "Idempotency-Key is missing");
    };
    let Ok(Order { account, amount: amount @ 1.. }) = serde_json::from_slice(&body) else {
        return refused(StatusCode::BAD_REQUEST, "the body is no transfer");
    };
    let mut id = [0; 16];
    door.fill_random(&mut id);
    let request_id = format!("{:032x}", u128::from_be_bytes(id));
    let command = Transfer { key: key.to_owned(), account, amount, request_id };
    match door.submit(Submission { key: Some(command.under()), command, wait: WAIT }).await {
        Ok(answer) => answered(answer),
        Err(failure) => {
            let mut response = refused(StatusCode::SERVICE_UNAVAILABLE, &failure.to_string());
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

fn answered(answer: Answer) -> Response {
    match answer {
        Answer::Done(done) if !done.same => {
            refused(StatusCode::CONFLICT, "the key was used with another payload")
        }
        Answer::Done(done) => {
            let status = StatusCode::from_u16(done.outcome.code).unwrap_or(StatusCode::OK);
            let mut response = (status, [(CONTENT_TYPE, JSON)], done.outcome.body).into_response();
            if done.replayed {
                response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
            }
            response
        }
        Answer::InProgress { .. } => refused(StatusCode::ACCEPTED, "the same transfer is running"),
        Answer::Open { .. } | Answer::Orphaned => {
            refused(StatusCode::INTERNAL_SERVER_ERROR, "the transfer has no result")
        }
    }
}

fn refused(status: StatusCode, why: &str) -> Response {
    let body = serde_json::json!({ "status": "problem", "detail": why }).to_string();
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))], body).into_response()
}
