//! What operators ask and order: `/api/v1/certify/`. A bearer token in the header, nothing else; every act
//! carries the token's name into the audit.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use certify::audit::{Filter, FilterError};
use serde_json::{Map, Value as Json, json};
use url::form_urlencoded;

use crate::body;
use crate::codes::{
    CONTENT_TYPE_UNSUPPORTED, EVENT_AMBIGUOUS, EVENT_UNKNOWN, INPUT_INVALID, OPERATOR_TOKEN_TAKEN,
    OPERATOR_TOKEN_UNKNOWN, QUERY_INVALID,
};
use crate::edge::Edge;
use crate::problem::Problem;
use crate::token::{self, Operator};

/// A handler's answer.
pub(crate) type Answer = Result<Response, Problem>;
type Shared = State<Arc<Edge>>;
/// A name from the path, percent-decoded.
pub(crate) type Named = Result<Path<String>, PathRejection>;

impl FromRequestParts<Arc<Edge>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, edge: &Arc<Edge>) -> Result<Self, Problem> {
        token::operator(&edge.tokens, &parts.uri, &parts.headers).await
    }
}

pub(crate) async fn events(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    let filter = filter(uri.query().unwrap_or_default())?;
    match edge.visa.list(&filter).await {
        Ok(found) => Ok(shown(&found)),
        Err(FilterError::Value { name, cause }) => Err(invalid(format!("{name}: {cause}"))),
        Err(FilterError::Store(error)) => Err(error.into()),
    }
}

pub(crate) async fn event(_operator: Operator, State(edge): Shared, name: Named, uri: Uri) -> Answer {
    let event = named(name)?;
    let source = source(&uri)?;
    Ok(shown(&only(&edge, &event, source.as_deref()).await?))
}

pub(crate) async fn status(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.standing().await?))
}

pub(crate) async fn retry(operator: Operator, State(edge): Shared, name: Named, uri: Uri) -> Answer {
    let reference = reference(&edge, name, &uri).await?;
    Ok(shown(&edge.visa.retry(&reference, &operator.name).await?))
}

pub(crate) async fn inspect(_operator: Operator, State(edge): Shared, name: Named, uri: Uri) -> Answer {
    let reference = reference(&edge, name, &uri).await?;
    Ok(shown(&edge.visa.inspect(&reference).await?))
}

pub(crate) async fn erase(operator: Operator, State(edge): Shared, name: Named, uri: Uri) -> Answer {
    let reference = reference(&edge, name, &uri).await?;
    Ok(shown(&edge.visa.erase(&reference, &operator.name).await?))
}

pub(crate) async fn tokens(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    let list = token::list(edge.visa.door(), edge.clock.now()).await?;
    Ok(shown(&json!({ "tokens": list })))
}

pub(crate) async fn issue(operator: Operator, State(edge): Shared, request: Request) -> Answer {
    let mut input = input(&edge, request).await?;
    let name = text(&mut input, "name")?;
    let ttl = match input.remove("ttl_s") {
        None | Some(Json::Null) => None,
        Some(value) => {
            let wrong = || unusable("ttl_s must be a number of seconds, at least 1");
            Some(Duration::from_secs(value.as_u64().filter(|ttl| *ttl > 0).ok_or_else(wrong)?))
        }
    };
    nothing_left(&input)?;
    let token = token::issue(edge.visa.door(), &name, ttl, &operator.name).await?;
    Ok(shown(&json!({ "name": name, "token": token.expose() })))
}

pub(crate) async fn revoke(operator: Operator, State(edge): Shared, name: Named, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    let name = named(name)?;
    token::revoke(edge.visa.door(), &name, &operator.name).await?;
    Ok(shown(&json!({ "name": name, "state": "revoked" })))
}

impl From<token::Error> for Problem {
    fn from(error: token::Error) -> Self {
        let code = match error {
            token::Error::Name => INPUT_INVALID,
            token::Error::Taken(_) => OPERATOR_TOKEN_TAKEN,
            token::Error::Unknown(_) => OPERATOR_TOKEN_UNKNOWN,
            token::Error::Store(failure) => return failure.into(),
        };
        Self::new(code).saying(error.to_string())
    }
}

/// The one event of that id or reference.
async fn only(edge: &Edge, event: &str, source: Option<&str>) -> Result<Json, Problem> {
    let mut found = edge.visa.show(event, source).await?;
    match (found.pop(), found.is_empty()) {
        (None, _) => Err(Problem::new(EVENT_UNKNOWN).saying(format!("event {event:?} is not known"))),
        (Some(one), true) => Ok(one),
        (Some(last), false) => {
            found.push(last);
            let all =
                |member: &str| found.iter().filter_map(|one| one.get(member).cloned()).collect::<Vec<_>>();
            Err(Problem::new(EVENT_AMBIGUOUS)
                .saying(format!("event {event:?} is known to {} sources", found.len()))
                .with("sources", all("source"))
                .with("refs", all("ref")))
        }
    }
}

