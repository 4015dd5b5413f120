//! The numbers of section 23, with their defaults. Rates and amounts are exact. Not here: where they are read
//! from (the binary's configuration), secrets.

use std::time::Duration;

use kernel::money::{Currency, Money, Rate};

/// What the operator of the platform may set.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `settlement_currency`.
    pub currency: Currency,
    /// `platform_fee_rate`.
    pub platform_fee_rate: Rate,
    /// `withdraw_fee_rate`.
    pub withdraw_fee_rate: Rate,
    /// `withdraw_enabled`; only with an SMS service.
    pub withdraw_enabled: bool,
    /// `withdraw_min`.
    pub withdraw_min: Money,
    /// `withdraw_single_max`.
    pub withdraw_single_max: Money,
    /// `withdraw_daily_max`, per supplier and day in Shanghai.
    pub withdraw_daily_max: Money,
    /// `withdraw_cooldown_seconds`, from the moment the last one became processing.
    pub withdraw_cooldown: Duration,
    /// `withdraw_review_seconds`, before a payout may start.
    pub withdraw_review: Duration,
    /// `earnings_hold_days`.
    pub earnings_hold: Duration,
    /// `protected_price_ratio`.
    pub protected_price_ratio: Rate,
    /// `order_pay_minutes`.
    pub order_pay: Duration,
    /// `idempotency_ttl_hours`.
    pub key_life: Duration,
    /// `idempotency_ttl_money_hours`: withdraw and cancel.
    pub key_life_money: Duration,
    /// `idempotency_lease_seconds`.
    pub lease: Duration,
    /// `sms_ttl_seconds`.
    pub sms_life: Duration,
    /// `withdraw_sms_per_minute`: the pause between two codes.
    pub sms_pause: Duration,
    /// `withdraw_sms_per_day`.
    pub sms_per_day: u32,
    /// `batch_max_items`.
    pub batch_max: usize,
    /// `batch_shard`.
    pub batch_slice: usize,
    /// Version of the risk agreement that `risk_ack` accepts.
    pub risk_ack_version: String,
}

const HOUR: u64 = 3600;
const MINOR: i64 = 1_000_000;

impl Default for Policy {
    fn default() -> Self {
        let cny = |major: i64| Money::from_count(major * 100 * MINOR, Currency::CNY);
        Self {
            currency: Currency::CNY,
            platform_fee_rate: Rate::percent(15),
            withdraw_fee_rate: Rate::percent(1),
            withdraw_enabled: false,
            withdraw_min: cny(10),
            withdraw_single_max: cny(50_000),
            withdraw_daily_max: cny(200_000),
            withdraw_cooldown: Duration::from_secs(900),
            withdraw_review: Duration::from_secs(900),
            earnings_hold: Duration::from_secs(7 * 24 * HOUR),
            protected_price_ratio: Rate::percent(80),
            order_pay: Duration::from_secs(15 * 60),
            key_life: Duration::from_secs(24 * HOUR),
            key_life_money: Duration::from_secs(72 * HOUR),
            lease: Duration::from_secs(30),
            sms_life: Duration::from_secs(300),
            sms_pause: Duration::from_secs(60),
            sms_per_day: 10,
            batch_max: 200,
            batch_slice: 50,
            risk_ack_version: "2026-03-27".into(),
        }
    }
}
