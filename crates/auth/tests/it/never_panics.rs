//! Arbitrary input, and good input with arbitrary harm: an answer always comes, and never a yes.

use auth::{IssuerKey, Keys, Scopes, Token, bearer};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{claims, rs256, rs256_raw, rsa_jwk, set, verify};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "(user:|supply:|\\*|ES256|none|ec|\\.\\./)".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_header_value_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = bearer::read([bytes.as_slice()]);
        let _ = bearer::read([[b"Bearer ".as_slice(), &bytes].concat().as_slice()]);
    }

    #[test]
    fn no_arbitrary_text_is_a_token(text in ".{0,300}", parts in "[A-Za-z0-9_-]{0,40}(\\.[A-Za-z0-9_-]{0,40}){0,4}") {
        prop_assert!(verify(&Token::new(text)).is_err());
        prop_assert!(verify(&Token::new(parts)).is_err());
    }

    #[test]
    fn no_arbitrary_header_is_a_tokens(header in any_json()) {
        prop_assert!(verify(&rs256_raw(&header.to_string(), &claims().to_string())).is_err());
    }

    #[test]
    fn no_arbitrary_payload_is_a_tokens(payload in any_json(), text in ".{0,80}") {
        let header = r#"{"alg":"RS256","kid":"rsa"}"#;
        prop_assert!(verify(&rs256_raw(header, &payload.to_string())).is_err());
        prop_assert!(verify(&rs256_raw(header, &text)).is_err());
    }

    #[test]
    fn a_claim_of_another_type_never_passes(at in 0..12_usize, value in any_json()) {
        let mut claims = claims();
        let name = claims.as_object().unwrap().keys().nth(at).unwrap().clone();
        prop_assume!(value.is_null() || value.is_boolean() || value.is_object() || value.is_f64());
        claims[&name] = value;
        let token = rs256(&json!({"alg": "RS256", "kid": "rsa"}), &claims);
        prop_assert!(verify(&token).is_err());
    }

    #[test]
    fn a_harmed_set_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..900_usize, byte: u8) {
        let _ = Keys::parse(&bytes);
        let mut set = set().into_bytes();
        let at = at % set.len();
        set[at] = byte;
        let _ = Keys::parse(&set);
    }

    #[test]
    fn any_member_of_a_key_is_answered(at in 0..6_usize, value in any_json()) {
        let mut jwk = rsa_jwk("r");
        let name = jwk.as_object().unwrap().keys().nth(at).unwrap().clone();
        jwk[&name] = value;
        let set = json!({"keys": [jwk]}).to_string();
        let _ = Keys::parse(set.as_bytes());
    }

    #[test]
    fn any_text_is_answered_where_keys_and_scopes_are_read(text in "(-----BEGIN PRIVATE KEY-----\n)?.{0,200}") {
        prop_assert!(IssuerKey::from_pem(&text).is_err());
        let _ = Scopes::new([text.as_str()]);
    }
}
