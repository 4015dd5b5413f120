//! Who gets which token over the API (sections 3.1 to 3.3).

use axum::http::Method;
use serde_json::{Value as Json, json};

use super::api::{ADMIN, Api};
use super::desk::{Desk, code, is};
use crate::house::Got;

const ISSUE: &str = "/api/v1/platform/tokens/issue";

/// What a token of staff with these scopes would say.
fn staff(scopes: &[&str]) -> Json {
    json!({ "tenant_id": 1, "user_id": ADMIN, "role": "admin", "user_type": "platform", "scope": scopes })
}

async fn issued(api: &Api, token: &str, grant: &Json) -> Got {
    api.write((Method::POST, ISSUE), token, &api.key(), &grant.to_string()).await
}

/// A token for this, by the first administrator.
async fn given(api: &Api, grant: &Json) -> String {
    let data = api.admin(ISSUE, &grant.to_string()).await;
    data["access_token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn nobody_of_a_supplier_becomes_the_platforms_staff() {
    let desk = Desk::new().await;
    let mut grant = staff(&["*"]);
    (grant["tenant_id"], grant["user_id"]) = (desk.tenant.into(), desk.operator.into());
    let got = issued(&desk.api, desk.api.admin_token(), &grant).await;
    assert_eq!(code(&got), is(400, "SUP_COM_4001"), "{}", got.text());
    let fault = json!([{ "field": "user_type", "rule": "of_the_tenant" }]);
    assert_eq!(got.json()["error"]["details"]["fields"], fault);
    // The same at the server's own command line.
    let got = desk.api.house.order_with("platform-tokens", &grant).await;
    assert_eq!((got.status, got.text().contains("of_the_tenant")), (400, true), "{}", got.text());
    let none = "select count(*) from auth_tokens where user_type = 'platform' and tenant_id <> 1";
    assert_eq!(desk.api.count(none).await, 0);
}

#[tokio::test]
async fn staff_hand_out_no_more_than_they_hold() {
    let desk = Desk::new().await;
    let desk_token = given(&desk.api, &staff(&["platform:token:write", "billing:read"])).await;
    let all = given(&desk.api, &staff(&["platform:*"])).await;
    let supplier = |scope: &str| {
        json!({ "tenant_id": desk.tenant, "user_id": desk.operator, "role": "owner", "user_type": "supply",
            "scope": [scope] })
    };
    for (token, grant, status) in [
        (&desk_token, staff(&["*"]), 403),
        (&desk_token, staff(&["platform:*"]), 403),
        (&desk_token, staff(&["platform:token:write", "platform:risk:operate"]), 403),
        (&desk_token, supplier("supply:settlement:withdraw"), 403),
        (&desk_token, staff(&["platform:token:write"]), 201),
        (&desk_token, supplier("billing:read"), 201),
        (&all, staff(&["*"]), 403),
        (&all, staff(&["platform:*"]), 201),
        (&all, supplier("supply:settlement:withdraw"), 201),
    ] {
        let got = issued(&desk.api, token, &grant).await;
        assert_eq!(got.status, status, "{grant}: {}", got.text());
        if status == 403 {
            assert_eq!(code(&got), is(403, "AUTH_SCOPE_DENIED"), "{grant}");
        }
    }
    assert_eq!(desk.audited("token.authz.denied", "AUTH_SCOPE_DENIED").await, 5);
}
