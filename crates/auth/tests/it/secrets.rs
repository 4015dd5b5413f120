//! No token and no private key in what is printed.

use std::sync::Arc;

use auth::issuer::{TTL, folder};
use auth::jwks::{Outside, Settings};
use auth::{Grant, Issuer, IssuerKey, Role, Scopes, Token, UserType, Verifier, bearer};
use kernel::Time;
use p256::pkcs8::DecodePrivateKey as _;
use testkit::{CountingRandom, MovableClock};

use crate::world::{AUDIENCE, ISSUER, NOW, b64, claims, token, verifier, verify};

/// No eight characters in a row of the secret stand in the text.
fn clean(text: &str, secret: &str) {
    let shown = secret.as_bytes().windows(8).find(|part| text.contains(std::str::from_utf8(part).unwrap()));
    assert!(shown.is_none(), "a part of the secret stands in {text}");
}

#[test]
fn a_token_is_not_shown() {
    let random = CountingRandom::default();
    let issuer = Issuer::new(ISSUER, AUDIENCE, vec![IssuerKey::random(&random).unwrap()]).unwrap();
    let scopes = Scopes::new(["supply:account:read"]).unwrap();
    let (role, user_type) = (Role::Owner, UserType::Supply);
    let grant = Grant { operator_id: 31, tenant_id: 11, role, user_type, scopes, ttl: TTL };
    let minted = issuer.mint(&grant, Time::from_seconds(NOW), &random).unwrap();
    let text = minted.token.expose();
    for shown in [
        format!("{minted:?}"),
        format!("{:#?}", minted.token),
        format!("{:?}", bearer::read([format!("Bearer {text}").as_bytes()])),
        format!("{:?}", bearer::read([format!("Bearer {text},").as_bytes()])),
        format!("{:?}", verify(&token(&claims()))),
    ] {
        clean(&shown, text);
    }
}

#[test]
fn a_refusal_shows_nothing_of_what_was_sent() {
    let sent = "c2VjcmV0LWNhbmFyeS10b2tlbi1vZi1hLXRlc3Q";
    for value in
        [sent.to_owned(), format!("Basic {sent}"), format!("Bearer {sent} x"), format!("Bearer sk-{sent}")]
    {
        let refusal = bearer::read([value.as_bytes()]).expect_err("refused");
        clean(&format!("{refusal} {refusal:?} {}", refusal.code().message()), sent);
    }
    for text in [sent.to_owned(), format!("{sent}.{sent}.{sent}"), format!("e30.{sent}.{sent}")] {
        let refusal = verify(&Token::new(text)).expect_err("refused");
        clean(&format!("{refusal} {refusal:?}"), sent);
    }
}

#[test]
fn a_private_key_is_not_shown() {
    let random = CountingRandom::default();
    let key = IssuerKey::random(&random).unwrap();
    let pem = key.to_pem().unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let issuer = Issuer::new(ISSUER, AUDIENCE, vec![key.clone()]).unwrap();
    let verifier = Verifier::new(ISSUER, AUDIENCE, issuer.keys().unwrap());
    let scalar = b64(p256::ecdsa::SigningKey::from_pkcs8_pem(&pem).unwrap().to_bytes());
    for shown in [format!("{key:?}"), format!("{issuer:#?}"), format!("{verifier:?}"), issuer.jwks()] {
        clean(&shown, &body[..80]);
        clean(&shown, &scalar);
    }
}

#[test]
fn an_error_of_a_key_file_shows_its_name_only() {
    let home = tempfile::tempdir().unwrap();
    let canary = "Y2FuYXJ5LW9mLWEta2V5LWZpbGU";
    std::fs::write(home.path().join("issuer-0001.pem"), canary).unwrap();
    let error = folder::open(home.path(), &CountingRandom::default()).expect_err("no key").to_string();
    clean(&error, canary);
    assert!(error.contains("issuer-0001.pem") && !error.contains(home.path().to_str().unwrap()), "{error}");
}

#[test]
fn the_address_of_an_issuer_is_not_shown() {
    let settings = Settings::new("https://id.example.com/path-of-a-canary/jwks.json?key=canary");
    assert!(!format!("{settings:?}").contains("canary"));
    let outside = Outside::new(settings, Arc::new(MovableClock::at(NOW))).unwrap();
    assert_eq!(format!("{outside:?}"), "Outside { host: Some(\"id.example.com\"), .. }");
    let error =
        Outside::new(Settings::new("http://user:canary@x/"), Arc::new(MovableClock::at(NOW))).unwrap_err();
    assert!(!format!("{error} {error:?} {:?}", verifier()).contains("canary"));
}
