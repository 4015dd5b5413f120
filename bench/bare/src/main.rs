//! The ceiling of the comparison: an axum route that reads the body and sends
//! back a fixed answer of the usual size.
//!
//! It checks no signature, parses nothing and keeps nothing. What a receiver
//! loses against it is the price of its own work, not of HTTP.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt;
use clap::Parser;
use tokio::net::TcpListener;

/// Largest body read, in bytes: the limit of the receivers it is compared with.
const BODY_LIMIT: usize = 1024 * 1024;

/// Same fields and size as the answer to a first delivery.
const ANSWER: &str = include_str!("../../answer.json");

/// A route that answers without doing anything.
#[derive(Parser)]
struct Args {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let listener = TcpListener::bind(args.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let routes =
        Router::new().route("/webhooks/{source}", post(receive)).layer(DefaultBodyLimit::max(BODY_LIMIT));
    // A failure to switch Nagle's algorithm off costs time, not correctness.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn receive(Path(_source): Path<String>, _body: Bytes) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], ANSWER)
}
