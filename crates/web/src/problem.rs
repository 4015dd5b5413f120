//! Problem details (RFC 9457): one shape for every error, in both languages.
//!
//! A handler returns a [`Problem`]; the outer layer writes it out, since only there the request's id is
//! known for all of them, the panicked ones included.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value as Json, json};

use crate::codes::{Code, TYPE_BASE};

/// Media type of problem details.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
/// When to come again where nobody knows better.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// An error answer, before it is written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Its line in the table.
    pub code: Code,
    // Boxed: it travels in every `Result`, and is rare.
    words: Box<Words>,
}

#[derive(Clone, Debug, PartialEq)]
struct Words {
    message: Cow<'static, str>,
    message_zh: Cow<'static, str>,
    next: Cow<'static, str>,
    more: Map<String, Json>,
}

impl Problem {
    /// The problem with its code's own words.
    #[must_use]
    pub fn new(code: Code) -> Self {
        let words = Words {
            message: code.title.into(),
            message_zh: code.title_zh.into(),
            next: code.next.into(),
            more: Map::new(),
        };
        Self { code, words: Box::new(words) }
    }

    /// The same with a message that names the value: what happened, in English.
    #[must_use]
    pub fn saying(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.words.message = message.into();
        self
    }

    /// The same with what happened in Chinese.
    #[must_use]
    pub fn saying_zh(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.words.message_zh = message.into();
        self
    }

    /// The same with one more member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.words.more.insert(name.into(), value.into());
        self
    }

    /// What happened, in English.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.words.message
    }

    /// HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// When to come again, for what may pass by itself.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        (self.code.status == 503).then_some(COME_AGAIN)
    }

    /// The body.
    #[must_use]
    pub fn body(&self, request_id: &str) -> String {
        let mut body = json!({
            "type": format!("{TYPE_BASE}{}", self.code.name),
            "title": self.code.title,
            "status": self.code.status,
            "code": self.code.name,
            "message": self.words.message,
            "message_zh": self.words.message_zh,
            "detail": self.words.message,
            "next": self.words.next,
            "request_id": request_id,
        });
        if let Some(map) = body.as_object_mut() {
            map.extend(self.words.more.clone());
            if let Some(after) = self.retry_after() {
                map.insert("retry_after_ms".into(), u64::try_from(after.as_millis()).unwrap_or(0).into());
            }
        }
        body.to_string()
    }

    /// Puts the headers that belong to the code onto an answer.
    pub fn mark(&self, response: &mut Response) {
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        if let Some(after) = self.retry_after() {
            headers.insert(RETRY_AFTER, seconds(after));
        }
        match self.code.status {
            401 => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"onceseal\""));
            }
            // What is left of the body is not read: the connection can't be used again.
            408 | 413 => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
    }

    /// The problem that a handler left in its answer, written out.
    pub(crate) fn write_out(response: &mut Response, request_id: &str) {
        let Some(problem) = response.extensions_mut().remove::<Self>() else { return };
        response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
        *response.body_mut() = Body::from(problem.body(request_id));
    }
}

impl From<source::Rejection> for Problem {
    fn from(rejection: source::Rejection) -> Self {
        // The rejection knows its status; tests compare it with the table's.
        let mut code = crate::codes::named(rejection.code);
        code.status = rejection.status;
        let mut problem = Self::new(code).saying(rejection.message).saying_zh(rejection.message_zh);
        problem.words.next = rejection.next.into();
        problem
    }
}

impl From<certify::acts::Refused> for Problem {
    fn from(refused: certify::acts::Refused) -> Self {
        let mut code = crate::codes::named(refused.code());
        code.status = refused.status();
        Self::new(code).saying(refused.to_string()).saying_zh(refused.message_zh())
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        if error == store::Error::Fenced {
            return Self::new(crate::codes::STORE_FENCED);
        }
        tracing::error!(%error, "store_unavailable");
        Self::new(crate::codes::STORE_UNAVAILABLE)
    }
}

impl From<door::Failure> for Problem {
    fn from(failure: door::Failure) -> Self {
        if let door::Failure::Store(error @ store::Error::Fenced) = failure {
            return error.into();
        }
        tracing::error!(%failure, "store_unavailable");
        Self::new(crate::codes::STORE_UNAVAILABLE)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        self.mark(&mut response);
        response.extensions_mut().insert(self);
        response
    }
}

/// Whole seconds for `Retry-After`, rounded up, at least one.
#[must_use]
pub fn seconds(after: Duration) -> HeaderValue {
    let whole = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    HeaderValue::from(whole.max(1))
}
