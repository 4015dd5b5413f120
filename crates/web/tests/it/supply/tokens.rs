//! Who gets which token over the API (sections 3.1 to 3.3).

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value as Json, json};

use super::api::{ADMIN, Api, Server};
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

/// Status of a read with this token, here and at another server.
async fn opens(api: &Api, second: &Server, token: &str) -> [u16; 2] {
    let path = "/api/v1/audit/metrics/m013";
    let request = Request::get(path).header("authorization", format!("Bearer {token}"));
    let there = api.call_at(second, request.body(Body::empty()).expect("a request")).await;
    [api.read(path, token).await.status, there.status]
}

#[tokio::test]
async fn a_token_that_is_revoked_or_renewed_opens_nothing_here_and_nothing_elsewhere_within_five_seconds() {
    let api = Api::new().await;
    let second = api.second().await;
    for ending in ["revoke", "refresh"] {
        let made = api.admin(ISSUE, &staff(&["*"]).to_string()).await;
        let token = made["access_token"].as_str().expect("a token");
        assert_eq!(opens(&api, &second, token).await, [200, 200]);
        let path = format!("/api/v1/platform/tokens/{}/{ending}", made["token_id"]);
        let by = if ending == "refresh" { token } else { api.admin_token() };
        let ended = api.done(&path, by, "").await;
        // The other server believes what it heard a moment ago.
        assert_eq!(opens(&api, &second, token).await, [401, 200], "{ending}");
        api.house.clock.advance(Duration::from_secs(4));
        assert_eq!(opens(&api, &second, token).await, [401, 401], "{ending}");
        if let Some(renewed) = ended["access_token"].as_str() {
            assert_eq!(opens(&api, &second, renewed).await, [200, 200]);
        }
    }
}

#[tokio::test]
async fn whoever_holds_a_token_renews_it_and_no_other() {
    let desk = Desk::new().await;
    let reader = json!({ "tenant_id": desk.tenant, "user_id": desk.operator, "role": "viewer",
        "user_type": "supply", "scope": ["supply:account:read"] });
    let made = desk.api.admin(ISSUE, &reader.to_string()).await;
    let token = made["access_token"].as_str().expect("a token");
    let renewing = |id: &Json| format!("/api/v1/platform/tokens/{id}/refresh");
    let of_staff = desk.api.admin(ISSUE, &staff(&["*"]).to_string()).await;
    let mut theirs = reader.clone();
    theirs["user_id"] = desk.user.into();
    let theirs = desk.api.admin(ISSUE, &theirs.to_string()).await;
    for other in [&of_staff["token_id"], &theirs["token_id"], &json!(999_999)] {
        let got = desk.api.write((Method::POST, &renewing(other)), token, &desk.api.key(), "").await;
        assert_eq!(code(&got), is(404, "SUP_COM_4041"), "{other}: {}", got.text());
    }
    let (path, key) = (renewing(&made["token_id"]), desk.api.key());
    let got = desk.api.write((Method::POST, &path), token, &key, "").await;
    assert_eq!(got.status, 200, "{}", got.text());
    let data = got.json()["data"].clone();
    assert_eq!(data["refresh_until"], made["refresh_until"]);
    let renewed = data["access_token"].as_str().expect("a token");
    let opened = async |token: &str| desk.api.read("/api/v1/supply/accounts", token).await.status;
    assert_eq!((opened(token).await, opened(renewed).await), (401, 200));
    let repeat = desk.api.write((Method::POST, &path), renewed, &key, "").await;
    assert_eq!((repeat.status, &repeat.json()["data"]["access_token"]), (200, &Json::Null));
}

const INTROSPECT: &str = "/api/v1/platform/tokens/introspect";

#[tokio::test]
async fn whoever_asks_about_a_token_hears_whether_it_is_good() {
    let desk = Desk::new().await;
    let admin = desk.api.admin_token().to_owned();
    let grant = json!({ "tenant_id": desk.tenant, "user_id": desk.operator, "role": "owner", "user_type": "supply",
        "scope": ["billing:read", "supply:audit:read"], "ttl_seconds": 600 });
    let made = desk.api.admin(ISSUE, &grant.to_string()).await;
    let token = made["access_token"].as_str().expect("a token").to_owned();
    let (by_text, by_id) = (json!({ "token": token }), json!({ "token_id": made["token_id"] }));
    let asked = async |by: &str, about: &Json| desk.api.done(INTROSPECT, by, &about.to_string()).await;
    let claims = asked(&admin, &by_text).await;
    for (field, value) in grant.as_object().expect("an object") {
        assert!(field == "ttl_seconds" || claims[field] == *value, "{field}: {claims}");
    }
    assert_eq!((&claims["active"], &claims["expires_at"]), (&json!(true), &made["expires_at"]));
    assert_eq!((&asked(&admin, &by_id).await, &asked(&token, &by_id).await), (&claims, &claims));
    // Another supplier's people hear nothing of it, nor anybody of what was never issued.
    let (_, _, other) = super::life::supplier(&desk.api, "two").await;
    let none = json!({ "active": false });
    let (signed, signature) = token.rsplit_once('.').expect("three parts");
    let forged = json!({ "token": format!("{signed}.{}", signature.chars().rev().collect::<String>()) });
    for (by, about) in [
        (&other, &by_text),
        (&other, &by_id),
        (&admin, &forged),
        (&admin, &json!({ "token": "lgw_0123456789" })),
        (&admin, &json!({ "token_id": 999_999 })),
    ] {
        assert_eq!(asked(by, about).await, none, "{about}");
    }
    desk.api.house.clock.advance(Duration::from_secs(599));
    assert_eq!(asked(&admin, &by_id).await["active"], true);
    desk.api.house.clock.advance(Duration::from_secs(1));
    assert_eq!((asked(&admin, &by_id).await, asked(&admin, &by_text).await), (none.clone(), none.clone()));
}

#[tokio::test]
async fn a_token_that_is_revoked_or_renewed_is_not_active_and_a_question_is_kept_nowhere() {
    let api = Api::new().await;
    let admin = api.admin_token().to_owned();
    for ending in ["revoke", "refresh"] {
        let made = api.admin(ISSUE, &staff(&["*"]).to_string()).await;
        let token = made["access_token"].as_str().expect("a token");
        let about = json!({ "token": token }).to_string();
        assert_eq!(api.admin(INTROSPECT, &about).await["active"], true);
        let by = if ending == "refresh" { token } else { &admin };
        api.done(&format!("/api/v1/platform/tokens/{}/{ending}", made["token_id"]), by, "").await;
        assert_eq!(api.admin(INTROSPECT, &about).await, json!({ "active": false }), "{ending}");
    }
    let kept = "select count(*) from supply_idempotency_record where api_path like '%introspect%'";
    let audited = "select count(*) from audit_events where event_name like '%introspect%'";
    assert_eq!((api.count(kept).await, api.count(audited).await), (0, 0));
    let both = json!({ "token": admin, "token_id": 1 });
    for (about, field) in [(json!({}), "token"), (both, "token_id"), (json!({ "token": "" }), "token")] {
        let got = api.write((Method::POST, INTROSPECT), &admin, &api.key(), &about.to_string()).await;
        assert_eq!(code(&got), is(400, "SUP_COM_4001"), "{}", got.text());
        assert_eq!(got.json()["error"]["details"]["fields"][0]["field"], field);
    }
    assert_eq!(api.read(INTROSPECT, &admin).await.status, 405);
}
