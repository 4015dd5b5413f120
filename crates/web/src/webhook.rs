//! `POST /webhooks/{source}`: a delivery from a sender, answered the way that sender understands.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use certify::Endpoint;
use certify::answer::Reply;
use serde_json::json;
use source::ReplyStyle;

use crate::arrival::Arrived;
use crate::body;
use crate::codes::{ANSWER_TIMEOUT, CONTENT_TYPE_UNSUPPORTED, INTERNAL_ERROR, SOURCE_UNKNOWN, STORE_FENCED};
use crate::edge::Edge;
use crate::problem::{PROBLEM_JSON, Problem, seconds};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// What stands in front of a source's name.
const BEFORE: &str = "/webhooks/";

pub(crate) async fn receive(State(edge): State<Arc<Edge>>, mut request: Request) -> Response {
    // The raw path: a name has no character that would have to be escaped.
    let name = request.uri().path().strip_prefix(BEFORE).unwrap_or_default();
    let Some(endpoint) = edge.visa.endpoint(name) else {
        return Problem::new(SOURCE_UNKNOWN).into_response();
    };
    let Some(arrived) = request.extensions_mut().remove::<Arrived>() else {
        return Problem::new(INTERNAL_ERROR).into_response();
    };
    let style = endpoint.source.reply_style();
    let request_id = arrived.request_id.clone();
    // Whoever stops waiting cuts nothing: the work runs in a task of its own.
    let work = deliver(&edge, &endpoint, request, arrived);
    match tokio::time::timeout(edge.limits.answer_within, work).await {
        Ok(Ok(reply)) => replied(style, reply, &request_id),
        Ok(Err(problem)) => refused(style, problem),
        Err(_) => refused(style, Problem::new(ANSWER_TIMEOUT)),
    }
}

async fn deliver(
    edge: &Edge,
    endpoint: &Endpoint,
    request: Request,
    arrived: Arrived,
) -> Result<Reply, Problem> {
    // Before anything is read: what is answered from memory would never be written down.
    if edge.visa.door().store().is_closed() {
        return Err(Problem::new(STORE_FENCED));
    }
    let (parts, content) = request.into_parts();
    body::unencoded(&parts.headers)?;
    content_type(&parts.headers)?;
    let content = body::read(content, edge.limits.webhook_body, edge.limits.webhook_body_within).await?;
    let lines: Vec<(&str, &[u8])> =
        parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    Ok(edge.visa.receive(endpoint, &lines, content, arrived.context()).await?)
}

/// Senders post JSON or a form; some say `text/plain` or nothing. What is surely no event is refused.
fn content_type(headers: &HeaderMap) -> Result<(), Problem> {
    for value in headers.get_all(CONTENT_TYPE) {
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is = |known: &str| essence.eq_ignore_ascii_case(known.as_bytes());
        let json = essence.len() > 5
            && essence.get(essence.len() - 5..).is_some_and(|end| end.eq_ignore_ascii_case(b"+json"));
        let taken = is("application/json")
            || is("application/x-www-form-urlencoded")
            || is("text/plain")
            || is("text/json")
            || is("application/octet-stream")
            || json;
        if !taken {
            return Err(Problem::new(CONTENT_TYPE_UNSUPPORTED));
        }
    }
    Ok(())
}

fn replied(style: ReplyStyle, reply: Reply, request_id: &str) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fine = status.is_success();
    let (status, kind, body) = match style {
        ReplyStyle::Json if fine => (status, Some(JSON), reply.body),
        ReplyStyle::Json => (status, Some(PROBLEM_JSON), with_request_id(reply.body, request_id)),
        // Both want 200 exactly, and a durable claim is as good as a result to them.
        ReplyStyle::AlipaySuccess if fine => (StatusCode::OK, Some(PLAIN), "success".to_owned()),
        ReplyStyle::AlipaySuccess => (status, Some(PLAIN), "failure".to_owned()),
        ReplyStyle::WechatPay if fine => (StatusCode::OK, None, String::new()),
        ReplyStyle::WechatPay => (status, Some(JSON), fail("not acknowledged, send it again")),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.extend(kind.map(|kind| (CONTENT_TYPE, kind)));
    headers.extend(reply.retry_after.map(|after| (RETRY_AFTER, seconds(after))));
    if reply.replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn refused(style: ReplyStyle, problem: Problem) -> Response {
    let (kind, body) = match style {
        ReplyStyle::Json => return problem.into_response(),
        ReplyStyle::AlipaySuccess => (PLAIN, "failure".to_owned()),
        ReplyStyle::WechatPay => (JSON, fail(&format!("{}: {}", problem.code.name, problem.message()))),
    };
    let mut response = Response::new(Body::from(body));
    problem.mark(&mut response);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// WeChat Pay's form of a failure.
fn fail(message: &str) -> String {
    json!({ "code": "FAIL", "message": message }).to_string()
}

/// An object of ours with one more member.
fn with_request_id(mut body: String, request_id: &str) -> String {
    if body.ends_with('}') {
        body.pop();
        body.push_str(&format!(",\"request_id\":{}}}", json!(request_id)));
    }
    body
}
