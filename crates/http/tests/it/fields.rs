//! Exact fields, and all faults of a body in one go.

use onceseal_http::Fields;
use onceseal_http::Rejection;
use onceseal_http::canonical::{Bounds, read};
use secrecy::ExposeSecret;

type Order = (String, i64, Option<String>, Vec<i64>);

fn order(text: &str) -> Result<Order, Vec<(String, String)>> {
    let node = read(text.as_bytes(), &Bounds::default()).unwrap();
    Fields::read(&node, |fields| {
        let amount = fields.decimal("amount", 2);
        let days = fields.whole("days", 1..=365);
        let alias = fields.optional("alias", |fields, name| fields.text(name, 1..=5).map(str::to_owned));
        let items = fields.each("items", 1..=2, |item| item.whole("id", 1..=i64::MAX));
        Some((amount?, days?, alias?, items?))
    })
    .map_err(|faults| faults.iter().map(|fault| (fault.field.clone(), fault.rule.clone())).collect())
}

fn faults(text: &str) -> String {
    let lines: Vec<_> =
        order(text).unwrap_err().into_iter().map(|(field, rule)| format!("{field}: {rule}")).collect();
    lines.join("; ")
}

#[test]
fn right_fields_come_out_exactly() {
    let got = order(r#"{"amount":12.50,"days":3e1,"items":[{"id":9007199254740993}]}"#).unwrap();
    assert_eq!(got, ("12.50".into(), 30, None, vec![9_007_199_254_740_993]));
    let got = order(r#"{"amount":"0.07","days":365,"alias":"备用号","items":[{"id":1},{"id":2}]}"#).unwrap();
    assert_eq!(got, ("0.07".into(), 365, Some("备用号".into()), vec![1, 2]));
}

#[test]
fn every_fault_is_told_with_its_rule() {
    for (body, expected) in [
        ("[]", ": object"),
        ("{}", "amount: required; days: required; items: required"),
        (
            r#"{"amount":1.234,"days":366,"alias":null,"items":[{"id":0,"x":1},{}]}"#,
            "amount: decimals 2; days: range 1..365; alias: string; items[0].id: range 1..9223372036854775807; \
             items[0].x: unknown; items[1].id: required",
        ),
        (
            r#"{"amount":1,"days":1.5,"alias":"sixsix","items":[]}"#,
            "days: integer; alias: length 1..5; items: length 1..2",
        ),
        (r#"{"amount":1,"days":"1","items":[1]}"#, "days: integer; items[0]: object"),
        (r#"{"amount":1,"days":1,"items":[{"id":1}],"Amount":2}"#, "Amount: unknown"),
    ] {
        assert_eq!(faults(body), expected, "{body}");
    }
}

#[test]
fn a_line_has_no_control_character_and_no_blank_at_either_end() {
    let line = |text: &str| {
        let node = read(serde_json::json!({ "a": text }).to_string().as_bytes(), &Bounds::default()).unwrap();
        let read = Fields::read(&node, |fields| fields.line("a", 1..=5).map(str::to_owned));
        read.map_err(|faults| faults.iter().map(|fault| fault.rule.clone()).collect::<String>())
    };
    for text in ["a", "a b", "备用 号", "é\u{3000}é"] {
        assert_eq!(line(text).as_deref(), Ok(text));
    }
    for text in [" a", "a ", " ", "a\nb", "\u{7f}a", "a\u{85}b", "a\u{3000}", "\u{a0}"] {
        assert_eq!(line(text), Err("characters".into()), "{text:?}");
    }
    assert_eq!((line(""), line("sixsix")), (Err("length 1..5".into()), Err("length 1..5".into())));
}

/// Section 4, rule 2.
#[test]
fn a_decimal_has_no_sign_no_exponent_and_no_leading_zero() {
    for text in [
        "-1", "1e1", "1E1", "-0", "true", "null", "[]", r#""""#, r#""+1""#, r#""-1""#, r#""01""#, r#""1.""#,
        r#"".5""#, r#""NaN""#, r#""1 ""#, r#""1e1""#, r#""１""#,
    ] {
        let body = format!(r#"{{"amount":{text},"days":1,"items":[{{"id":1}}]}}"#);
        assert_eq!(faults(&body), "amount: number", "{text}");
    }
    for text in ["0", "0.00", "10000000000", r#""10.5""#, "99999999999999999999.99"] {
        let body = format!(r#"{{"amount":{text},"days":1,"items":[{{"id":1}}]}}"#);
        assert_eq!(order(&body).unwrap().0, text.trim_matches('"'));
    }
}

#[test]
fn words_flags_numbers_and_secrets() {
    let node =
        read(br#"{"kind":"bank","ack":true,"n":-1.50e1,"code":"246810"}"#, &Bounds::default()).unwrap();
    let got = Fields::read(&node, |fields| {
        let (kind, ack) = (fields.word("kind", ["bank", "alipay"]), fields.flag("ack"));
        let (number, code) = (fields.number("n"), fields.secret("code", 4..=10));
        Some((kind?, ack?, number?.plain().to_owned(), code?))
    })
    .unwrap();
    assert_eq!((got.0, got.1, got.2.as_str(), got.3.expose_secret()), ("bank", true, "-15", "246810"));
    let wrong = Fields::read(&node, |fields| {
        let (kind, ack) = (fields.word("kind", ["cash", "card"]), fields.flag("n"));
        let (number, code) = (fields.number("ack"), fields.secret("code", 7..=10));
        fields.fault::<()>("code", "luhn");
        Some((kind?, ack?, number?, code?))
    });
    let rules: Vec<_> = wrong.unwrap_err().iter().map(|fault| fault.rule.clone()).collect();
    assert_eq!(rules, ["one_of cash, card", "boolean", "number", "length 7..10", "luhn"]);
}

#[test]
fn an_unknown_name_makes_the_body_unreadable_and_a_flood_of_them_is_cut() {
    let node = read(br#"{"a":1}"#, &Bounds::default()).unwrap();
    let missing =
        Fields::read(&node, |fields| fields.optional("a", |fields, name| fields.whole(name, 2..=3)));
    assert_eq!(Rejection::from(missing.unwrap_err()).code.name, "SUP_COM_4001");
    let names: Vec<_> = (0..2000).map(|n| format!(r#""{}{n}":0"#, "x".repeat(20))).collect();
    let long = format!(r#"{{"{}":0,{}}}"#, "y".repeat(5000), names[..1000].join(","));
    let node = read(long.as_bytes(), &Bounds::default()).unwrap();
    let flood = Fields::read(&node, |_| Some(())).unwrap_err();
    assert_eq!(flood.iter().len(), 32);
    assert!(flood.iter().all(|fault| fault.field.len() <= 64));
    assert_eq!(Rejection::from(flood).code.name, "SUP_COM_4000");
}
