//! What comes from outside and would be kept, logged or echoed: ids, keys, names, aliases. What looks like a credential
//! in it is refused or put out before anything happens, and nobody is alerted by it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request};
use guard::canary::contains_run;
use onceseal_http::Profile;
use serde_json::{Value as Json, json};
use supply::exit::{IN_LOG, Withheld};
use supply::{Caller, Context, Object};

use super::desk::{ACCOUNTS, Desk, code, is, mount, moving};
use super::exposures::withheld;
use crate::house::Got;

const PATTERN: &str = "sk-abcdefghijklmnopqrstuvwx";

/// A request with these headers besides the desk's token.
fn with(desk: &Desk, (method, path): (&str, &str), headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.header("authorization", format!("Bearer {}", desk.token));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Body::from(body.to_owned())).expect("a request")
}

fn uuid(n: u64) -> String {
    format!("6f1c0000-0000-4000-9000-{n:012x}")
}

/// No part of a text is in an answer.
fn clean(got: &Got, text: &str) {
    assert!(!contains_run(&got.body, text, 8), "{}", got.text());
    for value in got.headers.values() {
        assert!(!contains_run(value.as_bytes(), text, 8), "{value:?}");
    }
}

async fn nowhere(desk: &Desk, text: &str) {
    let rows = "select cast(metadata as text) || coalesce(idempotency_key, '') || object_id || request_id || trace_id
        from audit_events union all select idempotency_key || request_id from supply_idempotency_record
        union all select cast(payload as text) from outbox";
    for row in desk.api.texts(rows).await {
        assert!(!contains_run(&row, text, 8), "{row}");
    }
    for event in ["CRED-EXPOSE-RESPONSE", "CRED-EXPOSE-LOG"] {
        withheld(desk, event, 0).await;
    }
}

