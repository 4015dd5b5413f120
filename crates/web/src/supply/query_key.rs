//! Credentials in the URL (section 14): refused before routing and before authentication, on every path. What the
//! access layer sees ([`seen`]) is counted apart from what is refused ([`refused`]), whose count is that of its audit
//! rows, so that M-016 can be less than 100 %.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use door::AuditRow;
use guard::query::{Judgement, judge};
use kernel::Time;
use serde_json::json;
use supply::slo::Tally;

use super::Supply;
use super::envelope::{self, QUERY_KEY, QUERY_MALFORMED};

/// Counter of requests in which a credential was seen.
pub(crate) const DETECTED: &str = "onceseal_query_key_detected_total";
/// Counter of those that were refused for it.
pub(crate) const REJECTED: &str = "onceseal_query_key_rejected_total";

/// What the access layer saw in the raw address of a request.
#[derive(Debug)]
pub(crate) struct Seen {
    judgement: Judgement,
    route: String,
    sighting: Option<Sighting>,
}

/// A credential in an address. It is counted when the request is over, however it ended: refused, answered, or given
/// up by its client.
struct Sighting(Arc<Tally>, Time);

impl std::fmt::Debug for Sighting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sighting").finish_non_exhaustive()
    }
}

impl Drop for Sighting {
    fn drop(&mut self) {
        metrics::counter!(DETECTED).increment(1);
        self.0.detected(self.1);
    }
}

/// Looks at the raw address of a request, before anything else does.
pub(crate) fn seen(supply: &Supply, request: &Request) -> Seen {
    let judgement = judge(request.uri().to_string().as_bytes(), supply.guard.scanner());
    let has_key = matches!(judgement, Judgement::KeyIn { .. });
    let sighting = has_key.then(|| Sighting(Arc::clone(&supply.tally), supply.clock.now()));
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    Seen { judgement, route: route.to_owned(), sighting }
}

/// The refusal of a request whose URL holds a credential, or whose query can't be read.
pub(crate) async fn refused(
    supply: &Supply,
    seen: Seen,
    (request_id, client): (&str, Option<IpAddr>),
) -> Option<Response> {
    let Seen { judgement, route, sighting } = seen;
    let response = match judgement {
        Judgement::Clean => None,
        Judgement::Malformed => Some(envelope::plain(request_id, QUERY_MALFORMED)),
        Judgement::KeyIn { canonical_name } => {
            if audit(supply, (request_id, client), (canonical_name, route)).await {
                metrics::counter!(REJECTED).increment(1);
            }
            Some(envelope::plain(request_id, QUERY_KEY))
        }
    };
    drop(sighting);
    response
}

/// `token.query_key.rejected`: the parameter's canonical name, never its value. Whether it is on record.
async fn audit(
    supply: &Supply,
    (request_id, client): (&str, Option<IpAddr>),
    (name, route): (&'static str, String),
) -> bool {
    let (door, id) = (&supply.door, request_id.to_owned());
    let mut row = AuditRow::system("token.query_key.rejected", "request", id.clone(), id);
    row.client_ip = client.map(|client| client.to_string());
    row.result_code = QUERY_KEY.name.into();
    row.metadata = json!({ "parameter": name, "route": route });
    let random = door.random();
    let kept = door
        .maintain("query_key", Vec::new(), move |_, now| Ok((vec![row.clone().write(now, &*random)], ())));
    let kept = kept.await;
    if let Err(failure) = &kept {
        tracing::error!(%failure, "a refused query key could not be audited");
    }
    kept.is_ok()
}
