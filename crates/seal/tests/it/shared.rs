//! One certificate and the vector files, for all tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seal::bundle::{Draft, Sealed, seal};
use seal::jcs;
use seal::key::SigningKey;
use seal::verify::{Report, Trust, verify};
use serde_json::{Value, json};

pub(crate) fn vectors(name: &str) -> Value {
    let text = match name {
        "ed25519" => include_str!("../vectors/ed25519.json"),
        "jwk" => include_str!("../vectors/jwk.json"),
        "rfc8785" => include_str!("../vectors/rfc8785.json"),
        "zip" => include_str!("../vectors/zip.json"),
        _ => panic!("no vectors named {name}"),
    };
    serde_json::from_str(text).unwrap()
}

pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

pub(crate) fn unhex(value: &Value, name: &str) -> Vec<u8> {
    hex::decode(text(value, name)).unwrap()
}

pub(crate) fn unbase64(value: &Value, name: &str) -> Vec<u8> {
    STANDARD.decode(text(value, name)).unwrap()
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32])
}

pub(crate) fn draft() -> Draft {
    Draft {
        html: "<!doctype html>\n<title>凭证 5.00 EUR</title>\n<p>5.00 EUR</p>\n".as_bytes().to_vec(),
        run: json!({
            "v": 1,
            "issued_at": 1_767_225_600,
            "mode": "live",
            "policy": "p1",
            "event": {"id": "evt_1", "amount": 500, "currency": "eur", "memo": "Zoë \u{1f600}", "parts": [1, null, true]},
        }),
        reference: "av_evt_1".to_owned(),
    }
}

pub(crate) fn sealed() -> Sealed {
    seal(&draft(), &key(7)).unwrap()
}

pub(crate) fn trusted() -> Trust {
    Trust::pinned(key(7).public_key())
}

pub(crate) fn verdict(file: &[u8]) -> &'static str {
    check(file).verdict.code()
}

pub(crate) fn check(file: &[u8]) -> Report {
    verify(file, &trusted())
}

/// The served JSON after an edit, canonical again.
pub(crate) fn edited(edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut certificate = serde_json::from_slice(&sealed().json).unwrap();
    edit(&mut certificate);
    jcs::exact(&certificate).unwrap()
}

/// `bytes` with every `from` replaced by `to`.
pub(crate) fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    assert!(!out.is_empty(), "nothing to replace");
    out.extend_from_slice(rest);
    out
}
