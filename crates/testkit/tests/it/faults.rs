//! Every fault that needs no protocol, against an echo.

use std::time::{Duration, Instant};

use testkit::proxy::{Fault, Proxy, Reach, Side, Way};
use tokio::io::AsyncWriteExt;

use crate::scene::{
    Seen, Server, asked, bounded, connect, connected, echo, fired, is_refused, is_silent, rest,
};

const MOMENT: Duration = Duration::from_millis(60);
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn without_a_fault_everything_passes_and_ends_as_it_should() {
    let (proxy, mut server) = echo().await;
    let mut client = connected(&proxy).await;
    let large: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let (mut reading, mut writing) = client.split();
    let mut answer = vec![0; large.len()];
    let (read, written) = bounded(async {
        tokio::join!(
            tokio::io::AsyncReadExt::read_exact(&mut reading, &mut answer),
            writing.write_all(&large)
        )
    })
    .await;
    assert!(read.is_ok() && written.is_ok() && answer == large);
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, (Vec::new(), false));
    assert_eq!(server.whole(0).await.len(), large.len() + 5);
    assert!(proxy.fired().is_empty());
}

#[tokio::test]
async fn a_delay_holds_each_way_and_ends_when_it_is_lifted() {
    let (proxy, _server) = echo().await;
    let mut client = connected(&proxy).await;
    for (way, least) in [(Way::ToServer, MOMENT), (Way::ToClient, MOMENT), (Way::Both, 2 * MOMENT)] {
        let delay = proxy.set(Fault::Delay { way, by: MOMENT });
        let begun = Instant::now();
        asked(&mut client, b"x").await;
        assert!(begun.elapsed() >= least, "{way:?}");
        assert_eq!(delay.fired(), if way == Way::Both { 2 } else { 1 });
        delay.lift();
    }
    let delay = proxy.set(Fault::Delay { way: Way::ToClient, by: LONG });
    client.write_all(b"y").await.unwrap();
    fired(&delay, 1).await;
    assert!(is_silent(&client));
    proxy.clear();
    assert_eq!(asked(&mut client, b"z").await, b"y");
    assert_eq!(proxy.fired()["delay"], 5);
}

#[tokio::test]
async fn what_is_held_arrives_whole_when_the_network_heals() {
    let (proxy, mut server) = echo().await;
    let mut client = connected(&proxy).await;
    server.unasked();
    let hold = proxy.set(Fault::Hold(Way::ToServer));
    client.write_all(b"later").await.unwrap();
    client.shutdown().await.unwrap();
    fired(&hold, 1).await;
    assert!(is_silent(&client) && server.unasked().is_empty());
    hold.lift();
    assert_eq!(rest(&mut client).await, (b"later".to_vec(), false));
}

#[tokio::test]
async fn a_throttled_flow_takes_its_time() {
    let (proxy, _server) = echo().await;
    let mut client = connected(&proxy).await;
    let throttle = proxy.set(Fault::Throttle { way: Way::ToServer, bytes_per_second: 1_000 });
    let begun = Instant::now();
    asked(&mut client, &[7; 200]).await;
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(throttle.fired(), 4);
}

#[tokio::test]
async fn exactly_so_many_bytes_pass_before_a_cut() {
    for bytes in [0, 1, 4, 9] {
        let (proxy, mut server) = echo().await;
        let cut = proxy.set(Fault::CutAfter { way: Way::ToServer, bytes });
        let mut client = connect(&proxy).await;
        client.write_all(b"123456789").await.unwrap();
        rest(&mut client).await;
        assert_eq!(server.whole(0).await, b"123456789"[..usize::try_from(bytes).unwrap()]);
        assert_eq!(cut.fired(), 1);
    }
}

#[tokio::test]
async fn an_answer_is_cut_after_its_bytes_counted_from_when_the_fault_was_set() {
    let (proxy, mut server) = echo().await;
    let mut client = connected(&proxy).await;
    let cut = proxy.set(Fault::CutAfter { way: Way::ToClient, bytes: 5 });
    assert_eq!(asked(&mut client, b"abc").await, b"abc");
    client.write_all(b"defg").await.unwrap();
    assert_eq!(rest(&mut client).await.0, b"de");
    assert_eq!(server.whole(0).await, b"helloabcdefg");
    assert_eq!(cut.fired(), 1);
}

#[tokio::test]
async fn a_black_hole_swallows_both_ways_stays_open_and_is_never_mended() {
    let (proxy, mut server) = echo().await;
    let mut client = connected(&proxy).await;
    server.unasked();
    let hole = proxy.set(Fault::BlackHole);
    client.write_all(b"lost").await.unwrap();
    fired(&hole, 1).await;
    proxy.clear();
    client.write_all(b"lost too").await.unwrap();
    // What comes after it passes, so that what was sent before would have arrived.
    connected(&proxy).await;
    let seen = server.unasked();
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::Got(0, _) | Seen::Ended(0, _))), "{seen:?}");
    assert!(is_silent(&client) && proxy.open() >= 1);
    proxy.drop_all();
    assert_eq!(rest(&mut client).await, (Vec::new(), true));
}

