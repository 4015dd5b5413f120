//! Alive, ready, counted.

use certify::policy::Policy;
use futures::FutureExt as _;
use source::samples::CHECKOUT_PAID;
use web::State;
use web::health::Check;

use crate::client::{Running, ask};
use crate::house::{House, ok};

#[tokio::test]
async fn a_working_server_is_alive_and_ready() {
    let house = House::new().await;
    for path in ["/healthz", "/readyz"] {
        let got = house.get(path).await;
        assert_eq!((got.status, got.header("cache-control")), (ok(), "no-store"), "{}", got.text());
    }
    for path in ["/actuator/health", "/actuator/health/live", "/actuator/health/ready"] {
        let got = house.get(path).await;
        assert_eq!((got.status, got.text().as_str()), (200, r#"{"status":"UP"}"#), "{path}");
    }
}

#[tokio::test]
async fn a_folder_that_can_not_be_written_is_not_ready_and_still_alive() {
    let house = House::new().await;
    let folder = house.folder.path().join("deliveries");
    std::fs::remove_dir_all(&folder).expect("removed");
    std::fs::write(&folder, b"a file where the folder was").expect("written");
    let got = house.get("/readyz").await;
    assert_eq!(got.status, 503);
    assert!(got.json()["reasons"]["deliveries"].is_string(), "{}", got.text());
    assert!(!got.text().contains(&*house.folder.path().to_string_lossy()), "no path: {}", got.text());
    for path in ["/actuator/health", "/actuator/health/ready"] {
        let got = house.get(path).await;
        assert_eq!((got.status, got.text().as_str()), (503, r#"{"status":"DOWN"}"#), "no reasons");
    }
    assert_eq!(house.get("/actuator/health/live").await.text(), r#"{"status":"UP"}"#);
    assert_eq!(house.get("/healthz").await.status, ok());
}

#[tokio::test]
async fn health_answers_beside_many_busy_connections() {
    let server = Running::plain().await;
    let mut half = Vec::new();
    for _ in 0..200 {
        let mut stream = server.connect().await;
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"POST /webhooks/stripe HTTP/1.1\r\nHost:")
            .await
            .expect("sent");
        half.push(stream);
    }
    let mut stream = server.connect().await;
    let answer = ask(&mut stream, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_handler_that_panics_is_a_500_and_the_next_request_is_served() {
    let broken = || Check::new("broken", || async { panic!("on purpose, with a secret value") }.boxed());
    let house = House::changed(Policy::default(), |state| State { checks: vec![broken()], ..state }).await;
    let got = house.get("/readyz").await;
    assert_eq!(got.problem(), (500, "INTERNAL_ERROR".into()));
    assert!(!got.text().contains("on purpose") && got.header("x-request-id").starts_with("req_"));
    assert_eq!(house.get("/healthz").await.status, ok());
}

#[tokio::test]
async fn a_check_that_hangs_is_not_ready_within_two_seconds() {
    let hanging = Check::new("provider", || futures::future::pending().boxed());
    let house = House::changed(Policy::default(), |state| State { checks: vec![hanging], ..state }).await;
    let got = house.get("/readyz").await;
    assert_eq!((got.status, got.json()["reasons"]["provider"].as_str()), (503, Some("no answer within 2 s")));
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status_and_never_by_what_clients_send() {
    let recorder = web::recorder().expect("right buckets");
    let handle = recorder.handle();
    let _local = metrics::set_default_local_recorder(&recorder);
    let house = House::changed(Policy::default(), |state| State { metrics: Some(handle), ..state }).await;
    house.deliver(CHECKOUT_PAID).await;
    house.get("/d/canary-slug.html").await;
    house.get("/canary-path?canary=1").await;
    let text = house.get("/metrics").await.text();
    for line in [
        r#"http_requests_total{route="/webhooks/{source}",status="200"} 1"#,
        r#"http_requests_total{route="/d/{file}",status="404"} 1"#,
        r#"http_requests_total{route="unmatched",status="404"} 1"#,
        r#"http_request_seconds_bucket{route="/webhooks/{source}",le="4"} 1"#,
        "store_waiting_writes 0",
        "certify_oldest_open_event_seconds 0",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(text.contains("process_resident_memory_bytes ") && text.contains("store_log_bytes "));
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test]
async fn without_meters_there_is_no_such_route() {
    assert_eq!(House::new().await.get("/metrics").await.problem(), (404, "ROUTE_UNKNOWN".into()));
}
