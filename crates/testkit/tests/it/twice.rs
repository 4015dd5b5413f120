//! A request sent twice, and an answer that comes late, as an object store may see and do.

use std::time::Duration;

use testkit::proxy::{Fault, Proxy, Twin, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{Seen, Server, asked, bounded, connect, connected, echo, fired, is_silent};

#[tokio::test]
async fn a_request_is_sent_again_when_it_is_answered_and_the_client_gets_the_first_answer() {
    let (proxy, mut server) = echo().await;
    let mut client = connected(&proxy).await;
    server.unasked();
    let twice = proxy.set(Fault::Twice(Twin::Late).times(1));
    assert_eq!(asked(&mut client, b"PUT one").await, b"PUT one");
    assert_eq!(server.saw().await, Seen::Got(0, b"PUT one".to_vec()));
    assert_eq!(server.saw().await, Seen::Opened(1));
    assert_eq!(server.saw().await, Seen::Got(1, b"PUT one".to_vec()));
    assert_eq!(asked(&mut client, b"PUT two").await, b"PUT two");
    assert_eq!(twice.fired(), 1);
    client.shutdown().await.unwrap();
    assert_eq!(server.whole(0).await, b"PUT two");
}

#[tokio::test]
async fn a_request_in_pieces_is_sent_again_whole() {
    let server = Server::answering(|bytes| if bytes.ends_with(b"!") { b"ok".to_vec() } else { Vec::new() });
    let mut server = server.await;
    let proxy = Proxy::start(server.address).unwrap();
    proxy.set(Fault::Twice(Twin::Late));
    let mut client = connect(&proxy).await;
    for piece in [&b"PUT "[..], b"in pieces", b"!"] {
        client.write_all(piece).await.unwrap();
    }
    let mut answer = [0; 2];
    bounded(client.read_exact(&mut answer)).await.unwrap();
    let mut second = Vec::new();
    while !second.ends_with(b"!") {
        if let Seen::Got(1, bytes) = server.saw().await {
            second.extend(bytes);
        }
    }
    assert_eq!(second, b"PUT in pieces!");
}

#[tokio::test]
async fn two_copies_of_a_request_can_race() {
    let mut server = Server::answering(|_| Vec::new()).await;
    let proxy = Proxy::start(server.address).unwrap();
    let twice = proxy.set(Fault::Twice(Twin::AtOnce));
    let mut client = connect(&proxy).await;
    client.write_all(b"PUT").await.unwrap();
    let mut copies = 0;
    while copies < 2 {
        if let Seen::Got(_, bytes) = server.saw().await {
            assert_eq!(bytes, b"PUT");
            copies += 1;
        }
    }
    assert_eq!(twice.fired(), 1);
}

#[tokio::test]
async fn a_request_that_waits_to_go_on_is_one_request() {
    let server = Server::answering(|bytes| {
        if bytes.ends_with(b"\r\n\r\n") { b"HTTP/1.1 100 Continue\r\n\r\n".to_vec() } else { b"ok".to_vec() }
    });
    let mut server = server.await;
    let proxy = Proxy::start(server.address).unwrap();
    let twice = proxy.set(Fault::Twice(Twin::Late));
    let mut client = connect(&proxy).await;
    client.write_all(b"PUT\r\nexpect: 100-continue\r\n\r\n").await.unwrap();
    bounded(client.read_exact(&mut [0; 25])).await.unwrap();
    client.write_all(b"body").await.unwrap();
    bounded(client.read_exact(&mut [0; 2])).await.unwrap();
    let mut second = Vec::new();
    while !second.ends_with(b"body") {
        if let Seen::Got(1, bytes) = server.saw().await {
            second.extend(bytes);
        }
    }
    assert_eq!(second, b"PUT\r\nexpect: 100-continue\r\n\r\nbody");
    assert_eq!(twice.fired(), 1);
}

#[tokio::test]
async fn an_answer_comes_late_while_the_request_has_arrived() {
    let (proxy, mut server) = echo().await;
    let mut client = connected(&proxy).await;
    server.unasked();
    let late = proxy.set(Fault::Delay { way: Way::ToClient, by: Duration::from_secs(3600) });
    client.write_all(b"PUT").await.unwrap();
    assert_eq!(server.saw().await, Seen::Got(0, b"PUT".to_vec()));
    fired(&late, 1).await;
    assert!(is_silent(&client));
}
