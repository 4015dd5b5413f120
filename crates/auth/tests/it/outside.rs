//! An outside issuer's keys over real sockets: cache, pause, faults of the issuer.

use std::sync::Arc;
use std::time::Duration;

use auth::jwks::{Outside, Settings, Wrong};
use auth::{Code, KeyRing as _, Refusal, Verifier};
use p256::ecdsa::SigningKey;
use serde_json::json;
use testkit::MovableClock;

use crate::server::{Answer, Server};
use crate::world::{AUDIENCE, ISSUER, NOW, claims, es256_raw, p256_jwk, set, token};

struct World {
    server: Server,
    clock: Arc<MovableClock>,
    outside: Outside,
}

impl World {
    async fn new(answer: Answer) -> Self {
        let server = Server::plain(answer).await;
        let clock = Arc::new(MovableClock::at(NOW));
        let outside = Outside::new(Settings::new(server.url()), clock.clone()).unwrap();
        Self { server, clock, outside }
    }

    async fn good() -> Self {
        Self::new(Answer::Set(set())).await
    }

    /// Whether the key is found.
    async fn find(&self, kid: &str) -> Result<bool, Refusal> {
        self.outside.find(kid).await.map(|key| key.is_some())
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// The usual set and a key `new` beside it.
fn grown() -> String {
    let mut grown: serde_json::Value = serde_json::from_str(&set()).unwrap();
    let key = p256_jwk("new", &SigningKey::from_slice(&[9; 32]).unwrap());
    grown["keys"].as_array_mut().unwrap().push(key);
    grown.to_string()
}

fn status(line: &str) -> Answer {
    Answer::Raw(format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n"))
}

#[tokio::test]
async fn tokens_of_an_outside_issuer_are_verified_with_one_fetch() {
    let world = World::good().await;
    let verifier = Verifier::new(ISSUER, AUDIENCE, Arc::new(world.outside.clone()));
    for _ in 0..3 {
        verifier.verify(&token(&claims()), kernel::Time::from_seconds(NOW)).await.expect("good");
    }
    assert_eq!(world.server.asked(), 1);
}

#[tokio::test]
async fn a_new_key_is_learned_when_a_token_names_it() {
    let world = World::good().await;
    assert_eq!(world.find("ec").await, Ok(true));
    world.server.answers(Answer::Set(grown()));
    world.pass(10);
    assert_eq!((world.find("new").await, world.server.asked()), (Ok(true), 2));
}

#[tokio::test]
async fn invented_names_cost_one_fetch_a_pause() {
    let world = World::good().await;
    for round in 1..=3 {
        for name in 0..50 {
            assert_eq!(world.find(&format!("invented-{name}")).await, Ok(false));
        }
        assert_eq!(world.server.asked(), round);
        world.pass(10);
    }
    assert_eq!(world.find("ec").await, Ok(true));
    assert_eq!(world.server.asked(), 3);
}

#[tokio::test]
async fn a_token_with_an_invented_name_is_refused_and_goes_nowhere_else() {
    let world = World::good().await;
    let elsewhere = Server::plain(Answer::Set(set())).await;
    let verifier = Verifier::new(ISSUER, AUDIENCE, Arc::new(world.outside.clone()));
    let own = SigningKey::from_slice(&[9; 32]).unwrap();
    for header in [
        json!({"alg": "ES256", "kid": "mine", "jku": elsewhere.url()}),
        json!({"alg": "ES256", "kid": "mine", "x5u": elsewhere.url()}),
        json!({"alg": "ES256", "kid": elsewhere.url()}),
    ] {
        let token = es256_raw(&own, &header.to_string(), &claims().to_string());
        let refusal = verifier.verify(&token, kernel::Time::from_seconds(NOW)).await.expect_err("refused");
        assert_eq!(refusal.code(), Code::InvalidToken);
    }
    assert_eq!(elsewhere.asked(), 0);
}

#[tokio::test]
async fn requests_at_once_share_one_fetch() {
    let world = World::new(Answer::Held(set())).await;
    let finds: Vec<_> = (0..20)
        .map(|_| {
            let outside = world.outside.clone();
            tokio::spawn(async move { outside.find("ec").await.map(|key| key.is_some()) })
        })
        .collect();
    world.server.let_go();
    for find in finds {
        assert_eq!(find.await.unwrap(), Ok(true));
    }
    assert_eq!(world.server.asked(), 1);
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_stop_the_fetch() {
    let world = World::new(Answer::Held(set())).await;
    let outside = world.outside.clone();
    let find = tokio::spawn(async move { outside.find("ec").await.is_ok() });
    while world.server.asked() == 0 {
        tokio::task::yield_now().await;
    }
    find.abort();
    assert!(find.await.unwrap_err().is_cancelled());
    world.server.let_go();
    assert_eq!(world.find("ec").await, Ok(true));
    assert_eq!(world.server.asked(), 1);
}

#[tokio::test]
async fn while_the_issuer_is_away_the_old_set_counts_for_an_hour() {
    let world = World::good().await;
    assert_eq!(world.find("ec").await, Ok(true));
    world.server.answers(status("503 Service Unavailable"));
    world.pass(300);
    assert_eq!((world.find("ec").await, world.server.asked()), (Ok(true), 2));
    assert_eq!((world.find("ec").await, world.server.asked()), (Ok(true), 2));
    // A name that is not held may be a new key's: not the caller's fault.
    assert_eq!(world.find("new").await, Err(Refusal::KeysUnavailable));
    world.pass(3599);
    assert_eq!(world.find("ec").await, Ok(true));
    world.pass(1);
    assert_eq!(world.find("ec").await, Err(Refusal::KeysUnavailable));
    assert_eq!(Refusal::KeysUnavailable.code().status(), 503);
    world.server.answers(Answer::Set(set()));
    world.pass(10);
    assert_eq!(world.find("ec").await, Ok(true));
}

#[tokio::test]
async fn a_key_that_the_issuer_withdrew_is_gone_after_five_minutes() {
    let world = World::new(Answer::Set(grown())).await;
    assert_eq!(world.find("new").await, Ok(true));
    world.server.answers(Answer::Set(set()));
    world.pass(299);
    assert_eq!(world.find("new").await, Ok(true));
    world.pass(1);
    assert_eq!(world.find("new").await, Ok(false));
}

#[tokio::test]
async fn a_clock_that_went_back_makes_no_set_young() {
    let world = World::good().await;
    assert_eq!(world.find("ec").await, Ok(true));
    world.clock.set(NOW - 1_000_000);
    assert_eq!((world.find("ec").await, world.server.asked()), (Ok(true), 2));
}

#[tokio::test]
async fn answers_that_are_no_set_replace_nothing() {
    let long = format!("{{\"keys\":[],\"x\":\"{}\"}}", "a".repeat(200_000));
    let chunked =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n40000\r\n{}", "x".repeat(0x40000));
    let elsewhere = Server::plain(Answer::Set(set())).await;
    let redirect = format!("302 Found\r\nlocation: {}", elsewhere.url());
    for answer in [
        Answer::Set(long),
        Answer::Raw(chunked),
        Answer::Set("<html>".to_owned()),
        Answer::Set(r#"{"keys":[]}"#.to_owned()),
        Answer::Set(set().replace("\"ec\"", "\"rsa\"")),
        status(&redirect),
        status("404 Not Found"),
        status("204 No Content"),
        Answer::Raw("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_owned()),
        Answer::Raw("nonsense".to_owned()),
    ] {
        let world = World::new(answer.clone()).await;
        assert_eq!(world.find("ec").await, Err(Refusal::KeysUnavailable));
        let world = World::good().await;
        assert_eq!(world.find("ec").await, Ok(true));
        world.server.answers(answer);
        world.pass(300);
        assert_eq!((world.find("ec").await, world.server.asked()), (Ok(true), 2));
    }
    assert_eq!(elsewhere.asked(), 0);
}

#[tokio::test]
async fn a_set_without_an_end_is_given_up_long_before_the_time_is() {
    let world = World::new(Answer::Endless).await;
    let begun = std::time::Instant::now();
    assert_eq!(world.find("ec").await, Err(Refusal::KeysUnavailable));
    world.server.hung_up().await;
    assert!(begun.elapsed() < Duration::from_millis(1900), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_silent_issuer_is_given_up_after_two_seconds() {
    let world = World::new(Answer::Silence).await;
    let begun = std::time::Instant::now();
    assert_eq!(world.find("ec").await, Err(Refusal::KeysUnavailable));
    let took = begun.elapsed();
    assert!((Duration::from_millis(1900)..Duration::from_secs(4)).contains(&took), "{took:?}");
    assert_eq!(world.outside.warm().await, Err(Refusal::KeysUnavailable));
}

#[tokio::test]
async fn over_https_the_configured_authority_alone_is_trusted() {
    let server = Server::tls(Answer::Set(set())).await;
    let url = format!("https://{}/jwks.json", server.address);
    let clock = || Arc::new(MovableClock::at(NOW));
    let authority = include_bytes!("../vectors/tls-authority.pem").to_vec();
    let known = Settings { authorities: Some(authority), ..Settings::new(url.clone()) };
    assert_eq!(Outside::new(known, clock()).unwrap().warm().await, Ok(()));
    let unknown = Outside::new(Settings::new(url), clock()).unwrap();
    assert_eq!(unknown.warm().await, Err(Refusal::KeysUnavailable));
    assert_eq!(server.asked(), 1);
}

#[test]
fn settings_that_would_weaken_it_are_refused() {
    let wrong = |settings| Outside::new(settings, Arc::new(MovableClock::at(NOW))).err();
    for address in [
        "http://id.example.com/jwks.json",
        "http://localhost/jwks",
        "http://127.0.0.1.evil.example/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "https://user:pass@id.example.com/",
        "https://id.example.com/#x",
        "x",
        "",
    ] {
        assert_eq!(wrong(Settings::new(address)), Some(Wrong::Address), "{address}");
    }
    for address in ["https://id.example.com/jwks.json?x=1", "http://127.0.0.1:9/", "http://[::1]:9/jwks"] {
        assert_eq!(wrong(Settings::new(address)), None, "{address}");
    }
    let base = || Settings::new("https://id.example.com/");
    let day = Duration::from_secs(86_401);
    for settings in [
        Settings { pause: Duration::ZERO, ..base() },
        Settings { fresh: Duration::from_secs(5), ..base() },
        Settings { stale: day, ..base() },
    ] {
        assert_eq!(wrong(settings), Some(Wrong::Times));
    }
    let empty = Settings { authorities: Some(b"nothing".to_vec()), ..base() };
    assert!(matches!(wrong(empty), Some(Wrong::Authorities(_))));
}
