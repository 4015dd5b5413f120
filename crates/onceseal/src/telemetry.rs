//! Traces for a collector, by OTLP over HTTP with protobuf (feature `otel`). Only spans of our own crates leave
//! the program; log lines stay where [`crate::logging`] writes them, since some of them name what a sender sent.
//!
//! Not here: which spans there are (`web` makes one a request), and what a trace id is good for in the audit.

use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use opentelemetry::context::FutureExt as _;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use url::{Host, Url};

/// Where a collector takes traces, below its address (OTLP specification, "OTLP/HTTP Request").
const TRACES: &str = "/v1/traces";
/// The only header that is read: `tracestate` is the client's text and stays out.
const TRACEPARENT: &str = "traceparent";
/// A collector that hasn't answered by then has not taken the spans.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Most of a collector's answer that is read: it is a few bytes.
const ANSWER_MAX: usize = 64 * 1024;
/// How long the end of the program waits for the last export.
const END_WITHIN: Duration = Duration::from_secs(6);

/// Collects spans and sends them in batches. [`Exporter::end`] sends the last ones.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// For the collector at this address (`http://127.0.0.1:4318`). Nothing is sent yet; a collector that
    /// can't be reached later costs its spans and nothing else. Must be called inside of the runtime.
    ///
    /// # Errors
    /// The address can't be used.
    pub fn new(endpoint: &str) -> Result<Self, String> {
        let wrong = |cause: &dyn std::fmt::Display| format!("telemetry.endpoint: {cause}");
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(endpoint).map_err(|cause| wrong(&cause))?)
            .with_endpoint(format!("{}{TRACES}", endpoint.trim_end_matches('/')))
            .with_timeout(ANSWER_WITHIN)
            .build()
            .map_err(|cause| wrong(&cause))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("onceseal").with_attribute(version).build();
        let provider =
            SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        Ok(Self(provider))
    }

    /// Takes the spans of the named crates, without threads and places in the source.
    pub fn layer<S>(&self, crates: &'static [&'static str]) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let ours = filter_fn(move |meta| {
            let name = meta.target().split("::").next().unwrap_or_default();
            meta.is_span() && crates.contains(&name)
        });
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("onceseal"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(ours.with_max_level_hint(LevelFilter::INFO))
    }

    /// Sends what is left. A collector that doesn't answer holds the end up for a few seconds at most.
    pub async fn end(self) {
        // It waits on the calling thread for a task of this runtime.
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(END_WITHIN)).await;
        if let Ok(Err(cause)) = ended {
            tracing::warn!(%cause, "traces_not_exported");
        }
    }
}

/// The span of a request becomes the child of the one that its `traceparent` names.
pub fn carry(router: Router) -> Router {
    router.layer(from_fn(under_parent))
}

async fn under_parent(request: Request, next: Next) -> Response {
    let parent =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &Parent(request.headers()));
    next.run(request).with_context(parent).await
}

/// A `traceparent` that stands there once.
struct Parent<'a>(&'a HeaderMap);

impl Extractor for Parent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let mut values = self.0.get_all(TRACEPARENT).iter().filter(|_| key == TRACEPARENT);
        let value = values.next()?;
        if values.next().is_some() { None } else { value.to_str().ok() }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

/// The way to the collector. Batches are sent from a thread of their own, which has no runtime: the request
/// runs in ours.
#[derive(Debug)]
struct Collector {
    http: reqwest::Client,
    runtime: Handle,
}

impl Collector {
    fn new(endpoint: &str) -> Result<Self, HttpError> {
        let near = match Url::parse(endpoint)?.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        let mut http = reqwest::Client::builder()
            .timeout(ANSWER_WITHIN)
            // Spans go where the configuration says, and nowhere else.
            .redirect(reqwest::redirect::Policy::none());
        if near {
            http = http.no_proxy();
        }
        Ok(Self { http: http.build()?, runtime: Handle::try_current()? })
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(
        &self,
        request: opentelemetry_http::Request<Bytes>,
    ) -> Result<opentelemetry_http::Response<Bytes>, HttpError> {
        let sent = self.runtime.spawn(send(self.http.clone(), request)).await?;
        if let Err(cause) = &sent {
            tracing::warn!(%cause, "traces_not_exported");
        }
        sent
    }
}

async fn send(
    http: reqwest::Client,
    request: opentelemetry_http::Request<Bytes>,
) -> Result<opentelemetry_http::Response<Bytes>, HttpError> {
    let mut answer = http.execute(request.try_into()?).await.map_err(worded)?;
    let mut taken = opentelemetry_http::Response::builder().status(answer.status());
    if let Some(headers) = taken.headers_mut() {
        headers.clone_from(answer.headers());
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(worded)? {
        if body.len() + chunk.len() > ANSWER_MAX {
            return Err("the collector's answer is too large".into());
        }
        body.extend_from_slice(&chunk);
    }
    if !answer.status().is_success() {
        tracing::warn!(status = answer.status().as_u16(), "traces_not_exported");
    }
    Ok(taken.body(Bytes::from(body))?)
}

/// What lies at the bottom, such as "Connection refused": the rest repeats the address.
fn worded(cause: reqwest::Error) -> HttpError {
    let cause = cause.without_url();
    let mut innermost: &dyn std::error::Error = &cause;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    innermost.to_string().into()
}