#[tokio::test]
async fn what_stands_beside_a_key_or_a_trace_is_not_echoed_and_fails_no_write_that_is_done() {
    let desk = Desk::new().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let (later, quoted) = (format!("01-{trace}-{PATTERN}"), format!(r#""0123456789abcdef-8";p={PATTERN}"#));
    for n in 0..2 {
        let headers = [("x-request-id", &*uuid(n)), ("idempotency-key", &quoted), ("traceparent", &later)];
        let got = desk.api.house.call(with(&desk, ("POST", ACCOUNTS), &headers, &mount("a"))).await;
        assert_eq!((got.status, got.header("cache-control")), (201, "no-store"), "{}", got.text());
        assert_eq!(got.header("idempotent-replayed") == "true", n == 1);
        assert_eq!(got.header("traceparent"), format!("01-{trace}"));
        assert_eq!(got.header("idempotency-key"), r#""0123456789abcdef-8""#);
        clean(&got, PATTERN);
    }
    let read = with(&desk, ("GET", ACCOUNTS), &[("traceparent", &later)], "");
    assert_eq!(desk.api.house.call(read).await.status, 200);
    nowhere(&desk, PATTERN).await;
}

#[tokio::test]
async fn a_key_or_id_that_is_a_part_of_a_live_credential_is_refused_before_anything_happens() {
    let desk = Desk::new().await;
    let package = desk.active(desk.account("a").await).await;
    let live = "zx81-Quick4Brown7Foxes9Jump-a1b2c3d4e5f6";
    desk.api.guard.remember("account", live).expect("long enough");
    let before = desk.business().await;
    for path in [moving(package, "publish"), moving(package, "pause"), ACCOUNTS.to_owned()] {
        let got = desk.post(&path, "key-Quick4Brown7Foxes", &mount("b")).await;
        assert_eq!(code(&got), is(400, "IDEMPOTENCY_KEY_INVALID"), "{path}: {}", got.text());
        clean(&got, live);
    }
    // The end of a UUID is long enough for a part, too.
    let id = "6f1c0000-0000-4000-9000-a1b2c3d4e5f6";
    let headers = [("x-request-id", id), ("idempotency-key", "key-0123456789abc")];
    let critical = with(&desk, ("POST", &moving(package, "publish")), &headers, "");
    let critical = desk.api.house.call(critical).await;
    assert_eq!(code(&critical), is(400, "REQUEST_ID_INVALID"), "{}", critical.text());
    clean(&critical, live);
    assert_eq!(desk.business().await, before);
    let other = desk.api.house.call(with(&desk, ("POST", &moving(package, "pause")), &headers, "")).await;
    assert_eq!(other.status, 200, "{}", other.text());
    clean(&other, live);
    nowhere(&desk, live).await;
}

#[tokio::test]
async fn a_key_that_is_a_part_of_the_credential_that_comes_with_it_is_kept_nowhere() {
    let desk = Desk::new().await;
    let secret = "sk-m1n2b3v4c5x6m7n8b9v0c1x2m3n4b5v6";
    let body = |more: &[(&str, &str)]| {
        let mut body = json!({ "provider": "openai", "account_type": "api_key", "credential_input": secret });
        for (name, value) in more {
            body[*name] = json!(value);
        }
        body
    };
    let mut mounting = body(&[]);
    mounting["risk_ack"] = true.into();
    let account = desk.account("a").await;
    let managing = desk.api.token((desk.tenant, desk.operator), &["supply:credential:manage"]).await;
    let rotating = format!("{ACCOUNTS}/{account}/rotate-credential");
    let verifying = format!("{ACCOUNTS}/verify");
    let rotated = json!({ "credential_input": secret });
    for (path, token, body) in [
        (ACCOUNTS, &desk.token, &mounting),
        // Broken, so that it is no mount: the key is looked at all the same.
        (ACCOUNTS, &desk.token, &body(&[("colour", "red")])),
        (&*verifying, &desk.token, &body(&[])),
        (&*rotating, &managing, &rotated),
    ] {
        for key in ["m1n2b3v4c5x6m7n8b9v0c1x2m3n4b5v6", "key-6m7n8b9v0c1x2m", "key-6m7n8b9%76%30c1x2m"] {
            let got = desk.api.write((Method::POST, path), token, key, &body.to_string()).await;
            assert_eq!(code(&got), is(400, "IDEMPOTENCY_KEY_INVALID"), "{path} {key}: {}", got.text());
            clean(&got, secret);
        }
    }
    assert_eq!(desk.audited("supply.write.refused", "IDEMPOTENCY_KEY_INVALID").await, 12);
    nowhere(&desk, secret).await;
}

#[tokio::test]
async fn ids_of_strangers_are_uuids_or_replaced_and_force_no_writes() {
    let desk = Desk::new().await;
    let rows = desk.api.count("select count(*) from audit_events").await;
    let paths = [ACCOUNTS, "/api/v1/supply/nowhere", "/api/v1/supply/statements/1.1.1.1.x/statement_X.csv"];
    for n in 0..6 {
        for id in [format!("{PATTERN}{n}"), format!("not-a-uuid-at-all-{n}")] {
            for path in paths.into_iter().chain(["/nowhere", "/healthz"]) {
                let request = Request::get(path).header("x-request-id", &id);
                let got = desk.api.house.call(request.body(Body::empty()).expect("a request")).await;
                clean(&got, PATTERN);
                let told = got.header("x-request-id");
                let is_uuid = told.len() == 36 && uuid::Uuid::try_parse(told).is_ok();
                assert!(is_uuid || !paths.contains(&path), "{path}: {told}");
            }
        }
    }
    assert_eq!(desk.api.count("select count(*) from audit_events").await, rows);
    nowhere(&desk, PATTERN).await;
}

#[tokio::test]
async fn a_credential_in_the_address_is_audited_with_its_client_and_a_clean_id() {
    let desk = Desk::new().await;
    for path in ["/api/v1/supply/accounts?key=1", "/nowhere?key=1"] {
        let request = Request::get(path).header("x-request-id", PATTERN);
        let mut request = request.body(Body::empty()).expect("a request");
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711))));
        let got = desk.api.house.call(request).await;
        assert_eq!(code(&got), is(401, "QUERY_KEY_NOT_ALLOWED"), "{}", got.text());
        clean(&got, PATTERN);
        let sql = format!(
            "select cast(client_ip as text) from audit_events where event_name = 'token.query_key.rejected' and request_id = '{}'",
            got.header("x-request-id")
        );
        let ips = desk.api.texts(&sql).await;
        assert!(ips.len() == 1 && ips[0].starts_with("192.0.2.7"), "{ips:?}");
    }
    nowhere(&desk, PATTERN).await;
}

