//! The `Authorization` header, spelling by spelling.

use auth::bearer::read;
use auth::{Code, Refusal};

fn one(value: &str) -> Result<String, Refusal> {
    read([value.as_bytes()]).map(|token| token.expose().to_owned())
}

#[test]
fn one_bearer_token_is_read() {
    for value in ["Bearer a.b.c", "bearer a.b.c", "BEARER a.b.c", "Bearer   a.b.c", " Bearer a.b.c\t"] {
        assert_eq!(one(value).as_deref(), Ok("a.b.c"), "{value:?}");
    }
    assert_eq!(one("Bearer AZaz09-._~+/==").as_deref(), Ok("AZaz09-._~+/=="));
}

#[test]
fn no_header_is_no_token() {
    assert_eq!(read([]).map(|_| ()), Err(Refusal::NoBearer));
    assert_eq!(one(""), Err(Refusal::NoBearer));
    assert_eq!(one("  "), Err(Refusal::NoBearer));
    assert_eq!(Refusal::NoBearer.code(), Code::MissingBearer);
}

#[test]
fn another_form_is_refused() {
    let long = format!("Bearer {}", "a".repeat(8193));
    for (value, expected) in [
        ("Basic dXNlcjpwYXNz", Refusal::Scheme),
        ("Token a.b.c", Refusal::Scheme),
        ("a.b.c", Refusal::Scheme),
        ("Bearer:a.b.c", Refusal::Scheme),
        ("Bearer\ta.b.c", Refusal::Scheme),
        ("Bearera.b.c", Refusal::Scheme),
        ("\"Bearer a.b.c\"", Refusal::Scheme),
        ("Bearer", Refusal::Malformed),
        ("Bearer ", Refusal::Malformed),
        ("Bearer =", Refusal::Malformed),
        ("Bearer a b", Refusal::Malformed),
        ("Bearer a,b", Refusal::Malformed),
        ("Bearer a.b.c, Bearer d.e.f", Refusal::Malformed),
        ("Bearer Bearer a.b.c", Refusal::Malformed),
        ("Bearer \"a.b.c\"", Refusal::Malformed),
        ("Bearer a=b", Refusal::Malformed),
        ("Bearer \u{ff41}", Refusal::Malformed),
        ("Bearer a\u{0}", Refusal::Malformed),
        ("Bearer a%2Eb", Refusal::Malformed),
        (&long, Refusal::TooLong),
    ] {
        assert_eq!(one(value), Err(expected), "{value:?}");
    }
    assert_eq!(read([b"Bearer \xff\xfe".as_slice()]).map(|_| ()), Err(Refusal::Malformed));
}

#[test]
fn two_headers_are_refused_even_when_they_agree() {
    let twice = read([b"Bearer a.b.c".as_slice(), b"Bearer a.b.c".as_slice()]).map(|_| ());
    assert_eq!(twice, Err(Refusal::Repeated));
    assert_eq!(Refusal::Repeated.code(), Code::InvalidFormat);
}

#[test]
fn vendors_keys_are_told_apart() {
    let hex = "0123456789abcdef0123456789abcdef";
    for key in [
        "sk-proj-aaaaaaaaaaaaaaaaaaaa",
        "sk-ant-api03-aaaaaaaaaaaaaaaaaaaa",
        "AIzaSyA0000000000000000000000000000000",
        "AQ.Ab8RN6aaaaaaaaaaaaaaaa",
        "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE",
        "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE:Gu5t9xGARNpq86cd98joQYCN3EXAMPLE",
        "ALTAK-aaaaaaaaaaaaaaaaaaaaa",
        "bce-v3/ALTAK-aaaaaaaaaaaaaaaaaaaaa/0123456789abcdef0123456789abcdef01234567",
        &format!("{hex}:ZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZm"),
        &format!("24.{hex}.2592000.1485516651.282335-8574074"),
        "ya29.aaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        assert_eq!(one(&format!("Bearer {key}")), Err(Refusal::Upstream), "{key}");
    }
    assert_eq!(Refusal::Upstream.code(), Code::UpstreamCredential);
}

#[test]
fn buyers_keys_are_turned_away() {
    assert_eq!(one("Bearer lgw_abcdefghijklmnopqrstuvwx"), Err(Refusal::BuyerKey));
    assert_eq!(Refusal::BuyerKey.code(), Code::InvalidToken);
}

#[test]
fn the_codes_are_those_of_section_9_5() {
    let codes: Vec<_> = auth::code::ALL.map(|code| (code.status(), code.name())).into();
    assert_eq!(
        codes,
        [
            (401, "AUTH_MISSING_BEARER"),
            (401, "AUTH_INVALID_FORMAT"),
            (401, "AUTH_INVALID_TOKEN"),
            (401, "AUTH_TOKEN_INACTIVE"),
            (401, "AUTH_UPSTREAM_CREDENTIAL"),
            (403, "AUTH_SCOPE_DENIED"),
            (403, "AUTH_ROLE_DENIED"),
            (503, "AUTH_TOKEN_STATUS_UNAVAILABLE"),
        ]
    );
}

#[test]
fn each_401_has_its_hint_and_each_code_its_texts() {
    for code in auth::code::ALL {
        assert_eq!(code.www_authenticate(), (code.status() == 401).then_some("Bearer"), "{code}");
        assert!(code.name().starts_with("AUTH_"));
        assert!(!code.message().ends_with('.') && !code.message().is_empty());
        assert!(code.message_zh().chars().any(|c| ('\u{4e00}'..'\u{9fff}').contains(&c)), "{code}");
    }
}
