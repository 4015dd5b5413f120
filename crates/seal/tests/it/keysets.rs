//! The published key set.

use crate::shared::{key, vectors};
use seal::json;
use seal::jwks::{Entry, Jwks, Status};
use serde_json::{Value, json};

fn entry(seed: u8, status: Status) -> Entry {
    Entry { key: key(seed).public_key(), status, not_before: Some(1_767_225_600) }
}

fn parse(set: &Value) -> Result<Jwks, &'static str> {
    Jwks::parse(set.to_string().as_bytes()).map_err(|error| error.code())
}

/// The vector's set after an edit of its key.
fn with(name: &str, value: Value) -> Value {
    let mut set = vectors("jwk")["own"]["jwks"].clone();
    set["keys"][0][name] = value;
    set
}

#[test]
fn the_published_set_is_read() {
    let set = parse(&vectors("jwk")["own"]["jwks"]).unwrap();
    assert_eq!(set.entries().len(), 1);
    let found = set.find(key(7).id()).unwrap();
    assert_eq!((found.status, found.not_before), (Status::Active, None));
    assert!(set.find(key(8).id()).is_none());
}

#[test]
fn a_set_with_periods_comes_back_as_it_was_written() {
    let set = Jwks::new(vec![
        entry(7, Status::Retired { at: 1_767_300_000 }),
        entry(8, Status::Active),
        entry(9, Status::Announced),
    ])
    .unwrap();
    let written = set.to_json().unwrap();
    assert_eq!(Jwks::parse(&written).unwrap(), set);
    let value = json::parse(&written).unwrap();
    assert_eq!(seal::jcs::exact(&value).unwrap(), written);
    assert_eq!(value["keys"][0]["onceseal:retired_at"], 1_767_300_000);
    assert_eq!(value["keys"][0]["onceseal:status"], "retired");
    assert!(!String::from_utf8(written).unwrap().contains("\"d\""));
}

#[test]
fn a_private_key_in_the_set_is_refused() {
    let private = vectors("jwk")["rfc8037"]["private_jwk"].clone();
    assert_eq!(parse(&json!({"keys": [private]})), Err("jwks_private_key"));
}

#[test]
fn what_is_not_a_plain_ed25519_key_is_refused() {
    for (set, code) in [
        (with("kty", json!("RSA")), "jwks_form"),
        (with("crv", json!("X25519")), "jwks_form"),
        (with("alg", json!("none")), "jwks_form"),
        (with("use", json!("enc")), "jwks_form"),
        (with("x5c", json!([])), "jwks_form"),
        (with("x", json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")), "public_key_weak"),
        (with("x", json!("6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw=")), "public_key_text"),
        (with("kid", json!("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")), "jwks_kid"),
        (with("onceseal:status", json!("retired")), "jwks_form"),
        (with("onceseal:status", json!("paused")), "jwks_form"),
        (with("onceseal:not_before", json!(1.5)), "jwks_form"),
        (json!({"keys": [["Ed25519"]]}), "jwks_form"),
        (json!({"keys": {}}), "jwks_form"),
        (json!({"keys": [], "more": 1}), "jwks_form"),
        (json!([]), "jwks_form"),
    ] {
        assert_eq!(parse(&set), Err(code), "{set}");
    }
}

#[test]
fn a_key_or_a_member_twice_is_refused() {
    assert_eq!(
        Jwks::new(vec![entry(7, Status::Active), entry(7, Status::Announced)]).unwrap_err().code(),
        "jwks_twice"
    );
    assert_eq!(Jwks::parse(br#"{"keys":[],"keys":[]}"#).unwrap_err().code(), "json_duplicate_name");
    assert_eq!(Jwks::parse(&vec![b' '; 2 << 20]).unwrap_err().code(), "jwks_too_large");
}
