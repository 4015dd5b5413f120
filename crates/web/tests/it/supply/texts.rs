//! No text that somebody sends is kept with a credential in it (sections 1.1, 15): names are refused, prose is masked.

use axum::http::Method;
use guard::canary::contains_run;
use kernel::Clock as _;
use serde_json::{Map, Value as Json, json};

use super::desk::{Desk, code, is};
use super::openapi::{document, operations, resolved};

/// Prose, which is masked.
const PROSE: [&str; 3] = ["reason", "error_message", "source"];
/// Opens a result and is not kept.
const NOT_KEPT: [&str; 1] = ["lookUpOperation"];

fn canary() -> String {
    format!("sk-{}", "Q7xZ".repeat(12))
}

/// The texts of a request: whatever is neither one of some words nor a secret that is sealed.
fn texts_of(document: &Json, operation: &Json) -> Vec<String> {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let properties = resolved(document, schema)["properties"].as_object().cloned().unwrap_or_default();
    let is_text = |field: &Json| {
        field["type"] == "string"
            && ["enum", "format", "writeOnly"].iter().all(|word| field.get(*word).is_none())
    };
    properties.into_iter().filter(|(_, field)| is_text(field)).map(|(name, _)| name).collect()
}

/// Every text of every table.
async fn kept(desk: &Desk) -> Vec<String> {
    let columns = if desk.api.on_postgres() {
        "select table_name || ' ' || column_name from information_schema.columns where table_schema = current_schema()
           and data_type in ('text', 'character varying', 'character', 'jsonb')"
    } else {
        "select m.name || ' ' || c.name from sqlite_master m join pragma_table_info(m.name) c
           where m.type = 'table' and lower(c.type) = 'text'"
    };
    let mut all = Vec::new();
    for column in desk.api.texts(columns).await {
        let (table, column) = column.split_once(' ').expect("two words");
        let sql = format!("select cast({column} as text) from {table} where {column} is not null");
        all.extend(desk.api.texts(&sql).await);
    }
    assert!(all.len() > 50, "{}", all.len());
    all
}

#[tokio::test]
async fn every_text_of_every_request_is_looked_at() {
    let desk = Desk::new().await;
    let document = document(&desk.api).await;
    let mut looked_at = 0;
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().expect("an id");
        if NOT_KEPT.contains(&id) {
            continue;
        }
        for field in texts_of(&document, &operation).iter().filter(|field| !PROSE.contains(&field.as_str())) {
            let path = path.split('/').map(|part| if part.starts_with('{') { "999999" } else { part });
            let path = path.collect::<Vec<_>>().join("/");
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            let staff = path.starts_with("/api/v1/platform");
            let token = if staff { desk.api.admin_token() } else { &desk.token };
            let body = Json::Object(Map::from_iter([(field.clone(), canary().into())])).to_string();
            let got = desk.api.write((method, &path), token, &desk.api.key(), &body).await;
            assert_eq!(got.status, 400, "{id} {field}: {}", got.text());
            let faults = got.json()["error"]["details"]["fields"].clone();
            let fault = json!({ "field": field, "rule": "no_credential" });
            assert!(faults.as_array().is_some_and(|all| all.contains(&fault)), "{id} {field}: {faults}");
            looked_at += 1;
        }
    }
    assert!(looked_at >= 12, "{looked_at}");
}

#[tokio::test]
async fn a_report_of_a_call_keeps_no_key_of_the_provider() {
    let desk = Desk::new().await;
    let package = desk.active(desk.account("a").await).await;
    let buyer = desk.api.admin("/api/v1/platform/buyers", r#"{"code":"b","name":"B"}"#).await;
    let top_up = format!("/api/v1/platform/buyers/{}/topups", buyer["buyer_id"]);
    desk.api.admin(&top_up, r#"{"amount":200}"#).await;
    let order = json!({ "buyer_id": buyer["buyer_id"], "package_id": package, "quota_amount": 100 });
    let order = desk.api.admin("/api/v1/platform/orders", &order.to_string()).await["order_id"].clone();
    desk.api.admin(&format!("/api/v1/platform/orders/{order}/pay"), "").await;
    let google = format!("AIza{}", "Sy7".repeat(12));
    let now = desk.api.house.clock.now().to_rfc3339_millis();
    let report = |endpoint: &str, upstream: &str| {
        json!({ "order_id": order, "api_key_id": buyer["api_key_id"], "request_id": "call-1", "request_tokens": 1,
            "response_tokens": 1, "success": false, "endpoint": endpoint, "upstream_request_id": upstream,
            "error_message": format!("{} is no key", canary()), "response_status": 401, "latency_ms": 9,
            "started_at": now, "completed_at": now })
    };
    let (path, with_key) = ("/api/v1/platform/usage-records", format!("/v1/models?key={google}"));
    for (endpoint, upstream, field) in [
        (with_key.as_str(), canary().as_str(), "upstream_request_id"),
        (&format!("/v1/{google}/models"), "u-1", "endpoint"),
        ("/v1/models;key=short", "u-1", "endpoint"),
        ("https://user:pass@api.example/v1", "u-1", "endpoint"),
        ("?key=short", "u-1", "endpoint"),
    ] {
        let body = report(endpoint, upstream).to_string();
        let got = desk.api.write((Method::POST, path), desk.api.admin_token(), &desk.api.key(), &body).await;
        assert_eq!(code(&got), is(400, "SUP_COM_4001"), "{endpoint}: {}", got.text());
        assert_eq!(got.json()["error"]["details"]["fields"][0]["field"], field, "{endpoint}");
    }
    desk.api.admin(path, &report(&with_key, "u-1").to_string()).await;
    let row =
        "select endpoint || ' ' || upstream_request_id || ' ' || error_message from supply_usage_records";
    assert_eq!(desk.api.texts(row).await, ["/v1/models u-1 [REDACTED:sk_generic] is no key"]);
    for text in kept(&desk).await {
        assert!(!contains_run(&text, &canary(), 8) && !contains_run(&text, &google, 8), "{text}");
    }
}

#[tokio::test]
async fn a_reason_is_masked_and_a_name_of_staff_refused() {
    let desk = Desk::funded(100).await;
    let (account, settlement) = (desk.account("a").await, desk.settlement("50").await);
    let reason = json!({ "reason": format!("{} leaked", canary()) }).to_string();
    for path in [
        format!("/api/v1/platform/supply/accounts/{account}/disable"),
        format!("/api/v1/platform/settlements/{settlement}/reject"),
    ] {
        desk.api.admin(&path, &reason).await;
    }
    let masked = "select cast(metadata as text) from audit_events where event_name in ('supply.account.disable', 'supply.settlement.risk_reject')";
    let masked = desk.api.texts(masked).await;
    assert!(masked.len() == 2 && masked.iter().all(|text| text.contains("[REDACTED:sk_generic] leaked")));
    let got = desk.api.house.order_with("platform-admins", &json!({ "name": canary() })).await;
    assert_eq!(got.status, 400, "{}", got.text());
    for text in kept(&desk).await {
        assert!(!contains_run(&text, &canary(), 8), "{text}");
    }
}