#[tokio::test]
async fn the_end_of_one_side_is_lost_in_a_black_hole_too() {
    let (proxy, mut server) = echo().await;
    let client = connected(&proxy).await;
    let hole = proxy.set(Fault::BlackHole);
    drop(client);
    fired(&hole, 1).await;
    assert_eq!(proxy.open(), 1);
    assert!(!server.unasked().iter().any(|seen| matches!(seen, Seen::Ended(..))));
    drop(proxy);
    assert_eq!(server.saw().await, Seen::Ended(0, None));
}

#[tokio::test]
async fn half_open_resets_one_side_and_the_other_is_never_told() {
    let (proxy, mut server) = echo().await;
    let mut client = connected(&proxy).await;
    server.unasked();
    let half = proxy.set(Fault::HalfOpen { gone: Side::Server });
    assert_eq!(server.saw().await, Seen::Ended(0, None));
    client.write_all(b"anybody?").await.unwrap();
    assert!(is_silent(&client));
    half.lift();
    let mut client = connected(&proxy).await;
    server.unasked();
    let half = proxy.set(Fault::HalfOpen { gone: Side::Client }.reaching(Reach::Open));
    assert_eq!(rest(&mut client).await, (Vec::new(), true));
    assert!(server.unasked().is_empty());
    // The first is half-open already.
    assert_eq!((half.fired(), proxy.fired()["half-open"]), (1, 2));
}

#[tokio::test]
async fn refused_connections_are_reset_and_open_ones_live_on() {
    let (proxy, _server) = echo().await;
    let mut client = connected(&proxy).await;
    let refuse = proxy.set(Fault::Refuse);
    for _ in 0..3 {
        assert!(is_refused(&proxy).await);
    }
    assert_eq!(refuse.fired(), 3);
    assert_eq!(asked(&mut client, b"still").await, b"still");
    refuse.lift();
    connected(&proxy).await;
}

#[tokio::test]
async fn all_connections_can_be_reset_and_the_target_moved_while_it_runs() {
    let (proxy, mut first) = echo().await;
    let second = Server::answering(<[u8]>::to_ascii_uppercase).await;
    let mut clients = [connected(&proxy).await, connected(&proxy).await];
    first.unasked();
    proxy.point_at(second.address);
    assert_eq!(asked(&mut clients[0], b"old").await, b"old");
    assert_eq!(asked(&mut connect(&proxy).await, b"new").await, b"NEW");
    assert!(proxy.drop_all() >= 2);
    for client in &mut clients {
        assert_eq!(rest(client).await, (Vec::new(), true));
    }
    assert_eq!(asked(&mut connect(&proxy).await, b"new").await, b"NEW");
    assert!(proxy.fired()["reset"] >= 2);
}

#[tokio::test]
async fn a_target_that_is_not_there_resets_the_client() {
    let (proxy, server) = echo().await;
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    proxy.point_at(unused);
    assert!(is_refused(&proxy).await);
    proxy.point_at(server.address);
    connected(&proxy).await;
}

#[tokio::test]
async fn a_fault_can_be_for_new_connections_for_open_ones_and_for_a_number_of_times() {
    let (proxy, _server) = echo().await;
    let cut = Fault::CutAfter { way: Way::ToServer, bytes: 0 };
    let mut old = connected(&proxy).await;
    proxy.set(cut.reaching(Reach::New));
    assert_eq!(asked(&mut old, b"open").await, b"open");
    let mut new = connect(&proxy).await;
    new.write_all(b"x").await.unwrap();
    assert!(rest(&mut new).await.0.is_empty());
    proxy.clear();
    proxy.set(cut.reaching(Reach::Open));
    connected(&proxy).await;
    old.write_all(b"x").await.unwrap();
    assert!(rest(&mut old).await.0.is_empty());
    proxy.clear();
    let once = proxy.set(Fault::Refuse.times(1));
    assert!(is_refused(&proxy).await);
    connected(&proxy).await;
    assert_eq!(once.fired(), 1);
}

#[tokio::test]
async fn a_dropped_proxy_frees_its_port_and_its_connections() {
    let (proxy, server) = echo().await;
    let mut client = connected(&proxy).await;
    let address = proxy.address();
    drop(proxy);
    assert!(rest(&mut client).await.0.is_empty());
    assert!(std::net::TcpListener::bind(address).is_ok());
    drop(server);
}

#[test]
fn it_serves_blocking_clients_without_a_runtime_of_theirs() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
    let mut client = std::net::TcpStream::connect(proxy.address()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"plain").unwrap();
    let mut got = [0; 5];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"plain");
}
