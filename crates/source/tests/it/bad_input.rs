//! Signatures and bodies as they go wrong in the field: every one a clear refusal, none a panic.

use source::{Delivery, Kind, Source};

use crate::support::{NOW, STRIPE, TOKEN, code, open, open_at, secret, settings, signer, source};

const BODY: &[u8] = br#"{"id":"evt_1","object":"event","type":"x","created":1767225600,"livemode":true}"#;

/// The right v1 for [`BODY`] at that `t`, as sent by a signer.
fn v1(t: i64) -> String {
    let headers = signer(Kind::Stripe).sign(BODY, t, "");
    headers.last().unwrap().1.split_once("v1=").unwrap().1.to_owned()
}

fn stripe(header: impl AsRef<[u8]>) -> &'static str {
    code(Kind::Stripe, &[("Stripe-Signature", header.as_ref())], BODY)
}

#[test]
fn the_bytes_as_sent_are_verified_and_not_their_meaning() {
    let odd = b"{ \"id\" : \"evt_s1\",\"n\":1.0,\"u\":\"\\u00e9\" }\n\n";
    let headers = signer(Kind::Stripe).sign(odd, NOW, "");
    let lines: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    assert_eq!(code(Kind::Stripe, &lines, odd), "ok");
    let minified: Vec<u8> = odd.iter().copied().filter(|b| !b" \n".contains(b)).collect();
    assert_eq!(code(Kind::Stripe, &lines, &minified), "SIG_MISMATCH");
}

#[test]
fn any_candidate_under_any_live_secret_is_enough_and_none_is_not() {
    let (good, bad) = (v1(NOW), "0".repeat(64));
    for header in [
        format!("t={NOW},v1={bad},v1={good}"),
        format!("t={NOW},v1={good},v1={bad}"),
        format!("t={NOW},v1={good},v0={bad}"),
    ] {
        assert_eq!(stripe(header), "ok");
    }
    assert_eq!(stripe(format!("t={NOW},v1={bad},v1={bad}")), "SIG_MISMATCH");
    let mut two = settings(Kind::Stripe);
    two.secrets.insert(0, secret("whsec_the_new_one_of_today"));
    let header = format!("t={NOW},v1={good}");
    let headers: [(&str, &[u8]); 1] = [("STRIPE-signature", header.as_bytes())];
    let delivery = Delivery { headers: &headers, body: BODY, now: NOW };
    assert!(Source::new(two).unwrap().verify(&delivery).is_ok());
}

#[test]
fn malformed_times_are_refused_whatever_they_are() {
    let good = v1(NOW);
    for t in
        ["", "abc", "NaN", "1e10", "-1", "+1767225600", " 1767225600", "9223372036854775808", "1767225600.0"]
    {
        assert_eq!(stripe(format!("t={t},v1={good}")), "SIG_MALFORMED", "{t:?}");
    }
    assert_eq!(stripe(format!("t=4294967296,v1={good}")), "SIG_MISMATCH");
    assert_eq!(stripe(format!("t={NOW},t={NOW},v1={good}")), "SIG_MALFORMED");
    assert_eq!(stripe(format!("v1={good}")), "SIG_MALFORMED");
    assert_eq!(stripe(format!("t ={NOW},v1={good}")), "SIG_MALFORMED");
    assert_eq!(stripe(format!("t={NOW}, v1={good}")), "SIG_MALFORMED");
    for header in ["t", "v1", ",,", "=", "t=,v1="] {
        assert_eq!(stripe(header), "SIG_MALFORMED", "{header}");
    }
    assert_eq!(stripe(format!(",t={NOW},,v1={good},")), "ok");
    assert_eq!(stripe(format!("t={NOW},v1={good},{}", "a".repeat(60 * 1024))), "SIG_MALFORMED");
}

#[test]
fn a_right_mac_under_another_label_is_no_proof() {
    for label in ["v0", "V1", "v2", "v1x", " v1"] {
        assert_eq!(stripe(format!("t={NOW},{label}={}", v1(NOW))), "SIG_MALFORMED", "{label}");
    }
}

