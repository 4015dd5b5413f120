//! Is it alive, can it work, how much does it do: `/healthz`, `/readyz`, `/metrics`; and the supply specification's
//! `/actuator/health`, which says as much in one word, without reasons (section 8.5).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use certify::shelf::{Form, Shelf};
use futures::future::BoxFuture;
use serde_json::{Map, Value as Json, json};
use store::Store;
use store::migration::{Chain, missing};

use crate::codes::ROUTE_UNKNOWN;
use crate::edge::Edge;
use crate::meters;
use crate::problem::Problem;

/// How long a check may take. A balancer asks every few seconds; slower than this is not ready.
const CHECK_WITHIN: Duration = Duration::from_secs(2);

/// How long a verdict is given again: anybody may ask, and each asking is a transaction and a file.
const VERDICT_KEPT: Duration = Duration::from_millis(500);

/// Something that must work before the server takes requests.
pub struct Check {
    name: &'static str,
    run: Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>,
}

impl Check {
    /// Is this machine's clock near that of the store, by which records are judged?
    #[must_use]
    pub fn clock(store: Store, limit: Duration) -> Self {
        Self::new("clock", move || {
            let apart = Duration::from_micros(store.ahead().unsigned_abs());
            let verdict = if apart > limit {
                Err(format!(
                    "this machine's clock is {} s away from the database's; set it right",
                    apart.as_secs()
                ))
            } else {
                Ok(())
            };
            Box::pin(std::future::ready(verdict))
        })
    }

    /// Is the schema still one that this program may serve with? A newer program may have brought it up.
    #[must_use]
    pub fn schema(store: Store, chains: &[Chain]) -> Self {
        let chains = store.chains(chains);
        Self::new("schema", move || {
            let (store, chains) = (store.clone(), chains.clone());
            Box::pin(async move {
                let registered = store.registered().await.map_err(|_| "it can't be read".to_owned())?;
                missing(&chains, registered).map(drop).map_err(|cause| cause.to_string())
            })
        })
    }

    /// A check by this name. The text of its error is shown to whoever asks `/readyz`: no path, no secret.
    pub fn new<F>(name: &'static str, run: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync + 'static,
    {
        Self { name, run: Box::new(run) }
    }

    /// Can certificates' files be written? A file is made and removed.
    #[must_use]
    pub fn shelf(shelf: &Shelf) -> Self {
        let file = shelf.path("probe", Form::Json);
        let folder: Arc<Path> = file.parent().unwrap_or(Path::new(".")).into();
        Self::new("deliveries", move || {
            let folder = Arc::clone(&folder);
            // Opening is the probe: it makes a file in the folder and removes it.
            let probe = tokio::task::spawn_blocking(move || Shelf::open(&folder).map(drop));
            Box::pin(async move {
                match probe.await {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(cause)) => {
                        tracing::warn!(%cause, "deliveries_not_writable");
                        Err("the delivery folder can't be written".into())
                    }
                    Err(_) => Err("the check was cut".into()),
                }
            })
        })
    }
}

pub(crate) async fn alive() -> Response {
    fresh(StatusCode::OK, json!({ "status": "ok" }).to_string())
}

/// The last verdict and when it was given. Whoever asks meanwhile waits for it, so that many who ask are one
/// who asks.
pub(crate) type Readiness = tokio::sync::Mutex<Option<(Instant, Map<String, Json>)>>;

/// It answers, so it lives.
pub(crate) async fn live() -> Response {
    fresh(StatusCode::OK, json!({ "status": "UP" }).to_string())
}

/// Whether it can work.
pub(crate) async fn up(State(edge): State<Arc<Edge>>) -> Response {
    if verdict(&edge).await.is_empty() {
        return live().await;
    }
    fresh(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "DOWN" }).to_string())
}

/// Why it is not ready, as found within the last moment.
async fn verdict(edge: &Edge) -> Map<String, Json> {
    let mut last = edge.readiness.lock().await;
    match &*last {
        Some((at, reasons)) if at.elapsed() < VERDICT_KEPT => reasons.clone(),
        _ => {
            let found = reasons(edge).await;
            *last = Some((Instant::now(), found.clone()));
            found
        }
    }
}

pub(crate) async fn ready(State(edge): State<Arc<Edge>>) -> Response {
    let reasons = verdict(&edge).await;
    if reasons.is_empty() {
        return fresh(StatusCode::OK, json!({ "status": "ready" }).to_string());
    }
    fresh(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "not_ready", "reasons": reasons }).to_string())
}

/// Why it is not ready; empty when it is.
async fn reasons(edge: &Edge) -> Map<String, Json> {
    let mut reasons = Map::new();
    let door = edge.visa.door().clone();
    // An empty transaction goes through the writer's queue: it waits behind what waits there.
    let store = async move {
        let done = door.maintain("ready", Vec::new(), |_, _| Ok((Vec::new(), ()))).await;
        done.map(drop).map_err(|failure| {
            if let door::Failure::Store(fenced @ store::Error::Fenced) = &failure {
                return fenced.to_string();
            }
            tracing::warn!(%failure, "store_not_ready");
            "the store can't take writes".to_owned()
        })
    };
    let keys = edge.visa.keys().active().map(drop).map_err(ToString::to_string);
    if let Err(cause) = keys {
        reasons.insert("keys".into(), cause.into());
    }
    let checks = edge.checks.iter().map(|check| (check.name, (check.run)()));
    let store: (_, BoxFuture<'static, _>) = ("store", Box::pin(store));
    // All at once, so that one slow check can't hide another.
    let ends = std::iter::once(store).chain(checks).map(async |(name, check)| {
        let end = tokio::time::timeout(CHECK_WITHIN, check).await;
        (name, end.unwrap_or_else(|_| Err(format!("no answer within {} s", CHECK_WITHIN.as_secs()))))
    });
    for (name, end) in futures::future::join_all(ends).await {
        if let Err(reason) = end {
            reasons.insert(name.into(), reason.into());
        }
    }
    reasons
}

pub(crate) async fn metrics(State(edge): State<Arc<Edge>>) -> Response {
    let Some(handle) = &edge.metrics else { return Problem::new(ROUTE_UNKNOWN).into_response() };
    meters::refresh(&edge).await;
    let mut response = Response::new(Body::from(handle.render()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn fresh(status: StatusCode, body: String) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, body).into_response()
}
