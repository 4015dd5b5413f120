//! A provider's credential that came in as a bearer token (sections 9.5, 16.2): somebody has one, and takes this for the
//! provider. It is on record once a minute of each address, and so often in all that nobody without a token can force
//! writes; what was left out is counted by the row that follows. Nothing of the credential is in it. Not here: the
//! refusal itself, and that every refused caller is counted by its code.

use auth::Code;
use axum::extract::MatchedPath;
use axum::http::request::Parts;
use door::AuditRow;
use serde_json::json;

use super::{Supply, act, enter};

/// Name of its row in the audit.
const SUPPLIER: &str = "CRED-INGRESS-SUPPLIER";

/// Puts it on record. Where that fails it is logged: the refusal needs no row to stand.
pub(super) async fn told(supply: &Supply, parts: &Parts, request_id: &str) {
    let (client, agent) = enter::sender(supply, parts);
    let client_ip = client.map(|client| client.to_string());
    let code = Code::UpstreamCredential.name();
    let of = (0, client_ip.as_deref().unwrap_or_default(), code);
    let Some(left_out) = supply.rates.strangers.lets(of, supply.clock.now()) else { return };
    let route = parts.extensions.get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    let mut row = AuditRow::system(SUPPLIER, "request", request_id.to_owned(), request_id.to_owned());
    (row.client_ip, row.user_agent) = (client_ip, agent);
    row.result_code = code.into();
    row.metadata =
        json!({ "blocked": true, "method": parts.method.as_str(), "route": route, "left_out": left_out });
    // Its failure is in the log.
    drop(act::on_record(supply, request_id, row).await);
}
