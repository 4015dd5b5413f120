//! Arbitrary bodies under a right signature: an event with a usable id, or a refusal; the same one each time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use source::{Delivery, Encoding, GenericRule, IdRule, Kind, Secret, Settings, Signer, Source};
use std::sync::LazyLock;

const NOW: i64 = 1_767_225_600;

const KINDS: [Kind; 7] = [
    Kind::Stripe,
    Kind::StandardWebhooks,
    Kind::Github,
    Kind::Paddle,
    Kind::LemonSqueezy,
    Kind::GenericHmac,
    Kind::Internal,
];

static ENDPOINTS: LazyLock<Vec<(Source, Signer)>> = LazyLock::new(|| {
    KINDS
        .into_iter()
        .map(|kind| {
            let text = match kind {
                Kind::Stripe => "whsec_fuzz_0123456789abcdef",
                Kind::StandardWebhooks => "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
                _ => "fuzz-secret-0123456789",
            };
            let secret = Secret::new(text).expect("a usable secret");
            let rule = GenericRule {
                signature_header: "X-Shop-Signature".into(),
                encoding: Encoding::Hex,
                prefix: None,
                timestamp: None,
                id: Some(IdRule::Pointer("/id".into())),
                type_pointer: Some("/type".into()),
                time_pointer: Some("/created".into()),
                amount_pointer: Some("/data/amount".into()),
                currency_pointer: Some("/data/currency".into()),
            };
            let mut settings = Settings::new(kind.as_str(), kind);
            settings.secrets.push(secret.clone());
            settings.generic = Some(rule.clone());
            let mut signer = Signer::new(kind, &secret).expect("a signer");
            if kind == Kind::GenericHmac {
                signer = signer.with_rule(rule);
            }
            (Source::new(settings).expect("it starts"), signer)
        })
        .collect()
});

fuzz_target!(|body: &[u8]| {
    for (source, signer) in ENDPOINTS.iter() {
        let headers = signer.sign(body, NOW, "msg_1");
        let headers: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        let delivery = Delivery { headers: &headers, body, now: NOW };
        let opened = source.open(&delivery);
        match &opened {
            Ok(event) => {
                assert!((1..=255).contains(&event.id.chars().count()));
                assert!(!event.id.chars().any(char::is_control));
                assert!(event.occurred_at.is_none_or(|time| (0..=253_402_300_799).contains(&time)));
            }
            Err(rejection) => assert!(!rejection.code.starts_with("SIG_") && rejection.status == 400),
        }
        assert_eq!(opened, source.open(&delivery));
    }
});
