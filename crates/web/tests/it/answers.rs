//! What an arrival is told: the table of answers, replays, the styles of senders, ids and traces.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, Method, Request};
use certify::policy::{Checks, Policy};
use kernel::Time;
use source::{Kind, Secret, Signer, samples};
use store::{Write, values};
use web::Limits;

use crate::house::{Got, House, NOW, delivery, path, payment};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn with(name: &str, value: &[u8]) -> Request<Body> {
    let mut request = delivery("stripe", samples::CHECKOUT_PAID.as_bytes(), NOW);
    let value = axum::http::HeaderValue::from_bytes(value).expect("a value");
    request.headers_mut().insert(HeaderName::try_from(name).expect("a name"), value);
    request
}

#[tokio::test]
async fn a_first_delivery_is_processed_and_its_links_work() {
    let house = House::new().await;
    let got = house.deliver(samples::CHECKOUT_PAID).await;
    assert_eq!((got.status, got.header("content-type")), (200, "application/json"), "{}", got.text());
    let answer = got.json();
    assert_eq!((&answer["status"], &answer["duplicate"]), (&"processed".into(), &false.into()));
    assert!(got.headers.get("idempotent-replayed").is_none());
    for member in ["html_url", "zip_url", "json_url"] {
        assert_eq!(house.get(&path(&answer, member)).await.status, 200, "{member}");
    }
}

#[tokio::test]
async fn a_repeat_reuses_the_result_and_says_so_in_both_languages() {
    let house = House::new().await;
    let first = house.deliver(samples::CHECKOUT_PAID).await.json();
    let files = house.files();
    let again = house.deliver(samples::CHECKOUT_PAID_RENDERED_AGAIN).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, "true"));
    let answer = again.json();
    assert_eq!(answer["status"], "duplicate_reused");
    assert_eq!(answer["message_zh"], certify::answer::REUSED_ZH);
    for member in ["html_url", "zip_url", "json_url", "run_hash", "signature", "ref"] {
        assert_eq!(answer[member], first[member], "{member}");
    }
    assert_eq!(answer["arrivals"], 2);
    assert_eq!(house.files(), files);
}

#[tokio::test]
async fn the_same_bytes_five_times_stay_one_certificate() {
    let house = House::new().await;
    for arrival in 1..=5 {
        let answer = house.deliver(samples::CHECKOUT_PAID).await.json();
        assert_eq!(answer["arrivals"], arrival);
    }
    assert_eq!(house.count("certify_certificates").await, 1);
    assert_eq!(house.count("outbox").await, 1, "one announcement");
}

#[tokio::test]
async fn a_true_difference_is_told_and_the_first_stands() {
    let house = House::new().await;
    let first = house.deliver(samples::CHECKOUT_PAID).await.json();
    let other = samples::CHECKOUT_PAID.replace("\"currency\": \"eur\"", "\"currency\": \"usd\"");
    let got = house.deliver(&other).await;
    let answer = got.json();
    assert_eq!((got.status, &answer["status"]), (200, &"duplicate_reused".into()));
    assert_eq!((&answer["payload_differs"], &answer["run_hash"]), (&true.into(), &first["run_hash"]));
}

#[tokio::test]
async fn what_is_not_certified_is_recorded_with_its_reason() {
    let house = House::new().await;
    for body in [samples::CHECKOUT_UNPAID, samples::REFUND_FULL] {
        for _ in 0..2 {
            let got = house.deliver(body).await;
            let answer = got.json();
            assert_eq!((got.status, &answer["status"]), (200, &"recorded".into()), "{answer}");
            assert!(answer["reason"].is_string(), "{answer}");
        }
    }
    assert_eq!(house.count("certify_certificates").await, 0);
}

