//! `[supply]`: the numbers of section 23 of the supply specification under its own names, where the keys stand,
//! who issues tokens, who sends SMS, where providers are. Absent, the supply side is off. Rates and amounts are
//! texts, since a TOML number is no exact decimal. Not here: reading the keys (`wiring::supply`).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use custody::provider::Addresses;
use kernel::money::{Currency, Money, Quota, QuotaUnit, Rate};
use serde::{Deserialize, Serialize};
use url::Url;

use super::secret::SecretRef;
use super::unit::Span;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The one time zone: days of withdrawals and bills are its days.
const TIMEZONE: &str = "Asia/Shanghai";
/// SMS codes of one minute at most: the pause between two is at least a second.
const PER_MINUTE_MAX: u32 = 60;

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
    /// Before a call that stopped is taken over.
    pub idempotency_lease_seconds: u32,
    /// Life of an SMS code.
    pub sms_ttl_seconds: u32,
    /// Items of one batch.
    pub batch_max_items: u32,
    /// Items of one slice of a batch.
    pub batch_shard: u32,
    /// SMS codes of a supplier in a minute.
    pub withdraw_sms_per_minute: u32,
    /// SMS codes of a supplier in a day.
    pub withdraw_sms_per_day: u32,
    /// Verifications of an operator in a minute.
    pub verify_per_minute: u32,
    /// How long a token is believed without a look at its row.
    pub token_status_cache_seconds: u32,
    /// Whose days count.
    pub timezone: String,
    /// Between two looks of the scheduler.
    pub scheduler_interval: Span,
    /// Where the keys stand.
    pub keys: Keys,
    /// Who issues tokens.
    pub issuer: Issuer,
    /// Who sends codes.
    pub sms: Sms,
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
            idempotency_lease_seconds: 30,
            sms_ttl_seconds: 300,
            batch_max_items: 200,
            batch_shard: 50,
            withdraw_sms_per_minute: 1,
            withdraw_sms_per_day: 10,
            verify_per_minute: 10,
            token_status_cache_seconds: 10,
            timezone: TIMEZONE.into(),
            scheduler_interval: Span::seconds(5),
            keys: Keys::default(),
            issuer: Issuer::default(),
            sms: Sms::default(),
            providers: Providers::default(),
        }
    }
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

/// What is refused though it has the right form, by the setting's name.
///
/// # Errors
/// As said.
pub fn check(supply: &Supply) -> Result<(), String> {
    policy(supply)?;
    let bounded = [
        ("withdraw_sms_per_minute", supply.withdraw_sms_per_minute, 1, PER_MINUTE_MAX),
        ("verify_per_minute", supply.verify_per_minute, 1, 100_000),
        ("token_status_cache_seconds", supply.token_status_cache_seconds, 0, 10),
    ];
    within(&bounded)?;
    if supply.timezone != TIMEZONE {
        return Err(format!("supply.timezone is {:?}; the only one is {TIMEZONE:?}", supply.timezone));
    }
    let interval = supply.scheduler_interval;
    if interval < Span(Duration::from_millis(100)) || interval > Span::seconds(10 * MINUTE) {
        return Err(format!("supply.scheduler_interval is {interval}; use 100ms to 10m"));
    }
    assumed_quota(supply)?;
    sms(supply)?;
    issuer(&supply.issuer)?;
    keys(supply)
}

