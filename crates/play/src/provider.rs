//! A provider of models on loopback. It accepts every credential, tells the quota that is left, counts what it is
//! asked, and can be made to hold its answers. What it was sent it does not keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

/// Header with the quota that is left, for `supply.providers.quota_header`.
pub const QUOTA_HEADER: &str = "x-quota-left";
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

async fn answer(State(desk): State<Arc<Desk>>) -> ([(&'static str, &'static str); 2], &'static str) {
    desk.asked.fetch_add(1, Ordering::SeqCst);
    drop(desk.gate.read().await);
    ([(CONTENT_TYPE.as_str(), "application/json"), (QUOTA_HEADER, QUOTA)], r#"{"object":"list","data":[]}"#)
}
