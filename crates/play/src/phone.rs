//! The SMS service and the suppliers' phones in one: on loopback, it takes messages as a service does and lets the
//! person at the phone read the newest code.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// A code that came to a phone. Its `Debug` shows it: nothing here is a secret of anybody.
#[derive(Clone, Debug)]
pub struct Message {
    /// The phone.
    pub to: String,
    /// The code.
    pub code: String,
}

#[derive(Default)]
struct Inbox {
    /// In the order in which they came.
    messages: Mutex<Vec<Message>>,
    came: Notify,
    down: AtomicBool,
    refused: AtomicUsize,
}

/// The service; it ends with the runtime.
pub struct Phone {
    address: String,
    inbox: Arc<Inbox>,
}

/// As long as it lives, the service takes nothing.
pub struct Outage(Arc<Inbox>);

impl Drop for Outage {
    fn drop(&mut self) {
        self.0.down.store(false, Ordering::SeqCst);
    }
}

impl Phone {
    /// Takes nothing until the guard is dropped: every message is answered 503.
    #[must_use]
    pub fn outage(&self) -> Outage {
        self.inbox.down.store(true, Ordering::SeqCst);
        Outage(Arc::clone(&self.inbox))
    }

    /// How many messages were not taken.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.inbox.refused.load(Ordering::SeqCst)
    }

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
        self.inbox.messages.lock().iter().filter(|message| message.to == phone).count()
    }

    /// The newest code at this phone, once there are more than `before`.
    ///
    /// # Errors
    /// None came within 20 seconds.
    pub async fn code(&self, phone: &str, before: usize) -> Result<String, String> {
        let newer = self.once(|messages| {
            let own: Vec<&Message> = messages.iter().filter(|message| message.to == phone).collect();
            own.last().filter(|_| own.len() > before).map(|message| message.code.clone())
        });
        let late = |_| format!("no code came to a phone within {} s", WITHIN.as_secs());
        tokio::time::timeout(WITHIN, newer).await.map_err(late)
    }

    /// Message number `number`, counted from 0 over all phones, as soon as it is there.
    pub async fn message(&self, number: usize) -> Message {
        self.once(|messages| messages.get(number).cloned()).await
    }

    /// Waits until there is something.
    async fn once<T>(&self, found: impl Fn(&[Message]) -> Option<T>) -> T {
        loop {
            let came = self.inbox.came.notified();
            tokio::pin!(came);
            // Before the look, or a message between look and wait would go unnoticed.
            came.as_mut().enable();
            let answer = found(&self.inbox.messages.lock());
            if let Some(answer) = answer {
                return answer;
            }
            came.await;
        }
    }
}

async fn take(State(inbox): State<Arc<Inbox>>, Json(message): Json<Value>) -> StatusCode {
    let text = |at: &str| message.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let Some((to, code)) = text("/to").zip(text("/params/code")) else {
        return StatusCode::BAD_REQUEST;
    };
    if inbox.down.load(Ordering::SeqCst) {
        inbox.refused.fetch_add(1, Ordering::SeqCst);
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    inbox.messages.lock().push(Message { to, code });
    inbox.came.notify_waiters();
    StatusCode::OK
}