#[tokio::test]
async fn a_broken_rule_fails_for_good_and_repeats_get_the_verdict() {
    let checks = Checks { currencies: vec!["usd".into()], ..Checks::default() };
    let house = House::with(Policy { checks, ..Policy::default() }, Limits::default()).await;
    for _ in 0..2 {
        let got = house.deliver(samples::CHECKOUT_PAID).await;
        let answer = got.json();
        assert_eq!((got.status, &answer["status"]), (200, &"failed".into()), "{answer}");
        assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("currency")), "{answer}");
    }
}

#[tokio::test]
async fn a_folder_that_can_not_be_written_is_our_failure_and_passes() {
    let house = House::new().await;
    let folder = house.folder.path().join("deliveries");
    let aside = house.folder.path().join("aside");
    std::fs::rename(&folder, &aside).expect("moved");
    std::fs::write(&folder, b"a file where the folder was").expect("written");
    let got = house.deliver(samples::CHECKOUT_PAID).await;
    assert_eq!(got.problem(), (503, "STORE_UNAVAILABLE".into()));
    assert!(!got.header("retry-after").is_empty());
    assert_eq!(house.count("certify_certificates").await, 0);
    std::fs::remove_file(&folder).expect("removed");
    std::fs::rename(&aside, &folder).expect("moved back");
    assert_eq!(house.deliver(samples::CHECKOUT_PAID).await.json()["status"], "processed");
}

#[tokio::test]
async fn a_late_answer_becomes_come_again_and_the_work_is_finished() {
    let limits = Limits { answer_within: Duration::ZERO, ..Limits::default() };
    let house = House::with(Policy::default(), limits).await;
    let got = house.deliver(samples::CHECKOUT_PAID).await;
    assert_eq!(got.problem(), (503, "ANSWER_TIMEOUT".into()));
    assert_eq!(got.header("retry-after"), "2");
    let finished = async { while house.count("certify_certificates").await == 0 {} };
    tokio::time::timeout(Duration::from_secs(10), finished).await.expect("it is finished");
}

/// Puts the one event back into a state, as a crash or a leased run leaves it.
async fn put_back(house: &House, state: &'static str) {
    let sql = "update certify_events set status = $1, response_code = null, response_body = null, claim_token = $2, locked_until = $3";
    let write = Write::one("test.put_back", sql, values![state, [7_u8; 16], Time::from_seconds(NOW + 3)]);
    house
        .visa
        .door()
        .maintain("test", vec![], move |_, _| Ok((vec![write.clone()], ())))
        .await
        .expect("put back");
}

#[tokio::test]
async fn a_twin_of_durable_work_gets_202_and_its_arrival_is_on_record() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    put_back(&house, "processing").await;
    let got = house.deliver(samples::CHECKOUT_PAID).await;
    assert_eq!((got.status, &got.json()["status"]), (202, &"processing".into()), "{}", got.text());
    assert_eq!(got.header("retry-after"), "2");
    assert!(got.json()["retry_after_ms"].is_u64());
    assert_eq!(house.count("certify_arrivals").await, 2);
}

#[tokio::test]
async fn another_payload_beside_running_work_must_come_again() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    put_back(&house, "processing").await;
    let other = samples::CHECKOUT_PAID.replace("\"currency\": \"eur\"", "\"currency\": \"usd\"");
    let got = house.deliver(&other).await;
    assert_eq!(got.problem(), (503, "EVENT_IN_PROGRESS".into()));
    assert!(!got.header("retry-after").is_empty());
}

#[tokio::test]
async fn an_orphaned_event_is_not_acknowledged_and_leaves_no_second_certificate() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    put_back(&house, "orphaned").await;
    let got = house.deliver(samples::CHECKOUT_PAID).await;
    assert_eq!(got.problem(), (503, "EVENT_ORPHANED".into()));
    assert_eq!(got.header("retry-after"), "2");
    assert_eq!(house.count("certify_certificates").await, 1);
}

