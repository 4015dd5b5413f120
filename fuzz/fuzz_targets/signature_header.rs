//! Arbitrary header bytes for every kind of sender: an error or, for a signature nobody can guess, never an event.
#![no_main]

use libfuzzer_sys::fuzz_target;
use source::{
    Delivery, Encoding, GenericRule, IdRule, Kind, PublicKey, Secret, Settings, Source, TimestampRule,
};
use std::sync::LazyLock;

const NOW: i64 = 1_767_225_600;

/// An RSA key of 2048 bits whose private half was never kept, so that seeds made of vectors stay unsigned here.
const RSA: &str = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAri5mkAmXVb5a75qDZaGRuCDSYeZjiSofX6Gnv//CIy/TiFtOLvTjiGms9myh5ozS1D6fwOHLzF7A2W7Z/064Urr3mRzK+y9RCP9lKpUlEPP57m+lKhys6C1DvqWSyhq9Cg6J1hxEmf7YsPNXAWGP4TaY6WG7FnHQsH71Pghi+9+qvefjZDQ/VYZHv6slibNHg9ImLt4m2vLrPz0BfXepCzct6s67tgtYmPLG7SB68kpEuZiftdu3KMVqtpp8S3rIScnOFsgoC7I1LsfOpp/jH/VfcGqMwc9TxXt5Yu6tcI9gMaKNMkmG+FUpiJlri66d/UNA+78byYtlaxHkV9ZVgQIDAQAB";

/// The headers that some kind reads; the input names one by its place.
const NAMES: [&str; 16] = [
    "Stripe-Signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "X-Hub-Signature-256",
    "X-GitHub-Delivery",
    "X-GitHub-Event",
    "Paddle-Signature",
    "X-Signature",
    "Wechatpay-Signature",
    "Wechatpay-Timestamp",
    "Wechatpay-Nonce",
    "Wechatpay-Serial",
    "Authorization",
    "X-Shop-Signature",
    "X-Shop-Time",
];

static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    Kind::ALL
        .into_iter()
        .map(|kind| {
            let mut settings = Settings::new(kind.as_str(), kind);
            let text = match kind {
                Kind::Stripe => "whsec_fuzz_0123456789abcdef",
                Kind::StandardWebhooks => "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
                _ => "fuzz-secret-0123456789",
            };
            settings.secrets.push(Secret::new(text).expect("a usable secret"));
            if kind == Kind::StandardWebhooks {
                // RFC 8032, 7.1, test 1.
                let key = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
                settings.secrets.push(Secret::new(key).expect("a usable key"));
            }
            settings.api_v3_key =
                Some(Secret::new("0123456789abcdefghijklmnopqrstuv").expect("32 characters"));
            if matches!(kind, Kind::WechatPay | Kind::Alipay) {
                settings.public_keys.push(PublicKey { id: "PUB_KEY_ID_1".into(), text: RSA.into() });
            }
            settings.generic = (kind == Kind::GenericHmac).then(|| GenericRule {
                signature_header: "X-Shop-Signature".into(),
                encoding: Encoding::Base64,
                prefix: None,
                timestamp: Some(TimestampRule { header: "X-Shop-Time".into(), separator: ".".into() }),
                id: Some(IdRule::Pointer("/id".into())),
                type_pointer: None,
                time_pointer: None,
                amount_pointer: None,
                currency_pointer: None,
            });
            Source::new(settings).expect("it starts")
        })
        .collect()
});

// Lines of the input are headers: the first byte picks the name, the rest is the value. The last line is the body.
fuzz_target!(|input: &[u8]| {
    let mut lines: Vec<&[u8]> = input.split(|b| *b == b'\n').collect();
    let body = lines.pop().unwrap_or_default();
    let headers: Vec<(&str, &[u8])> = lines
        .iter()
        .filter_map(|line| line.split_first())
        .map(|(name, value)| (NAMES[usize::from(*name) % NAMES.len()], value))
        .collect();
    let delivery = Delivery { headers: &headers, body, now: NOW };
    for source in SOURCES.iter() {
        let rejection = source.open(&delivery).expect_err("nobody can guess a signature");
        assert!(matches!(rejection.status, 400 | 401));
    }
});
