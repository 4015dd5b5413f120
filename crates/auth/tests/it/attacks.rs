//! Tokens that want to be believed: RFC 8725 section by section, and case SEC-15.

use auth::{Code, Refusal, Token};
use kernel::Digest;
use p256::ecdsa::{Signature, SigningKey};
use ring::hmac;
use serde_json::{Value, json};

use crate::world::{
    NOW, b64, claims, es256, es256_raw, p256_jwk, p256_key, ps256, rs256, rs512, rsa_jwk, set, token, verify,
    with,
};

fn refused(token: &Token) -> Refusal {
    let refusal = verify(token).expect_err("refused");
    assert_eq!(refusal.code(), Code::InvalidToken, "{refusal}");
    assert_eq!(refusal.code().status(), 401);
    refusal
}

fn unsigned(header: &Value, claims: &Value, signature: impl AsRef<[u8]>) -> Token {
    Token::new(format!("{}.{}.{}", b64(header.to_string()), b64(claims.to_string()), b64(signature)))
}

fn under_hmac(alg: &str, secret: &[u8], kid: &str) -> Token {
    let header = json!({"alg": alg, "kid": kid});
    let signed = format!("{}.{}", b64(header.to_string()), b64(claims().to_string()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    Token::new(format!("{signed}.{}", b64(tag.as_ref())))
}

#[test]
fn genuine_tokens_of_both_algorithms_pass() {
    for token in [
        token(&claims()),
        rs256(&json!({"alg": "RS256", "kid": "rsa"}), &claims()),
        es256(&json!({"alg": "ES256", "kid": "ec", "typ": "at+jwt", "x5t": "AAAA"}), &claims()),
    ] {
        let verified = verify(&token).expect("good");
        assert_eq!((verified.claims.tenant_id, verified.claims.operator_id), (11, 31));
    }
}

#[test]
fn a_token_without_signature_is_refused_in_every_spelling_of_none() {
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        for signature in ["", "x"] {
            let token = unsigned(&json!({"alg": alg, "kid": "ec"}), &claims(), signature);
            let refusal = refused(&token);
            assert!(matches!(refusal, Refusal::Parts | Refusal::Algorithm), "{alg:?} {refusal:?}");
        }
    }
}

#[test]
fn a_public_key_is_no_hmac_secret() {
    let pem = include_bytes!("../vectors/rsa-2048.pem");
    for secret in [set().as_bytes(), rsa_jwk("rsa").to_string().as_bytes(), pem, b"", &[0; 32]] {
        for (alg, kid) in
            [("HS256", "rsa"), ("HS384", "ec"), ("HS512", "rsa"), ("RS256", "rsa"), ("ES256", "ec")]
        {
            let refusal = refused(&under_hmac(alg, secret, kid));
            assert!(matches!(refusal, Refusal::Algorithm | Refusal::Signature), "{refusal:?}");
        }
    }
}

#[test]
fn the_algorithm_is_the_keys_and_not_the_tokens() {
    // Right signatures, but each under the other key's name or another word.
    assert_eq!(refused(&es256(&json!({"alg": "RS256", "kid": "ec"}), &claims())), Refusal::Algorithm);
    assert_eq!(refused(&rs256(&json!({"alg": "ES256", "kid": "rsa"}), &claims())), Refusal::Algorithm);
    assert_eq!(refused(&es256(&json!({"alg": "ES256", "kid": "rsa"}), &claims())), Refusal::Algorithm);
    assert_eq!(refused(&ps256(&json!({"alg": "PS256", "kid": "rsa"}), &claims())), Refusal::Algorithm);
    assert_eq!(refused(&rs512(&json!({"alg": "RS512", "kid": "rsa"}), &claims())), Refusal::Algorithm);
    assert_eq!(refused(&ps256(&json!({"alg": "RS256", "kid": "rsa"}), &claims())), Refusal::Signature);
    assert_eq!(refused(&rs512(&json!({"alg": "RS256", "kid": "rsa"}), &claims())), Refusal::Signature);
    for alg in [json!("es256"), json!("ES256 "), json!(["ES256"]), json!(null), json!(7)] {
        assert_eq!(
            refused(&es256(&json!({"alg": alg, "kid": "ec"}), &claims())),
            Refusal::Algorithm,
            "{alg}"
        );
    }
}

#[test]
fn a_name_of_a_key_is_only_compared() {
    let long = "k".repeat(129);
    for kid in ["../x", "/dev/null", "' or 1=1 --", "EC", "rsa2", "http://127.0.0.1/k"] {
        let refusal = refused(&es256(&json!({"alg": "ES256", "kid": kid}), &claims()));
        assert!(matches!(refusal, Refusal::KeyUnknown | Refusal::KeyId), "{kid} {refusal:?}");
    }
    for kid in [json!(""), json!("ec\u{0}"), json!("ec "), json!(1), json!(null), json!(["ec"]), json!(long)]
    {
        assert_eq!(refused(&es256(&json!({"alg": "ES256", "kid": kid}), &claims())), Refusal::KeyId, "{kid}");
    }
    assert_eq!(refused(&es256(&json!({"alg": "ES256"}), &claims())), Refusal::KeyId);
}

#[test]
fn a_key_that_a_token_brings_along_is_not_looked_at() {
    let own = SigningKey::from_slice(&[9; 32]).unwrap();
    for (name, value) in [
        ("jwk", p256_jwk("ec", &own)),
        ("jku", json!("http://127.0.0.1:1/jwks.json")),
        ("x5u", json!("http://127.0.0.1:1/x.pem")),
        ("x5c", json!(["MIIB"])),
        ("crit", json!(["exp"])),
        ("crit", json!([])),
        ("b64", json!(false)),
        ("zip", json!("DEF")),
        ("enc", json!("A128GCM")),
        ("Kid", json!("ec")),
    ] {
        for key in [&own, &p256_key()] {
            let mut header = json!({"alg": "ES256", "kid": "ec"});
            header[name] = value.clone();
            let token = es256_raw(key, &header.to_string(), &claims().to_string());
            assert_eq!(refused(&token), Refusal::HeaderMember, "{name}");
        }
    }
}

#[test]
fn another_key_under_a_known_name_is_refused() {
    let other = SigningKey::from_slice(&[9; 32]).unwrap();
    let token = es256_raw(&other, r#"{"alg":"ES256","kid":"ec"}"#, &claims().to_string());
    assert_eq!(refused(&token), Refusal::Signature);
}

#[test]
fn a_name_twice_is_refused_at_any_depth() {
    let payload = claims().to_string();
    for header in
        [r#"{"alg":"none","alg":"ES256","kid":"ec"}"#, r#"{"alg":"ES256","kid":"ec","\u006bid":"rsa"}"#]
    {
        assert_eq!(refused(&es256_raw(&p256_key(), header, &payload)), Refusal::Header, "{header}");
    }
    let twice = payload.replacen('{', r#"{"tenant_id":12,"#, 1);
    let token = es256_raw(&p256_key(), r#"{"alg":"ES256","kid":"ec"}"#, &twice);
    assert_eq!(refused(&token), Refusal::Payload);
    let deep = payload.replacen('{', r#"{"x":{"a":1,"a":2},"#, 1);
    let token = es256_raw(&p256_key(), r#"{"alg":"ES256","kid":"ec"}"#, &deep);
    assert_eq!(refused(&token), Refusal::Payload);
}

#[test]
fn only_three_whole_parts_are_a_token() {
    let good = token(&claims());
    let good = good.expose();
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    for text in [
        "",
        ".",
        "..",
        "...",
        header,
        signed,
        &format!("{signed}."),
        &format!(".{payload}.{signature}"),
        &format!("{header}..{signature}"),
        &format!("{good}."),
        &format!(".{good}"),
        &format!("{good}.x"),
        &format!("{good}.{signature}"),
    ] {
        assert_eq!(refused(&Token::new(text)), Refusal::Parts, "{text:?}");
    }
    for text in [
        format!("{good}="),
        format!("{good} "),
        format!(" {good}"),
        format!("{good}\n"),
        good.replace('-', "+") + "/",
    ] {
        assert_eq!(refused(&Token::new(text.clone())), Refusal::Encoding, "{text:?}");
    }
    assert_eq!(refused(&Token::new(format!("{good}{}", "A".repeat(8192)))), Refusal::TooLong);
    for header in ["[]", "\"x\"", "{", "null", "", "\u{feff}{}"] {
        let refusal = refused(&es256_raw(&p256_key(), header, "{}"));
        assert!(matches!(refusal, Refusal::Header | Refusal::Parts), "{header:?}");
    }
}

#[test]
fn loose_bits_at_an_end_are_no_second_spelling() {
    // 64 bytes leave two loose bits in the last of 86 characters: four spellings, of which one counts.
    let good = token(&claims());
    let (head, last) = good.expose().split_at(good.expose().len() - 1);
    let spellings = ["A", "Q", "g", "w"].iter().filter(|end| **end == last).count();
    assert_eq!(spellings, 1, "{last}");
    for index in 1..4_u8 {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let at = alphabet.iter().position(|b| [*b] == last.as_bytes()).unwrap();
        let next = char::from(alphabet[at + usize::from(index)]);
        assert_eq!(refused(&Token::new(format!("{head}{next}"))), Refusal::Encoding);
    }
}

#[test]
fn a_signature_with_other_numbers_is_refused() {
    let good = token(&claims());
    let (signed, _) = good.expose().rsplit_once('.').unwrap();
    for bytes in [
        vec![0; 64],
        vec![255; 64],
        vec![0; 63],
        vec![0; 65],
        [vec![0; 31], vec![1], vec![0; 31], vec![1]].concat(),
    ] {
        assert_eq!(refused(&Token::new(format!("{signed}.{}", b64(bytes)))), Refusal::Signature);
    }
}

#[test]
fn a_turned_signature_has_the_same_fingerprint() {
    let good = token(&claims());
    let (signed, signature) = good.expose().rsplit_once('.').unwrap();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, signature).unwrap();
    let signature = Signature::from_slice(&bytes).unwrap();
    let (r, s) = signature.split_scalars();
    let turned = Signature::from_scalars(r.to_bytes(), (-*s).to_bytes()).unwrap();
    let turned = Token::new(format!("{signed}.{}", b64(turned.to_bytes())));
    assert_ne!(good.expose(), turned.expose());
    let (one, other) = (verify(&good).unwrap(), verify(&turned).unwrap());
    assert_eq!(one.fingerprint, other.fingerprint);
    assert_eq!(one.fingerprint, Digest::of(signed.as_bytes()));
}

#[test]
fn a_token_of_another_kind_service_or_issuer_is_refused() {
    for typ in ["dpop+jwt", "logout+jwt", "secevent+jwt", "JWS", "", "application/x"] {
        let token = es256(&json!({"alg": "ES256", "kid": "ec", "typ": typ}), &claims());
        assert_eq!(refused(&token), Refusal::Kind, "{typ:?}");
    }
    assert_eq!(refused(&token(&with("token_type", json!("refresh")))), Refusal::Claim("token_type"));
    for aud in [json!("onceseal"), json!("onceseal-supply2"), json!(["a", "b"]), json!("ONCESEAL-SUPPLY")] {
        assert_eq!(refused(&token(&with("aud", aud.clone()))), Refusal::Audience, "{aud}");
    }
    for iss in ["https://id.example.com/", "http://id.example.com", "https://id.example.com.evil", "*"] {
        assert_eq!(refused(&token(&with("iss", json!(iss)))), Refusal::Issuer, "{iss}");
    }
    verify(&token(&with("aud", json!(["another", "onceseal-supply"])))).expect("one of several");
}

#[test]
fn every_changed_character_is_noticed() {
    let good = token(&claims()).expose().to_owned();
    for at in 0..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        verify(&Token::new(changed.clone())).expect_err(&changed[at..]);
    }
}

#[test]
fn a_token_of_years_is_refused() {
    let token = token(&with("exp", json!(NOW + 259_201)));
    assert_eq!(refused(&token), Refusal::Life);
    verify(&crate::world::token(&with("exp", json!(NOW + 259_200)))).expect("the longest life");
}
