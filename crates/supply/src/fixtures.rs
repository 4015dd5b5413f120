//! What the tables of tests begin with: a house, callers, an account and a package that everything is allowed for.

use std::sync::Arc;

use kernel::Time;
use kernel::money::{Currency, Price, Quota, QuotaUnit};

use crate::action::Context;
use crate::caller::{Caller, Capacity};
use crate::house::House;
use crate::policy::Policy;
use crate::rows::{Account, AccountStatus, Package, PackageStatus};

pub(crate) const NOW: Time = Time::from_seconds(1_774_576_984);
pub(crate) const TENANT: i64 = 7;
pub(crate) const PRINCIPAL: i64 = 70;

pub(crate) fn house() -> House {
    House::for_tests(Policy { withdraw_enabled: true, ..Policy::default() })
}

/// In this capacity, of [`TENANT`].
pub(crate) fn context(capacity: Capacity) -> Context {
    context_in(house(), capacity)
}

/// As [`context`], in a house with other numbers.
pub(crate) fn context_in(house: House, capacity: Capacity) -> Context {
    Context { caller: Caller { capacity, ..Caller::system(TENANT, "fact:1") }, house: Arc::new(house) }
}

pub(crate) fn price(text: &str) -> Price {
    Price::parse(text).unwrap()
}

pub(crate) fn tokens(units: u64) -> Quota {
    Quota::whole(units, QuotaUnit::Token).unwrap()
}

/// A draft of 1,000 tokens at 8 and 32, of [`account`].
pub(crate) fn package() -> Package {
    Package {
        id: 17,
        tenant_id: TENANT,
        supply_account_id: 5,
        user_id: PRINCIPAL,
        platform: "openai".into(),
        model: "gpt-x".into(),
        status: PackageStatus::Draft,
        version: 3,
        unit: QuotaUnit::Token,
        currency: Currency::CNY,
        total: tokens(1000),
        available: tokens(1000),
        reserved: tokens(0),
        sold: tokens(0),
        min_purchase: tokens(1),
        price_input: price("8"),
        price_output: price("32"),
        valid_days: 30,
        start_at: None,
        end_at: None,
        close_reason: None,
        platform_frozen: false,
        max_concurrent: 10,
        rate_limit_rpm: 60,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// An active account with 1,000 tokens.
pub(crate) fn account() -> Account {
    Account {
        id: 5,
        tenant_id: TENANT,
        user_id: PRINCIPAL,
        platform: "openai".into(),
        account_type: "api_key".into(),
        account_name: None,
        key_id: format!("ck_{}", "a".repeat(22)),
        status: AccountStatus::Active,
        version: 1,
        risk_level: "normal".into(),
        risk_score: 10,
        unit: QuotaUnit::Token,
        currency: Currency::CNY,
        total: tokens(1000),
        available: tokens(1000),
        frozen: tokens(0),
        min_quota_threshold: None,
        is_verified: true,
        tos_compliant: true,
        is_frozen: false,
        created_at: NOW,
        updated_at: NOW,
    }
}
