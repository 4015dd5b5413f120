//! Each secret is a canary, each failure is forced at trace level (case SEC-09): no run of 8 characters of a
//! canary stands in a log line, an error, or a `Debug`.

use std::sync::Arc;
use std::time::Duration;

use custody::fingerprint::{Fingerprints, Subject};
use custody::kms::vault::Vault;
use custody::payout::{Account, Method};
use custody::provider::Credential;
use custody::sms::{Repeats, SmsSender};
use custody::{AccountType, Custody, Kms, LocalKeyring, Material, Place, Provider, Source};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use testkit::{CountingRandom, Seeded};

use crate::stub::{Captured, Reply, Stub, shown};
use crate::{providers, sending, transit};

const UPSTREAM: &str = "sk-CANARY_UP-9k2Lm4Xq7Rt1Vb6Nz3Hs8";

/// What a rude server does: every status, always with what it was sent.
fn rude() -> Vec<Reply> {
    let echo = json!({
        "error": { "message": format!("no {UPSTREAM} {}", transit::TOKEN), "code": UPSTREAM, "type": UPSTREAM },
        "errors": [format!("permission denied for {}", transit::TOKEN), sending::TOKEN],
        "id": sending::TOKEN, "data": { "plaintext": UPSTREAM, "ciphertext": UPSTREAM }, "code": UPSTREAM,
    });
    let mut replies: Vec<_> =
        [200, 202, 204, 302, 400, 401, 402, 403, 404, 408, 409, 412, 418, 429, 500, 503]
            .map(|status| {
                let location = ("location", format!("http://127.0.0.1:1/{UPSTREAM}/{}", transit::TOKEN));
                Reply::Says(status, location, echo.to_string())
            })
            .into();
    replies.push(Reply::Hangs);
    replies
}

#[tokio::test]
async fn no_canary_is_in_a_log_an_error_or_a_debug_whatever_the_servers_say() {
    let (captured, _guard) = Captured::start();
    let mut said = String::new();
    let secret = SecretString::from(UPSTREAM);
    for reply in rude() {
        let stub = Stub::always(reply).await;
        let mut settings = providers::settings(&stub);
        settings.effort.budget = Duration::from_millis(300);
        let verifier = providers::verifier(settings);
        let credential =
            Credential { provider: Provider::Openai, account_type: AccountType::ApiKey, secret: &secret };
        let end = verifier.verify(&credential).await;
        said += &format!("{verifier:?} {credential:?} {end:?}");
        said += &end
            .map_or_else(|error| error.to_string(), |result| result.items.map(|item| item.message).join(" "));
        let mut settings = transit::settings(&stub.address);
        settings.effort.budget = Duration::from_millis(300);
        said += &format!("{settings:?}");
        let vault = Vault::new(settings, Arc::new(CountingRandom::default())).unwrap();
        let end = vault.current().await.unwrap_err();
        said += &format!("{vault:?} {end:?} {end}");
        let sender = sending::sender(&stub.address, Repeats::Shown);
        let end = tokio::time::timeout(Duration::from_millis(300), sender.send(&sending::sms())).await;
        said += &format!("{sender:?} {end:?} {:?}", sending::sms());
    }
    let text = captured.text() + &said;
    assert!(text.contains("provider out of reach") && text.contains("Denied"), "nothing was captured");
    for canary in [UPSTREAM, transit::TOKEN, sending::TOKEN] {
        assert_eq!(shown(canary, &text), None);
    }
    assert!(!text.contains("246813") && !text.contains("13800138000"));
}

#[tokio::test]
async fn no_canary_is_in_what_the_pure_parts_say() {
    let (captured, _guard) = Captured::start();
    let secret = SecretString::from(UPSTREAM);
    let random = || Arc::new(CountingRandom::default());
    let mut seeded = Seeded::new(3);
    let bytes: Vec<u8> = (0..8).flat_map(|_| seeded.bits().to_le_bytes()).collect();
    let [kek, pepper] = [&bytes[..32], &bytes[32..]].map(|bytes| Material::from_bytes("k", bytes).unwrap());
    let fingerprints = Fingerprints::new(&pepper, None).unwrap();
    let ring = LocalKeyring::new("local", 1, vec![(1, kek.clone())], random()).unwrap();
    let mut said = format!("{ring:?} {kek:?} {fingerprints:?}");
    let custody = Custody::new(Arc::new(ring), random());
    let place = Place { tenant_id: 1, table: "supply_accounts", row: "ck_1", platform: "openai" };
    let sealed = custody.seal(&place, &secret).await.unwrap();
    let opened = custody.open(&place, "local", &sealed.envelope).await.unwrap();
    let moved = custody.open(&Place { tenant_id: 2, ..place }, "local", &sealed.envelope).await.unwrap_err();
    let broken = custody.open(&place, "local", UPSTREAM).await.unwrap_err();
    let envelope = custody::envelope::Envelope::parse(&sealed.envelope).unwrap();
    said += &format!("{custody:?} {sealed:?} {opened:?} {moved:?} {moved} {broken:?} {broken} {envelope:?}");
    let subject = Subject::Credential { provider: Provider::Openai, account_type: AccountType::ApiKey };
    let fingerprint = fingerprints.of(subject, &secret);
    said += &format!(
        "{fingerprint:?} {:?}",
        custody::format::check(Provider::Gemini, AccountType::ApiKey, &secret)
    );
    for method in Method::ALL {
        let refused = Account::parse(method, &secret).unwrap_err();
        said += &format!("{refused:?} {refused}");
    }
    let source = Source::Value { name: "KEK".into(), value: Some(SecretString::from(UPSTREAM)) };
    let unfit = Material::read(&source).unwrap_err();
    said += &format!("{source:?} {source} {unfit:?} {unfit}");
    let text = captured.text() + &said;
    assert_eq!(opened.expose_secret(), UPSTREAM);
    for hidden in [UPSTREAM, &sealed.envelope[5..], fingerprint.as_str(), &hex::encode(&bytes)] {
        assert_eq!(shown(hidden, &text), None);
    }
}
