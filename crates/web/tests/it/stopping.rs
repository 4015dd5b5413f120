//! A stop that loses nothing and ends in time.

use std::time::Duration;

use source::samples::CHECKOUT_PAID;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use web::{ServeSettings, Stopped};

use crate::client::{Running, ask, to_end};
use crate::house::{House, wire};

#[tokio::test]
async fn a_stop_answers_what_is_under_way_and_closes_what_is_idle() {
    let server = Running::plain().await;
    let address = server.address;
    let mut idle = server.connect().await;
    ask(&mut idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut busy = server.connect().await;
    let text = wire("stripe", CHECKOUT_PAID);
    let (first, rest) = text.split_at(text.len() - 10);
    busy.write_all(first.as_bytes()).await.expect("sent");
    // The server has read the head once it answers on a connection that came later.
    let mut later = server.connect().await;
    ask(&mut later, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let (house, serving) = server.stop();
    assert_eq!(to_end(&mut idle).await, "", "closed without a word");
    busy.write_all(rest.as_bytes()).await.expect("sent");
    let answer = to_end(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("processed"), "{answer}");
    drop((idle, busy, later));
    assert_eq!(serving.await.expect("no panic").expect("no error"), Stopped { cut: 0 });
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
    assert_eq!(house.count("certify_certificates").await, 1);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let settings = ServeSettings { stop_within: Duration::from_millis(100), ..ServeSettings::default() };
    let server = Running::new(House::new().await, settings).await;
    let mut half = server.connect().await;
    half.write_all(b"POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        .await
        .expect("sent");
    let mut other = server.connect().await;
    ask(&mut other, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    drop(other);
    let (_house, serving) = server.stop();
    assert_eq!(serving.await.expect("no panic").expect("no error"), Stopped { cut: 1 });
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let settings = ServeSettings { max_connections: 1, ..ServeSettings::default() };
    let server = Running::new(House::new().await, settings).await;
    let mut first = server.connect().await;
    ask(&mut first, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut second = server.connect().await;
    second.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("sent");
    drop(first);
    assert!(to_end(&mut second).await.starts_with("HTTP/1.1 200"));
}
