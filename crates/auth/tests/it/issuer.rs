//! The built-in issuer and its folder.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use auth::issuer::{Error, TTL, folder};
use auth::{Grant, Issuer, IssuerKey, Keys, Refusal, Role, Scopes, UserType, Verifier, scope};
use kernel::Time;
use serde_json::Value;
use testkit::CountingRandom;

use crate::world::{AUDIENCE, ISSUER, NOW};

fn grant() -> Grant {
    Grant {
        operator_id: 31,
        tenant_id: 11,
        role: Role::Owner,
        user_type: UserType::Supply,
        scopes: Scopes::new([scope::ACCOUNT_READ, scope::SETTLEMENT_WITHDRAW]).unwrap(),
        ttl: TTL,
    }
}

fn issuer(random: &CountingRandom) -> Issuer {
    Issuer::new(ISSUER, AUDIENCE, vec![IssuerKey::random(random).unwrap()]).unwrap()
}

fn now() -> Time {
    Time::from_micros(NOW * 1_000_000 + 999_999)
}

#[tokio::test]
async fn what_it_mints_is_verified_by_its_published_set() {
    let random = CountingRandom::default();
    let issuer = issuer(&random);
    let minted = issuer.mint(&grant(), now(), &random).unwrap();
    let published = Keys::parse(issuer.jwks().as_bytes()).unwrap();
    assert_eq!(published.ids().collect::<Vec<_>>(), [issuer.kid()]);
    let verifier = Verifier::new(ISSUER, AUDIENCE, Arc::new(published));
    let verified = verifier.verify(&minted.token, now()).await.expect("good");
    assert_eq!((verified.fingerprint, &verified.claims.jti), (minted.fingerprint, &minted.jti));
    assert_eq!((verified.claims.tenant_id, verified.claims.operator_id), (11, 31));
    assert_eq!(
        (minted.issued_at, minted.expires_at),
        (Time::from_seconds(NOW), Time::from_seconds(NOW + 900))
    );
}

#[tokio::test]
async fn the_largest_grant_still_fits() {
    let random = CountingRandom::default();
    let issuer = issuer(&random);
    let scopes: Vec<String> = (0..64).map(|n| format!("{n:0>64}")).collect();
    let scopes = Scopes::new(scopes.iter().map(String::as_str)).unwrap();
    let grant = Grant { scopes, operator_id: i64::MAX, tenant_id: i64::MAX, ..grant() };
    let minted = issuer.mint(&grant, now(), &random).unwrap();
    let verifier = Verifier::new(ISSUER, AUDIENCE, issuer.keys().unwrap());
    verifier.verify(&minted.token, now()).await.expect("below 8 KiB");
}

#[test]
fn two_tokens_differ_and_the_same_draw_gives_the_same_token() {
    let one = issuer(&CountingRandom::default());
    let mint = |random: &CountingRandom| one.mint(&grant(), now(), random).unwrap();
    let random = CountingRandom::default();
    let (first, second) = (mint(&random), mint(&random));
    assert_ne!(first.jti, second.jti);
    assert_eq!(first.token.expose(), mint(&CountingRandom::default()).token.expose());
}

#[test]
fn a_grant_that_no_token_should_carry_is_refused() {
    let random = CountingRandom::default();
    let issuer = issuer(&random);
    let wild = Scopes::new(["*"]).unwrap();
    for grant in [
        Grant { operator_id: 0, ..grant() },
        Grant { tenant_id: -1, ..grant() },
        Grant { ttl: Duration::from_secs(59), ..grant() },
        Grant { ttl: Duration::from_secs(259_201), ..grant() },
        Grant { ttl: Duration::from_millis(60_500), ..grant() },
        Grant { role: Role::Admin, ..grant() },
        Grant { scopes: wild, ..grant() },
    ] {
        assert!(matches!(issuer.mint(&grant, now(), &random), Err(Error::Grant(_))), "{grant:?}");
    }
    for seconds in [60, 259_200] {
        issuer
            .mint(&Grant { ttl: Duration::from_secs(seconds), ..grant() }, now(), &random)
            .expect("a limit");
    }
}

