//! Cuts around a COMMIT, with the protocol's bytes made by hand (PostgreSQL documentation, "Message
//! Formats") and a server that answers every COMMIT.

use std::time::{Duration, Instant};

use testkit::proxy::{Fault, Moment, Proxy};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::scene::{Server, bounded, connect, is_silent, rest};

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0ann\0\0";
    [&u32::try_from(body.len() + 4).unwrap().to_be_bytes()[..], body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

fn pipeline(text: &str) -> [Vec<u8>; 4] {
    let parse = message(b'P', &[b"s1\0", text.as_bytes(), b"\0\0\0"].concat());
    let bind = message(b'B', b"\0s1\0\0\0\0\0\0\0");
    [parse, bind, message(b'E', b"\0\0\0\0\0"), message(b'S', b"")]
}

fn done(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), b"\0"].concat())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// Says what a server says to a query and to a pipeline's end, `tag` to whatever commits.
fn answer(bytes: &[u8], tag: &str) -> Vec<u8> {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    if has(b"COMMIT") {
        return [done("INSERT 0 1"), done(tag), ready()].concat();
    }
    if has(b"Q\0\0\0") { [done("BEGIN"), ready()].concat() } else { Vec::new() }
}

async fn scene(tag: &'static str) -> (Proxy, Server, TcpStream) {
    let server = Server::answering(move |bytes| answer(bytes, tag)).await;
    let proxy = Proxy::start(server.address).unwrap();
    let mut client = connect(&proxy).await;
    client.write_all(&startup()).await.unwrap();
    (proxy, server, client)
}

/// Whether the bytes hold a whole message that executes a COMMIT.
fn commits(bytes: &[u8], executed: &[u8]) -> bool {
    bytes.windows(executed.len()).any(|window| window == executed)
}

#[tokio::test]
async fn a_commit_that_is_not_sent_never_reaches_the_server() {
    let [parse, bind, execute, sync] = pipeline("COMMIT");
    let before = [query("begin"), parse, bind].concat();
    let cases = [
        ([query("begin"), query("COMMIT")].concat(), query("begin")),
        ([&before[..], &execute, &sync].concat(), before),
        (query("insert into t values (1); commit"), Vec::new()),
    ];
    for (sent, arrives) in cases {
        let (proxy, mut server, mut client) = scene("COMMIT").await;
        let cut = proxy.set(Fault::Commit(Moment::Before));
        client.write_all(&sent).await.unwrap();
        rest(&mut client).await;
        assert_eq!(server.whole(0).await, [startup(), arrives].concat());
        assert_eq!((cut.fired(), proxy.commits()), (1, 1));
    }
}

#[tokio::test]
async fn a_commit_in_pieces_never_reaches_the_server_whole() {
    let (proxy, mut server, mut client) = scene("COMMIT").await;
    let cut = proxy.set(Fault::Commit(Moment::Before));
    for byte in query("COMMIT") {
        client.write_all(&[byte]).await.unwrap();
        if cut.fired() == 0 {
            tokio::task::yield_now().await;
        }
    }
    rest(&mut client).await;
    assert!(!commits(&server.whole(0).await, &query("COMMIT")));
    assert_eq!(cut.fired(), 1);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_reaches_the_server_and_the_client_hears_what_came_before() {
    for sent in [query("COMMIT"), pipeline("COMMIT").concat()] {
        let (proxy, mut server, mut client) = scene("COMMIT").await;
        let cut = proxy.set(Fault::Commit(Moment::After));
        client.write_all(&sent).await.unwrap();
        assert_eq!(rest(&mut client).await.0, done("INSERT 0 1"));
        assert!(commits(&server.whole(0).await, &sent));
        assert_eq!((cut.fired(), proxy.fired()["commit's answer lost"]), (1, 1));
    }
}

#[tokio::test]
async fn the_answer_of_an_aborted_transaction_is_not_swallowed() {
    let (proxy, _server, mut client) = scene("ROLLBACK").await;
    let cut = proxy.set(Fault::Commit(Moment::After));
    client.write_all(&query("COMMIT")).await.unwrap();
    client.shutdown().await.unwrap();
    let whole = [done("INSERT 0 1"), done("ROLLBACK"), ready()].concat();
    assert_eq!(rest(&mut client).await, (whole, false));
    assert_eq!(cut.fired(), 0);
}

#[tokio::test]
async fn a_late_commit_arrives_after_its_client_was_cut_off() {
    let (proxy, mut server, mut client) = scene("COMMIT").await;
    let by = Duration::from_millis(200);
    let late = proxy.set(Fault::Commit(Moment::Late(by)));
    let begun = Instant::now();
    client.write_all(&[query("begin"), query("COMMIT"), query("more")].concat()).await.unwrap();
    rest(&mut client).await;
    assert_eq!(server.whole(0).await, [startup(), query("begin"), query("COMMIT")].concat());
    assert!(begun.elapsed() >= by);
    assert_eq!(late.fired(), 1);
}

#[tokio::test]
async fn one_commit_is_cut_and_the_next_goes_through() {
    let (proxy, _server, mut client) = scene("COMMIT").await;
    proxy.set(Fault::Commit(Moment::After).times(1));
    client.write_all(&query("COMMIT")).await.unwrap();
    rest(&mut client).await;
    let mut client = connect(&proxy).await;
    client.write_all(&[startup(), query("COMMIT")].concat()).await.unwrap();
    client.shutdown().await.unwrap();
    let (said, _) = rest(&mut client).await;
    assert!(commits(&said, &done("COMMIT")));
    assert_eq!(proxy.commits(), 2);
}

#[tokio::test]
async fn inside_encryption_no_commit_is_seen_and_everything_passes() {
    let (proxy, mut server, mut client) = {
        let server = Server::answering(|_| b"S".to_vec()).await;
        let proxy = Proxy::start(server.address).unwrap();
        let client = connect(&proxy).await;
        (proxy, server, client)
    };
    proxy.set(Fault::Commit(Moment::Before));
    let request = [8_u32.to_be_bytes(), 80_877_103_u32.to_be_bytes()].concat();
    client.write_all(&request).await.unwrap();
    bounded(client.readable()).await.unwrap();
    assert!(!is_silent(&client));
    client.write_all(&[startup(), query("COMMIT")].concat()).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(server.whole(0).await, [request, startup(), query("COMMIT")].concat());
    assert_eq!(proxy.commits(), 0);
}
