//! Which scope of the platform opens which route (section 8.5): each route with each.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use super::api::{ADMIN, Api};
use super::openapi::{bare, document, operations};

/// What the holder of only this scope, of all of the platform's, may call. Whatever stands nowhere is no staff's.
/// But for [`ANYBODY`], a token's own renewal.
const OPENS: [(&str, &[&str]); 7] = [
    (
        "platform:risk:operate",
        &[
            "post /api/v1/platform/supply/accounts/{id}/disable",
            "post /api/v1/platform/supply/accounts/{id}/review",
            "post /api/v1/platform/supply/packages/{id}/freeze",
            "post /api/v1/platform/supply/packages/{id}/unfreeze",
            "put /api/v1/platform/price-protection",
            "post /api/v1/platform/suppliers/{id}/suspend",
            "post /api/v1/platform/suppliers/{id}/resume",
            "post /api/v1/platform/suppliers/{id}/risk-cases",
            "post /api/v1/platform/suppliers/{id}/risk-cases/close",
            "post /api/v1/platform/egress-events",
            "post /api/v1/supply/accounts/{account_id}/activate",
        ],
    ),
    (
        "platform:settlement:operate",
        &[
            "post /api/v1/platform/settlements/{id}/start",
            "post /api/v1/platform/settlements/{id}/complete",
            "post /api/v1/platform/settlements/{id}/fail",
            "post /api/v1/platform/settlements/{id}/reject",
            "post /api/v1/platform/settlements/{id}/return",
        ],
    ),
    ("platform:order:write", &["post /api/v1/platform/orders", "post /api/v1/platform/orders/{id}/pay"]),
    ("platform:usage:write", &["post /api/v1/platform/usage-records"]),
    (
        "platform:*",
        &[
            "post /api/v1/platform/suppliers",
            "post /api/v1/platform/buyers",
            "post /api/v1/platform/buyers/{id}/topups",
            "post /api/v1/platform/orders/{id}/cancel",
            "post /api/v1/platform/orders/{id}/refund",
        ],
    ),
    (
        "platform:token:write",
        &[
            "post /api/v1/platform/tokens/issue",
            "post /api/v1/platform/tokens/{tokenId}/revoke",
            "post /api/v1/platform/tokens/introspect",
        ],
    ),
    (
        "platform:audit:read",
        &[
            "get /api/v1/audit/events/{event_id}",
            "get /api/v1/audit/metrics/{metric}",
            "get /api/v1/platform/tokens/audit-events",
            "post /api/v1/supply/operations/look-up",
        ],
    ),
];

const ANYBODY: &str = "post /api/v1/platform/tokens/{tokenId}/refresh";

async fn staff(api: &Api, scopes: &[&str]) -> String {
    let grant = json!({ "tenant_id": 1, "user_id": ADMIN, "role": "admin", "user_type": "platform",
        "scope": scopes });
    let made = api.admin("/api/v1/platform/tokens/issue", &grant.to_string()).await;
    made["access_token"].as_str().expect("a token").to_owned()
}

/// Whether a token opens a route: nothing stands in the request, so that whatever it opens refuses it for that.
async fn opens(api: &Api, token: &str, (method, path): (&str, &str)) -> bool {
    let mut request: Request<Body> = bare(method, path);
    let bearer = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert("authorization", bearer);
    let got = api.house.call(request).await;
    assert_ne!(got.status, 401, "{method} {path}: {}", got.text());
    got.status != 403
}

#[tokio::test]
async fn each_scope_of_the_platform_opens_its_routes_and_no_other() {
    let api = Api::new().await;
    let routes: Vec<_> = operations(&document(&api).await);
    let named = |method: &str, path: &str| format!("{method} {path}");
    let known: Vec<_> = routes.iter().map(|(method, path, _)| named(method, path)).collect();
    for (_, listed) in OPENS {
        assert!(listed.iter().all(|route| known.iter().any(|one| one == route)), "{listed:?}");
    }
    let all: Vec<&str> = OPENS.iter().flat_map(|(_, listed)| listed.iter().copied()).collect();
    let holders = OPENS.iter().map(|(scope, listed)| (*scope, *listed)).chain([("*", &all[..])]);
    for (scope, listed) in holders {
        let (token, listed) =
            (staff(&api, &[scope]).await, if scope == "platform:*" { &all } else { listed });
        for (method, path, _) in &routes {
            let route = named(method, path);
            let expected = route == ANYBODY || listed.contains(&route.as_str());
            assert_eq!(opens(&api, &token, (method, path)).await, expected, "{scope}: {route}");
        }
    }
}