/// The numbers as the commands want them.
///
/// # Errors
/// One has not the form, or is out of its bounds; named.
pub fn policy(supply: &Supply) -> Result<supply::Policy, String> {
    let s = supply;
    let currency =
        Currency::from_code(&s.settlement_currency).map_err(|cause| named("settlement_currency", &cause))?;
    let rate = |name: &str, text: &str| Rate::parse(text).map_err(|cause| named(name, &cause));
    let money = |name: &str, text: &str| {
        Money::parse_major(text, currency, currency.exponent()).map_err(|cause| named(name, &cause))
    };
    within(&[
        ("withdraw_cooldown_seconds", s.withdraw_cooldown_seconds, 0, 7 * 86_400),
        ("withdraw_review_seconds", s.withdraw_review_seconds, 0, 7 * 86_400),
        ("earnings_hold_days", s.earnings_hold_days, 0, 365),
        ("order_pay_minutes", s.order_pay_minutes, 1, 1440),
        ("idempotency_ttl_hours", s.idempotency_ttl_hours, 1, 720),
        ("idempotency_ttl_money_hours", s.idempotency_ttl_money_hours, 24, 720),
        ("idempotency_lease_seconds", s.idempotency_lease_seconds, 5, 300),
        ("sms_ttl_seconds", s.sms_ttl_seconds, 30, 3600),
        ("batch_max_items", s.batch_max_items, 1, 1000),
        ("batch_shard", s.batch_shard, 1, 1000),
        ("withdraw_sms_per_minute", s.withdraw_sms_per_minute, 1, PER_MINUTE_MAX),
        ("withdraw_sms_per_day", s.withdraw_sms_per_day, 1, 1000),
    ])?;
    let seconds = |count: u32, unit: u64| Duration::from_secs(u64::from(count) * unit);
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let policy = supply::Policy {
        currency,
        platform_fee_rate: rate("platform_fee_rate", &s.platform_fee_rate)?,
        withdraw_fee_rate: rate("withdraw_fee_rate", &s.withdraw_fee_rate)?,
        withdraw_enabled: s.withdraw_enabled,
        withdraw_min: money("withdraw_min", &s.withdraw_min)?,
        withdraw_single_max: money("withdraw_single_max", &s.withdraw_single_max)?,
        withdraw_daily_max: money("withdraw_daily_max", &s.withdraw_daily_max)?,
        withdraw_cooldown: seconds(s.withdraw_cooldown_seconds, 1),
        withdraw_review: seconds(s.withdraw_review_seconds, 1),
        earnings_hold: seconds(s.earnings_hold_days, DAY),
        protected_price_ratio: rate("protected_price_ratio", &s.protected_price_ratio)?,
        order_pay: seconds(s.order_pay_minutes, MINUTE),
        key_life: seconds(s.idempotency_ttl_hours, HOUR),
        key_life_money: seconds(s.idempotency_ttl_money_hours, HOUR),
        lease: seconds(s.idempotency_lease_seconds, 1),
        sms_life: seconds(s.sms_ttl_seconds, 1),
        sms_pause: Duration::from_secs(u64::from(PER_MINUTE_MAX / s.withdraw_sms_per_minute)),
        sms_per_day: s.withdraw_sms_per_day,
        batch_max: count(s.batch_max_items),
        batch_slice: count(s.batch_shard),
        ..supply::Policy::default()
    };
    let order = [policy.withdraw_min, policy.withdraw_single_max, policy.withdraw_daily_max];
    if !order.is_sorted_by_key(|amount| amount.count()) || policy.withdraw_min.count() <= 0 {
        return Err("supply.withdraw_min, withdraw_single_max and withdraw_daily_max must be above 0 and none below the one before it".into());
    }
    Ok(policy)
}

/// What an account is taken to have.
///
/// # Errors
/// It is no quota.
pub fn assumed_quota(supply: &Supply) -> Result<Quota, String> {
    let quota = Quota::whole(supply.providers.assumed_quota, QuotaUnit::Token);
    quota.map_err(|cause| named("providers.assumed_quota", &cause))
}

/// The number of a key's version.
///
/// # Errors
/// The text is no number from 1.
pub fn version(setting: &str, text: &str) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|number| *number > 0 && number.to_string() == text);
    number.ok_or_else(|| {
        format!("supply.keys.{setting} names the version {text:?}; versions are numbers from 1")
    })
}

fn named(name: &str, cause: &impl Display) -> String {
    format!("supply.{name}: {cause}")
}

fn within(bounded: &[(&str, u32, u32, u32)]) -> Result<(), String> {
    match bounded.iter().find(|(_, value, min, max)| value < min || value > max) {
        None => Ok(()),
        Some((name, value, min, max)) => Err(format!("supply.{name} is {value}; use {min} to {max}")),
    }
}

