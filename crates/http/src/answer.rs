//! The table of answers (section 7.5): what the door says, as HTTP, in two profiles. What is stored goes out
//! byte for byte; only members that differ between attempts are put around it.
//!
//! | the door says | seed | draft |
//! |---|---|---|
//! | a new result | its status, `idempotent_replay:false` | the same |
//! | a repeat's result | its status, `idempotent_replay:true`, `original_request_id` | the same |
//! | a stored refusal | its status, `error` | its status, problem+json |
//! | another payload has the key | 409 | 422 |
//! | the first is still running | 202 | 409 |
//! | the store of keys is gone | 503 `IDEMPOTENCY_UNAVAILABLE` | the same |
//! | something else is gone, a lock took too long | 503 `SUP_COM_5031` | the same |
//! | a mistake of ours | 500 `SUP_COM_5001` | the same |

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::Response;
use door::{Answer, Done, Failure};
use kernel::claim::{RETRY_LATEST, RETRY_SOONEST};
use kernel::{Outcome, Time};
use serde_json::value::RawValue;
use store::Error;

use crate::code::{DEPENDENCY, IN_PROGRESS, INTERNAL, MISMATCH, UNAVAILABLE, UNKNOWN};
use crate::headers::{Asked, IDEMPOTENCY_KEY, REQUEST_ID, TRACEPARENT};
use crate::look_up::Operation;
use crate::rejection::Rejection;
use crate::text::{Object, Part, members};

/// Marks the answer to a repeat (`true`); the name that Stripe made common.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// When the key is free again, RFC 3339; absent for keys that live for ever.
pub const EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");
/// Media type of problems (RFC 9457).
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Where the pages of the codes stand; `type` of a problem is this and the code.
pub const TYPE_BASE: &str = "https://onceseal.dev/errors/";
/// When to come again where nobody knows better.
const COME_AGAIN: Duration = Duration::from_secs(2);
/// Members that are put around a stored body; stored ones of the same name give way.
const OURS: [&str; 3] = ["request_id", "idempotent_replay", "original_request_id"];

/// How a repeat is answered that can't have the first result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// As XR-001 says: 409 for another payload, 202 while running; one error envelope.
    #[default]
    Seed,
    /// As draft-ietf-httpapi-idempotency-key-header-07 says: 422 and 409; problem+json.
    Draft,
}

/// Writes answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// In which profile.
    pub profile: Profile,
    /// Beginning of a problem's `type`.
    pub type_base: &'static str,
}

impl Default for Answers {
    fn default() -> Self {
        Self { profile: Profile::default(), type_base: TYPE_BASE }
    }
}

/// Whose result it is that goes out.
#[derive(Clone, Copy)]
enum Mark<'a> {
    /// Of work without a key, or that left its key open.
    None,
    First {
        expires_at: Option<Time>,
    },
    Replay {
        expires_at: Option<Time>,
        origin: Option<&'a str>,
    },
}

impl Answers {
    /// The answer to a submission. What went wrong on our side is logged here, once.
    #[must_use]
    pub fn answered(&self, asked: &Asked, result: &Result<Answer, Failure>) -> Response {
        match result {
            Ok(Answer::Done(done)) => self.done(asked, done),
            Ok(Answer::Open { outcome: Some(outcome), .. }) => self.outcome(asked, outcome, Mark::None),
            Ok(Answer::Open { outcome: None, .. }) => {
                tracing::error!(
                    request_id = asked.request_id,
                    "a client's command left its key open silently"
                );
                self.rejected(asked, &Rejection::of(INTERNAL))
            }
            Ok(Answer::InProgress { same: true, retry_after, .. }) => {
                self.rejected(asked, &in_progress(*retry_after))
            }
            Ok(Answer::InProgress { same: false, .. }) => self.rejected(asked, &mismatch()),
            Ok(Answer::Orphaned) => {
                tracing::error!(request_id = asked.request_id, "a client's record is orphaned");
                self.rejected(asked, &Rejection::of(UNAVAILABLE).again(COME_AGAIN))
            }
            Err(failure) => {
                tracing::error!(request_id = asked.request_id, %failure, "submission_failed");
                self.rejected(asked, &failed(failure, asked.key.is_some()))
            }
        }
    }

    fn done(&self, asked: &Asked, done: &Done) -> Response {
        let Done { outcome, replayed, same, expires_at, origin, .. } = done;
        let (expires_at, origin) = (*expires_at, origin.as_deref());
        match (asked.key.is_some() || *replayed, replayed, same) {
            (_, true, false) => self.rejected(asked, &mismatch()),
            (_, true, true) => self.outcome(asked, outcome, Mark::Replay { expires_at, origin }),
            (true, false, _) => self.outcome(asked, outcome, Mark::First { expires_at }),
            (false, false, _) => self.outcome(asked, outcome, Mark::None),
        }
    }