/// The reference that an act is for: as given, or narrowed by `?source=`.
async fn reference(edge: &Edge, name: Named, uri: &Uri) -> Result<String, Problem> {
    let event = named(name)?;
    let Some(source) = source(uri)? else { return Ok(event) };
    let found = only(edge, &event, Some(&source)).await?;
    Ok(found.get("ref").and_then(Json::as_str).map_or(event, ToOwned::to_owned))
}

pub(crate) fn named(name: Named) -> Result<String, Problem> {
    name.map(|Path(name)| name).map_err(|_| unusable("the name in the path is not UTF-8, percent-encoded"))
}

fn source(uri: &Uri) -> Result<Option<String>, Problem> {
    let mut asked = asked(uri.query().unwrap_or_default(), &["source"])?;
    Ok(asked.remove("source").and_then(|value| value.as_str().map(ToOwned::to_owned)))
}

/// The query's parameters: each known, each once.
pub(crate) fn asked(query: &str, known: &[&str]) -> Result<Map<String, Json>, Problem> {
    let mut map = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if !known.contains(&name.as_ref()) {
            return Err(invalid(format!(
                "{name:?} is not a parameter here; there are: {}",
                known.join(", ")
            )));
        }
        if map.insert(name.to_string(), value.into_owned().into()).is_some() {
            return Err(invalid(format!("{name:?} stands there twice")));
        }
    }
    Ok(map)
}

/// No parameter is known here.
pub(crate) fn nothing_asked(uri: &Uri) -> Result<(), Problem> {
    asked(uri.query().unwrap_or_default(), &[]).map(drop)
}

/// A whole number among the query's parameters.
pub(crate) fn number(asked: &Map<String, Json>, name: &str) -> Result<Option<i64>, Problem> {
    let text = asked.get(name).and_then(Json::as_str);
    let parsed =
        text.map(|text| text.parse().map_err(|_| invalid(format!("{name}: {text:?} is not a whole number"))));
    parsed.transpose()
}

const FILTERS: [&str; 9] =
    ["session", "payment", "mail", "status", "source", "since", "until", "before", "limit"];

fn filter(query: &str) -> Result<Filter, Problem> {
    let asked = asked(query, &FILTERS)?;
    let text = |name: &str| asked.get(name).and_then(Json::as_str).map(ToOwned::to_owned);
    let limit = number(&asked, "limit")?.map(u32::try_from).transpose();
    Ok(Filter {
        session: text("session"),
        payment: text("payment"),
        mail: text("mail"),
        status: text("status"),
        source: text("source"),
        since: text("since"),
        until: text("until"),
        before: number(&asked, "before")?,
        limit: limit.map_err(|_| invalid("limit: must be 1 or more".into()))?,
    })
}

/// The members of a JSON body.
pub(crate) async fn input(edge: &Edge, request: Request) -> Result<Map<String, Json>, Problem> {
    let (parts, content) = request.into_parts();
    body::unencoded(&parts.headers)?;
    if !is_type(&parts.headers, b"application/json") {
        return Err(Problem::new(CONTENT_TYPE_UNSUPPORTED).saying("send the input as application/json"));
    }
    let bytes = body::read(content, edge.limits.operator_body, edge.limits.body_within).await?;
    serde_json::from_slice(&bytes).map_err(|_| unusable("the body is not one JSON object"))
}

pub(crate) fn is_type(headers: &HeaderMap, wanted: &[u8]) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(wanted)
}

/// A text among the input's members.
pub(crate) fn text(input: &mut Map<String, Json>, name: &str) -> Result<String, Problem> {
    match input.remove(name) {
        Some(Json::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(unusable(format!("{name} must be a text"))),
    }
}

/// Nothing that we don't know may be in the input: it would look as if it were obeyed.
pub(crate) fn nothing_left(input: &Map<String, Json>) -> Result<(), Problem> {
    match input.keys().next() {
        None => Ok(()),
        Some(name) => Err(unusable(format!("{name:?} is not a member here"))),
    }
}

pub(crate) fn unusable(message: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(INPUT_INVALID).saying(message)
}

pub(crate) fn invalid(message: String) -> Problem {
    Problem::new(QUERY_INVALID).saying(message)
}

/// An answer for operators: JSON that nobody keeps.
pub(crate) fn shown(json: &Json) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (StatusCode::OK, headers, Body::from(json.to_string())).into_response()
}
