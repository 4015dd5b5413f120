//! The middle of the comparison: the receiver a good team writes first.
//!
//! axum, one SQLite connection behind a mutex on blocking threads, the sender's
//! signature checked in constant time, one transaction an event, an answer only
//! after the commit. It is written to be fair: a slow part of it would flatter
//! what it is compared with.

mod answer;
mod event;
mod signature;
mod store;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use clap::Parser;
use hmac::{Hmac, KeyInit};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::net::TcpListener;

use crate::event::Event;
use crate::signature::Senders;
use crate::store::Store;

/// Largest body read, in bytes.
const BODY_LIMIT: usize = 1024 * 1024;

/// A webhook receiver with one SQLite transaction an event.
#[derive(Parser)]
struct Args {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The database file; made when missing.
    #[arg(long)]
    database: PathBuf,
    /// Signing secret of the source `stripe`.
    #[arg(long, env = "NAIVE_STRIPE_SECRET", hide_env_values = true)]
    stripe_secret: String,
    /// Bearer token of the source `internal`.
    #[arg(long, env = "NAIVE_INTERNAL_TOKEN", hide_env_values = true)]
    internal_token: String,
}

struct Receiver {
    senders: Senders,
    store: Mutex<Store>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let key = Hmac::new_from_slice(args.stripe_secret.as_bytes())?;
    let receiver = Arc::new(Receiver {
        senders: Senders::new(&args.stripe_secret, args.internal_token)?,
        store: Mutex::new(Store::open(&args.database, key)?),
    });
    let listener = TcpListener::bind(args.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let routes = Router::new()
        .route("/webhooks/{source}", post(receive))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(receiver);
    // A failure to switch Nagle's algorithm off costs time, not correctness.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn receive(
    State(receiver): State<Arc<Receiver>>,
    Path(source): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let at = now();
    if !receiver.senders.verified(&source, &headers, &body, at.as_second()) {
        return (StatusCode::UNAUTHORIZED, "signature not valid\n").into_response();
    }
    let Ok(event) = Event::parse(source, &body, at) else {
        return (StatusCode::BAD_REQUEST, "body is not an event\n").into_response();
    };
    let written = tokio::task::spawn_blocking(move || -> anyhow::Result<String> {
        let answer = receiver.store.lock().record(&event)?;
        Ok(serde_json::to_string(&answer)?)
    });
    match written.await {
        Ok(Ok(answer)) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "not recorded, send again\n").into_response(),
    }
}

/// Now, in whole seconds.
#[expect(clippy::disallowed_methods, reason = "a comparison program's own clock; nothing is tested on it")]
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
