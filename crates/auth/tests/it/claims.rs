//! Each claim: missing, of another type, odd, at its limits.

use std::time::Duration;

use auth::{Code, Refusal, Role, UserType};
use kernel::Time;
use serde_json::{Value, json};

use crate::world::{NOW, claims, es256_raw, p256_key, token, verify, verify_at, with};

fn odd(name: &'static str, values: &[Value]) {
    for value in values {
        let refusal = verify(&token(&with(name, value.clone()))).expect_err("refused");
        assert_eq!(refusal, Refusal::Claim(name), "{value}");
        assert_eq!(refusal.code(), Code::InvalidToken);
    }
}

#[test]
fn what_a_token_says_is_read() {
    let verified = verify(&token(&claims())).expect("good");
    let claims = &verified.claims;
    assert_eq!((claims.role, claims.user_type), (Role::Owner, UserType::Supply));
    assert_eq!(claims.scopes.to_string(), "supply:account:read supply:account:write");
    assert_eq!(
        (claims.issued_at, claims.expires_at),
        (Time::from_seconds(NOW), Time::from_seconds(NOW + 900))
    );
    let principal = verified.principal();
    assert_eq!((principal.tenant_id, principal.operator_id, principal.jti.as_str()), (11, 31, "t-1"));
}

#[test]
fn no_claim_may_be_missing() {
    let names: Vec<String> = claims().as_object().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 12);
    for name in names {
        match verify(&token(&with(&name, Value::Null))).expect_err("refused") {
            Refusal::Claim(missing) => assert_eq!(missing, name),
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn there_is_no_operator_0_and_no_tenant_0() {
    let huge: Value = serde_json::from_str("9223372036854775808").unwrap();
    let wide: Value = serde_json::from_str("1.0").unwrap();
    odd(
        "tenant_id",
        &[json!(0), json!(-1), json!("11"), json!([11]), json!(true), json!(11.5), huge, wide, json!({})],
    );
    for sub in [
        "user:0",
        "user:",
        "user:-1",
        "user:+1",
        "user:01",
        "user:1 ",
        " user:1",
        "user: 1",
        "User:1",
        "1",
        "user:1.0",
        "user:1e3",
        "user:0x1",
        "user:9223372036854775808",
        "user:１",
        "service:1",
        "user:1:2",
        "",
    ] {
        odd("sub", &[json!(sub)]);
    }
    odd("sub", &[json!(31), json!(["user:31"])]);
    for (name, value) in [("sub", json!("user:9223372036854775807")), ("tenant_id", json!(i64::MAX))] {
        verify(&token(&with(name, value))).expect("the largest id");
    }
}

#[test]
fn words_are_the_listed_ones() {
    odd("role", &[json!("Owner"), json!("root"), json!(""), json!(["owner"]), json!(1)]);
    odd("user_type", &[json!("supplier"), json!("PLATFORM"), json!(""), json!(null_in_list())]);
    odd("token_type", &[json!("refresh"), json!("Access"), json!("id"), json!(true)]);
    odd("iss", &[json!(1), json!(""), json!(["https://id.example.com"])]);
    odd(
        "aud",
        &[json!(1), json!(""), json!([]), json!([1]), json!(["onceseal-supply", ""]), json!(vec!["a"; 17])],
    );
    odd("jti", &[json!(1), json!(""), json!("a b"), json!("é"), json!("x".repeat(129)), json!("a\nb")]);
}

fn null_in_list() -> Value {
    json!([null])
}

#[test]
fn scopes_are_a_list_of_texts_in_their_grammar() {
    odd("scope", &[json!("supply:account:read supply:account:write"), json!({}), json!([1]), json!([["a"]])]);
    for scope in [
        "",
        "Supply:account:read",
        ":read",
        "supply:",
        "supply::read",
        "supply read",
        "*:read",
        "su*",
        "a:*:b",
    ] {
        odd("scope", &[json!([scope])]);
    }
    odd("scope", &[json!(["a".repeat(65)]), json!(vec!["a"; 65])]);
    verify(&token(&with("scope", json!([])))).expect("a token that opens nothing");
    let verified = verify(&token(&with("scope", json!(["b", "a", "b"])))).expect("a repeat is none");
    assert_eq!(verified.claims.scopes.to_string(), "a b");
}

#[test]
fn times_are_whole_seconds() {
    for name in ["iat", "nbf", "exp"] {
        let text = NOW.to_string();
        for value in
            [json!(-1), json!(text), json!(1.79e9), json!(253_402_300_800_i64), json!([NOW]), json!(true)]
        {
            odd(name, &[value]);
        }
    }
    odd("exp", &[json!(NOW), json!(NOW - 1), json!(0)]);
    let claims = claims().to_string().replace(&format!("\"exp\":{}", NOW + 900), "\"exp\":1e999");
    let token = es256_raw(&p256_key(), r#"{"alg":"ES256","kid":"ec"}"#, &claims);
    assert_eq!(verify(&token), Err(Refusal::Payload));
}

#[test]
fn a_token_lives_from_30_s_before_to_30_s_after() {
    let token = token(&claims());
    let micro = Duration::from_micros(1);
    let (first, last) = (Time::from_seconds(NOW - 30), Time::from_seconds(NOW + 930));
    for (now, expected) in [
        (first.minus(micro), Err(Refusal::IssuedAhead)),
        (first, Ok(())),
        (last.minus(micro), Ok(())),
        (last, Err(Refusal::Expired)),
        (Time::from_micros(i64::MAX), Err(Refusal::Expired)),
        (Time::from_micros(i64::MIN), Err(Refusal::IssuedAhead)),
    ] {
        assert_eq!(verify_at(&token, now).map(|_| ()), expected, "{now}");
    }
    assert_eq!(Refusal::Expired.code(), Code::TokenInactive);
}

#[test]
fn a_token_for_later_waits() {
    let token = token(&with("nbf", json!(NOW + 60)));
    assert_eq!(verify(&token), Err(Refusal::NotYet));
    verify_at(&token, Time::from_seconds(NOW + 30)).expect("within the leeway");
}
