//! The key service over Vault's transit protocol, against a server that speaks its documented JSON and
//! encrypts for real. Words of the errors are those of Vault's source and issues (29532: a rewrap of what was
//! bound by associated data fails).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use custody::kms::vault::{Binding, Settings, Vault};
use custody::{BreakerSettings, Cause, Custody, Effort, EnvelopeError, Kms, KmsError, Place, Wrong};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value as Json, json};
use testkit::CountingRandom;

use crate::stub::{Reply, Seen, Stub};

pub(crate) const TOKEN: &str = "hvs.CANARY_TOK-0123456789abcdef";
const SECRET: &str = "sk-CANARY_UP-0123456789abcdefghij";
const PLACE: Place<'static> =
    Place { tenant_id: 7, table: "supply_accounts", row: "ck_1", platform: "openai" };

/// The engine's state.
pub(crate) struct Transit {
    latest: u32,
    min_encryption: u32,
    min_decryption: u32,
    derived: bool,
    kind: &'static str,
}

impl Transit {
    fn plain() -> Self {
        Self { latest: 1, min_encryption: 0, min_decryption: 1, derived: false, kind: "aes256-gcm96" }
    }

    fn answer(&self, seen: &Seen) -> Reply {
        let error = |status, words: &str| Reply::json(status, &json!({ "errors": [words] }));
        if seen.header("x-vault-token") != TOKEN || seen.header("x-vault-request") != "true" {
            return error(403, "permission denied");
        }
        let body = seen.json();
        let (operation, key) = seen.target.strip_prefix("/v1/transit/").unwrap().rsplit_once('/').unwrap();
        if key != "credentials" {
            return Reply::json(404, &json!({ "errors": [] }));
        }
        let made = match operation {
            "keys" => Ok(self.key()),
            "encrypt" => self.encrypt(&body, &bound(&body), &text(&body, "plaintext")),
            "decrypt" => {
                self.decrypt(&body, &bound(&body)).map(|text| json!({ "plaintext": STANDARD.encode(text) }))
            }
            // Takes no associated data.
            "rewrap" => self
                .decrypt(&body, &text(&body, "context"))
                .and_then(|text| self.encrypt(&body, &bound(&body), &text)),
            _ => Err("unsupported operation"),
        };
        match made {
            Ok(made) => Reply::json(
                200,
                &json!({ "request_id": "r", "lease_id": "", "renewable": false, "lease_duration": 0, "data": made, "wrap_info": null, "warnings": null, "auth": null }),
            ),
            Err(words) => error(400, words),
        }
    }

    fn key(&self) -> Json {
        json!({
            "allow_plaintext_backup": false, "auto_rotate_period": 0, "deletion_allowed": false,
            "derived": self.derived, "exportable": false, "imported_key": false, "keys": { "1": 1_442_851_412 },
            "latest_version": self.latest, "min_available_version": 0,
            "min_decryption_version": self.min_decryption, "min_encryption_version": self.min_encryption,
            "name": "credentials", "supports_decryption": self.kind != "ed25519",
            "supports_derivation": true, "supports_encryption": self.kind != "ed25519",
            "supports_signing": false, "type": self.kind,
        })
    }

    fn encrypt(&self, body: &Json, bound: &[u8], text: &[u8]) -> Result<Json, &'static str> {
        if self.derived && body["context"].is_null() {
            return Err(
                "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key",
            );
        }
        let version =
            body["key_version"].as_u64().map_or(self.latest, |version| u32::try_from(version).unwrap());
        if version > self.latest {
            return Err("requested version for encryption is higher than the latest key version");
        }
        if version < self.min_encryption {
            return Err("requested version for encryption is less than the minimum encryption key version");
        }
        let mut sealed = text.to_vec();
        let nonce = Nonce::assume_unique_for_key([5; 12]);
        key(version).seal_in_place_append_tag(nonce, Aad::from(bound), &mut sealed).unwrap();
        Ok(
            json!({ "ciphertext": format!("vault:v{version}:{}", STANDARD.encode(sealed)), "key_version": version }),
        )
    }

    fn decrypt(&self, body: &Json, bound: &[u8]) -> Result<Vec<u8>, &'static str> {
        let text = body["ciphertext"].as_str().unwrap();
        let (version, sealed) = text
            .strip_prefix("vault:v")
            .and_then(|text| text.split_once(':'))
            .ok_or("invalid ciphertext: no prefix")?;
        let version: u32 =
            version.parse().map_err(|_| "invalid ciphertext: version number could not be decoded")?;
        if version < self.min_decryption {
            return Err("ciphertext or signature version is disallowed by policy (too old)");
        }
        if version > self.latest {
            return Err("invalid ciphertext: version is too new");
        }
        let mut sealed =
            STANDARD.decode(sealed).map_err(|_| "invalid ciphertext: could not decode base64")?;
        let nonce = Nonce::assume_unique_for_key([5; 12]);
        let opened = key(version).open_in_place(nonce, Aad::from(bound), &mut sealed);
        opened.map(|text| text.to_vec()).map_err(|_| "cipher: message authentication failed")
    }
}