#[test]
fn the_age_limit_is_inclusive_on_both_sides() {
    for kind in [Kind::Stripe, Kind::StandardWebhooks] {
        let body = br#"{"id":"evt_1","type":"x"}"#;
        for age in [0, 299, 300, -299, -300] {
            assert!(open_at(kind, body, NOW - age).is_ok(), "{kind} {age}");
        }
        for age in [301, 3600] {
            assert_eq!(open_at(kind, body, NOW - age).unwrap_err().code, "SIG_STALE");
            assert_eq!(open_at(kind, body, NOW + age).unwrap_err().code, "SIG_FUTURE");
        }
    }
    assert_eq!(open_at(Kind::Stripe, BODY, NOW - 301).unwrap_err().status, 400);
}

#[test]
fn a_missing_or_foreign_header_is_a_refusal_for_every_kind() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Alipay) {
        let wanted = if kind == Kind::Internal { "TOKEN_INVALID" } else { "SIG_MISSING" };
        assert_eq!(code(kind, &[], BODY), wanted, "{kind}");
        assert_eq!(code(kind, &[("X-None", b"1")], BODY), wanted, "{kind}");
    }
    assert_eq!(stripe(""), "SIG_MISSING");
    assert_eq!(stripe(" \t "), "SIG_MISSING");
    assert_eq!(code(Kind::Alipay, &[], b"notify_id=1&sign="), "SIG_MISSING");
}

#[test]
fn macs_of_any_length_and_alphabet_are_refused_quietly() {
    for length in [0, 1, 63, 65, 128, 7_000] {
        let header = format!("t={NOW},v1={}", "a".repeat(length));
        assert_eq!(stripe(header), "SIG_MALFORMED", "{length}");
    }
    assert_eq!(stripe(format!("t={NOW},v1={}", v1(NOW).to_uppercase())), "SIG_MALFORMED");
    assert_eq!(stripe(format!("t={NOW},v1={}", "é".repeat(32))), "SIG_MALFORMED");
    assert_eq!(stripe([b"t=1,v1=".as_slice(), &[0xff; 64]].concat()), "SIG_MALFORMED");
    assert_eq!(code(Kind::Github, &[("X-Hub-Signature-256", b"sha256=00")], BODY), "SIG_MALFORMED");
}

#[test]
fn bodies_that_are_no_event_have_each_their_code() {
    let deep = |n: usize| format!("{{\"id\":\"evt_d\",\"m\":{}{}}}", "[".repeat(n), "]".repeat(n));
    for (body, wanted) in [
        ("", "BODY_EMPTY"),
        ("null", "BODY_NOT_OBJECT"),
        ("[]", "BODY_NOT_OBJECT"),
        ("[{}]", "BODY_NOT_OBJECT"),
        ("\"x\"", "BODY_NOT_OBJECT"),
        ("1", "BODY_NOT_OBJECT"),
        ("true", "BODY_NOT_OBJECT"),
        ("{}", "ID_MISSING"),
        ("{", "BODY_NOT_JSON"),
        ("{\"id\":\"a\"} x", "BODY_NOT_JSON"),
        ("\u{feff}{\"id\":\"a\"}", "BODY_NOT_JSON"),
        ("{\"id\":\"a\",\"id\":\"b\"}", "BODY_DUPLICATE_NAME"),
        ("{\"id\":\"a\",\"m\":{\"x\":1,\"x\":1}}", "BODY_DUPLICATE_NAME"),
        (&deep(129), "BODY_TOO_DEEP"),
        (&deep(200_000), "BODY_TOO_DEEP"),
    ] {
        let rejection = open(Kind::Stripe, body).unwrap_err();
        assert_eq!((rejection.code, rejection.status), (wanted, 400), "{body:.40}");
    }
    assert!(open(Kind::Stripe, deep(126)).is_ok());
}

