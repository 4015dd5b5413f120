//! What stands around every handler: the request's id, its trace and client, panics, problems written out,
//! the meters. And what all handlers share.

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, MatchedPath, Request};
use axum::http::HeaderValue;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::response::{IntoResponse, Response};
use certify::AuditVisa;
use futures::FutureExt as _;
use ipnet::IpNet;
use kernel::Clock;
use metrics_exporter_prometheus::PrometheusHandle;
use onceseal_http::headers::{REQUEST_ID, TRACEPARENT, Trace};
use tower::{Layer, Service};
use tracing::Instrument as _;

use crate::admin::Rebuild;
use crate::announcements::Announcements;
use crate::arrival::{self, Arrived, Ids};
use crate::codes::INTERNAL_ERROR;
use crate::health::{Check, Readiness};
use crate::meters::{self, Meters};
use crate::problem::Problem;
use crate::supply::{Supply, count, ids, query_key};
use crate::token::Tokens;

/// What the router needs. Cheap parts are shared.
pub struct State {
    /// AuditVisa, open.
    pub visa: Arc<AuditVisa>,
    /// The server's clock.
    pub clock: Arc<dyn Clock>,
    /// Who may act as an operator.
    pub tokens: Tokens,
    /// What `/metrics` prints; without it the route answers 404.
    pub metrics: Option<PrometheusHandle>,
    /// Sizes and times.
    pub limits: Limits,
    /// Proxies whose `X-Forwarded-For` is believed. None by default.
    pub trusted_proxies: Vec<IpNet>,
    /// What `/readyz` asks besides the store.
    pub checks: Vec<Check>,
    /// The relay that sends announcements.
    pub announcements: Announcements,
    /// Makes `processed.jsonl` anew; without it the route answers 404.
    pub rebuild: Option<Rebuild>,
    /// The supply API, where it is switched on.
    pub supply: Option<Arc<Supply>>,
}

/// Sizes and times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest webhook body, bytes. Events are a few KiB; the largest that a sender documents is 256 KiB.
    pub webhook_body: usize,
    /// Largest operator body except an import's, bytes.
    pub operator_body: usize,
    /// Largest import in one request, bytes.
    pub import_body: usize,
    /// Time for a webhook's body to arrive. Shorter than `answer`, so that a slow body is told so.
    pub webhook_body_within: Duration,
    /// Time for any other body to arrive.
    pub body_within: Duration,
    /// Time for a webhook's whole answer, its body included. Some senders stop waiting at 5 s.
    pub answer_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            webhook_body: 256 * 1024,
            operator_body: 64 * 1024,
            import_body: 16 * 1024 * 1024,
            webhook_body_within: Duration::from_secs(3),
            body_within: Duration::from_secs(30),
            answer_within: Duration::from_secs(4),
        }
    }
}

/// What all handlers share.
pub(crate) struct Edge {
    pub(crate) visa: Arc<AuditVisa>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Option<PrometheusHandle>,
    pub(crate) limits: Limits,
    pub(crate) checks: Vec<Check>,
    pub(crate) announcements: Announcements,
    pub(crate) rebuild: Option<Rebuild>,
    pub(crate) supply: Option<Arc<Supply>>,
    trusted_proxies: Vec<IpNet>,
    ids: Ids,
    meters: Meters,
    pub(crate) readiness: Readiness,
}

impl Edge {
    pub(crate) fn new(state: State) -> Self {
        let ids = Ids::new(&*state.visa.door().random());
        Self {
            visa: state.visa,
            clock: state.clock,
            tokens: state.tokens,
            metrics: state.metrics,
            limits: state.limits,
            checks: state.checks,
            announcements: state.announcements,
            rebuild: state.rebuild,
            supply: state.supply,
            trusted_proxies: state.trusted_proxies,
            ids,
            meters: Meters::new(),
            readiness: Readiness::default(),
        }
    }
}

/// Puts [`Around`] around each route.
#[derive(Clone)]
pub(crate) struct AroundLayer(pub(crate) Arc<Edge>);

impl<S> Layer<S> for AroundLayer {
    type Service = Around<S>;

    fn layer(&self, inner: S) -> Around<S> {
        Around { inner, edge: Arc::clone(&self.0) }
    }
}

/// A route with what stands around every handler.
#[derive(Clone)]
pub(crate) struct Around<S> {
    inner: S,
    edge: Arc<Edge>,
}

impl<S> Service<Request> for Around<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let started = Instant::now();
        let edge = Arc::clone(&self.edge);
        let route = request.extensions().get::<MatchedPath>().map_or(0, |path| meters::route(path.as_str()));
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        // What is not an id goes no further than this, whoever sends it: here begins what is logged and echoed.
        let settled = edge.supply.as_ref().and_then(|supply| ids::settle(supply, &mut request));
        let request_id = settled.unwrap_or_else(|| edge.ids.of(request.headers()));
        let trace = arrival::trace(request.headers());
        let trace_id = trace.as_ref().map(|trace| trace.id().to_owned());
        let client = arrival::client(peer, request.headers(), &edge.trusted_proxies);
        // What is logged on the way has the ids of its request.
        let span = tracing::info_span!("request", request_id, trace_id);
        request.extensions_mut().insert(Arrived { request_id: request_id.clone(), trace_id, client });
        // The one that was found ready goes with the request, a fresh one stays.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let seen = edge.supply.as_ref().map(|supply| query_key::seen(supply, &request));
        let asked = edge.supply.is_some().then(|| count::Asked::of(&mut request));
        Box::pin(async move {
            // Credentials in the URL are refused on every path, before anything else (supply specification,
            // section 14).
            let refused = match (&edge.supply, seen) {
                (Some(supply), Some(seen)) => query_key::refused(supply, seen, (&request_id, client)).await,
                _ => None,
            };
            if let (Some(_), Some(asked)) = (&refused, &asked) {
                asked.trail.turned_away();
            }
            let answer = async move {
                match refused {
                    Some(response) => Ok(response),
                    None => inner.call(request).await,
                }
            };
            let answer = AssertUnwindSafe(answer).catch_unwind().instrument(span);
            let mut response = match answer.await {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(panic) => panicked(&*panic, &request_id),
            };
            Problem::write_out(&mut response, &request_id);
            let headers = response.headers_mut();
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            if let (false, Ok(id)) = (headers.contains_key(REQUEST_ID), HeaderValue::try_from(request_id)) {
                headers.insert(REQUEST_ID, id);
            }
            if let Some(echo) = trace.as_ref().map(Trace::echo) {
                headers.insert(TRACEPARENT, echo.clone());
            }
            let took = started.elapsed();
            edge.meters.count(route, response.status().as_u16(), took);
            if let (Some(supply), Some(asked)) = (&edge.supply, asked) {
                asked.answered(supply, &response, took);
            }
            Ok(response)
        })
    }
}

fn panicked(panic: &(dyn Any + Send), request_id: &str) -> Response {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text");
    tracing::error!(request_id, cause = text, "request_panicked");
    Problem::new(INTERNAL_ERROR).into_response()
}
