//! Strict reading of JSON.

use proptest::prelude::{ProptestConfig, proptest};
use seal::json::{Error, MAX_DEPTH, parse};
use serde_json::json;

fn code(text: &str) -> &'static str {
    parse(text.as_bytes()).unwrap_err().code()
}

#[test]
fn one_value_of_every_kind_is_read() {
    let text = br#" {"n":null,"b":[true,false],"s":"\u00e9\ud83d\ude00","i":-1,"f":1.5,"e":{}} "#;
    let value = json!({"n": null, "b": [true, false], "s": "é😀", "i": -1, "f": 1.5, "e": {}});
    assert_eq!(parse(text), Ok(value));
}

#[test]
fn a_name_twice_is_refused_at_every_depth_and_spelling() {
    for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"b":2,"a":3}}]"#, r#"{"a":1,"\u0061":2}"#] {
        assert_eq!(code(text), "json_duplicate_name", "{text}");
    }
    let error = parse(br#"{"a":1,"a":1}"#).unwrap_err();
    assert!(matches!(error, Error::DuplicateName { name, line: 1, column: 10 } if name == "a"));
    assert!(parse(br#"{"a":{"a":1},"b":{"a":2}}"#).is_ok());
}

#[test]
fn integers_keep_every_digit_of_64_bits() {
    for text in ["9007199254740993", "18446744073709551615", "-9223372036854775808", "0"] {
        assert_eq!(parse(text.as_bytes()).unwrap().to_string(), text);
    }
}

#[test]
fn an_integer_beyond_64_bits_is_refused_and_not_rounded() {
    for text in
        ["18446744073709551616", "-9223372036854775809", r#"{"a":"\\\"1e30","n":123456789012345680000}"#]
    {
        assert_eq!(code(text), "json_wide_integer", "{text}");
    }
    assert_eq!(parse(b"[1,18446744073709551616]"), Err(Error::WideInteger { offset: 3 }));
    assert_eq!(parse(b"[1e30,18446744073709551616.0]").unwrap(), json!([1e30, 18_446_744_073_709_551_616.0]));
}

#[test]
fn nesting_is_limited_and_deep_input_is_no_stack_overflow() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(MAX_DEPTH as usize).as_bytes()).is_ok());
    assert_eq!(code(&nested(MAX_DEPTH as usize + 1)), "json_too_deep");
    assert_eq!(code(&"[".repeat(100_000)), "json_too_deep");
    assert_eq!(code(&r#"{"a":"#.repeat(100_000)), "json_too_deep");
}

#[test]
fn what_is_not_one_json_text_is_refused() {
    for (text, expected) in [
        ("", "json_syntax"),
        ("{", "json_syntax"),
        ("{} {}", "json_trailing"),
        ("{}x", "json_trailing"),
        ("\u{feff}{}", "json_byte_order_mark"),
        ("[1,]", "json_syntax"),
        ("[01]", "json_syntax"),
        ("[NaN]", "json_syntax"),
        ("[1e999]", "json_syntax"),
        ("{'a':1}", "json_syntax"),
        ("[\"\u{1}\"]", "json_syntax"),
        (r#""\udead""#, "json_syntax"),
    ] {
        assert_eq!(code(text), expected, "{text}");
    }
    assert_eq!(parse(b"[\"ab\xff\"]"), Err(Error::NotUtf8 { offset: 4 }));
}

#[test]
fn errors_name_the_place() {
    let error = parse(b"{\n \"a\": tru }").unwrap_err();
    assert!(matches!(error, Error::Syntax { line: 2, .. }), "{error:?}");
    assert!(error.to_string().starts_with("JSON can't be read at line 2, column "), "{error}");
    assert!(!error.to_string().contains(" at line 2 column"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused_as_serde_json_does(text in r#"[\[\]{}:,"a1e.\-\\u0 ]{0,24}"#) {
        let lax: Result<serde_json::Value, _> = serde_json::from_str(&text);
        match parse(text.as_bytes()) {
            Ok(value) => assert_eq!(value, lax.unwrap()),
            Err(Error::DuplicateName { .. } | Error::WideInteger { .. }) => {}
            Err(_) => assert!(lax.is_err(), "{text}"),
        }
    }
}