fn key(version: u32) -> LessSafeKey {
    let byte = u8::try_from(version).unwrap();
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[byte; 32]).unwrap())
}

fn text(body: &Json, field: &str) -> Vec<u8> {
    STANDARD.decode(body[field].as_str().unwrap_or_default()).unwrap()
}

/// A context or associated data; the stub binds either in the same way.
fn bound(body: &Json) -> Vec<u8> {
    if body["context"].is_null() { text(body, "associated_data") } else { text(body, "context") }
}

struct Bench {
    state: Arc<Mutex<Transit>>,
    stub: Stub,
}

impl Bench {
    async fn start(transit: Transit) -> Self {
        let state = Arc::new(Mutex::new(transit));
        let served = Arc::clone(&state);
        let stub = Stub::start(move |seen| served.lock().unwrap().answer(seen)).await;
        Self { state, stub }
    }

    fn set(&self, change: impl FnOnce(&mut Transit)) {
        change(&mut self.state.lock().unwrap());
    }

    fn operations(&self) -> Vec<String> {
        let name = |seen: &Seen| seen.target.split('/').nth(3).unwrap().to_owned();
        self.stub.seen().iter().map(name).collect()
    }

    fn vault(&self, change: impl FnOnce(&mut Settings)) -> Arc<Vault> {
        let mut settings = settings(&self.stub.address);
        change(&mut settings);
        Arc::new(Vault::new(settings, Arc::new(CountingRandom::default())).unwrap())
    }
}

/// Patient, for a machine under load.
pub(crate) fn settings(address: &str) -> Settings {
    let mut settings = Settings::new(address, "credentials", SecretString::from(TOKEN));
    settings.connect_within = Duration::from_secs(10);
    settings.effort = Effort { tries: 3, budget: Duration::from_secs(30), pause: Duration::from_millis(2) };
    settings
}

fn custody(vault: Arc<Vault>) -> Custody {
    Custody::new(vault, Arc::new(CountingRandom::default()))
}

async fn opened(custody: &Custody, stored: &str) -> Result<String, EnvelopeError> {
    let secret = custody.open(&PLACE, "transit/credentials", stored).await?;
    Ok(secret.expose_secret().to_owned())
}

#[tokio::test]
async fn a_secret_is_sealed_and_opened_by_vault_s_own_requests() {
    let bench = Bench::start(Transit::plain()).await;
    let custody = custody(bench.vault(|settings| settings.namespace = Some("team/a".into())));
    let sealed = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    assert_eq!((sealed.kms_key_alias.as_str(), sealed.key_version), ("transit/credentials", 1));
    assert_eq!(opened(&custody, &sealed.envelope).await.as_deref(), Ok(SECRET));
    assert_eq!(bench.operations(), ["keys", "encrypt", "decrypt"]);
    let seen = bench.stub.seen();
    assert_eq!((seen[0].method.as_str(), seen[1].method.as_str()), ("GET", "POST"));
    assert!(seen.iter().all(|seen| seen.header("x-vault-namespace") == "team/a"));
    let (encrypt, decrypt) = (seen[1].json(), seen[2].json());
    let fields = |body: &Json| body.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&encrypt), ["associated_data", "key_version", "plaintext"]);
    assert_eq!(fields(&decrypt), ["associated_data", "ciphertext"]);
    assert_eq!(text(&encrypt, "plaintext").len(), 32);
    assert_eq!(encrypt["associated_data"], decrypt["associated_data"]);
    // The credential itself never goes to Vault.
    assert!(
        seen.iter()
            .all(|seen| !seen.body.contains("CANARY") && !seen.body.contains(&STANDARD.encode(SECRET)))
    );
}

