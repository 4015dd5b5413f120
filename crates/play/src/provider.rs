//! A provider of models on loopback. It accepts every credential but those with [`REFUSED`] in them, which it quotes
//! in its refusal as providers do; it tells the quota that is left, counts what it is asked, and can be made to hold
//! its answers. What it was sent it does not keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

/// Header with the quota that is left, for `supply.providers.quota_header`.
pub const QUOTA_HEADER: &str = "x-quota-left";
/// A credential with this in it is refused.
pub const REFUSED: &str = "ReFuSeD";
/// What it tells: more than any play uses up.
const QUOTA: &str = "1000000000000";

#[derive(Default)]
struct Desk {
    gate: Arc<RwLock<()>>,
    asked: AtomicUsize,
}

/// The provider; it ends with the runtime.
pub struct Provider {
    address: String,
    desk: Arc<Desk>,
}

/// As long as it lives, no question is answered.
pub struct Held {
    _gate: OwnedRwLockWriteGuard<()>,
}

impl Provider {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// There is none.
    pub async fn start() -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&desk));
        let address = super::setting::serve(TcpListener::bind("127.0.0.1:0").await?, router)?;
        Ok(Self { address, desk })
    }

    /// Its base address, for `supply.providers`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many questions came.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.desk.asked.load(Ordering::SeqCst)
    }

    /// Answers nothing until the guard is dropped; questions that come meanwhile wait.
    pub async fn hold(&self) -> Held {
        Held { _gate: Arc::clone(&self.desk.gate).write_owned().await }
    }
}

async fn answer(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    desk.asked.fetch_add(1, Ordering::SeqCst);
    drop(desk.gate.read().await);
    let kind = (CONTENT_TYPE, "application/json");
    let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if shown.contains(REFUSED) {
        let quoted = json!({ "error": { "message": format!("Incorrect API key provided: {shown}") } });
        return (StatusCode::UNAUTHORIZED, [kind], quoted.to_string()).into_response();
    }
    ([kind, (HeaderName::from_static(QUOTA_HEADER), QUOTA)], r#"{"object":"list","data":[]}"#).into_response()
}
