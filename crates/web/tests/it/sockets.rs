//! Bytes on a real socket: framings, sizes, slowness.

use std::time::Duration;

use source::samples::CHECKOUT_PAID;
use tokio::io::AsyncWriteExt as _;
use web::{Limits, ServeSettings};

use crate::client::{Running, ask, statuses, to_end};
use crate::house::{House, wire};

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn a_message_with_two_framings_gets_one_answer_and_the_connection_ends() {
    let server = Running::plain().await;
    let before = server.house.written().await;
    let post = "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\n";
    for (what, head) in [
        ("length and chunks", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("chunks and length", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
        ("two lengths", "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"),
        ("unknown coding", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        ("space before the colon", "Content-Length : 4\r\n\r\nabcd"),
        ("a length that is none", "Content-Length: +4\r\n\r\nabcd"),
        ("a folded line", "X-A: 1\r\n b\r\nContent-Length: 4\r\n\r\nabcd"),
    ] {
        let text = server.exchange(format!("{post}{head}{HEALTH}")).await;
        let statuses = statuses(&text);
        assert_eq!(statuses.len(), 1, "{what}: {text}");
        assert!((400..500).contains(&statuses[0]), "{what}: {text}");
    }
    assert_eq!(server.house.written().await, before);
}

#[tokio::test]
async fn a_chunked_body_is_counted_while_it_arrives() {
    let server = Running::plain().await;
    let mut stream = server.connect().await;
    let head = "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    // Far more than the limit, and no end: the answer must come all the same.
    for _ in 0..8 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let text = to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 413") && text.contains("BODY_TOO_LARGE"), "{text}");
    assert!(text.to_lowercase().contains("connection: close"), "{text}");
}

#[tokio::test]
async fn a_stated_length_beyond_the_limit_is_refused_before_a_byte() {
    let server = Running::plain().await;
    let head = "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n";
    assert_eq!(statuses(&server.exchange(head).await), [413]);
}

#[tokio::test]
async fn a_large_head_is_refused() {
    let server = Running::plain().await;
    let head = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Big: {}\r\n\r\n", "x".repeat(1024 * 1024));
    assert_eq!(statuses(&server.exchange(head).await), [431]);
}

#[tokio::test]
async fn a_chunked_delivery_with_a_right_signature_is_taken() {
    let server = Running::plain().await;
    let plain = wire("stripe", CHECKOUT_PAID);
    let length = format!("Content-Length: {}\r\n", CHECKOUT_PAID.len());
    let head = plain.replace(&length, "Transfer-Encoding: chunked\r\n").replace(CHECKOUT_PAID, "");
    let (first, second) = CHECKOUT_PAID.split_at(100);
    let text = format!("{head}64\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", second.len());
    let mut stream = server.connect().await;
    let answer = ask(&mut stream, text).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"processed\""), "{answer}");
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut() {
    let settings = ServeSettings { header_read: Duration::from_millis(100), ..ServeSettings::default() };
    let server = Running::new(House::new().await, settings).await;
    let mut stream = server.connect().await;
    stream.write_all(b"POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.expect("sent");
    let text = to_end(&mut stream).await;
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
}

#[tokio::test]
async fn a_body_that_never_ends_is_told_so() {
    let limits = Limits { webhook_body_within: Duration::from_millis(100), ..Limits::default() };
    let house = House::with(certify::policy::Policy::default(), limits).await;
    let server = Running::new(house, ServeSettings::default()).await;
    let text =
        server.exchange("POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{").await;
    assert!(text.starts_with("HTTP/1.1 408") && text.contains("BODY_TIMEOUT"), "{text}");
}

#[tokio::test]
async fn a_client_that_goes_in_the_middle_of_a_body_leaves_nothing() {
    let server = Running::plain().await;
    let before = server.house.written().await;
    let mut stream = server.connect().await;
    let text = wire("stripe", CHECKOUT_PAID);
    stream.write_all(&text.as_bytes()[..text.len() - 10]).await.expect("sent");
    stream.shutdown().await.expect("closed");
    assert!(!to_end(&mut stream).await.starts_with("HTTP/1.1 2"));
    assert_eq!(server.house.written().await, before);
}

#[tokio::test]
async fn a_connection_serves_many_deliveries() {
    let server = Running::plain().await;
    let mut stream = server.connect().await;
    for arrival in 1..=3 {
        let answer = ask(&mut stream, wire("stripe", CHECKOUT_PAID)).await;
        assert!(answer.contains(&format!("\"arrivals\":{arrival}")), "{answer}");
    }
}
