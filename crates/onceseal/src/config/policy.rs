//! What the settings of the supply side must be, and the numbers as its commands want them. Each refusal names the
//! setting. Not here: the settings themselves ([`super::supply`]).

use std::fmt::Display;
use std::time::Duration;

use kernel::money::{Currency, Money, Quota, QuotaUnit, Rate};
use url::Url;

use super::supply::{Issuer, KmsKind, Payout, SmsSender, Supply, TIMEZONE};
use super::unit::Span;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Items of one batch at most: what its tables have room for.
const BATCH_MOST: u32 = 200;
/// SMS codes of one minute at most.
const PER_MINUTE_MAX: u32 = 100_000;

/// What is refused though it has the right form, by the setting's name.
///
/// # Errors
/// As said.
pub fn check(supply: &Supply) -> Result<(), String> {
    policy(supply)?;
    let bounded = [
        ("calls_per_minute", supply.calls_per_minute, 1, 1_000_000),
        ("verify_per_minute", supply.verify_per_minute, 1, 100_000),
        ("statement_url_minutes", supply.statement_url_minutes, 1, 1440),
        ("token_status_cache_seconds", supply.token_status_cache_seconds, 0, 10),
        ("outbox_quick_retries", supply.outbox_quick_retries, 0, relay::schedule::QUICK_MAX),
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
    payout(&supply.payout)?;
    issuer(&supply.issuer)?;
    let kms = &supply.kms;
    if kms.kind == KmsKind::Vault && (kms.address.is_none() || kms.token.is_none()) {
        return Err("supply.kms.kind is \"vault\"; set supply.kms.address and supply.kms.token".into());
    }
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
        ("batch_max_items", s.batch_max_items, 1, BATCH_MOST),
        ("batch_shard", s.batch_shard, 1, BATCH_MOST),
        ("withdraw_sms_per_minute", s.withdraw_sms_per_minute, 1, PER_MINUTE_MAX),
        ("withdraw_sms_per_day", s.withdraw_sms_per_day, 1, 1_000_000),
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
        sms_pause: Duration::from_secs(MINUTE) / s.withdraw_sms_per_minute,
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

fn payout(payout: &Payout) -> Result<(), String> {
    within(&[("payout.key_life_hours", payout.key_life_hours, 1, 720)])?;
    if payout.url.is_some() != payout.token.is_some() {
        return Err(
            "supply.payout.url and supply.payout.token go together; set both, or none to pay by hand".into(),
        );
    }
    Ok(())
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
        ("kek", keys.kek.is_empty() && supply.kms.kind == KmsKind::Local),
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
    use crate::config::secret::SecretRef;

    /// A change, and what its refusal names.
    type Case = (fn(&mut Supply), &'static str);

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let (ours, theirs) = (policy(&Supply::default()).unwrap(), supply::Policy::default());
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }

    #[test]
    fn what_the_commands_cut_is_not_taken_as_a_setting() {
        assert_eq!(usize::try_from(BATCH_MOST).unwrap(), supply::packages::ITEMS_MOST);
    }

    #[test]
    fn so_many_codes_a_minute_are_evenly_apart() {
        let pause = |per_minute| {
            let supply = Supply { withdraw_sms_per_minute: per_minute, ..Supply::default() };
            policy(&supply).unwrap().sms_pause
        };
        assert_eq!([1, 45, 600].map(pause).map(|pause| pause.as_millis()), [60_000, 1_333, 100]);
    }

    #[test]
    fn what_is_not_exact_or_contradicts_itself_is_refused_by_name() {
        let refused = |change: fn(&mut Supply)| {
            let mut supply = Supply { enabled: true, ..Supply::default() };
            change(&mut supply);
            check(&supply).unwrap_err()
        };
        let cases: [Case; 19] = [
            (|s| s.platform_fee_rate = "15%".into(), "supply.platform_fee_rate"),
            (|s| s.withdraw_fee_rate = "1.01".into(), "supply.withdraw_fee_rate"),
            (|s| s.withdraw_min = "10.001".into(), "supply.withdraw_min"),
            (|s| s.withdraw_single_max = "1.00".into(), "supply.withdraw_min"),
            (|s| s.settlement_currency = "XXX".into(), "supply.settlement_currency"),
            (|s| s.batch_shard = 0, "supply.batch_shard is 0"),
            (|s| s.batch_shard = 201, "supply.batch_shard is 201; use 1 to 200"),
            (|s| s.batch_max_items = 201, "supply.batch_max_items is 201; use 1 to 200"),
            (|s| s.outbox_quick_retries = 7, "supply.outbox_quick_retries is 7; use 0 to 6"),
            (|s| s.calls_per_minute = 0, "supply.calls_per_minute is 0"),
            (|s| s.withdraw_sms_per_minute = 100_001, "supply.withdraw_sms_per_minute is 100001"),
            (|s| s.timezone = "UTC".into(), "supply.timezone"),
            (|s| s.withdraw_enabled = true, "supply.withdraw_enabled"),
            (|s| s.sms.sender = SmsSender::Development, "supply.development"),
            (|s| s.sms.sender = SmsSender::Http, "supply.sms.url"),
            (|s| s.payout.url = Some("https://a.example".into()), "supply.payout.token"),
            (|s| s.payout.key_life_hours = 0, "supply.payout.key_life_hours is 0"),
            (|s| s.keys.pepper = Some(SecretRef::Env("X".into())), "supply.keys.kek is not set"),
            (|s| drop(s.keys.kek.insert("0".into(), SecretRef::Env("X".into()))), "supply.keys.kek names"),
        ];
        for (change, expected) in cases {
            let told = refused(change);
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
}
