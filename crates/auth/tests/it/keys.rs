//! Which published keys are used, and published signatures of others.

use auth::Keys;
use auth::keys::{Error, LeftOut};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::world::{b64, p256_jwk, p256_key, rsa_jwk, set};

fn left_out(change: impl FnOnce(&mut Value)) -> Option<LeftOut> {
    changed(p256_jwk("ec2", &p256_key()), change)
}

fn changed(mut jwk: Value, change: impl FnOnce(&mut Value)) -> Option<LeftOut> {
    change(&mut jwk);
    let set = json!({"keys": [rsa_jwk("rsa"), jwk]}).to_string();
    let keys = Keys::parse(set.as_bytes()).expect("the other key is good");
    keys.left_out().first().map(|(position, cause)| {
        assert_eq!((*position, keys.ids().collect::<Vec<_>>()), (1, vec!["rsa"]));
        *cause
    })
}

fn of_bits(bits: usize) -> Value {
    let mut modulus = vec![0xff; bits.div_ceil(8)];
    modulus[0] >>= modulus.len() * 8 - bits;
    let mut jwk = rsa_jwk("r");
    jwk["n"] = json!(b64(modulus));
    jwk
}

#[test]
fn both_kinds_of_keys_are_used_and_the_rest_of_a_set_is_passed_by() {
    let keys = Keys::parse(set().as_bytes()).unwrap();
    assert_eq!(keys.ids().collect::<Vec<_>>(), ["ec", "rsa"]);
    assert!(left_out(|_| ()).is_none());
    assert!(left_out(|jwk| drop(jwk.as_object_mut().unwrap().remove("use"))).is_none());
    assert!(left_out(|jwk| drop(jwk.as_object_mut().unwrap().remove("alg"))).is_none());
    assert!(left_out(|jwk| jwk["x5c"] = json!(["MIIB"])).is_none());
    assert!(left_out(|jwk| jwk["key_ops"] = json!(["verify"])).is_none());
}

#[test]
fn keys_for_other_ends_are_left_out() {
    assert_eq!(left_out(|jwk| jwk["use"] = json!("enc")), Some(LeftOut::Use));
    assert_eq!(left_out(|jwk| jwk["use"] = json!(["sig"])), Some(LeftOut::Use));
    assert_eq!(left_out(|jwk| jwk["key_ops"] = json!(["encrypt"])), Some(LeftOut::Use));
    assert_eq!(left_out(|jwk| jwk["key_ops"] = json!("verify")), Some(LeftOut::Use));
    for alg in ["ES384", "RS256", "HS256", "none", "ECDH-ES", ""] {
        assert_eq!(left_out(|jwk| jwk["alg"] = json!(alg)), Some(LeftOut::Algorithm), "{alg}");
    }
    for alg in ["RS512", "PS256", "ES256", "RSA-OAEP"] {
        let cause = changed(rsa_jwk("r"), |jwk| jwk["alg"] = json!(alg));
        assert_eq!(cause, Some(LeftOut::Algorithm), "{alg}");
    }
    for kty in [json!("OKP"), json!("ec"), json!(1)] {
        assert_eq!(left_out(|jwk| jwk["kty"] = kty), Some(LeftOut::Kind));
    }
    assert_eq!(left_out(|jwk| *jwk = json!([])), Some(LeftOut::Form));
}

#[test]
fn a_key_without_a_usable_name_is_left_out() {
    for kid in [json!(""), json!(1), json!(null), json!("a b"), json!("k".repeat(129))] {
        assert_eq!(left_out(|jwk| jwk["kid"] = kid), Some(LeftOut::KeyId));
    }
}

#[test]
fn a_published_private_key_is_worth_nothing() {
    assert_eq!(left_out(|jwk| jwk["d"] = json!(b64([7; 32]))), Some(LeftOut::Private));
    assert_eq!(changed(rsa_jwk("r"), |jwk| jwk["p"] = json!("AQ")), Some(LeftOut::Private));
    assert_eq!(left_out(|jwk| *jwk = json!({"kty": "oct", "kid": "o", "k": "AAAA"})), Some(LeftOut::Private));
}

