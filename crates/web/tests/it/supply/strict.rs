//! What the description says of a request is what is taken: kinds, characters, spellings. Each of these was answered
//! otherwise once.

use axum::http::Method;
use serde_json::{Value as Json, json};

use super::api::Api;
use super::life::{offer, supplier};

/// Status, code, and the faulty fields with their rules.
fn told(got: &crate::house::Got) -> (u16, String, String) {
    let json = got.json();
    let error = &json["error"];
    let fault = |one: &Json| {
        format!("{}: {}", one["field"].as_str().unwrap_or_default(), one["rule"].as_str().unwrap_or_default())
    };
    let faults: Vec<_> = error["details"]["fields"].as_array().into_iter().flatten().map(fault).collect();
    (got.status, error["code"].as_str().unwrap_or_default().to_owned(), faults.join("; "))
}

async fn posted(api: &Api, path: &str, token: &str, body: &Json) -> (u16, String, String) {
    told(&api.write((Method::POST, path), token, &api.key(), &body.to_string()).await)
}

fn is(status: u16, code: &str, faults: &str) -> (u16, String, String) {
    (status, code.to_owned(), faults.to_owned())
}

#[tokio::test]
async fn whole_numbers_of_a_draft_are_numbers_and_words_are_texts() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let good = json!({ "supply_account_id": 999, "model": "m", "total_quota": "5", "price_per_1m_input": 1,
        "price_per_1m_output": "1", "valid_days": 1.0 });
    let path = "/api/v1/supply/packages/draft";
    assert_eq!(posted(&api, path, &token, &good).await.1, "SUP_ACC_4041", "but for the account it is good");
    for (field, value, rule) in [
        ("supply_account_id", json!("999"), "number"),
        ("valid_days", json!("1"), "number"),
        ("max_concurrent", json!(true), "number"),
        ("rate_limit_rpm", json!(1.5), "integer"),
        ("model", json!(5), "string"),
        ("quota_unit", json!(1), "string"),
        ("total_quota", json!([5]), "number"),
    ] {
        let mut wrong = good.clone();
        wrong[field] = value;
        assert_eq!(
            posted(&api, path, &token, &wrong).await,
            is(400, "SUP_COM_4001", &format!("{field}: {rule}"))
        );
    }
}

#[tokio::test]
async fn an_item_without_a_price_fails_the_batch_and_one_with_a_wrong_price_itself() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let package = offer(&api, &token, "a").await;
    let path = "/api/v1/supply/packages/batch-price";
    let item = json!({ "package_id": package, "price_per_1m_input": 9 });
    let missing = posted(&api, path, &token, &json!({ "items": [item] })).await;
    assert_eq!(missing, is(400, "SUP_COM_4001", "items[0].price_per_1m_output: required"));
    let item = json!({ "package_id": package, "price_per_1m_input": 9, "price_per_1m_output": "-1" });
    let receipt = api.done(path, &token, &json!({ "items": [item] }).to_string()).await;
    assert_eq!(receipt["failures"][0]["error_code"], "SUP_PKG_4004");
}

#[tokio::test]
async fn texts_stand_on_one_line_and_hold_no_null_character() {
    let api = Api::new().await;
    let admin = api.admin_token().to_owned();
    let buyer = |name: &str| json!({ "code": "b", "name": name });
    let path = "/api/v1/platform/buyers";
    for name in ["a\nb", " a", "a\u{3000}", "\u{7f}", " "] {
        assert_eq!(
            posted(&api, path, &admin, &buyer(name)).await,
            is(400, "SUP_COM_4001", "name: characters"),
            "{name:?}"
        );
    }
    let got = api.write((Method::POST, path), &admin, &api.key(), &buyer("a\0b").to_string()).await;
    let reason = &got.json()["error"]["details"]["reason"];
    assert_eq!((got.status, reason), (400, &json!("null_character")));
    assert_eq!(posted(&api, path, &admin, &buyer("备用 号")).await.0, 201);
}

