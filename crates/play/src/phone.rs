//! The SMS service and the suppliers' phones in one: on loopback, it takes messages as a service does and lets the
//! person at the phone read the newest code.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// A message that has not come after this long won't.
const WITHIN: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Inbox {
    /// Codes by phone, in the order in which they came.
    codes: Mutex<BTreeMap<String, Vec<String>>>,
    came: Notify,
}

/// The service; it ends with the runtime.
pub struct Phone {
    address: String,
    inbox: Arc<Inbox>,
}

impl Phone {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// There is none.
    pub async fn start() -> std::io::Result<Self> {
        let inbox = Arc::new(Inbox::default());
        let router = Router::new().route("/send", post(take)).with_state(Arc::clone(&inbox));
        let address = super::setting::serve(TcpListener::bind("127.0.0.1:0").await?, router)?;
        Ok(Self { address: format!("{address}/send"), inbox })
    }

    /// Its address, for `supply.sms.url`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many codes came to this phone.
    #[must_use]
    pub fn count(&self, phone: &str) -> usize {
        self.inbox.codes.lock().get(phone).map_or(0, Vec::len)
    }

    /// The newest code at this phone, once there are more than `before`.
    ///
    /// # Errors
    /// None came within 20 seconds.
    pub async fn code(&self, phone: &str, before: usize) -> Result<String, String> {
        let newer = async {
            loop {
                let came = self.inbox.came.notified();
                tokio::pin!(came);
                // Before the look, or a message between look and wait would go unnoticed.
                came.as_mut().enable();
                let newest = self.inbox.codes.lock().get(phone).filter(|all| all.len() > before).cloned();
                if let Some(code) = newest.and_then(|mut all| all.pop()) {
                    return code;
                }
                came.await;
            }
        };
        let late = |_| format!("no code came to a phone within {} s", WITHIN.as_secs());
        tokio::time::timeout(WITHIN, newer).await.map_err(late)
    }
}

async fn take(State(inbox): State<Arc<Inbox>>, Json(message): Json<Value>) -> StatusCode {
    let text = |at: &str| message.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let Some((phone, code)) = text("/to").zip(text("/params/code")) else {
        return StatusCode::BAD_REQUEST;
    };
    inbox.codes.lock().entry(phone).or_default().push(code);
    inbox.came.notify_waiters();
    StatusCode::OK
}