fn sms(supply: &Supply) -> Result<(), String> {
    let sms = &supply.sms;
    match sms.sender {
        SmsSender::Off if supply.withdraw_enabled => Err(
            "supply.withdraw_enabled is true, but supply.sms.sender is \"off\": a withdrawal needs its SMS code; configure an SMS service, or switch withdrawals off"
                .into(),
        ),
        SmsSender::Development if !supply.development => Err(
            "supply.sms.sender is \"development\", which writes codes to the log; it is for supply.development = true only"
                .into(),
        ),
        SmsSender::Http if sms.url.is_none() || sms.token.is_none() => {
            Err("supply.sms.sender is \"http\"; set supply.sms.url and supply.sms.token".into())
        }
        _ => Ok(()),
    }
}

fn issuer(issuer: &Issuer) -> Result<(), String> {
    let visible =
        |text: &str| !text.is_empty() && text.len() <= 200 && text.bytes().all(|b| b.is_ascii_graphic());
    if !visible(&issuer.name) || !visible(&issuer.audience) {
        return Err(
            "supply.issuer.name and supply.issuer.audience must have 1 to 200 visible characters".into()
        );
    }
    let Some(url) = &issuer.jwks_url else { return Ok(()) };
    if issuer.folder.is_some() || issuer.signing_key.is_some() {
        return Err(
            "supply.issuer.jwks_url is for an issuer outside; remove supply.issuer.folder and signing_key"
                .into(),
        );
    }
    if Url::parse(url).is_err() {
        return Err(
            "supply.issuer.jwks_url is not an address; write it like https://id.example.com/jwks.json".into(),
        );
    }
    Ok(())
}

fn keys(supply: &Supply) -> Result<(), String> {
    let keys = &supply.keys;
    for (setting, versions) in [("kek", &keys.kek), ("sms", &keys.sms)] {
        for text in versions.keys() {
            version(setting, text)?;
        }
    }
    if keys.sms.len() > 2 {
        return Err(
            "supply.keys.sms has more than two versions; keep the current one and the one before".into()
        );
    }
    if !supply.enabled || keys.are_local() {
        return Ok(());
    }
    let wanted = [
        ("kek", keys.kek.is_empty()),
        ("pepper", keys.pepper.is_none()),
        ("idempotency", keys.idempotency.is_none()),
        ("sms", keys.sms.is_empty() && supply.sms.sender != SmsSender::Off),
        ("guard", keys.guard.is_none()),
        ("buyer", keys.buyer.is_none()),
    ];
    match wanted.iter().find(|(_, missing)| *missing) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "supply.keys.{name} is not set, but other keys are; name all of them, or none for keys in the keys' folder"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let (ours, theirs) = (policy(&Supply::default()).unwrap(), supply::Policy::default());
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }

    #[test]
    fn what_is_not_exact_or_contradicts_itself_is_refused_by_name() {
        let refused = |change: fn(&mut Supply)| {
            let mut supply = Supply { enabled: true, ..Supply::default() };
            change(&mut supply);
            check(&supply).unwrap_err()
        };
        let cases: [(fn(&mut Supply), &str); 12] = [
            (|s| s.platform_fee_rate = "15%".into(), "supply.platform_fee_rate"),
            (|s| s.withdraw_fee_rate = "1.01".into(), "supply.withdraw_fee_rate"),
            (|s| s.withdraw_min = "10.001".into(), "supply.withdraw_min"),
            (|s| s.withdraw_single_max = "1.00".into(), "supply.withdraw_min"),
            (|s| s.settlement_currency = "XXX".into(), "supply.settlement_currency"),
            (|s| s.batch_shard = 0, "supply.batch_shard is 0"),
            (|s| s.timezone = "UTC".into(), "supply.timezone"),
            (|s| s.withdraw_enabled = true, "supply.withdraw_enabled"),
            (|s| s.sms.sender = SmsSender::Development, "supply.development"),
            (|s| s.sms.sender = SmsSender::Http, "supply.sms.url"),
            (|s| s.keys.pepper = Some(SecretRef::Env("X".into())), "supply.keys.kek is not set"),
            (|s| drop(s.keys.kek.insert("0".into(), SecretRef::Env("X".into()))), "supply.keys.kek names"),
        ];
        for (change, expected) in cases {
            let told = refused(change);
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
}
