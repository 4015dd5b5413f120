//! `GET /d/{slug}.{html|zip|json}`: a certificate's files; and the anchor keys that verify them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName,
    IF_NONE_MATCH, LAST_MODIFIED, REFERRER_POLICY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use certify::delivery::{Missing, Served};
use certify::policy::Access;
use certify::shelf::Form;
use kernel::Time;

use crate::arrival::Arrived;
use crate::codes::{
    CERTIFICATE_DAMAGED, CERTIFICATE_ERASED, CERTIFICATE_UNAVAILABLE, CERTIFICATE_UNKNOWN, KEYS_UNUSABLE,
};
use crate::edge::Edge;
use crate::problem::Problem;
use crate::token;

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
const BEFORE: &str = "/d/";
/// Longest slug that is looked up; ours have 40 characters.
const SLUG_MAX: usize = 128;
/// A certificate never changes. Where it needs a token, shared caches must not keep it.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const FOR_EVER_PRIVATE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

pub(crate) async fn fetch(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let mut response = match find(&edge, &parts).await {
        Ok((slug, form, served)) => given(&slug, form, served, &parts.headers, edge.visa.policy().delivery),
        Err(problem) => missing(problem, &parts),
    };
    let headers = response.headers_mut();
    headers.insert(ROBOTS, HeaderValue::from_static("noindex, nofollow"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

async fn find(edge: &Edge, asked: &Parts) -> Result<(String, Form, Served), Problem> {
    if edge.visa.policy().delivery == Access::Token {
        token::operator(&edge.tokens, &asked.uri, &asked.headers).await?;
    }
    let file = asked.uri.path().strip_prefix(BEFORE).unwrap_or_default();
    let (slug, form) = file
        .rsplit_once('.')
        .and_then(|(slug, extension)| Some((slug, Form::from_extension(extension)?)))
        .filter(|(slug, _)| is_slug(slug))
        .ok_or_else(|| Problem::new(CERTIFICATE_UNKNOWN))?;
    let served = edge.visa.delivered(slug, form).await.map_err(|missing| {
        Problem::new(match missing {
            Missing::Unknown => CERTIFICATE_UNKNOWN,
            Missing::Erased => CERTIFICATE_ERASED,
            Missing::Orphaned => CERTIFICATE_DAMAGED,
            Missing::Unavailable => CERTIFICATE_UNAVAILABLE,
        })
    })?;
    Ok((slug.to_owned(), form, served))
}

fn is_slug(text: &str) -> bool {
    (1..=SLUG_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn given(slug: &str, form: Form, served: Served, asked: &HeaderMap, access: Access) -> Response {
    let tag = format!("\"{}\"", served.hash);
    let known = is_known(asked, &tag);
    let mut response = Response::new(if known { Body::empty() } else { Body::from(served.bytes) });
    let headers = response.headers_mut();
    let keep = if access == Access::Token { FOR_EVER_PRIVATE } else { FOR_EVER };
    headers.insert(CACHE_CONTROL, keep);
    let how = if form == Form::Zip { "attachment" } else { "inline" };
    let named = format!("{how}; filename=\"onceseal-{slug}.{}\"", form.extension());
    let policy = match form {
        Form::Html => HeaderValue::try_from(certify::page::content_policy()).unwrap_or(NOTHING),
        Form::Zip | Form::Json => NOTHING,
    };
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.extend(HeaderValue::try_from(tag).ok().map(|tag| (ETAG, tag)));
    headers.extend(date(served.issued_at).map(|date| (LAST_MODIFIED, date)));
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    headers.extend(HeaderValue::try_from(named).ok().map(|named| (CONTENT_DISPOSITION, named)));
    response
}

/// Whether the asker has these bytes: `If-None-Match` names the tag, weak or strong, or is `*`
/// (RFC 9110, section 13.1.2).
fn is_known(asked: &HeaderMap, tag: &str) -> bool {
    let mut tags = asked
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// `Sun, 01 Mar 2026 09:49:14 GMT` (RFC 9110, section 5.6.7).
fn date(time: Time) -> Option<HeaderValue> {
    let stamp = jiff::Timestamp::from_second(time.seconds()).ok()?;
    let text = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&stamp).ok()?;
    HeaderValue::try_from(text).ok()
}

/// People get a page, programs a problem.
fn missing(problem: Problem, asked: &Parts) -> Response {
    let id = asked.extensions.get::<Arrived>().map_or("", |arrived| arrived.request_id.as_str());
    let mut response = if prefers_html(&asked.headers) {
        let mut response = Response::new(Body::from(page(&problem, id)));
        problem.mark(&mut response);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        response
    } else {
        problem.into_response()
    };
    response.headers_mut().insert(CACHE_CONTROL, NOT_KEPT);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, NOTHING);
    response
}

/// Whether HTML is asked for before JSON. Browsers say `text/html` first; everything else gets JSON.
fn prefers_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let place =
        |kind: &str| accept.split(',').position(|part| part.trim().to_ascii_lowercase().starts_with(kind));
    match (place("text/html"), place("application/")) {
        (Some(html), Some(other)) => html < other,
        (html, None) => html.is_some(),
        (None, Some(_)) => false,
    }
}

/// Nothing in it comes from outside but the request's id, which is checked when it arrives.
fn page(problem: &Problem, request_id: &str) -> String {
    let code = problem.code;
    format!(
        "<!doctype html>\n<html lang=\"zh\">\n<meta charset=\"utf-8\">\n<meta name=\"robots\" content=\"noindex\">\n\
         <title>{} {}</title>\n<h1>{}</h1>\n<p lang=\"en\">{}</p>\n<p lang=\"en\">{}</p>\n<p><code>{} · {request_id}</code></p>\n</html>\n",
        code.status, code.name, code.title_zh, code.title, code.next, code.name
    )
}

/// The anchor keys, retired ones included. Kept for minutes only: after a rotation new certificates are
/// verified with the new key.
pub(crate) async fn keys(State(edge): State<Arc<Edge>>) -> Response {
    let set = edge.visa.keys().jwks().map_err(|cause| cause.to_string());
    let json = set.and_then(|set| set.to_json().map_err(|cause| cause.to_string()));
    match json {
        Ok(json) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static("application/jwk-set+json")),
                (CACHE_CONTROL, HeaderValue::from_static("public, max-age=300")),
                // Whoever verifies in a browser does so from any page; the keys are public.
                (HeaderName::from_static("access-control-allow-origin"), HeaderValue::from_static("*")),
            ];
            (headers, json).into_response()
        }
        Err(cause) => {
            tracing::error!(%cause, "keys_unusable");
            Problem::new(KEYS_UNUSABLE).into_response()
        }
    }
}