    /// An answer of the protocol's own.
    #[must_use]
    pub fn rejected(&self, asked: &Asked, rejection: &Rejection) -> Response {
        let Rejection { code, details, retry_after } = rejection;
        let status = code.status(self.profile);
        let body = match self.profile {
            Profile::Seed => {
                let error = Object::new()
                    .text("code", code.name)
                    .text("message", code.message)
                    .text("message_zh", code.message_zh)
                    .with("details", Part::Details(details));
                Object::new().text("request_id", &asked.request_id).with("error", Part::Object(error)).write()
            }
            Profile::Draft => Object::new()
                .text("type", &format!("{}{}", self.type_base, code.name))
                .text("title", code.title)
                .with("status", Part::Whole(status.into()))
                .text("detail", code.message)
                .text("code", code.name)
                .text("message", code.message)
                .text("message_zh", code.message_zh)
                .with("details", Part::Details(details))
                .text("request_id", &asked.request_id)
                .write(),
        };
        let mut response = written(asked, status, Some(body));
        if self.profile == Profile::Draft {
            response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
        }
        if let Some(after) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds(*after));
        }
        response
    }

    /// What an operation's key tells: 200, or 404 for a key that nothing stands under.
    #[must_use]
    pub fn operation(&self, asked: &Asked, operation: Option<&Operation>) -> Response {
        let Some(operation) = operation else { return self.rejected(asked, &Rejection::of(UNKNOWN)) };
        let expires_at = operation.expires_at.map(Time::to_rfc3339_millis);
        let millis = |after: Duration| u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let data = Object::new()
            .text("state", operation.state.as_str())
            .maybe("original_request_id", operation.request_id.as_deref().map(Part::Text))
            .maybe("response_code", operation.code().map(|code| Part::Whole(code.into())))
            .maybe("retry_after_ms", operation.retry_after().map(|after| Part::Whole(millis(after))))
            .maybe("expires_at", expires_at.as_deref().map(Part::Text));
        let body =
            Object::new().text("request_id", &asked.request_id).with("data", Part::Object(data)).write();
        written(asked, 200, Some(body))
    }

    fn outcome(&self, asked: &Asked, outcome: &Outcome, mark: Mark<'_>) -> Response {
        if matches!(outcome.code, 204 | 205 | 304) {
            return marked(written(asked, outcome.code, None), mark);
        }
        let Some(stored) = stored(&outcome.body) else {
            tracing::error!(
                request_id = asked.request_id,
                "a stored answer is damaged; run `onceseal check`"
            );
            return self.rejected(asked, &Rejection::of(INTERNAL));
        };
        let error = stored.iter().find(|(name, _)| name == "error").map(|(_, raw)| *raw);
        let problem = error
            .filter(|_| self.profile == Profile::Draft)
            .and_then(|error| self.problem(asked, outcome.code, mark, &members(error.get()).ok()?));
        let mut response = match problem {
            Some(body) => {
                let mut response = written(asked, outcome.code, Some(body));
                response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
                response
            }
            None => written(asked, outcome.code, Some(enveloped(asked, mark, &stored))),
        };
        if matches!(outcome.code, 429 | 503)
            && let Some(after) = error.and_then(told_after)
        {
            response.headers_mut().insert(RETRY_AFTER, seconds(after));
        }
        marked(response, mark)
    }

    /// A stored refusal as a problem; its own members stay as they are.
    fn problem(
        &self,
        asked: &Asked,
        status: u16,
        mark: Mark<'_>,
        error: &[(String, &RawValue)],
    ) -> Option<String> {
        let member = |wanted: &str| error.iter().find(|(name, _)| name == wanted).map(|(_, raw)| *raw);
        let code: String = serde_json::from_str(member("code")?.get()).ok()?;
        let message = member("message")?;
        let kind = format!("{}{code}", self.type_base);
        let mut problem = Object::new()
            .text("type", &kind)
            .with("title", Part::Raw(message))
            .with("status", Part::Whole(status.into()))
            .with("detail", Part::Raw(message));
        for (name, raw) in error {
            if !["type", "title", "status", "detail"].contains(&name.as_str())
                && !OURS.contains(&name.as_str())
            {
                problem = problem.with(name, Part::Raw(raw));
            }
        }
        Some(around(problem, asked, mark, Kind::Error).write())
    }
}

/// Members of a stored body; one that is no object is `data`. `None` if it is damaged.
fn stored(body: &str) -> Option<Vec<(String, &RawValue)>> {
    members(body).ok().or_else(|| Some(vec![("data".into(), serde_json::from_str(body).ok()?)]))
}

