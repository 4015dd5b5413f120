//! Where the run gets what no description can give: a code that was just sent to the supplier's phone. `GET /code`
//! has one sent and answers with it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use play::{Call, Client, Phone, Supplier};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

struct Desk {
    client: Client,
    supplier: Supplier,
    phone: Phone,
    /// One code after another: a newer one replaces the one before.
    turn: Mutex<()>,
}

/// Opens it; its address. It ends with the runtime.
///
/// # Errors
/// No port is free.
pub(super) async fn open(client: Client, supplier: Supplier, phone: Phone) -> anyhow::Result<String> {
    let desk = Arc::new(Desk { client, supplier, phone, turn: Mutex::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/code", get(code)).with_state(desk);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

async fn code(State(desk): State<Arc<Desk>>) -> Result<String, (StatusCode, String)> {
    let Desk { client, supplier, phone, turn } = &*desk;
    let _turn = turn.lock().await;
    let before = phone.count(&supplier.phone);
    let path = "/api/v1/supply/settlements/withdraw/sms-code";
    let sent = client.send(&Call::post(path, &supplier.token, &client.key(), serde_json::Value::Null)).await;
    let failed = |cause: String| (StatusCode::BAD_GATEWAY, cause);
    sent.and_then(play::Answer::done).map_err(failed)?;
    phone.code(&supplier.phone, before).await.map_err(failed)
}
