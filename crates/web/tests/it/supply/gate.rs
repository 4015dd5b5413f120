//! Who comes in, with what, in which order it is asked, and what leaves.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;

use super::api::Api;
use super::life::supplier;

const ACCOUNTS: &str = "/api/v1/supply/accounts";

fn error(got: &crate::house::Got) -> (u16, String) {
    let json = got.json();
    let error = &json["error"];
    assert!(json["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{json}");
    assert_eq!(got.header("x-request-id"), json["request_id"].as_str().unwrap_or_default());
    assert!(error["message"].is_string() && error["message_zh"].is_string(), "{json}");
    (got.status, error["code"].as_str().unwrap_or_default().to_owned())
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_credential_in_the_url_is_refused_on_every_path_before_anything_else() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let paths = ["/api/v1/supply/accounts", "/v1/chat/completions", "/v1beta/models", "/nowhere", "/healthz"];
    for path in paths {
        for query in ["key=x", "API%255Fkey", "api_key[]=1", "Access-Token=", "a=1;secret=2"] {
            let plain = api.house.get(&format!("{path}?{query}")).await;
            assert_eq!(error(&plain), is(401, "QUERY_KEY_NOT_ALLOWED"), "{path}?{query}");
            let known = api.read(&format!("{path}?{query}"), &token).await;
            assert_eq!(error(&known), is(401, "QUERY_KEY_NOT_ALLOWED"), "{path}?{query}");
        }
    }
    let audited = "select count(*) from audit_events where event_name = 'token.query_key.rejected'";
    assert_eq!(api.count(audited).await, 50);
    assert_eq!(api.read("/api/v1/supply/accounts?page=1", &token).await.status, 200);
}

#[tokio::test]
async fn a_caller_needs_a_token_its_scope_and_both_headers_in_this_order() {
    let api = Api::new().await;
    let (tenant, operator, token) = supplier(&api, "one").await;
    let reader = api.token((tenant, operator), &["supply:account:read"]).await;
    let bare = |token: Option<&str>| {
        let request = Request::post(ACCOUNTS).header("content-type", "application/json");
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        api.house.call(request.body(Body::from("{nonsense")).expect("a request"))
    };
    let missing = bare(None).await;
    assert_eq!(
        (error(&missing), missing.header("www-authenticate")),
        (is(401, "AUTH_MISSING_BEARER"), "Bearer")
    );
    assert_eq!(error(&bare(Some("x.y.z")).await), is(401, "AUTH_INVALID_TOKEN"));
    assert_eq!(
        error(&bare(Some(&format!("sk-{}", "a".repeat(40)))).await),
        is(401, "AUTH_UPSTREAM_CREDENTIAL")
    );
    assert_eq!(error(&bare(Some(&reader)).await), is(403, "AUTH_SCOPE_DENIED"));
    assert_eq!(error(&bare(Some(&token)).await), is(400, "REQUEST_ID_MISSING"));
    let keyed = api.write((Method::POST, ACCOUNTS), &token, "short", "{nonsense").await;
    assert_eq!(error(&keyed), is(400, "IDEMPOTENCY_KEY_INVALID"));
    let body = api.write((Method::POST, ACCOUNTS), &token, &api.key(), "{nonsense").await;
    assert_eq!(error(&body), is(400, "SUP_COM_4000"));
    let fields = api.write((Method::POST, ACCOUNTS), &token, &api.key(), r#"{"provider":"nobody"}"#).await;
    assert_eq!(error(&fields), is(400, "SUP_COM_4001"));
    assert_eq!(
        api.count("select count(*) from supply_idempotency_record where api_path like '%accounts%'").await,
        0
    );
    let refused = "select count(*) from audit_events where event_name = 'supply.write.refused'";
    assert_eq!(api.count(refused).await, 5, "each refusal of an authenticated caller");
}

#[tokio::test]
async fn what_a_body_states_is_judged_before_anybody_is_asked_who_calls() {
    let api = Api::new().await;
    let (tenant, operator, token) = supplier(&api, "one").await;
    let reader = api.token((tenant, operator), &["supply:account:read"]).await;
    let large = format!(r#"{{"provider":"{}"}}"#, "x".repeat(64 * 1024));
    let send = async |token: Option<&str>, kind: &str, body: &str| {
        let request = Request::post(ACCOUNTS).header("content-type", kind);
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        error(&api.house.call(request.body(Body::from(body.to_owned())).expect("a request")).await)
    };
    for token in [None, Some("x.y.z"), Some(reader.as_str()), Some(token.as_str())] {
        assert_eq!(send(token, "application/json", &large).await, is(413, "SUP_COM_4131"));
        assert_eq!(send(token, "text/plain", "{}").await, is(415, "SUP_COM_4151"));
    }
    // What is no body has no type.
    assert_eq!(send(None, "text/plain", "").await, is(401, "AUTH_MISSING_BEARER"));
    let refused = "select count(*) from audit_events where event_name = 'supply.write.refused'";
    assert_eq!(api.count(refused).await, 0, "nobody is known to have tried");
}

#[tokio::test]
async fn a_providers_key_as_a_token_is_on_record_once_a_minute_without_a_part_of_it() {
    let api = Api::new().await;
    let key = testkit::canary::credential("a");
    let send = async || {
        let request = Request::get(ACCOUNTS)
            .header("authorization", format!("Bearer {key}"))
            .header("user-agent", format!("curl {key}"));
        let got = api.house.call(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(error(&got), is(401, "AUTH_UPSTREAM_CREDENTIAL"));
    };
    let event = "from audit_events where event_name = 'CRED-INGRESS-SUPPLIER'";
    let rows = format!("select count(*) {event} and result_code = 'AUTH_UPSTREAM_CREDENTIAL'");
    for _ in 0..=1000 {
        send().await;
    }
    assert_eq!(api.count(&rows).await, 1);
    api.house.clock.advance(std::time::Duration::from_secs(60));
    send().await;
    assert_eq!(api.count(&rows).await, 2);
    let metadata = format!("select cast(metadata as text) {event} order by id");
    let left: Vec<_> = api
        .texts(&metadata)
        .await
        .iter()
        .map(|text| {
            let said: serde_json::Value = serde_json::from_str(text).expect("JSON");
            assert_eq!((&said["method"], &said["route"]), (&json!("GET"), &json!(ACCOUNTS)));
            said["left_out"].as_u64()
        })
        .collect();
    assert_eq!(left, [Some(0), Some(1000)]);
    for column in ["user_agent", "object_id", "request_id", "cast(metadata as text)"] {
        for text in api.texts(&format!("select {column} {event}")).await {
            assert!(!guard::canary::contains_run(&text, &key, 8), "{column}: {text}");
        }
    }
    // What a stranger does takes no room from exposures, and is none.
    let other = "select count(*) from audit_events where event_name like 'CRED-%'";
    assert_eq!(api.count(other).await, 2);
}

#[tokio::test]
async fn what_no_route_takes_is_told_in_the_same_shape() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let unknown = api.read("/api/v1/supply/accountsX", &token).await;
    assert_eq!(error(&unknown), is(404, "SUP_COM_4041"));
    let method = api.write((Method::PATCH, ACCOUNTS), &token, &api.key(), "").await;
    assert_eq!(error(&method), is(405, "SUP_COM_4051"));
    assert!(method.header("allow").contains("POST"), "{:?}", method.headers);
    let page = api.read(&format!("{ACCOUNTS}?page_size=201"), &token).await;
    assert_eq!(error(&page), is(400, "SUP_COM_4002"));
}

#[tokio::test]
async fn a_request_without_an_id_has_one_in_answer_audit_and_replay() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let body = json!({ "supply_account_id": 999, "model": "m", "total_quota": 5, "price_per_1m_input": 1,
        "price_per_1m_output": 1, "valid_days": 1 })
    .to_string();
    let key = api.key();
    let send = |id: Option<&'static str>| {
        let request = Request::post("/api/v1/supply/packages/draft")
            .header("authorization", format!("Bearer {token}"))
            .header("idempotency-key", &key)
            .header("content-type", "application/json");
        let request = if let Some(id) = id { request.header("x-request-id", id) } else { request };
        api.house.call(request.body(Body::from(body.clone())).expect("a request"))
    };
    let first = send(None).await;
    assert_eq!(error(&first), is(404, "SUP_ACC_4041"));
    let told = first.json()["request_id"].as_str().expect("an id").to_owned();
    let repeat = send(Some("not a uuid")).await;
    assert_eq!(
        (repeat.header("idempotent-replayed"), &repeat.json()["original_request_id"]),
        ("true", &json!(told))
    );
    let audited = format!("select count(*) from audit_events where request_id = '{told}'");
    assert_eq!(api.count(&audited).await, 1);
}

#[tokio::test]
async fn another_payload_under_a_key_is_a_mismatch_and_another_path_is_another_key() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let body = |letter: &str| {
        json!({ "provider": "openai", "account_type": "api_key", "credential_input": testkit::canary::credential(letter),
            "risk_ack": true })
        .to_string()
    };
    let key = api.key();
    let first = api.write((Method::POST, ACCOUNTS), &token, &key, &body("a")).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let spaced = body("a").replace(':', " : ");
    let repeat = api.write((Method::POST, ACCOUNTS), &token, &key, &spaced).await;
    assert_eq!((repeat.status, &repeat.json()["data"]), (201, &first.json()["data"]));
    let other = api.write((Method::POST, ACCOUNTS), &token, &key, &body("b")).await;
    assert_eq!(error(&other), is(409, "IDEMPOTENCY_PAYLOAD_MISMATCH"));
    let account = &first.json()["data"]["account_id"];
    let activate = format!("{ACCOUNTS}/{account}/activate");
    assert_eq!(api.write((Method::POST, &activate), &token, &key, "").await.status, 200);
}

#[tokio::test]
async fn an_answer_that_holds_a_credential_is_withheld() {
    // FI-008: the alias of an account that was planted past all rules.
    let api = Api::new().await;
    let (tenant, _, token) = supplier(&api, "one").await;
    let body = json!({ "provider": "openai", "account_type": "api_key",
        "credential_input": testkit::canary::credential("a"), "risk_ack": true });
    api.done(ACCOUNTS, &token, &body.to_string()).await;
    let canary = format!("sk-{}", "Q7".repeat(24));
    api.force(&format!("update supply_accounts set account_name = '{canary}' where tenant_id = {tenant}"))
        .await;
    let read = api.read(ACCOUNTS, &token).await;
    assert_eq!(error(&read), is(500, "SUP_COM_5002"));
    assert!(!read.text().contains("Q7Q7"), "{}", read.text());
    let audited = "select count(*) from audit_events where event_name = 'CRED-EXPOSE-RESPONSE' and cast(metadata as text) not like '%Q7Q7%'";
    assert_eq!(api.count(audited).await, 1);
    assert_eq!(
        api.count("select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'").await,
        1
    );
}
