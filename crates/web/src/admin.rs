//! Orders that concern the whole house: reconcile, check, export and import, keys, back up, fence.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, Uri};
use axum::response::IntoResponse as _;
use certify::acts::Refused;
use futures::future::BoxFuture;
use serde_json::{Value as Json, json};

use crate::body;
use crate::codes::{CONTENT_TYPE_UNSUPPORTED, ROUTE_UNKNOWN};
use crate::edge::Edge;
use crate::operator::{
    Answer, asked, input, is_type, nothing_asked, nothing_left, number, shown, text, unusable,
};
use crate::problem::Problem;
use crate::token::Operator;

type Shared = State<Arc<Edge>>;

/// Header of an export's page: what to give as `after` for the next one. Absent on the last page.
pub const NEXT_AFTER: &str = "onceseal-next-after";
/// One JSON object a line.
const NDJSON: &str = "application/x-ndjson";
/// Lines of an export in one answer.
const EXPORT_PAGE: u32 = 500;

/// Makes `processed.jsonl` anew. Only one hand may be on that file, and whoever wires the parts knows whose.
pub struct Rebuild {
    run: Box<dyn Fn() -> BoxFuture<'static, Result<u64, Refused>> + Send + Sync>,
}

impl Rebuild {
    /// By this way; it gives the file's lines.
    pub fn new<F>(run: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<u64, Refused>> + Send + Sync + 'static,
    {
        Self { run: Box::new(run) }
    }
}

pub(crate) async fn reconcile(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.reconcile(&operator.name).await?))
}

pub(crate) async fn check(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.check().await?))
}

pub(crate) async fn keys(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.keys_standing().await.map_err(Refused::from)?))
}

pub(crate) async fn rotate_keys(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.rotate_keys(&operator.name).await?))
}

pub(crate) async fn announce_key(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.announce_key(&operator.name).await?))
}

pub(crate) async fn activate_key(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.activate_key(&operator.name).await?))
}

pub(crate) async fn withdraw_key(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.withdraw_key(&operator.name).await?))
}

pub(crate) async fn fence(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.fence(&operator.name).await?))
}

pub(crate) async fn lift_fence(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    Ok(shown(&edge.visa.lift_fence(&operator.name).await?))
}

pub(crate) async fn backup(operator: Operator, State(edge): Shared, request: Request) -> Answer {
    let mut input = input(&edge, request).await?;
    let to = PathBuf::from(text(&mut input, "to")?);
    nothing_left(&input)?;
    if !to.is_absolute() || to.components().any(|part| part.as_os_str() == "..") {
        return Err(unusable("to must be an absolute path on the server, without '..'"));
    }
    tracing::info!(operator = %operator.name, "backup_requested");
    Ok(shown(&edge.visa.backup(to).await?))
}

pub(crate) async fn export(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    let asked = asked(uri.query().unwrap_or_default(), &["after"])?;
    let after = number(&asked, "after")?.unwrap_or(0);
    let (lines, next) = edge.visa.export_page(after, EXPORT_PAGE).await?;
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(NDJSON)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let mut response = (headers, Body::from(text)).into_response();
    if let Some(next) = next {
        response.headers_mut().insert(HeaderName::from_static(NEXT_AFTER), HeaderValue::from(next));
    }
    Ok(response)
}

pub(crate) async fn rebuild(operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    nothing_asked(&uri)?;
    let Some(rebuild) = &edge.rebuild else { return Err(Problem::new(ROUTE_UNKNOWN)) };
    tracing::info!(operator = %operator.name, "export_rebuild_requested");
    let lines = (rebuild.run)().await?;
    Ok(shown(&json!({ "lines": lines })))
}

pub(crate) async fn import(operator: Operator, State(edge): Shared, request: Request) -> Answer {
    let (parts, content) = request.into_parts();
    let mut asked = asked(parts.uri.query().unwrap_or_default(), &["source"])?;
    let Some(Json::String(source)) = asked.remove("source") else {
        return Err(unusable("?source= must name the source whose events these are"));
    };
    body::unencoded(&parts.headers)?;
    if !is_type(&parts.headers, NDJSON.as_bytes()) {
        return Err(Problem::new(CONTENT_TYPE_UNSUPPORTED).saying("send the lines as application/x-ndjson"));
    }
    let bytes = body::read(content, edge.limits.import_body, edge.limits.body_within).await?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unusable("the body is not UTF-8"))?;
    let lines = text.lines().map(ToOwned::to_owned).collect();
    Ok(shown(&edge.visa.import(&source, lines, &operator.name).await?))
}
