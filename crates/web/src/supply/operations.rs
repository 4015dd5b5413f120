//! An operation by its key: where it stands, for clients whose own record of an answer is lost. Key and path travel in
//! the body: a URL is no place for what opens a result. Only the caller's own keys; the result itself comes with the
//! same request again.

use auth::{Need, scope};
use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use onceseal_http::headers::IdempotencyKey;
use onceseal_http::path::{ApiPath, PATH_MAX};
use onceseal_http::{Call, Fields, Scope, look_up};
use store::values;
use supply::record::RECORDS;

use super::accounts::unavailable;
use super::enter::{Gate, Who};
use super::{Shared, rate};

/// Longest key as it is sent: 128 characters in quotes, each of which may be escaped.
const KEY_SENT: std::ops::RangeInclusive<usize> = 1..=260;

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let need = Need::read(scope::SUPPLY_AUDIT_READ).or_admin(scope::PLATFORM_AUDIT_READ);
    let gate = Gate { need: Some(need), kind: rate::Kind::Call, keys: Some(onceseal_http::Need::Optional) };
    Router::new().route("/api/v1/supply/operations/look-up", gate.around(supply, post(find)))
}

async fn find(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let aliases = &supply.protocol.aliases;
    let read = call.fields(|fields| {
        let path = fields.text("path", 1..=3 * PATH_MAX).map(|path| ApiPath::of(path, aliases));
        let path = match path {
            Some(Ok(path)) => Some(path),
            Some(Err(_)) => fields.fault("path", "path"),
            None => None,
        };
        let key = key(fields);
        path.zip(key)
    });
    let (path, key) = match read {
        Ok(found) => found,
        Err(rejected) => return rejected.into_response(),
    };
    let owner = values![who.principal.tenant_id, who.principal.operator_id];
    // A look-up keeps nothing, so that it does not matter for how long.
    let scope = Scope { table: &RECORDS, owner, life: supply.house.policy.key_life };
    let found = look_up(supply.door.store(), &scope.find(&path, key.as_str()), supply.clock.now()).await;
    match found {
        Ok(operation) => supply.protocol.answers.operation(call.asked(), operation.as_ref()),
        Err(error) => unavailable(&who, &error),
    }
}

/// As the header takes it, quoted or not.
fn key(fields: &mut Fields<'_>) -> Option<IdempotencyKey> {
    let text = fields.text("idempotency_key", KEY_SENT)?;
    let key = HeaderValue::try_from(text).ok().and_then(|sent| IdempotencyKey::of(&sent));
    key.or_else(|| fields.fault("idempotency_key", "16..128 visible ASCII"))
}
