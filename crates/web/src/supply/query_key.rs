//! Credentials in the URL (section 14): refused before routing and before authentication, on every path. Detection
//! and rejection are counted at two places, so that M-016 can be less than 100 %.

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use door::{AuditRow, Door};
use guard::query::{Judgement, judge};
use serde_json::json;

use super::Shared;
use super::envelope::{self, QUERY_KEY, QUERY_MALFORMED};

/// Counter of requests in which a credential was seen.
pub(crate) const DETECTED: &str = "onceseal_query_key_detected_total";
/// Counter of those that were refused for it.
pub(crate) const REJECTED: &str = "onceseal_query_key_rejected_total";

/// The refusal of a request whose URL holds a credential, or whose query can't be read.
pub(crate) async fn refused(
    supply: &Shared,
    (target, route): (String, String),
    request_id: &str,
) -> Option<Response> {
    match judge(target.as_bytes(), supply.guard.scanner()) {
        Judgement::Clean => None,
        Judgement::Malformed => Some(envelope::plain(request_id, QUERY_MALFORMED)),
        Judgement::KeyIn { canonical_name } => {
            metrics::counter!(DETECTED).increment(1);
            audit(&supply.door, request_id, canonical_name, route).await;
            metrics::counter!(REJECTED).increment(1);
            Some(envelope::plain(request_id, QUERY_KEY))
        }
    }
}

/// What is judged of a request, and the route that it would take.
pub(crate) fn target(request: &Request) -> (String, String) {
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    (request.uri().to_string(), route.to_owned())
}

/// `token.query_key.rejected`: the parameter's canonical name, never its value.
async fn audit(door: &Door, request_id: &str, name: &'static str, route: String) {
    let mut row =
        AuditRow::system("token.query_key.rejected", "request", request_id.to_owned(), request_id.to_owned());
    row.result_code = QUERY_KEY.name.into();
    row.metadata = json!({ "parameter": name, "route": route });
    let random = door.random();
    let kept = door
        .maintain("query_key", Vec::new(), move |_, now| Ok((vec![row.clone().write(now, &*random)], ())));
    if let Err(failure) = kept.await {
        tracing::error!(%failure, "a refused query key could not be audited");
    }
}
