//! `[supply]`: the numbers of section 23 of the supply specification under its own names, where the keys stand,
//! who issues tokens, who sends SMS, where providers are. Absent, the supply side is off. Rates and amounts are
//! texts, since a TOML number is no exact decimal. Not here: what they must be ([`super::policy`]), reading the keys
//! (`wiring::secrets`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use custody::provider::Addresses;
use serde::{Deserialize, Serialize};

use super::secret::SecretRef;
use super::unit::Span;

/// The one time zone: days of withdrawals and bills are its days.
pub const TIMEZONE: &str = "Asia/Shanghai";

/// `[supply]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Supply {
    /// Whether there is a supply side.
    pub enabled: bool,
    /// Whether this server is for people who write it: only then codes may go to the log.
    pub development: bool,
    /// Whether suppliers may withdraw.
    pub withdraw_enabled: bool,
    /// In which currency is settled.
    pub settlement_currency: String,
    /// Share of the platform, `0` to `1`.
    pub platform_fee_rate: String,
    /// Fee of a withdrawal, `0` to `1`.
    pub withdraw_fee_rate: String,
    /// Least that is withdrawn, in major units.
    pub withdraw_min: String,
    /// Most that one withdrawal takes.
    pub withdraw_single_max: String,
    /// Most that a supplier takes in a day.
    pub withdraw_daily_max: String,
    /// After a payout began, until the next withdrawal.
    pub withdraw_cooldown_seconds: u32,
    /// Before a payout may begin.
    pub withdraw_review_seconds: u32,
    /// Before an earning is available.
    pub earnings_hold_days: u32,
    /// Lowest price as a share of the protected one.
    pub protected_price_ratio: String,
    /// Before an unpaid order ends.
    pub order_pay_minutes: u32,
    /// Life of an idempotency key.
    pub idempotency_ttl_hours: u32,
    /// Life of a key of withdraw and cancel.
    pub idempotency_ttl_money_hours: u32,
    /// How a repeat is answered that can't have the first result.
    pub idempotency_profile: IdempotencyProfile,
    /// Before a call that stopped is taken over.
    pub idempotency_lease_seconds: u32,
    /// Life of an SMS code.
    pub sms_ttl_seconds: u32,
    /// Items of one batch.
    pub batch_max_items: u32,
    /// Items of one slice of a batch.
    pub batch_shard: u32,
    /// Tries of a delivery that follow within seconds: 1, 2, 4 s and so on.
    pub outbox_quick_retries: u32,
    /// SMS codes of a supplier in a minute.
    pub withdraw_sms_per_minute: u32,
    /// SMS codes of a supplier in a day.
    pub withdraw_sms_per_day: u32,
    /// Calls of an operator in a minute, on each node.
    pub calls_per_minute: u32,
    /// Verifications of an operator in a minute.
    pub verify_per_minute: u32,
    /// Life of a link to a statement.
    pub statement_url_minutes: u32,
    /// How long a token is believed without a look at its row. Section 23 has 10; what is above 5 counts as 5 (`auth`),
    /// since a revocation takes effect on every node by then (section 3.3).
    pub token_status_cache_seconds: u32,
    /// Whose days count.
    pub timezone: String,
    /// Between two looks of the scheduler.
    pub scheduler_interval: Span,
    /// Where the keys stand.
    pub keys: Keys,
    /// Who wraps data keys.
    pub kms: Kms,
    /// Who issues tokens.
    pub issuer: Issuer,
    /// Who sends codes.
    pub sms: Sms,
    /// Who pays out.
    pub payout: Payout,
    /// Where providers are.
    pub providers: Providers,
}

impl Default for Supply {
    fn default() -> Self {
        Self {
            enabled: false,
            development: false,
            withdraw_enabled: false,
            settlement_currency: "CNY".into(),
            platform_fee_rate: "0.15".into(),
            withdraw_fee_rate: "0.01".into(),
            withdraw_min: "10.00".into(),
            withdraw_single_max: "50000.00".into(),
            withdraw_daily_max: "200000.00".into(),
            withdraw_cooldown_seconds: 900,
            withdraw_review_seconds: 900,
            earnings_hold_days: 7,
            protected_price_ratio: "0.80".into(),
            order_pay_minutes: 15,
            idempotency_ttl_hours: 24,
            idempotency_ttl_money_hours: 72,
            idempotency_profile: IdempotencyProfile::Spec,
            idempotency_lease_seconds: 30,
            sms_ttl_seconds: 300,
            batch_max_items: 200,
            batch_shard: 50,
            outbox_quick_retries: relay::schedule::QUICK,
            withdraw_sms_per_minute: 1,
            withdraw_sms_per_day: 10,
            calls_per_minute: 6000,
            verify_per_minute: 10,
            statement_url_minutes: 15,
            token_status_cache_seconds: 4,
            timezone: TIMEZONE.into(),
            scheduler_interval: Span::seconds(5),
            keys: Keys::default(),
            kms: Kms::default(),
            issuer: Issuer::default(),
            sms: Sms::default(),
            payout: Payout::default(),
            providers: Providers::default(),
        }
    }
}

/// How a repeat is answered that can't have the first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdempotencyProfile {
    /// As XR-001 says: 202 while the first runs, 409 for another payload.
    Spec,
    /// As draft-ietf-httpapi-idempotency-key-header says: 409 and 422, with problem+json.
    Draft,
}