#[tokio::test]
async fn what_a_supplier_names_or_writes_is_refused_by_its_field_and_not_told_again() {
    for profile in [Profile::Seed, Profile::Draft] {
        let desk = Desk::in_profile(profile).await;
        let live = "zx81-Quick4Brown7Foxes9Jump";
        desk.api.guard.remember("account", live).expect("long enough");
        let account = desk.account("a").await;
        let draft = |model: &str| {
            json!({ "supply_account_id": account, "model": model, "total_quota": 10, "price_per_1m_input": 1,
                "price_per_1m_output": 1, "valid_days": 1 })
        };
        let mounting = |alias: &str| {
            let mut body: Json = serde_json::from_str(&mount("b")).expect("JSON");
            body["account_alias"] = alias.into();
            body
        };
        let own = testkit::canary::credential("b");
        let drafts = "/api/v1/supply/packages/draft";
        for (path, body, field) in [
            (drafts, json!({ PATTERN: 1 }), "?"),
            (drafts, json!({ "Quick4Brown7": 1 }), "?"),
            (drafts, draft(PATTERN), "model"),
            (ACCOUNTS, mounting(PATTERN), "account_alias"),
            (ACCOUNTS, mounting("my Quick4Brown7"), "account_alias"),
            (ACCOUNTS, mounting(own.get(8..24).expect("long enough")), "account_alias"),
        ] {
            let got = desk.ask(path, &body.to_string()).await;
            assert_eq!(got.status, 400, "{}", got.text());
            let details = got.json().pointer("/error/details").or(got.json().get("details")).cloned();
            let fields = details.expect("details")["fields"].as_array().cloned().expect("fields");
            assert!(fields.iter().any(|fault| fault["field"] == field), "{}", got.text());
            [PATTERN, live, &own].into_iter().for_each(|text| clean(&got, text));
        }
        let read = desk.api.read(&format!("{ACCOUNTS}?Quick4Brown7=1"), &desk.token).await;
        assert_eq!((read.status, &read.json()["error"]["details"]["fields"][0]["field"]), (400, &json!("?")));
        [PATTERN, live, &own].into_iter().for_each(|text| clean(&read, text));
        for text in [PATTERN, live, &own] {
            nowhere(&desk, text).await;
        }
    }
}

#[tokio::test]
async fn the_same_exposure_is_told_once_a_minute_of_each_operator() {
    let desk = Desk::new().await;
    let package = desk.active(desk.account("a").await).await;
    desk.api.force(&format!("update supply_packages set model = '{PATTERN}'")).await;
    let read = async || desk.api.read(&format!("/api/v1/supply/packages/{package}"), &desk.token).await;
    for _ in 0..10 {
        assert_eq!(code(&read().await), is(500, "SUP_COM_5002"));
    }
    withheld(&desk, "CRED-EXPOSE-RESPONSE", 1).await;
    desk.api.house.clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(code(&read().await), is(500, "SUP_COM_5002"));
    withheld(&desk, "CRED-EXPOSE-RESPONSE", 2).await;
    let left = "select count(*) from audit_events where event_name = 'CRED-EXPOSE-RESPONSE'
        and cast(metadata as text) like '%left_out%9%'";
    assert_eq!(desk.api.count(left).await, 1);
}

#[tokio::test]
async fn the_row_that_reports_an_exposed_key_does_not_hold_it() {
    let desk = Desk::new().await;
    desk.api.guard.remember("account", "zx81-Quick4Brown7Foxes9Jump").expect("long enough");
    // The key was let in before there was such a secret.
    let system = Caller::system(desk.tenant, "fact:1");
    let caller = Caller { idempotency_key: Some("key-Quick4Brown7Foxes".into()), ..system };
    let context = Context { caller, house: Arc::clone(&desk.api.market) };
    let exposure = desk.api.guard.text("audit", "Quick4Brown7").clean().expect_err("a part of a secret");
    let (told, object) = (Withheld::new(IN_LOG, &exposure), Object::row("supply_account", 1));
    told.tell(&desk.api.door, &context, &object).await.expect("told");
    withheld(&desk, IN_LOG, 1).await;
    let without = format!(
        "select count(*) from audit_events where event_name = '{IN_LOG}' and idempotency_key is null"
    );
    assert_eq!(desk.api.count(&without).await, 1);
}
