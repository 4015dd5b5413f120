//! What is read from headers, as tables.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use onceseal_http::headers::{IdempotencyKey, Need, Trace, read};
use testkit::CountingRandom;

const ID: &str = "6f1c2d3e-4a5b-4c6d-8e7f-0123456789ab";
const KEY: &str = "order-1001-attempt";

fn value(text: impl AsRef<[u8]>) -> HeaderValue {
    HeaderValue::from_bytes(text.as_ref()).unwrap()
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    lines.iter().map(|(name, text)| (HeaderName::try_from(*name).unwrap(), value(text))).fold(
        HeaderMap::new(),
        |mut map, (name, value)| {
            map.append(name, value);
            map
        },
    )
}

/// The request id and the key, or the code.
fn stated(lines: &[(&str, &str)], need: Need) -> Result<(String, Option<String>), &'static str> {
    let random = CountingRandom::default();
    match read(&headers(lines), need, &random) {
        Ok(asked) => Ok((asked.request_id, asked.key.map(|key| key.as_str().to_owned()))),
        Err(refused) => {
            assert_eq!(refused.asked.request_id.len(), 36, "an answer has an id in any case");
            assert!(refused.asked.key.is_none(), "no key is echoed from a refused request");
            Err(refused.code.name)
        }
    }
}

#[test]
fn a_critical_write_has_both_ids() {
    let id = ("x-request-id", ID);
    let key = ("idempotency-key", KEY);
    let both = Ok((ID.to_owned(), Some(KEY.to_owned())));
    for (lines, expected) in [
        (vec![id, key], both),
        (vec![key], Err("REQUEST_ID_MISSING")),
        (vec![id], Err("IDEMPOTENCY_KEY_MISSING")),
        (vec![], Err("REQUEST_ID_MISSING")),
        (vec![id, id, key], Err("REQUEST_ID_INVALID")),
        (vec![id, key, key], Err("IDEMPOTENCY_KEY_INVALID")),
        (vec![id, ("idempotency-key", "")], Err("IDEMPOTENCY_KEY_INVALID")),
        (vec![("x-request-id", ""), key], Err("REQUEST_ID_INVALID")),
    ] {
        assert_eq!(stated(&lines, Need::Required), expected, "{lines:?}");
    }
}

#[test]
fn a_request_id_is_one_uuid_in_its_canonical_form() {
    let lower = Ok((ID.to_owned(), Some(KEY.to_owned())));
    let of = |id: &str| stated(&[("x-request-id", id), ("idempotency-key", KEY)], Need::Required);
    assert_eq!(of(ID), lower);
    assert_eq!(of(&ID.to_uppercase()), lower, "kept in lower case");
    for wrong in [
        "00000000-0000-0000-0000-000000000000",
        "{6f1c2d3e-4a5b-4c6d-8e7f-0123456789ab}",
        "urn:uuid:6f1c2d3e-4a5b-4c6d-8e7f-0123456789ab",
        "6f1c2d3e4a5b4c6d8e7f0123456789ab",
        "6f1c2d3e-4a5b-4c6d-8e7f-0123456789a",
        "6f1c2d3e-4a5b-4c6d-8e7f-0123456789abc",
        "6f1c2d3e-4a5b-4c6d-8e7f-0123456789ag",
        "6f1c2d3e4-a5b-4c6d-8e7f-0123456789ab",
        "01KDVDNA00000G40R40M30E209",
        "6f1c2d3e-4a5b-4c6d-8e7f-0123456789ab, 6f1c2d3e-4a5b-4c6d-8e7f-0123456789ab",
        r#""},{"level":"error"#,
        "ключ",
        "tab\there",
    ] {
        assert_eq!(of(wrong), Err("REQUEST_ID_INVALID"), "{wrong}");
    }
}

#[test]
fn elsewhere_an_id_is_replaced_and_a_key_counts_all_the_same() {
    for lines in
        [vec![], vec![("x-request-id", "order 42")], vec![("x-request-id", ID), ("x-request-id", ID)]]
    {
        let (id, key) = stated(&lines, Need::Optional).unwrap();
        assert!(id != ID && key.is_none(), "{lines:?}");
        let again = stated(&[("x-request-id", &id), ("idempotency-key", KEY)], Need::Required).unwrap();
        assert_eq!(again.0, id, "what is made is what is taken");
    }
    assert_eq!(stated(&[("x-request-id", ID)], Need::Optional), Ok((ID.to_owned(), None)));
    assert_eq!(stated(&[("idempotency-key", "short")], Need::Optional), Err("IDEMPOTENCY_KEY_INVALID"));
    let twice = [("idempotency-key", KEY), ("idempotency-key", KEY)];
    assert_eq!(stated(&twice, Need::Optional), Err("IDEMPOTENCY_KEY_INVALID"));
    let (_, key) = stated(&[("idempotency-key", KEY)], Need::Optional).unwrap();
    assert_eq!(key.as_deref(), Some(KEY));
}

