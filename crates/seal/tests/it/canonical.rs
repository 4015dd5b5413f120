//! Canonical JSON against the published vectors, and the exact writer against the library.

use crate::shared::{list, text, unhex, vectors};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use seal::hash::{Digest, run_hash};
use seal::jcs::{Error, exact, to_vec, to_vec_exact};
use seal::json::parse;
use serde_json::{Map, Value, json};

fn number(hexadecimal: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(hexadecimal, 16).unwrap())
}

#[test]
fn the_published_objects_come_out_byte_for_byte() {
    let vectors = vectors("rfc8785");
    assert_eq!(list(&vectors, "objects").len(), 13);
    for case in list(&vectors, "objects") {
        let read: Value = serde_json::from_str(text(case, "input_utf8")).unwrap();
        let bytes = to_vec(&read).unwrap();
        assert_eq!(bytes, unhex(case, "canonical_hex"), "{}", text(case, "id"));
        assert_eq!(Digest::of(&bytes).to_string(), text(case, "sha256_hex"));
        match parse(text(case, "input_utf8").as_bytes()) {
            Ok(strict) => assert_eq!(to_vec(&strict).unwrap(), bytes),
            // Holds integers beyond 64 bits, which strict reading refuses to round.
            Err(error) => assert_eq!((error.code(), text(case, "id")), ("json_wide_integer", "numbers")),
        }
        if let Ok(exact) = exact(&read) {
            assert_eq!(exact, bytes);
        }
    }
}

#[test]
fn the_published_numbers_come_out_as_ecmascript_prints_them() {
    let vectors = vectors("rfc8785");
    assert_eq!(list(&vectors, "numbers").len(), 31);
    for case in list(&vectors, "numbers") {
        let bytes = to_vec(&number(text(case, "ieee754_hex"))).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), text(case, "json"));
    }
}

#[test]
fn what_must_fail_fails() {
    let vectors = vectors("rfc8785");
    assert_eq!(list(&vectors, "must_fail").len(), 6);
    for case in list(&vectors, "must_fail") {
        if let Some(bits) = case["ieee754_hex"].as_str() {
            assert!(to_vec(&number(bits)).is_err(), "{case}");
        } else if let Some(json) = case["json_text"].as_str() {
            assert!(parse(json.as_bytes()).is_err(), "{case}");
        } else {
            assert!(parse(&unhex(case, "bytes_hex")).is_err(), "{case}");
        }
    }
}

#[test]
fn names_sort_by_utf16_units_and_strings_stay_as_they_are() {
    let value =
        json!({"\u{e000}": 1, "\u{1f600}": 2, "": 3, "\u{e9}": "e\u{301}", "/": "\u{7f}\u{2028}\u{1f}/"});
    let expected =
        "{\"\":3,\"/\":\"\u{7f}\u{2028}\\u001f/\",\"\u{e9}\":\"e\u{301}\",\"\u{1f600}\":2,\"\u{e000}\":1}";
    assert_eq!(String::from_utf8(exact(&value).unwrap()).unwrap(), expected);
    assert_eq!(to_vec(&value).unwrap(), exact(&value).unwrap());
    assert_eq!(to_vec(&json!([1e-7, 1.0, -0.0, 1e21])).unwrap(), b"[1e-7,1,0,1e+21]");
}

#[test]
fn numbers_that_other_readers_would_round_may_not_be_signed() {
    let path = |value: Value| match exact(&value).unwrap_err() {
        Error::Float { path } | Error::WideInteger { path } => path,
        other => panic!("{other}"),
    };
    assert_eq!(path(json!({"a/b": [1, {"c~": 1.5}]})), "/a~1b/1/c~0");
    assert_eq!(path(json!([9_007_199_254_740_992_u64])), "/0");
    assert_eq!(path(json!([1, -9_007_199_254_740_992_i64])), "/1");
    assert_eq!(path(json!(1.0)), "");
    assert_eq!(to_vec_exact(&[-9_007_199_254_740_991_i64]).unwrap(), b"[-9007199254740991]");
}

#[test]
fn a_value_nested_too_deep_is_refused() {
    let nested = |depth: u32| (0..depth).fold(json!(1), |inside, _| json!([inside]));
    assert!(exact(&nested(128)).is_ok());
    assert_eq!(exact(&nested(129)), Err(Error::TooDeep { limit: 128 }));
    assert!(run_hash(&json!({"v": 1, "x": nested(63)})).is_ok());
    assert_eq!(run_hash(&json!({"v": 1, "x": nested(64)})).unwrap_err().code(), "jcs_too_deep");
}

#[test]
fn the_run_hash_is_sha_256_of_the_canonical_run() {
    let run = json!({"v": 1, "b": "Zoë", "a": [1, 2]});
    // printf '{"a":[1,2],"b":"Zoë","v":1}' | sha256sum
    let expected = "369eab9a2678b8c7aeafce7118c04eb3fae392916edec77dd6698af3c76926c6";
    assert_eq!(run_hash(&run).unwrap().to_string(), expected);
    for (bad, code) in
        [(json!({}), "run_no_version"), (json!([1]), "run_no_version"), (json!({"v": 0}), "run_no_version")]
    {
        assert_eq!(run_hash(&bad).unwrap_err().code(), code);
    }
}

#[test]
fn contents_that_differ_in_shape_alone_have_different_run_hashes() {
    let runs = [
        json!({"v": 1, "name": "ab", "note": "c"}),
        json!({"v": 1, "name": "a", "note": "bc"}),
        json!({"v": 1, "name": "a\",\"note\":\"bc"}),
        json!({"v": 1, "name": "a|b", "note": "c"}),
        json!({"v": 1, "name": "a", "note": "b|c"}),
        json!({"v": 1, "name": null}),
        json!({"v": 1, "name": "null"}),
        json!({"v": 1}),
        json!({"v": 1, "name": 1}),
        json!({"v": 1, "name": "1"}),
        json!({"v": 1, "name": [1]}),
        json!({"v": 1, "name": []}),
        json!({"v": 1, "name": {}}),
        json!({"v": 1, "name": ""}),
        json!({"v": 1, "name": "\u{e9}"}),
        json!({"v": 1, "name": "e\u{301}"}),
        json!({"v": 2}),
    ];
    let mut hashes: Vec<_> = runs.iter().map(|run| run_hash(run).unwrap()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), runs.len());
}

fn exact_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![any::<String>(), "[a-c\u{7f}\u{80}\u{e000}\u{1f600}\u{ffff}\"\\\\]{0,3}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inside| {
        prop_oneof![
            proptest::collection::vec(inside.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inside), 0..6)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_exact_writer_and_the_library_write_the_same_bytes(value in exact_json()) {
        let bytes = exact(&value).unwrap();
        assert_eq!(bytes, to_vec(&value).unwrap());
        assert_eq!(parse(&bytes).unwrap(), value);
    }
}
