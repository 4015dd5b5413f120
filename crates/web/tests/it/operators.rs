//! Who may order what: tokens, credentials in queries, the questions and the acts.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use certify::policy::Policy;
use serde_json::json;
use source::samples::CHECKOUT_PAID;
use web::{Rebuild, State, token};

use crate::house::{Got, House, NOW, delivery, payment};

const EVENT: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";

async fn with_token(house: &House, authorization: &str) -> Got {
    let request = Request::get("/api/v1/certify/status").header("authorization", authorization);
    house.call(request.body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn without_a_right_token_nothing_is_told() {
    let house = House::new().await;
    let known = format!("Bearer {}x", &house.token.expose()[..house.token.expose().len() - 1]);
    for (authorization, code) in [
        ("", "AUTH_INVALID_FORMAT"),
        ("Bearer", "AUTH_INVALID_FORMAT"),
        ("Basic dXNlcjpwYXNz", "AUTH_INVALID_FORMAT"),
        ("Bearer x", "AUTH_INVALID_TOKEN"),
        (known.as_str(), "AUTH_INVALID_TOKEN"),
    ] {
        let got = with_token(&house, authorization).await;
        assert_eq!(got.problem(), (401, code.into()), "{authorization}");
        assert!(got.header("www-authenticate").starts_with("Bearer"));
        assert!(!got.text().contains("ost_"), "no token in the answer: {}", got.text());
    }
    assert_eq!(house.get("/api/v1/certify/status").await.problem(), (401, "AUTH_MISSING_BEARER".into()));
    let mut twice = house.operator(Method::GET, "status").body(Body::empty()).expect("a request");
    twice.headers_mut().append("authorization", "Bearer x".parse().expect("a value"));
    assert_eq!(house.call(twice).await.problem(), (401, "AUTH_INVALID_FORMAT".into()));
}

#[tokio::test]
async fn a_credential_in_the_query_is_refused_beside_a_right_header() {
    let house = House::new().await;
    for query in [
        "key=CANARY",
        "KEY=CANARY",
        "%6bey=CANARY",
        "a=1;key=CANARY",
        "key[]=CANARY",
        "token=CANARY",
        "access_token=CANARY",
    ] {
        for path in ["status", "events", "events/x"] {
            let got = house.order(Method::GET, &format!("{path}?{query}")).await;
            assert_eq!(got.problem(), (401, "QUERY_KEY_NOT_ALLOWED".into()), "{query}");
            assert!(!got.text().contains("CANARY"));
        }
    }
}

#[tokio::test]
async fn an_issued_token_works_until_it_is_revoked_or_over() {
    let house = House::new().await;
    let door = house.visa.door();
    let day = Some(Duration::from_secs(86_400));
    let one = token::issue(door, "one", None, "test").await.expect("issued");
    let two = token::issue(door, "two", day, "test").await.expect("issued");
    let with = async |token: &token::Token| with_token(&house, &format!("Bearer {}", token.expose())).await;
    assert_eq!((with(&one).await.status, with(&two).await.status), (200, 200));
    token::revoke(door, "one", "test").await.expect("revoked");
    house.clock.advance(Duration::from_secs(5));
    assert_eq!(with(&one).await.problem(), (401, "AUTH_TOKEN_INACTIVE".into()));
    assert_eq!(with(&two).await.status, 200);
    house.clock.advance(Duration::from_secs(86_400));
    assert_eq!(with(&two).await.problem(), (401, "AUTH_TOKEN_INACTIVE".into()));
    token::issue(door, "two", day, "test").await.expect("the name of an expired one is free");
}

#[tokio::test]
async fn tokens_are_issued_listed_and_revoked_over_the_api() {
    let house = House::new().await;
    let issued = house.order_with("tokens", &json!({ "name": "ci", "ttl_s": 60 })).await;
    assert_eq!(issued.status, 200, "{}", issued.text());
    let bearer = format!("Bearer {}", issued.json()["token"].as_str().expect("a token"));
    assert_eq!(with_token(&house, &bearer).await.status, 200);
    let taken = house.order_with("tokens", &json!({ "name": "ci" })).await;
    assert_eq!(taken.problem(), (409, "OPERATOR_TOKEN_TAKEN".into()));
    let listed = house.order(Method::GET, "tokens").await;
    assert_eq!(listed.json()["tokens"][0]["state"], "active");
    assert!(!listed.text().contains("ost_"));
    assert_eq!(house.order(Method::POST, "tokens/ci/revoke").await.json()["state"], "revoked");
    let again = house.order(Method::POST, "tokens/ci/revoke").await;
    assert_eq!(again.problem(), (404, "OPERATOR_TOKEN_UNKNOWN".into()));
}

#[tokio::test]
async fn bad_input_of_an_operator_is_named_and_leaves_nothing() {
    let house = House::new().await;
    let before = house.count("auth_tokens").await;
    for input in [
        json!([]),
        json!({}),
        json!({ "name": "" }),
        json!({ "name": "local" }),
        json!({ "name": "a b" }),
        json!({ "name": "a", "ttl_s": 0 }),
        json!({ "name": "a", "ttl_s": "x" }),
        json!({ "name": "a", "tll": 1 }),
    ] {
        let got = house.order_with("tokens", &input).await;
        assert_eq!(got.problem(), (400, "INPUT_INVALID".into()), "{input}");
    }
    let typeless = house.order(Method::POST, "tokens").await;
    assert_eq!(typeless.problem(), (415, "CONTENT_TYPE_UNSUPPORTED".into()));
    let big = json!({ "name": "x".repeat(64 * 1024) });
    assert_eq!(house.order_with("tokens", &big).await.problem(), (413, "BODY_TOO_LARGE".into()));
    assert_eq!(house.count("auth_tokens").await, before);
}

#[tokio::test]
async fn an_event_is_shown_with_its_answers() {
    let house = House::new().await;
    house.deliver(CHECKOUT_PAID).await;
    house.deliver(CHECKOUT_PAID).await;
    let got = house.order(Method::GET, &format!("events/{EVENT}")).await;
    assert_eq!((got.status, got.header("cache-control")), (200, "no-store"));
    let shown = got.json();
    assert_eq!((&shown["arrivals"], &shown["questions"]["5_reused"]), (&2.into(), &true.into()));
    let by_ref = house.order(Method::GET, &format!("events/av_{EVENT}")).await.json();
    assert_eq!(by_ref["ref"], shown["ref"]);
    assert_eq!(house.order(Method::GET, "events/evt_none").await.problem(), (404, "EVENT_UNKNOWN".into()));
}

#[tokio::test]
async fn an_id_of_two_sources_asks_for_the_source() {
    let house = House::new().await;
    for source in ["stripe", "other"] {
        assert_eq!(house.call(delivery(source, payment("evt_x").as_bytes(), NOW)).await.status, 200);
    }
    let got = house.order(Method::GET, "events/evt_x").await;
    assert_eq!(got.problem(), (409, "EVENT_AMBIGUOUS".into()));
    let mut sources: Vec<_> =
        got.json()["sources"].as_array().expect("a list").iter().map(ToString::to_string).collect();
    sources.sort();
    assert_eq!(sources, ["\"other\"", "\"stripe\""]);
    let narrowed = house.order(Method::GET, "events/evt_x?source=other").await;
    assert_eq!(narrowed.json()["source"], "other");
    let inspected = house.order(Method::GET, "events/evt_x/inspect?source=other").await;
    assert_eq!(inspected.json()["event"]["source"], "other", "{}", inspected.text());
}

#[tokio::test]
async fn events_are_searched_and_an_unknown_parameter_is_refused() {
    let house = House::new().await;
    house.deliver(CHECKOUT_PAID).await;
    house.deliver(payment("evt_b")).await;
    let listed = house.order(Method::GET, "events?status=processed&limit=1").await.json();
    assert_eq!(listed["events"].as_array().map(Vec::len), Some(1));
    let before = listed["next"].as_i64().expect("a next page");
    let rest = house.order(Method::GET, &format!("events?before={before}")).await.json();
    assert_eq!(rest["events"].as_array().map(Vec::len), Some(1));
    for query in [
        "stats=processed",
        "status=odd",
        "limit=0",
        "limit=x",
        "limit=-1",
        "before=x",
        "since=yesterday",
        "status=failed&status=failed",
    ] {
        let got = house.order(Method::GET, &format!("events?{query}")).await;
        assert_eq!(got.problem(), (400, "QUERY_INVALID".into()), "{query}");
    }
}

#[tokio::test]
async fn acts_carry_the_tokens_name_into_the_audit() {
    let house = House::new().await;
    house.deliver(source::samples::CHECKOUT_UNPAID).await;
    let shown = house.order(Method::GET, "events").await.json();
    let reference = shown["events"][0]["ref"].as_str().expect("a ref").to_owned();
    let got = house.order(Method::POST, &format!("events/{reference}/retry")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let query = "select metadata from audit_events where event_name = 'certify.event.retry'";
    let rows =
        house.visa.door().store().query(store::Query::new("test.audit", query, vec![])).await.expect("rows");
    let metadata: serde_json::Value = serde_json::from_str(rows[0].text(0).expect("text")).expect("JSON");
    assert_eq!(metadata, json!({ "by": "local" }));
}

#[tokio::test]
async fn a_processed_event_is_not_tried_again() {
    let house = House::new().await;
    house.deliver(CHECKOUT_PAID).await;
    let got = house.order(Method::POST, &format!("events/{EVENT}/retry")).await;
    assert_eq!(got.problem(), (409, "EVENT_STATE".into()));
}

#[tokio::test]
async fn the_house_is_checked_and_reconciled() {
    let house = House::new().await;
    house.deliver(CHECKOUT_PAID).await;
    for path in ["check", "reconcile"] {
        let got = house.order(Method::POST, path).await;
        assert_eq!(got.status, 200, "{path}: {}", got.text());
    }
    assert_eq!(house.order(Method::GET, "status").await.status, 200);
}

#[tokio::test]
async fn what_is_exported_is_imported_elsewhere_and_not_certified_again() {
    let (from, to) = (House::new().await, House::new().await);
    from.deliver(CHECKOUT_PAID).await;
    let page = from.order(Method::GET, "export").await;
    assert_eq!((page.status, page.header("content-type")), (200, "application/x-ndjson"));
    let next = page.header(web::NEXT_AFTER);
    assert_eq!(from.order(Method::GET, &format!("export?after={next}")).await.body.len(), 0, "the last page");
    let request =
        to.operator(Method::POST, "import?source=stripe").header("content-type", "application/x-ndjson");
    let imported = to.call(request.body(Body::from(page.body)).expect("a request")).await;
    assert_eq!(imported.json()["imported"], 1, "{}", imported.text());
    let answer = to.deliver(CHECKOUT_PAID).await.json();
    assert_eq!(answer["status"], "duplicate_reused", "{answer}");
    assert_eq!(to.count("certify_certificates").await, 0);
}

#[tokio::test]
async fn the_list_is_made_anew_by_the_hand_that_is_on_it() {
    let path = "export/rebuild";
    let without = House::new().await.order(Method::POST, path).await;
    assert_eq!(without.problem(), (404, "ROUTE_UNKNOWN".into()));
    let written = |lines: Result<u64, &'static str>| {
        Some(Rebuild::new(move || {
            let step = |cause: &str| door::Failure::Step { step: "processed.jsonl", cause: cause.into() };
            Box::pin(std::future::ready(lines.map_err(|cause| step(cause).into())))
        }))
    };
    let with = async |rebuild| House::changed(Policy::default(), |state| State { rebuild, ..state }).await;
    let house = with(written(Ok(7))).await;
    assert_eq!(house.order(Method::POST, path).await.json(), json!({ "lines": 7 }));
    assert_eq!(
        house.order(Method::POST, "export/rebuild?x=1").await.problem(),
        (400, "QUERY_INVALID".into())
    );
    let full = with(written(Err("no space left"))).await.order(Method::POST, path).await;
    assert_eq!(full.problem(), (503, "STORE_UNAVAILABLE".into()));
}

#[tokio::test]
async fn held_announcements_are_listed_and_acts_on_others_are_refused() {
    let house = House::new().await;
    house.deliver(CHECKOUT_PAID).await;
    let held = house.order(Method::GET, "announcements").await.json();
    assert_eq!(held["announcements"], json!([]));
    let waiting = house.order(Method::GET, "announcements?status=pending").await.json();
    let id = waiting["announcements"][0]["id"].as_i64().expect("one waits");
    let redriven = house.order(Method::POST, &format!("announcements/{id}/redrive")).await;
    assert_eq!(redriven.problem(), (409, "ANNOUNCEMENT_STATE".into()), "it is not held");
    let settled = house.order_with(&format!("announcements/{id}/settle"), &json!({ "as": "dead" })).await;
    assert_eq!(settled.status, 200, "{}", settled.text());
    assert_eq!(house.order(Method::POST, &format!("announcements/{id}/redrive")).await.status, 200);
    let unknown = house.order(Method::POST, "announcements/99/redrive").await;
    assert_eq!(unknown.problem(), (404, "ANNOUNCEMENT_UNKNOWN".into()));
}
