//! The layer: reads the request, refuses it, or hands the handler a [`Call`](crate::Call). The handler's own
//! answers get the ids of the request, too.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tower::{Layer, Service};

use crate::answer::echo;
use crate::call::{Answered, Limits, Protocol};
use crate::canonical::Unreadable;
use crate::code::{BODY_LATE, BODY_UNREADABLE};
use crate::headers::{Asked, Need};
use crate::rejection::Rejection;

/// Puts [`Checked`] around a route.
#[derive(Clone, Debug)]
pub struct ProtocolLayer {
    protocol: Arc<Protocol>,
    need: Need,
}

impl ProtocolLayer {
    /// For routes with this need.
    #[must_use]
    pub const fn new(protocol: Arc<Protocol>, need: Need) -> Self {
        Self { protocol, need }
    }
}

impl<S> Layer<S> for ProtocolLayer {
    type Service = Checked<S>;

    fn layer(&self, inner: S) -> Checked<S> {
        Checked { inner, protocol: Arc::clone(&self.protocol), need: self.need }
    }
}

/// A route whose requests are read before it sees them.
#[derive(Clone, Debug)]
pub struct Checked<S> {
    inner: S,
    protocol: Arc<Protocol>,
    need: Need,
}

impl<S> Service<Request> for Checked<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Answered> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The one that was found ready goes with the request, a fresh one stays.
        let fresh = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, fresh);
        Box::pin(through(inner, Arc::clone(&self.protocol), self.need, request))
    }
}

async fn through<S>(mut inner: S, protocol: Arc<Protocol>, need: Need, request: Request) -> Answered
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    let (mut parts, body) = request.into_parts();
    let body = match protocol.stated(&parts.headers, &body) {
        Ok(()) => collected(body, &protocol.limits).await,
        Err(rejection) => Err(rejection),
    };
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            // Answered under an id all the same.
            let asked = protocol.asked(&parts, Need::Optional);
            let asked: Asked = asked.unwrap_or_else(|refused| refused.asked);
            return Ok(protocol.answers.rejected(&asked, &rejection));
        }
    };
    let call = match protocol.read(&parts, &body, need) {
        Ok(call) => call,
        Err(rejected) => return Ok(rejected.into_response()),
    };
    parts.extensions.insert(call.clone());
    let mut response = inner.call(Request::from_parts(parts, Body::from(body))).await?;
    echo(call.asked(), response.headers_mut());
    Ok(response)
}

/// The whole body, counted while it arrives.
async fn collected(body: Body, limits: &Limits) -> Result<Bytes, Rejection> {
    let limit = limits.body.bytes;
    let large = || Rejection::from(Unreadable::TooLarge { limit });
    match tokio::time::timeout(limits.body_within, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(large()),
        Ok(Err(error)) => {
            tracing::debug!(%error, "body_unreadable");
            Err(Rejection::of(BODY_UNREADABLE).with("reason", "cut_off"))
        }
        Err(_) => Err(Rejection::of(BODY_LATE)),
    }
}
