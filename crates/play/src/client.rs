//! A caller of the API: a token, a fresh `X-Request-Id` for each attempt, a key for each intention.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::Value as Json;
use uuid::Uuid;

/// For a whole answer: longer than any time-out of the server.
const WITHIN: Duration = Duration::from_secs(60);

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// Of HTTP.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Bearer token; none is sent when empty.
    pub token: String,
    /// `Idempotency-Key`, where there is one.
    pub key: Option<String>,
    /// The body, where there is one.
    pub body: Option<Json>,
}

impl Call {
    /// A `GET`.
    #[must_use]
    pub fn get(path: impl Into<String>, token: &str) -> Self {
        Self { method: Method::GET, path: path.into(), token: token.to_owned(), key: None, body: None }
    }

    /// A `POST` under this key; `Json::Null` sends no body.
    #[must_use]
    pub fn post(path: impl Into<String>, token: &str, key: &str, body: Json) -> Self {
        Self::write((Method::POST, path.into()), token, key, body)
    }

    /// A write by another method.
    #[must_use]
    pub fn write((method, path): (Method, String), token: &str, key: &str, body: Json) -> Self {
        let body = (!body.is_null()).then_some(body);
        Self { method, path, token: token.to_owned(), key: Some(key.to_owned()), body }
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The `X-Request-Id` that was sent.
    pub request_id: String,
    /// Of HTTP.
    pub status: StatusCode,
    /// All of them.
    pub headers: HeaderMap,
    /// All of it.
    pub body: Vec<u8>,
}

impl Answer {
    /// The status as a number.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.status.as_u16()
    }

    /// The body; null when it is no JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Member `data`; null when there is none.
    #[must_use]
    pub fn data(&self) -> Json {
        self.json().get_mut("data").map(Json::take).unwrap_or_default()
    }

    /// A member of `data`; null when there is none.
    #[must_use]
    pub fn member(&self, name: &str) -> Json {
        self.data().get_mut(name).map(Json::take).unwrap_or_default()
    }

    /// `error.code`; empty when there is none.
    #[must_use]
    pub fn error(&self) -> String {
        let code = self.json().pointer("/error/code").and_then(Json::as_str).map(str::to_owned);
        code.unwrap_or_default()
    }

    /// Whether it says that an earlier answer is given again.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.json().get("idempotent_replay") == Some(&Json::Bool(true))
    }

    /// A header's text; empty when there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The answer, if it is a 2xx that tells a result (202 tells none).
    ///
    /// # Errors
    /// Status and body of any other.
    pub fn done(self) -> Result<Self, String> {
        if self.status.is_success() && self.status != StatusCode::ACCEPTED {
            return Ok(self);
        }
        Err(format!("{}: {}", self.status, String::from_utf8_lossy(&self.body)))
    }
}

/// Hears of every whole answer.
pub type Watcher = Arc<dyn Fn(&Call, &Answer) + Send + Sync>;

/// Speaks to one server, over as many connections as there are calls at once.
#[derive(Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
    watcher: Option<Watcher>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Client {
    /// For the server at `base`, like `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// No HTTP client can be built.
    pub fn new(base: impl Into<String>) -> Result<Self, String> {
        // Whoever came first has chosen.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http =
            reqwest::Client::builder().timeout(WITHIN).redirect(reqwest::redirect::Policy::none()).build();
        let http = http.map_err(|cause| format!("no HTTP client: {cause}"))?;
        Ok(Self { base: base.into(), http, watcher: None })
    }

    /// From now on this one hears of every answer, also of clients that come from this one.
    #[must_use]
    pub fn watched(self, watcher: Watcher) -> Self {
        Self { watcher: Some(watcher), ..self }
    }

    /// The same client for another server of the installation.
    #[must_use]
    pub fn at(&self, base: impl Into<String>) -> Self {
        Self { base: base.into(), ..self.clone() }
    }

    /// A key that no other call has.
    #[must_use]
    pub fn key(&self) -> String {
        format!("play-{}", Uuid::new_v4())
    }

    /// Sends; the answer may be any.
    ///
    /// # Errors
    /// No whole answer came: what the server did is unknown.
    pub async fn send(&self, call: &Call) -> Result<Answer, String> {
        let request_id = Uuid::new_v4().to_string();
        let mut request = self
            .http
            .request(call.method.clone(), format!("{}{}", self.base, call.path))
            .header("x-request-id", &request_id);
        if !call.token.is_empty() {
            request = request.bearer_auth(&call.token);
        }
        if let Some(key) = &call.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = &call.body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let fail = |cause: reqwest::Error| format!("{} {}: {}", call.method, call.path, innermost(&cause));
        let answer = request.send().await.map_err(fail)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.bytes().await.map_err(fail)?.to_vec();
        let answer = Answer { request_id, status, headers, body };
        if let Some(watcher) = &self.watcher {
            watcher(call, &answer);
        }
        Ok(answer)
    }

    /// A `GET` that must succeed; its `data`.
    ///
    /// # Errors
    /// No answer, or another.
    pub async fn read(&self, path: &str, token: &str) -> Result<Json, String> {
        let answer = self.send(&Call::get(path, token)).await?;
        answer.done().map(|answer| answer.data()).map_err(|cause| format!("{path}: {cause}"))
    }

    /// A `POST` under a key of its own that must succeed; its `data`.
    ///
    /// # Errors
    /// No answer, or another.
    pub async fn make(&self, path: &str, token: &str, body: Json) -> Result<Json, String> {
        let answer = self.send(&Call::post(path, token, &self.key(), body)).await?;
        answer.done().map(|answer| answer.data()).map_err(|cause| format!("{path}: {cause}"))
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