fn enveloped(asked: &Asked, mark: Mark<'_>, stored: &[(String, &RawValue)]) -> String {
    let kind = if stored.iter().any(|(name, _)| name == "error") { Kind::Error } else { Kind::Result };
    let members = stored.iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
    let envelope = around(Object::new(), asked, mark, kind);
    members.fold(envelope, |object, (name, raw)| object.with(name, Part::Raw(raw))).write()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Result,
    Error,
}

/// The members that differ between attempts. A first error has no mark: clients look for `error` and `true`.
fn around<'a>(object: Object<'a>, asked: &'a Asked, mark: Mark<'a>, kind: Kind) -> Object<'a> {
    let object = object.text("request_id", &asked.request_id);
    match mark {
        Mark::First { .. } if kind == Kind::Result => object.with("idempotent_replay", Part::Flag(false)),
        Mark::None | Mark::First { .. } => object,
        Mark::Replay { origin, .. } => object
            .with("idempotent_replay", Part::Flag(true))
            .maybe("original_request_id", origin.map(Part::Text)),
    }
}

fn marked(mut response: Response, mark: Mark<'_>) -> Response {
    let headers = response.headers_mut();
    if matches!(mark, Mark::Replay { .. }) {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    if let Mark::First { expires_at: Some(end) } | Mark::Replay { expires_at: Some(end), .. } = mark
        && let Ok(end) = HeaderValue::try_from(end.to_rfc3339_millis())
    {
        headers.insert(EXPIRES, end);
    }
    response
}

/// A response with the ids of its request.
fn written(asked: &Asked, status: u16, body: Option<String>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let typed = body.is_some();
    let mut response = HttpResponse::new(body.map_or_else(Body::empty, Body::from));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if typed {
        headers.insert(CONTENT_TYPE, JSON);
    }
    echo(asked, headers);
    response
}

/// Puts the ids of a request onto its answer, which is for its caller alone.
pub(crate) fn echo(asked: &Asked, headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::try_from(&asked.request_id) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(key) = &asked.key {
        headers.insert(IDEMPOTENCY_KEY, key.echo().clone());
    }
    if let Some(trace) = &asked.trace {
        headers.insert(TRACEPARENT, trace.echo().clone());
    }
}

/// No hint of the first payload (section 7.5).
fn mismatch() -> Rejection {
    Rejection::of(MISMATCH)
        .with("retryable", false)
        .with("expected_action", "reuse_same_payload_or_new_idempotency_key")
}

fn in_progress(after: Duration) -> Rejection {
    Rejection::of(IN_PROGRESS).again(after.clamp(RETRY_SOONEST, RETRY_LATEST))
}

fn failed(failure: &Failure, keyed: bool) -> Rejection {
    let keys_gone = if keyed { UNAVAILABLE } else { DEPENDENCY };
    match failure {
        // Without a key nobody can tell whether it happened: asking again might do it twice.
        Failure::Store(Error::Indeterminate { .. }) if !keyed => {
            Rejection::of(DEPENDENCY).with("retryable", false)
        }
        Failure::Store(
            Error::Unavailable { .. } | Error::Indeterminate { .. } | Error::Fenced | Error::Setup(_),
        ) => Rejection::of(keys_gone).again(COME_AGAIN),
        Failure::Store(Error::Busy { .. })
        | Failure::Undone(_)
        | Failure::Step { .. }
        | Failure::Crowded
        | Failure::Stopping => Rejection::of(DEPENDENCY).again(COME_AGAIN),
        // Whoever has taken over is at work.
        Failure::LeaseLost => in_progress(RETRY_SOONEST),
        Failure::Store(Error::Raised(_) | Error::Corrupt { .. } | Error::Statement { .. }) => {
            Rejection::of(INTERNAL).with("retryable", false)
        }
    }
}

/// When a passing refusal says to come again, from its details.
fn told_after(error: &RawValue) -> Option<Duration> {
    let error = members(error.get()).ok()?;
    let details = error.iter().find(|(name, _)| name == "details")?.1;
    let details = members(details.get()).ok()?;
    let number = |wanted: &str| {
        let (_, raw) = details.iter().find(|(name, _)| name == wanted)?;
        raw.get().parse::<u64>().ok()
    };
    let millis = number("retry_after_ms").map(Duration::from_millis);
    millis.or_else(|| number("retry_after_seconds").map(Duration::from_secs))
}

/// Whole seconds for `Retry-After`, rounded up, at least one.
fn seconds(after: Duration) -> HeaderValue {
    let whole = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
    HeaderValue::from(whole.max(1))
}
