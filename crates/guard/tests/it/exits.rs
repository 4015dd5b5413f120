//! Exits: what is withheld, where it is said to be, and the two fields that may carry a secret of ours.

use guard::{Exception, Exposure, FRAGMENT, Guard, Scanner, TOKEN_EXCEPTIONS, UNREADABLE, Verdict};
use serde_json::{Value, json};

use crate::made_up::{BASE62, credentials, letters, new_guard, scanner};

const ISSUE: &str = TOKEN_EXCEPTIONS[0].route;

fn exposure(verdict: Verdict) -> Exposure {
    verdict.clean().expect_err("withheld")
}

fn of(rule: &str) -> String {
    credentials().into_iter().find(|(known, _)| *known == rule).unwrap().1
}

#[test]
fn an_exposure_names_rule_and_field_and_shows_nothing_of_the_match() {
    let guard = new_guard();
    for (rule, secret) in credentials() {
        let body = json!({ "data": { "items": [1, { "message": format!("vendor: {secret}") }] } });
        let found = exposure(guard.json("POST /x", "body", &body));
        assert_eq!(found.location, "body/data/items/1/message", "{rule}");
        assert_eq!(found, exposure(guard.body("POST /x", "body", body.to_string().as_bytes())), "{rule}");
        let shown = format!("{found:?} {found}");
        // The front of some is a word of the rule's name.
        let runs = guard::canary::Canary::new(&secret[secret.len() - 16..], 8).unwrap();
        assert!(!shown.contains(&hex::encode(&secret)) && runs.seen_in(&shown).is_none(), "{shown}");
    }
}

#[test]
fn the_same_secret_has_the_same_digest_at_every_exit_and_another_key_another() {
    let secret = of("sk_generic");
    let [one, other] = [[1; 32], [2; 32]].map(|key| Guard::new(Scanner::standard().unwrap(), vec![], &key));
    let mac = exposure(one.text("header", &secret)).mac;
    assert_eq!(mac, exposure(one.text("log", &format!("x {secret} y"))).mac);
    assert_eq!(mac, exposure(one.json("GET /", "audit", &json!([secret]))).mac);
    assert_ne!(mac, exposure(other.text("log", &secret)).mac);
}

#[test]
fn names_and_neighbours_count_not_only_values() {
    let (guard, secret) = (new_guard(), letters(BASE62, 32, 1));
    let named = exposure(guard.json("GET /", "body", &json!({ "client_secret": secret })));
    assert_eq!((named.rule, named.location.as_str()), ("context", "body/client_secret"));
    let listed = exposure(guard.json("GET /", "body", &json!({ "api_key": [1, secret] })));
    assert_eq!((listed.rule, listed.location.as_str()), ("context", "body/api_key/1"));
    guard.remember("ck", &secret).unwrap();
    let as_name = exposure(guard.json("GET /", "body", &json!({ "data": { &secret: { "x": 1 } } })));
    assert_eq!((as_name.rule, as_name.location.as_str()), (FRAGMENT, "body/data/?"));
}

#[test]
fn a_token_may_leave_in_its_own_field_of_its_own_route_only() {
    let (guard, token) = (new_guard(), of("jwt"));
    let body = json!({ "request_id": "r", "data": { "token_id": "t", "access_token": token } });
    assert_eq!(guard.json(ISSUE, "body", &body), Verdict::Clean);
    assert_eq!(guard.body(ISSUE, "body", body.to_string().as_bytes()), Verdict::Clean);
    assert_eq!(
        exposure(guard.body("GET /other", "body", body.to_string().as_bytes())).location,
        "body/data/access_token"
    );
    for elsewhere in [
        json!({ "data": { "access_token": Value::Null, "hint": token } }),
        json!({ "access_token": token }),
        json!({ "data": { "access_token": [token] } }),
        json!({ "data": { "access_token": { "jwt": token } } }),
    ] {
        let found = exposure(guard.json(ISSUE, "body", &elsewhere));
        assert!(["jwt", "context"].contains(&found.rule), "{found}");
        let raw = elsewhere.to_string();
        assert!(guard.body(ISSUE, "body", raw.as_bytes()).clean().is_err(), "{raw}");
    }
}

#[test]
fn an_exception_lifts_only_its_rules() {
    let guard = new_guard();
    let live = letters(BASE62, 40, 3);
    guard.remember("ck", &live).unwrap();
    for (secret, rule) in [(of("anthropic"), "anthropic"), (of("sk_generic"), "sk_generic"), (live, FRAGMENT)]
    {
        let body = json!({ "data": { "access_token": format!("{} {secret}", of("jwt")) } });
        let found = exposure(guard.body(ISSUE, "body", body.to_string().as_bytes()));
        assert_eq!((found.rule, found.location.as_str()), (rule, "body/data/access_token"));
    }
    let created =
        Exception { route: "POST /keys", field: "/data/secret", rules: &["platform_key", "context"] };
    let guard = Guard::new(Scanner::standard().unwrap(), vec![created], &[0; 32]);
    let body = json!({ "data": { "secret": of("platform_key") } });
    assert_eq!(guard.body("POST /keys", "body", body.to_string().as_bytes()), Verdict::Clean);
    assert!(guard.body("GET /keys", "body", body.to_string().as_bytes()).clean().is_err());
}

#[test]
fn what_cannot_be_looked_at_is_withheld() {
    let guard = new_guard();
    let mut deep = json!("x");
    for _ in 0..300 {
        deep = json!([deep]);
    }
    assert_eq!(exposure(guard.json("GET /", "audit", &deep)).rule, UNREADABLE);
    let broken = format!("{{\"data\":{{\"access_token\":\"{}\"", of("jwt"));
    assert_eq!(exposure(guard.body(ISSUE, "body", broken.as_bytes())).location, "body");
}

#[test]
fn text_from_outside_is_masked_and_the_rest_of_it_stays() {
    let (guard, live) = (new_guard(), letters(BASE62, 40, 8));
    guard.remember("ck", &live).unwrap();
    let text = format!("curl/8.5 ({}; …{}…) 你好", of("sk_generic"), &live[20..]);
    assert_eq!(guard.redact(&text), "curl/8.5 ([REDACTED:sk_generic]; …[REDACTED:fragment]…) 你好");
    assert_eq!(guard.secrets(), 1);
    guard.forget("ck");
    assert_eq!(guard.redact(&live), live);
    assert!(scanner().find(&text).is_some());
}