#[tokio::test]
async fn a_retired_key_verifies_and_signs_no_more() {
    let random = CountingRandom::default();
    let (old, new) = (IssuerKey::random(&random).unwrap(), IssuerKey::random(&random).unwrap());
    let before = Issuer::new(ISSUER, AUDIENCE, vec![old.clone()]).unwrap();
    let minted = before.mint(&grant(), now(), &random).unwrap();
    let after = Issuer::new(ISSUER, AUDIENCE, vec![old.clone(), new.clone()]).unwrap();
    assert_eq!(after.kid(), new.kid());
    let announced = after.clone().signing_with(old.kid()).unwrap();
    assert_eq!(announced.kid(), old.kid());
    Verifier::new(ISSUER, AUDIENCE, after.keys().unwrap())
        .verify(&minted.token, now())
        .await
        .expect("still good");
    let without = Issuer::new(ISSUER, AUDIENCE, vec![new]).unwrap();
    let gone = Verifier::new(ISSUER, AUDIENCE, without.keys().unwrap()).verify(&minted.token, now()).await;
    assert_eq!(gone, Err(Refusal::KeyUnknown));
    assert!(matches!(without.signing_with("x"), Err(Error::NoSuchKey(_))));
}

#[test]
fn the_published_set_shows_no_private_member() {
    let set: Value = serde_json::from_str(&issuer(&CountingRandom::default()).jwks()).unwrap();
    let names: Vec<&String> = set["keys"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
}

#[test]
fn a_folder_gets_its_first_key_once() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("issuer");
    let first = folder::open(&folder, &CountingRandom::default()).unwrap();
    let again = folder::open(&folder, &CountingRandom::default()).unwrap();
    let kids = |keys: &[IssuerKey]| keys.iter().map(|key| key.kid().to_owned()).collect::<Vec<_>>();
    assert_eq!((kids(&first), first.len()), (kids(&again), 1));
    let mode = std::fs::metadata(folder.join("issuer-0001.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn nodes_that_start_at_once_agree_on_the_first_key() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("issuer");
    let random = CountingRandom::default();
    let kids: Vec<String> = std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| folder::open(&folder, &random).map(|keys| keys[0].kid().to_owned())))
            .collect();
        nodes.into_iter().map(|node| node.join().unwrap().expect("a key")).collect()
    });
    assert!(kids.iter().all(|kid| *kid == kids[0]), "{kids:?}");
}

#[test]
fn an_added_key_signs_from_then_on() {
    let home = tempfile::tempdir().unwrap();
    let random = CountingRandom::default();
    folder::open(home.path(), &random).unwrap();
    let added = folder::add(home.path(), &random).unwrap();
    let keys = folder::open(home.path(), &random).unwrap();
    let issuer = Issuer::new(ISSUER, AUDIENCE, keys).unwrap();
    assert_eq!(issuer.kid(), added.kid());
    assert_eq!(issuer.keys().unwrap().ids().count(), 2);
}

#[test]
fn files_that_are_open_to_others_or_no_keys_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("issuer-0001.pem");
    let attempt = |content: &str, mode: u32| {
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        folder::open(home.path(), &CountingRandom::default()).map(|keys| keys.len())
    };
    let good = IssuerKey::random(&CountingRandom::default()).unwrap().to_pem().unwrap();
    assert_eq!(attempt(&good, 0o600), Ok(1));
    for (content, mode) in [
        (good.as_str(), 0o644),
        ("", 0o600),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0o600),
        (include_str!("../vectors/rsa-2048.pem"), 0o600),
        (&"x".repeat(9000), 0o600),
    ] {
        let refused = attempt(content, mode);
        assert!(
            matches!(&refused, Err(Error::File { file, .. }) if file == "issuer-0001.pem"),
            "{refused:?}"
        );
    }
}

#[test]
fn names_and_numbers_of_keys_have_limits() {
    let random = CountingRandom::default();
    let key = IssuerKey::random(&random).unwrap();
    let long = "x".repeat(257);
    for (name, audience) in [("", "a"), ("a", ""), ("a b", "a"), (long.as_str(), "a")] {
        assert_eq!(Issuer::new(name, audience, vec![key.clone()]).err(), Some(Error::Name));
    }
    assert_eq!(Issuer::new("a", "a", vec![]).err(), Some(Error::Count(0)));
    assert_eq!(Issuer::new("a", "a", vec![key.clone(), key]).err(), Some(Error::Twice));
}