#[tokio::test]
async fn instants_are_rfc_3339_and_pages_have_one_spelling() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let admin = api.admin_token().to_owned();
    let floors = |from: &str| json!({ "provider": "openai", "model": "m", "floor_input": 8, "floor_output": 32, "effective_from": from });
    for (from, status) in [
        ("2099-01-01 00:00:00Z", 400),
        ("20990101T000000Z", 400),
        ("2099-01-01T00:00:00+24:00", 400),
        ("2099-01-01T00:00:60Z", 400),
        ("2099-02-29T00:00:00Z", 400),
        ("2099-01-01T00:00:00+08:00", 200),
    ] {
        let path = (Method::PUT, "/api/v1/platform/price-protection");
        let got = api.write(path, &admin, &api.key(), &floors(from).to_string()).await;
        assert_eq!(got.status, status, "{from}: {}", got.text());
    }
    for bound in ["2026-01-01T00:00:00%2B24:00", "2026-01-01T00:00:60Z"] {
        let got = api.read(&format!("/api/v1/audit/metrics/m013?start={bound}"), &admin).await;
        assert_eq!((got.status, told(&got).1.as_str()), (400, "SUP_COM_4002"), "{bound}");
        let got = api.house.order(Method::GET, &format!("slo?since={bound}")).await;
        assert_eq!(got.status, 400, "{bound}: {}", got.text());
    }
    for (query, status) in [("page=1", 200), ("page=%2B1", 400), ("page=01", 400), ("page_size=0020", 400)] {
        let got = api.read(&format!("/api/v1/supply/accounts?{query}"), &token).await;
        assert_eq!(got.status, status, "{query}");
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_no_route() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    for path in ["/api/v1/supply/accounts/%ff", "/api/v1/supply/packages/%C3", "/api/v1/audit/events/%80"] {
        assert_eq!(told(&api.read(path, &token).await), is(404, "SUP_COM_4041", ""), "{path}");
    }
    let got = api.write((Method::POST, "/api/v1/supply/packages/%ff/pause"), &token, &api.key(), "").await;
    assert_eq!(told(&got), is(404, "SUP_COM_4041", ""));
}

#[tokio::test]
async fn a_token_that_the_issuer_would_not_sign_is_refused_by_its_field() {
    let api = Api::new().await;
    let (tenant, operator, _) = supplier(&api, "one").await;
    let admin = api.admin_token().to_owned();
    let grant = |role: &str, scope: &str| json!({ "tenant_id": tenant, "user_id": operator, "role": role, "user_type": "supply", "scope": [scope] });
    let path = "/api/v1/platform/tokens/issue";
    for (role, scope, fault) in [
        ("admin", "billing:read", "role: platform_only"),
        ("owner", "*", "scope: platform_only"),
        ("viewer", "supply:*", "scope: platform_only"),
    ] {
        assert_eq!(posted(&api, path, &admin, &grant(role, scope)).await, is(400, "SUP_COM_4001", fault));
    }
    assert_eq!(posted(&api, path, &admin, &grant("owner", "billing:read")).await.0, 201);
}

#[tokio::test]
async fn an_account_is_deleted_without_a_body() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let mount = json!({ "provider": "openai", "account_type": "api_key", "risk_ack": true,
        "credential_input": testkit::canary::credential("a") });
    let account = api.done("/api/v1/supply/accounts", &token, &mount.to_string()).await["account_id"].clone();
    let (path, key) = (format!("/api/v1/supply/accounts/{account}"), api.key());
    for body in ["{}", "null", r#"{"force":true}"#] {
        let got = api.write((Method::DELETE, &path), &token, &key, body).await;
        assert_eq!(got.status, 400, "{body}: {}", got.text());
    }
    let got = api.write((Method::DELETE, &path), &token, &key, "{}").await;
    assert_eq!(told(&got), is(400, "SUP_COM_4001", ": no_body"));
    let gone = api.write((Method::DELETE, &path), &token, &key, "").await;
    assert_eq!((gone.status, gone.body.len()), (204, 0), "{}", gone.text());
}