/// Rows of the table "what clients really send" in the notes on the IETF draft, at lengths that are taken.
#[test]
fn a_key_is_the_text_in_quotes_or_the_whole_value() {
    let (longest, longer) = ("k".repeat(128), "k".repeat(129));
    let quoted = |text: &str| format!("\"{text}\"");
    for (sent, expected) in [
        ("8e03978e-40d5-43e8-bc93-6894a57f9324", Some("8e03978e-40d5-43e8-bc93-6894a57f9324")),
        ("\"8e03978e-40d5-43e8-bc93-6894a57f9324\"", Some("8e03978e-40d5-43e8-bc93-6894a57f9324")),
        ("01KDVDNA00000G40R40M30E209", Some("01KDVDNA00000G40R40M30E209")),
        ("1234567890123456", Some("1234567890123456")),
        ("order/1001:pay%'~!x", Some("order/1001:pay%'~!x")),
        (r#""a\"b\\c-0123456789""#, Some(r#"a"b\c-0123456789"#)),
        (r#""abc-0123456789abc";p=1;q"#, Some("abc-0123456789abc")),
        (" \"abc-0123456789abc\" ", Some("abc-0123456789abc")),
        (r#"abc"0123456789abc"#, Some(r#"abc"0123456789abc"#)),
        (&longest, Some(&longest)),
        (&quoted(&longest), Some(&longest)),
        (&longer, None),
        (&quoted(&longer), None),
        ("123456789012345", None),
        (&quoted("123456789012345"), None),
        ("\"\"", None),
        ("", None),
        ("                    ", None),
        (r#""a\xb0123456789abc""#, None),
        ("\"unterminated-01234567", None),
        ("\"tab\there-0123456789\"", None),
        ("\"with a space-0123456789\"", None),
        ("a, b-0123456789abcdef", None),
        (r#""abc-0123456789abc", "d""#, None),
        (r#""abc-0123456789abc" x"#, None),
        ("café-0123456789abcdef", None),
        ("\"café-0123456789abcdef\"", None),
        ("emoji😀-0123456789abcdef", None),
    ] {
        let key = IdempotencyKey::of(&value(sent));
        assert_eq!(key.as_ref().map(IdempotencyKey::as_str), expected, "{sent}");
    }
    assert_eq!(IdempotencyKey::of(&value(b"\xff0123456789abcdef")), None);
    let key = |text| IdempotencyKey::of(&value(text)).unwrap();
    for (sent, echo) in [
        (" plain-0123456789 ", "plain-0123456789"),
        (r#""a\"b\\c-0123456789""#, r#""a\"b\\c-0123456789""#),
        (r#" "abc-0123456789abc"; p=1;q"#, r#""abc-0123456789abc""#),
    ] {
        assert_eq!(key(sent).echo(), echo, "{sent}");
    }
    assert_ne!(key("Key-0123456789abc").as_str(), key("key-0123456789abc").as_str(), "case counts");
    assert_eq!(format!("{:?}", key("Key-0123456789abc")), "IdempotencyKey(17 bytes)");
}

#[test]
fn a_traceparent_is_taken_only_when_it_is_right_and_never_refuses() {
    let right = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = |text: &str| Trace::of(&value(text)).map(|trace| trace.id().to_owned());
    assert_eq!(trace(right).as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    assert!(trace(&format!("{}-more", right.replacen("00-", "cc-", 1))).is_some());
    for wrong in [
        "",
        &right.to_uppercase(),
        &format!("{right}-more"),
        &right.replacen("00-", "ff-", 1),
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    ] {
        assert_eq!(trace(wrong), None, "{wrong}");
    }
    let random = CountingRandom::default();
    let twice = headers(&[("traceparent", right), ("traceparent", right), ("x-request-id", ID)]);
    let asked = read(&twice, Need::Optional, &random).unwrap();
    assert_eq!((asked.trace_id(), asked.trace.is_none()), (ID, true));
    let once = read(&headers(&[("traceparent", right)]), Need::Optional, &random).unwrap();
    assert_eq!(once.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
}
