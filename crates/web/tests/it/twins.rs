//! One event, many at once.

use source::samples::CHECKOUT_PAID;
use tokio::task::JoinSet;

use crate::client::{Running, ask};
use crate::house::wire;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_parallel_twins_get_one_certificate_and_equal_links() {
    let server = Running::plain().await;
    let mut sending = JoinSet::new();
    for _ in 0..5 {
        let mut stream = server.connect().await;
        sending.spawn(async move { ask(&mut stream, wire("stripe", CHECKOUT_PAID)).await });
    }
    let mut links = std::collections::BTreeSet::new();
    let mut processed = 0;
    while let Some(answer) = sending.join_next().await {
        let answer = answer.expect("no panic");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let body: serde_json::Value =
            serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON");
        links.insert(
            [&body["html_url"], &body["zip_url"], &body["json_url"], &body["run_hash"]]
                .map(ToString::to_string),
        );
        processed += usize::from(body["status"] == "processed");
    }
    assert_eq!((links.len(), processed), (1, 1));
    assert_eq!(server.house.count("certify_certificates").await, 1);
    assert_eq!(server.house.count("certify_arrivals").await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_before_its_answer_cuts_nothing() {
    let server = Running::plain().await;
    let mut stream = server.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, wire("stripe", CHECKOUT_PAID).as_bytes())
        .await
        .expect("sent");
    drop(stream);
    let mut again = server.connect().await;
    let answer = ask(&mut again, wire("stripe", CHECKOUT_PAID)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let shown = server.house.order(axum::http::Method::GET, "events").await.json();
    assert_eq!(shown["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.house.count("certify_certificates").await, 1);
}