#[tokio::test]
async fn after_a_rotation_bound_wraps_go_through_decrypt_and_encrypt() {
    let bench = Bench::start(Transit::plain()).await;
    let custody = custody(bench.vault(|settings| settings.remember = Duration::ZERO));
    let before = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    assert_eq!(custody.rewrap(&before.kms_key_alias, &before.envelope).await, Ok(None));
    bench.set(|transit| transit.latest = 2);
    let after = custody.rewrap(&before.kms_key_alias, &before.envelope).await.unwrap().unwrap();
    assert_eq!(after.key_version, 2);
    bench.set(|transit| transit.min_decryption = 2);
    assert_eq!(opened(&custody, &after.envelope).await.as_deref(), Ok(SECRET));
    let gone = opened(&custody, &before.envelope).await.unwrap_err();
    assert_eq!(gone, KmsError::UnknownVersion { alias: "transit/credentials".into(), version: 1 }.into());
    assert!(!bench.operations().contains(&"rewrap".to_owned()));
}

#[tokio::test]
async fn with_a_derived_key_vault_rewraps_by_itself() {
    let bench = Bench::start(Transit { derived: true, ..Transit::plain() }).await;
    let custody = custody(bench.vault(|settings| {
        settings.binding = Binding::Context;
        settings.remember = Duration::ZERO;
    }));
    let before = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    bench.set(|transit| transit.latest = 2);
    let after = custody.rewrap(&before.kms_key_alias, &before.envelope).await.unwrap().unwrap();
    assert_eq!(after.key_version, 2);
    // The data key was not seen here.
    assert!(!bench.operations().contains(&"decrypt".to_owned()));
    assert_eq!(opened(&custody, &after.envelope).await.as_deref(), Ok(SECRET));
}

#[tokio::test]
async fn a_version_retired_while_remembered_is_asked_anew() {
    let bench = Bench::start(Transit::plain()).await;
    let custody = custody(bench.vault(|_| {}));
    custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    bench.set(|transit| (transit.latest, transit.min_encryption) = (2, 2));
    let sealed = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    assert_eq!(sealed.key_version, 2);
    assert_eq!(bench.operations(), ["keys", "encrypt", "encrypt", "keys", "encrypt"]);
}

#[tokio::test]
async fn another_key_under_the_same_name_and_a_changed_version_are_refused() {
    let bench = Bench::start(Transit { latest: 2, ..Transit::plain() }).await;
    let custody = custody(bench.vault(|_| {}));
    let sealed = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap().envelope;
    let refused = |version| -> EnvelopeError {
        KmsError::Refused { alias: "transit/credentials".into(), version }.into()
    };
    // The row claims version 1: what Vault wrote says 2, so Vault isn't even asked.
    let asked = bench.stub.count();
    assert_eq!(opened(&custody, &sealed.replacen("v1.2.", "v1.1.", 1)).await, Err(refused(1)));
    assert_eq!(bench.stub.count(), asked);
    let other = Bench::start(Transit { derived: true, latest: 2, ..Transit::plain() }).await;
    let elsewhere = self::custody(other.vault(|settings| settings.binding = Binding::Context));
    assert_eq!(opened(&elsewhere, &sealed).await, Err(refused(2)));
}