#[test]
fn weak_and_odd_rsa_keys_are_left_out() {
    for bits in [512, 1024, 2040, 2047, 8193, 16384] {
        assert_eq!(changed(of_bits(bits), |_| ()), Some(LeftOut::Modulus), "{bits}");
    }
    for bits in [2048, 3072, 8192] {
        assert_eq!(changed(of_bits(bits), |_| ()), None, "{bits}");
    }
    let even = [vec![0xff; 255], vec![0xfe]].concat();
    let padded = [vec![0], vec![0xff; 256]].concat();
    for modulus in [even, padded, vec![]] {
        assert_eq!(changed(rsa_jwk("r"), |jwk| jwk["n"] = json!(b64(modulus))), Some(LeftOut::Modulus));
    }
    for exponent in
        [vec![], vec![1], vec![3], vec![0, 1, 0, 1], vec![1, 0, 0], vec![2, 0, 0, 0, 1], vec![1; 9]]
    {
        let cause = changed(rsa_jwk("r"), |jwk| jwk["e"] = json!(b64(&exponent)));
        assert_eq!(cause, Some(LeftOut::Exponent), "{exponent:?}");
    }
}

#[test]
fn a_modulus_of_the_broken_generator_is_left_out() {
    // 65537 to the 128th: 2049 bits, and by its making a power of 65537 modulo everything.
    let mut modulus = vec![1_u8];
    for _ in 0..128 {
        let shifted = [modulus.as_slice(), &[0, 0]].concat();
        let mut carry = 0;
        let mut sum = shifted;
        let offset = sum.len() - modulus.len();
        for at in (0..sum.len()).rev() {
            let other = at.checked_sub(offset).map_or(0, |at| modulus[at]);
            let total = u16::from(sum[at]) + u16::from(other) + carry;
            sum[at] = total.to_be_bytes()[1];
            carry = total >> 8;
        }
        modulus = sum;
    }
    let cause = |modulus: &[u8]| changed(rsa_jwk("r"), |jwk| jwk["n"] = json!(b64(modulus)));
    assert_eq!(cause(&modulus), Some(LeftOut::Roca));
    *modulus.last_mut().unwrap() ^= 2;
    assert_eq!(cause(&modulus), None);
}

#[test]
fn points_beside_the_curve_are_left_out() {
    let zero = b64([0; 32]);
    assert_eq!(left_out(|jwk| jwk["x"] = json!(zero)), Some(LeftOut::Point));
    assert_eq!(left_out(|jwk| jwk["y"] = json!(b64([1; 31]))), Some(LeftOut::Point));
    assert_eq!(left_out(|jwk| jwk["y"] = json!(b64([0xff; 32]))), Some(LeftOut::Point));
    for crv in ["P-384", "secp256k1", "p-256", ""] {
        assert_eq!(left_out(|jwk| jwk["crv"] = json!(crv)), Some(LeftOut::Point), "{crv}");
    }
}

#[test]
fn a_set_that_says_two_things_is_refused_whole() {
    let ec = p256_jwk("same", &p256_key());
    let twice = json!({"keys": [ec, rsa_jwk("same")]}).to_string();
    assert_eq!(Keys::parse(twice.as_bytes()), Err(Error::Twice));
    let many = json!({"keys": vec![ec; 65]}).to_string();
    assert_eq!(Keys::parse(many.as_bytes()), Err(Error::TooLarge));
    assert_eq!(Keys::parse(&[b' '; 128 * 1024 + 1]), Err(Error::TooLarge));
    for set in ["[]", "{}", r#"{"keys":{}}"#, "null", r#"{"Keys":[]}"#] {
        assert_eq!(Keys::parse(set.as_bytes()), Err(Error::Form), "{set}");
    }
    assert_eq!(Keys::parse(br#"{"keys":[]}"#), Err(Error::Empty));
    assert!(matches!(Keys::parse(br#"{"keys":[],"keys":[]}"#), Err(Error::Json(_))));
    assert!(matches!(Keys::parse(b"<html>"), Err(Error::Json(_))));
}

#[test]
fn the_signature_of_rfc_7515_a_3_is_right() {
    let set = json!({"keys": [{
        "kty": "EC", "crv": "P-256", "kid": "A.3",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }]});
    let keys = Keys::parse(set.to_string().as_bytes()).unwrap();
    let signed = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
                  cGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature = URL_SAFE_NO_PAD
        .decode("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
        .unwrap();
    let key = keys.get("A.3").unwrap();
    assert!(key.verify(signed.as_bytes(), &signature));
    assert!(!key.verify(signed.to_lowercase().as_bytes(), &signature));
}