#[tokio::test]
async fn alipay_is_answered_success_or_failure_and_nothing_else() {
    let house = House::new().await;
    let private = Secret::pem(include_str!("keys/rsa-private.pem")).expect("a key");
    let signer = Signer::new(Kind::Alipay, &private).expect("a signer");
    let form = "notify_id=n1&notify_type=trade_status_sync&notify_time=2026-01-02+08%3A00%3A00&app_id=a1&trade_no=t1&out_trade_no=o1&trade_status=TRADE_SUCCESS&total_amount=20.00&charset=utf-8&version=1.0";
    let body = signer.body(form.as_bytes());
    for expected in ["success", "success", "failure"] {
        let body = if expected == "failure" { form.as_bytes().to_vec() } else { body.clone() };
        let request =
            Request::post("/webhooks/alipay").header("content-type", "application/x-www-form-urlencoded");
        let got = house.call(request.body(Body::from(body)).expect("a request")).await;
        assert_eq!((got.text().as_str(), got.status < 300), (expected, expected == "success"));
        assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
    }
    assert_eq!(house.count("certify_arrivals").await, 2);
}

#[tokio::test]
async fn wechat_is_answered_in_its_own_form() {
    let house = House::new().await;
    let request = Request::post("/webhooks/wechat").body(Body::from("{}")).expect("a request");
    let got = house.call(request).await;
    assert_eq!((got.status, got.header("content-type")), (401, "application/json"), "{}", got.text());
    assert_eq!(got.json()["code"], "FAIL");
    assert!(got.json()["message"].is_string());
}

#[tokio::test]
async fn a_request_id_is_kept_or_replaced_and_never_echoed_raw() {
    let house = House::new().await;
    let id = |got: &Got| got.header("x-request-id").to_owned();
    assert_eq!(id(&house.call(with("x-request-id", b"order-42")).await), "order-42");
    let long = [b'x'; 10_000];
    for raw in [&b""[..], b"a\tb", b"\"},{\"level\":\"error", b"\xc3\xa9", b"a\\n", &long] {
        let got = house.call(with("x-request-id", raw)).await;
        assert!(id(&got).starts_with("req_"), "{}", id(&got));
    }
    let shown = house.order(Method::GET, "events/evt_1SkQl3B7WZ01zgkWh3b8kqQe").await.json();
    assert_eq!(shown["arrival_list"][0]["request_id"], "order-42");
}

#[tokio::test]
async fn a_right_traceparent_is_carried_into_the_audit_and_a_wrong_one_is_not() {
    let house = House::new().await;
    let got = house.call(with("traceparent", TRACE.as_bytes())).await;
    assert_eq!(got.header("traceparent"), TRACE);
    let mut wrong = with("traceparent", b"00-zz-00f067aa0ba902b7-01");
    wrong.headers_mut().insert("x-request-id", "order-43".parse().expect("a value"));
    assert_eq!(house.call(wrong).await.header("traceparent"), "");
    let shown = house.order(Method::GET, "events/evt_1SkQl3B7WZ01zgkWh3b8kqQe").await.json();
    assert_eq!(shown["arrival_list"][0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(shown["arrival_list"][1]["trace_id"], "order-43");
}

#[tokio::test]
async fn the_clients_address_comes_from_trusted_proxies_only() {
    let house = House::new().await;
    for (peer, id) in [("10.0.0.1:1", "evt_a"), ("192.0.2.7:1", "evt_b")] {
        let mut request = delivery("stripe", payment(id).as_bytes(), NOW);
        let peer: std::net::SocketAddr = peer.parse().expect("an address");
        request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
        request.headers_mut().insert("x-forwarded-for", "6.6.6.6, 203.0.113.9".parse().expect("a value"));
        assert_eq!(house.call(request).await.status, 200);
    }
    let ip = async |id: &str| {
        house.order(Method::GET, &format!("events/{id}")).await.json()["arrival_list"][0]["client_ip"].clone()
    };
    assert_eq!(ip("evt_a").await, "203.0.113.9");
    assert_eq!(ip("evt_b").await, "192.0.2.7");
}