#[tokio::test]
async fn keys_that_can_t_be_used_so_are_named() {
    let cases = [
        (Transit { derived: true, ..Transit::plain() }, "has a derived key"),
        (Transit { kind: "ed25519", ..Transit::plain() }, "has a key of another type"),
        (Transit { kind: "rsa-4096", ..Transit::plain() }, "has a key of another type"),
        (Transit { latest: 0, ..Transit::plain() }, "has a key without a version"),
    ];
    for (transit, words) in cases {
        let bench = Bench::start(transit).await;
        let error = bench.vault(|_| {}).current().await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let bench = Bench::start(Transit::plain()).await;
    let error = bench.vault(|settings| settings.key = "absent".into()).current().await.unwrap_err();
    assert!(error.to_string().contains("knows no such key"), "{error}");
    let vault = bench.vault(|settings| settings.token = SecretString::from("hvs.old"));
    assert_eq!(vault.current().await, Err(KmsError::Denied { alias: "transit/credentials".into() }));
    vault.set_token(SecretString::from(TOKEN)).unwrap();
    assert_eq!(vault.current().await, Ok(1));
    assert!(vault.set_token(SecretString::from("two\nlines")).is_err());
}

#[tokio::test]
async fn what_is_passing_is_tried_again_and_what_is_not_is_not() {
    let unreachable = |cause| KmsError::Unreachable { alias: "transit/credentials".into(), cause };
    let sealed = json!({ "errors": ["Vault is sealed"] });
    let cases = [
        (Reply::json(503, &sealed), 3, Some(Cause::OutOfOrder)),
        (Reply::json(500, &json!({ "errors": ["internal error"] })), 3, Some(Cause::OutOfOrder)),
        (Reply::json(412, &json!({ "errors": [] })), 3, Some(Cause::OutOfOrder)),
        (
            Reply::json(429, &json!({ "errors": ["request path: rate limit quota exceeded"] })),
            3,
            Some(Cause::RateLimited),
        ),
        (Reply::json(200, &"<html>"), 1, None),
        (Reply::json(200, &json!({ "data": { "ciphertext": "x" } })), 1, None),
        (Reply::json(200, &"x".repeat(300 * 1024)), 1, None),
        (Reply::json(418, &json!({})), 1, None),
    ];
    for (reply, tries, cause) in cases {
        let stub = Stub::always(reply.clone()).await;
        let vault = Vault::new(settings(&stub.address), Arc::new(CountingRandom::default())).unwrap();
        let error = vault.current().await.unwrap_err();
        assert_eq!(stub.count(), tries, "{reply:?}");
        match cause {
            Some(cause) => assert_eq!((error.is_transient(), error), (true, unreachable(cause))),
            None => assert!(matches!(error, KmsError::Unexpected { .. }), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_token() {
    let elsewhere = Stub::always(Reply::json(200, &json!({}))).await;
    let location = ("location", elsewhere.address.clone());
    let standby = Stub::always(Reply::Says(307, location, String::new())).await;
    let vault = Vault::new(settings(&standby.address), Arc::new(CountingRandom::default())).unwrap();
    let error = vault.current().await.unwrap_err();
    assert!(error.to_string().contains("redirect"), "{error}");
    assert_eq!((standby.count(), elsewhere.count()), (1, 0));
}

#[tokio::test]
async fn a_vault_that_hangs_costs_the_budget_once_and_then_nothing_for_a_while() {
    let stub = Stub::always(Reply::Hangs).await;
    let mut settings = settings(&stub.address);
    settings.effort.budget = Duration::from_millis(150);
    settings.breaker = BreakerSettings { after: 1, rest: Duration::from_secs(600) };
    let vault = Vault::new(settings, Arc::new(CountingRandom::default())).unwrap();
    let ends = [vault.current().await, vault.current().await];
    let unreachable = |cause| Err(KmsError::Unreachable { alias: "transit/credentials".into(), cause });
    assert_eq!(ends, [unreachable(Cause::Time), unreachable(Cause::Resting)]);
    assert!(stub.count() <= 1);
}

#[test]
fn settings_that_can_t_work_are_refused_without_the_token() {
    let wrong = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings("https://vault.example:8200");
        change(&mut settings);
        Vault::new(settings, Arc::new(CountingRandom::default())).unwrap_err()
    };
    assert!(matches!(wrong(&|s| s.address = "http://vault.example:8200".into()), Wrong::Address(_)));
    assert!(matches!(wrong(&|s| s.key = "../sys/seal".into()), Wrong::Name(_)));
    assert!(matches!(wrong(&|s| s.mount = "a b".into()), Wrong::Name(_)));
    assert!(matches!(wrong(&|s| s.namespace = Some("x\r\ny".into())), Wrong::Name(_)));
    assert!(matches!(wrong(&|s| s.authority = Some("no PEM".into())), Wrong::Authority));
    let error = wrong(&|s| s.token = SecretString::from("CANARY tok"));
    assert!(matches!(error, Wrong::Token(_)) && !error.to_string().contains("CANARY"));
}
