//! Ed25519: vectors, spellings, key files.

use crate::shared::{key, list, text, unhex, vectors};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seal::key::{Error, FileSalt, KeyId, PublicKey, Signature, SigningKey};
use serde_json::Value;

fn array<const N: usize>(case: &Value, name: &str) -> [u8; N] {
    unhex(case, name).try_into().unwrap()
}

const SALT: FileSalt = FileSalt { salt: [1; 16], iv: [2; 16] };

#[test]
fn the_valid_vectors_of_rfc_8032_sign_and_verify() {
    let vectors = vectors("ed25519");
    assert_eq!(list(&vectors, "valid").len(), 5);
    for case in list(&vectors, "valid") {
        let key = SigningKey::from_seed(&array(case, "seed_hex"));
        let message = unhex(case, "message_hex");
        let signature = key.sign(&message);
        assert_eq!(hex::encode(key.public_key().as_bytes()), text(case, "public_hex"));
        assert_eq!(hex::encode(signature.as_bytes()), text(case, "signature_hex"));
        assert_eq!(key.public_key().verify(&message, &signature), Ok(()));
    }
}

fn refusal(case: &Value) -> Error {
    let attempt = || {
        let key = PublicKey::from_bytes(&array(case, "public_hex"))?;
        let bytes = unhex(case, "signature_hex").try_into().map_err(|_| Error::SignatureText)?;
        key.verify(&unhex(case, "message_hex"), &Signature::from_bytes(bytes)?)
    };
    attempt().unwrap_err()
}

#[test]
fn the_invalid_vectors_are_refused_each_for_its_reason() {
    let vectors = vectors("ed25519");
    let refused: Vec<_> =
        list(&vectors, "invalid").iter().map(|case| (text(case, "id"), refusal(case).code())).collect();
    let expected = [
        ("message-changed", "signature_wrong"),
        ("R-changed", "signature_wrong"),
        ("S-changed", "signature_wrong"),
        ("S-plus-L", "signature_malleated"),
        ("short", "signature_text"),
        ("other-key", "signature_wrong"),
        ("public-key-not-a-point", "public_key_not_a_point"),
        ("small-order-key", "public_key_weak"),
    ];
    assert_eq!(refused, expected);
}

#[test]
fn every_point_of_small_order_is_refused_in_every_encoding() {
    // The eight points of order 1, 2, 4 and 8, then encodings of them with y + p or a meaningless sign bit.
    let encodings = [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ];
    for encoding in encodings {
        let bytes = hex::decode(encoding).unwrap().try_into().unwrap();
        let error = PublicKey::from_bytes(&bytes).unwrap_err();
        assert!(matches!(error, Error::Weak | Error::NotCanonical | Error::NotAPoint), "{encoding}: {error}");
    }
}

#[test]
fn a_public_key_with_y_of_at_least_p_is_refused() {
    // y = 3 and y = 3 + p name one point; only the first is its encoding.
    let mut plain = [0; 32];
    plain[0] = 3;
    assert!(PublicKey::from_bytes(&plain).is_ok());
    let mut wrapped = [0xff; 32];
    (wrapped[0], wrapped[31]) = (0xf0, 0x7f);
    assert_eq!(PublicKey::from_bytes(&wrapped), Err(Error::NotCanonical));
}

#[test]
fn a_signature_has_one_accepted_spelling() {
    let spelt = key(7).sign(b"m").to_string();
    assert_eq!(spelt.parse::<Signature>().unwrap(), key(7).sign(b"m"));
    let bytes = *key(7).sign(b"m").as_bytes();
    let last = spelt.chars().last().unwrap();
    let stray = format!("{}{}", &spelt[..85], char::from(last as u8 + 1));
    for other in [
        format!("{spelt}=="),
        format!(" {spelt}"),
        format!("{spelt}\n"),
        STANDARD.encode(bytes),
        hex::encode(bytes),
        hex::encode_upper(bytes),
        spelt[..85].to_owned(),
        stray,
        String::new(),
    ] {
        assert_eq!(other.parse::<Signature>(), Err(Error::SignatureText), "{other}");
    }
}

#[test]
fn key_ids_are_rfc_7638_thumbprints() {
    let vectors = vectors("jwk");
    let key: PublicKey = text(&vectors["rfc8037"]["private_jwk"], "x").parse().unwrap();
    assert_eq!(key.id().to_string(), text(&vectors["rfc8037"], "thumbprint_sha256"));
    let own = SigningKey::from_seed(&array(&vectors["own"], "seed_hex"));
    assert_eq!(own.id().to_string(), text(&vectors["own"], "thumbprint_sha256"));
    assert_eq!(text(&vectors["own"], "thumbprint_sha256").parse::<KeyId>(), Ok(own.id()));
    assert_eq!("short".parse::<KeyId>(), Err(Error::KeyIdText));
}

fn der(pem: &str) -> String {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    hex::encode(STANDARD.decode(body).unwrap())
}

#[test]
fn key_files_are_the_der_that_openssl_writes() {
    let vectors = vectors("jwk");
    let key = key(7);
    assert_eq!(der(&key.to_pem().unwrap()), text(&vectors["own"], "pkcs8_der_hex"));
    assert_eq!(der(&key.public_key().to_pem().unwrap()), text(&vectors["own"], "spki_der_hex"));
    assert_eq!(SigningKey::from_pem(&key.to_pem().unwrap()).unwrap().id(), key.id());
    assert_eq!(SigningKey::from_pem("-----BEGIN PRIVATE KEY-----").unwrap_err(), Error::KeyFile);
}

#[test]
fn an_encrypted_key_file_opens_with_its_passphrase_only() {
    let pem = key(7).to_encrypted_pem(b"correct horse", SALT).unwrap();
    assert_eq!(*pem, *key(7).to_encrypted_pem(b"correct horse", SALT).unwrap());
    assert_eq!(SigningKey::from_encrypted_pem(&pem, b"correct horse").unwrap().id(), key(7).id());
    assert_eq!(SigningKey::from_encrypted_pem(&pem, b"wrong").unwrap_err(), Error::PassphraseWrong);
    assert_eq!(SigningKey::from_pem(&pem).unwrap_err(), Error::PassphraseMissing);
    let plain = key(7).to_pem().unwrap();
    assert_eq!(SigningKey::from_encrypted_pem(&plain, b"x").unwrap_err(), Error::KeyFile);
}

#[test]
fn encrypted_key_files_of_openssl_are_read() {
    for pem in [include_str!("../vectors/openssl-pbkdf2.pem"), include_str!("../vectors/openssl-scrypt.pem")]
    {
        let key = SigningKey::from_encrypted_pem(pem, b"horse").unwrap();
        let public = "8f35bbcb71ec03db4c204a8f650ae3472995854de575e4586523ffff45949655";
        assert_eq!(hex::encode(key.public_key().as_bytes()), public);
    }
}

#[test]
fn a_signing_key_never_prints_its_seed() {
    let shown = format!("{:?}", key(7));
    assert!(shown.contains(&key(7).id().to_string()));
    for secret in ["0707", "BwcH", "[7, 7"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