/// `[supply.keys]`: all of them, or none; then they are files in the keys' folder, made at the first start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// Versions of the key that wraps data keys; the highest wraps, all unwrap.
    pub kek: BTreeMap<String, SecretRef>,
    /// For fingerprints of secrets.
    pub pepper: Option<SecretRef>,
    /// The one before a rotation.
    pub former_pepper: Option<SecretRef>,
    /// For fingerprints of requests.
    pub idempotency: Option<SecretRef>,
    /// Those before a rotation, for 72 hours.
    pub former_idempotency: Vec<SecretRef>,
    /// Versions of the key that SMS codes are derived from, at most two.
    pub sms: BTreeMap<String, SecretRef>,
    /// For the guard's digests.
    pub guard: Option<SecretRef>,
    /// For hashes of buyers' keys.
    pub buyer: Option<SecretRef>,
}

impl Keys {
    /// Whether none is named.
    #[must_use]
    pub fn are_local(&self) -> bool {
        let named = [&self.pepper, &self.former_pepper, &self.idempotency, &self.guard, &self.buyer];
        named.iter().all(|key| key.is_none())
            && self.kek.is_empty()
            && self.sms.is_empty()
            && self.former_idempotency.is_empty()
    }
}

/// `[supply.kms]`: the service that wraps the keys of single secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kms {
    /// Which one.
    pub kind: KmsKind,
    /// Address of Vault: `https://vault.example:8200`.
    pub address: Option<String>,
    /// Where its transit engine is mounted.
    pub mount: String,
    /// Name of the key there.
    pub key: String,
    /// An enterprise namespace.
    pub namespace: Option<String>,
    /// Its token.
    pub token: Option<SecretRef>,
    /// PEM file of the authorities that its certificate is checked by, beside the public ones.
    pub authorities: Option<PathBuf>,
}

impl Default for Kms {
    fn default() -> Self {
        Self {
            kind: KmsKind::Local,
            address: None,
            mount: "transit".into(),
            key: "onceseal".into(),
            namespace: None,
            token: None,
            authorities: None,
        }
    }
}

/// Who wraps data keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KmsKind {
    /// The server, by `supply.keys.kek`.
    Local,
    /// The transit engine of HashiCorp Vault.
    Vault,
}

/// `[supply.issuer]`: the built-in one, or one outside where `jwks_url` is set.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Issuer {
    /// `iss`.
    pub name: String,
    /// `aud`.
    pub audience: String,
    /// Folder of the built-in issuer's keys; absent, that of the other keys.
    pub folder: Option<PathBuf>,
    /// Name of the key that signs; absent, the last one.
    pub signing_key: Option<String>,
    /// Where an outside issuer publishes its keys.
    pub jwks_url: Option<String>,
    /// PEM file of the authorities that its certificate is checked by, instead of the public ones.
    pub authorities: Option<PathBuf>,
}

impl Default for Issuer {
    fn default() -> Self {
        Self {
            name: "onceseal".into(),
            audience: "supply".into(),
            folder: None,
            signing_key: None,
            jwks_url: None,
            authorities: None,
        }
    }
}

/// `[supply.sms]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sms {
    /// Who sends.
    pub sender: SmsSender,
    /// Address of the HTTP service.
    pub url: Option<String>,
    /// Its bearer token.
    pub token: Option<SecretRef>,
    /// Name of the text there.
    pub template: String,
    /// Whether it removes repeats by the idempotency key.
    pub removes_repeats: bool,
}

impl Default for Sms {
    fn default() -> Self {
        Self {
            sender: SmsSender::Off,
            url: None,
            token: None,
            template: "withdraw".into(),
            removes_repeats: false,
        }
    }
}

/// Who sends SMS codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmsSender {
    /// Nobody.
    Off,
    /// The log, in development.
    Development,
    /// A service over HTTP.
    Http,
}

/// `[supply.payout]`: a payout service, where `url` is set; else the platform's staff pay by hand.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Payout {
    /// Address of the service.
    pub url: Option<String>,
    /// Its bearer token.
    pub token: Option<SecretRef>,
    /// How long it remembers a reference: as long it may be told again.
    pub key_life_hours: u32,
}

impl Default for Payout {
    fn default() -> Self {
        Self { url: None, token: None, key_life_hours: 24 }
    }
}

/// `[supply.providers]`: base addresses, and what they tell of quota.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Providers {
    /// `OpenAI`.
    pub openai: String,
    /// Anthropic.
    pub anthropic: String,
    /// Gemini.
    pub gemini: String,
    /// Baidu Qianfan.
    pub baidu: String,
    /// iFLYTEK Spark.
    pub xfyun: String,
    /// Tencent Hunyuan.
    pub tencent: String,
    /// Its API 3.0.
    pub tencent_signed: String,
    /// Response header of a gateway with the tokens that are left.
    pub quota_header: Option<String>,
    /// What an account is taken to have where nobody tells, in tokens.
    pub assumed_quota: u64,
}

impl Default for Providers {
    fn default() -> Self {
        let Addresses { openai, anthropic, gemini, baidu, xfyun, tencent, tencent_signed } =
            Addresses::default();
        let (quota_header, assumed_quota) = (None, 10_000_000);
        Self { openai, anthropic, gemini, baidu, xfyun, tencent, tencent_signed, quota_header, assumed_quota }
    }
}
