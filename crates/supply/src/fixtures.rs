//! What the tables of tests begin with: a house, callers, an account and a package that everything is allowed for.

use std::sync::Arc;

use custody::provider::policy::Policy as Verdicts;
use custody::provider::{Settings, Verifier};
use custody::sms::SmsCodes;
use custody::{Custody, Fingerprints, LocalKeyring, Material};
use kernel::Time;
use kernel::money::{Currency, Price, Quota, QuotaUnit};
use testkit::{CountingRandom, MovableClock};

use crate::action::Context;
use crate::caller::{Caller, Capacity};
use crate::house::House;
use crate::keys::Keys;
use crate::policy::Policy;
use crate::rows::{Account, AccountStatus, Package, PackageStatus};

pub(crate) const NOW: Time = Time::from_seconds(1_774_576_984);
pub(crate) const TENANT: i64 = 7;
pub(crate) const PRINCIPAL: i64 = 70;

fn material(name: &str, seed: u8) -> Material {
    let bytes: Vec<u8> = (0..32).map(|n: u8| n.wrapping_mul(37) ^ seed).collect();
    Material::from_bytes(name, &bytes).unwrap()
}

pub(crate) fn house() -> House {
    let random = Arc::new(CountingRandom::default());
    let ring =
        LocalKeyring::new("local", 1, vec![(1, material("kek", 1))], Arc::clone(&random) as _).unwrap();
    let clock = Arc::new(MovableClock::at(NOW.seconds()));
    let verdicts = Verdicts::standard(Quota::whole(10_000_000, QuotaUnit::Token).unwrap());
    let keys = Keys {
        custody: Custody::new(Arc::new(ring), Arc::clone(&random) as _),
        fingerprints: Fingerprints::new(&material("pepper", 2), None).unwrap(),
        verifier: Verifier::new(Settings::default(), verdicts, clock, Arc::clone(&random) as _).unwrap(),
        codes: Some(SmsCodes::new((1, &material("sms", 3)), None).unwrap()),
    };
    let policy = Policy { withdraw_enabled: true, ..Policy::default() };
    House { policy, random, routes: Vec::new(), keys: Arc::new(keys) }
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