#[test]
fn ids_are_opaque_text_with_few_limits() {
    let with = |id: &str| open(Kind::Stripe, serde_json::json!({ "id": id }).to_string());
    let long = "x".repeat(255);
    for id in [
        "../../x",
        "..%2f..%2fx",
        "/abs/x",
        "a/b",
        "a\\b",
        ".",
        "..",
        "con",
        "x.",
        "-rf",
        "<id>",
        "id?x=1",
        "付款",
        &long,
    ] {
        assert_eq!(with(id).unwrap().id, id);
    }
    let longer = "x".repeat(256);
    let huge = "x".repeat(10_000);
    for id in ["", " ", " x ", "x\0y", "x\ny", "x\r", "x\u{7f}", "x\u{85}y", &longer, &huge] {
        assert_eq!(with(id).unwrap_err().code, "ID_INVALID", "{id:.20?}");
    }
    for body in [r#"{"id":1}"#, r#"{"id":["x"]}"#] {
        assert_eq!(open(Kind::Stripe, body).unwrap_err().code, "ID_INVALID");
    }
    assert_eq!(open(Kind::Stripe, r#"{"id":null}"#).unwrap_err().code, "ID_MISSING");
}

#[test]
fn times_flags_and_amounts_of_impossible_form_are_refused() {
    for field in [
        r#""created":-1"#,
        r#""created":253402300800"#,
        r#""created":1767225600.5"#,
        r#""created":"1767225600""#,
        r#""livemode":"false""#,
        r#""livemode":null"#,
        r#""livemode":0"#,
        r#""type":5"#,
        r#""data":{"object":{"object":"charge","amount":20.5}}"#,
        r#""data":{"object":{"object":"charge","amount":"20"}}"#,
        r#""data":{"object":{"object":"charge","amount":9223372036854775808}}"#,
        r#""data":{"object":{"object":"charge","amount":1e3}}"#,
        r#""data":{"object":{"currency":"e"}}"#,
        r#""data":{"object":{"currency":978}}"#,
        r#""object":"v2.core.event","created":1767225600"#,
        r#""object":"v2.core.event","created":"2016-12-31T23:59:60Z""#,
    ] {
        let body = format!("{{\"id\":\"evt_1\",{field}}}");
        assert_eq!(open(Kind::Stripe, body).unwrap_err().code, "FIELD_INVALID", "{field}");
    }
    for created in [0, 253_402_300_799_i64] {
        let event = open(Kind::Stripe, format!("{{\"id\":\"e\",\"created\":{created}}}")).unwrap();
        assert_eq!(event.occurred_at, Some(created));
    }
}

#[test]
fn tokens_are_taken_whole_and_only_as_bearer() {
    let body = br#"{"id":"task-1","type":"review.done"}"#;
    let with = |value: &str| code(Kind::Internal, &[("authorization", value.as_bytes())], body);
    assert_eq!(with(&format!("Bearer {TOKEN}")), "ok");
    assert_eq!(with(&format!("bearer {TOKEN}")), "ok");
    for value in ["Bearer ", "Bearer x", TOKEN, &format!("Basic {TOKEN}"), &format!("Bearer {TOKEN}x")] {
        assert_eq!(with(value), "TOKEN_INVALID", "{value}");
    }
}

#[test]
fn no_refusal_and_no_debug_output_shows_a_secret() {
    let header = format!("t={NOW},v1={}", "0".repeat(64));
    let headers: [(&str, &[u8]); 1] = [("Stripe-Signature", header.as_bytes())];
    let rejection =
        source(Kind::Stripe).open(&Delivery { headers: &headers, body: BODY, now: NOW }).unwrap_err();
    let shown = format!("{rejection} {rejection:?} {:?}", settings(Kind::Stripe));
    assert!(!shown.contains(STRIPE) && !shown.contains("test_only"), "{shown}");
    assert!(!rejection.message_zh.is_empty() && !rejection.next.is_empty());
}
