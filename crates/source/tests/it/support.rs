//! Vectors, keys and short ways to make a delivery.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use source::{
    Delivery, Encoding, Event, GenericRule, IdRule, Kind, PublicKey, Rejection, Secret, Settings, Signer,
    Source,
};

pub(crate) const NOW: i64 = 1_767_225_600;
pub(crate) const STRIPE: &str = "whsec_test_only_0123456789";
pub(crate) const STANDARD_SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
pub(crate) const TOKEN: &str = "token-of-our-own-tasks";
pub(crate) const API_V3: &str = "0123456789abcdefghijklmnopqrstuv";
pub(crate) const SERIAL: &str = "PUB_KEY_ID_0116000000012026010100000000000001";

pub(crate) static VECTORS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../vectors/webhooks-vectors.json")).expect("vectors are JSON")
});

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text).expect("a usable secret")
}

pub(crate) fn pem(sender: &str) -> String {
    VECTORS[sender]["public_key_pem"].as_str().expect("a key").to_owned()
}

pub(crate) fn private_pem(sender: &str) -> Secret {
    let base64 = VECTORS[sender]["test_private_key_pkcs8_b64"].as_str().expect("a key");
    let lines: Vec<&str> =
        base64.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
    let body = lines.join("\n");
    Secret::pem(format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")).expect("text")
}

pub(crate) fn rule() -> GenericRule {
    GenericRule {
        signature_header: "X-Shop-Signature".into(),
        encoding: Encoding::Base64,
        prefix: Some("v1=".into()),
        timestamp: Some(source::TimestampRule { header: "X-Shop-Time".into(), separator: ".".into() }),
        id: Some(IdRule::Pointer("/event/id".into())),
        type_pointer: Some("/event/type".into()),
        time_pointer: Some("/event/at".into()),
        amount_pointer: Some("/event/amount".into()),
        currency_pointer: Some("/event/currency".into()),
    }
}

/// Settings of an endpoint of each kind that starts.
pub(crate) fn settings(kind: Kind) -> Settings {
    let mut settings = Settings::new(kind.as_str(), kind);
    match kind {
        Kind::Stripe => settings.secrets.push(secret(STRIPE)),
        Kind::StandardWebhooks => settings.secrets.push(secret(STANDARD_SECRET)),
        Kind::Internal => settings.secrets.push(secret(TOKEN)),
        Kind::WechatPay => {
            settings.api_v3_key = Some(secret(API_V3));
            settings.public_keys.push(PublicKey { id: SERIAL.into(), text: pem("wechat_pay_v3") });
        }
        Kind::Alipay => settings.public_keys.push(PublicKey { id: String::new(), text: pem("alipay") }),
        _ => settings.secrets.push(secret("a secret of that sender")),
    }
    settings.generic = (kind == Kind::GenericHmac).then(rule);
    settings
}

pub(crate) fn source(kind: Kind) -> Source {
    Source::new(settings(kind)).expect("it starts")
}

pub(crate) fn signer(kind: Kind) -> Signer {
    let secret = match kind {
        Kind::WechatPay => private_pem("wechat_pay_v3"),
        Kind::Alipay => private_pem("alipay"),
        _ => settings(kind).secrets[0].clone(),
    };
    let signer = Signer::new(kind, &secret).expect("a signer").with_serial(SERIAL).with_type("order_created");
    if kind == Kind::GenericHmac { signer.with_rule(rule()) } else { signer }
}

/// Opens a body that its sender signed at that time.
pub(crate) fn open_at(kind: Kind, body: &[u8], signed: i64) -> Result<Event, Rejection> {
    let signer = signer(kind);
    let headers = signer.sign(body, signed, "msg_1");
    let lines: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    source(kind).open(&Delivery { headers: &lines, body: &signer.body(body), now: NOW })
}

pub(crate) fn open(kind: Kind, body: impl AsRef<[u8]>) -> Result<Event, Rejection> {
    open_at(kind, body.as_ref(), NOW)
}

/// The code with which a delivery with these headers is refused.
pub(crate) fn code(kind: Kind, headers: &[(&str, &[u8])], body: &[u8]) -> &'static str {
    source(kind).open(&Delivery { headers, body, now: NOW }).map_or_else(|rejection| rejection.code, |_| "ok")
}

pub(crate) fn base64(text: &Value) -> Vec<u8> {
    STANDARD.decode(text.as_str().expect("text")).expect("base64")
}
