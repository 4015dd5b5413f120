//! Suppliers, buyers and top-ups through the door.

use std::time::Duration;

use kernel::Digest;
use kernel::money::{Currency, Money};
use store::values;
use supply::earnings::Bonus;
use supply::platform::{ApiKey, CreateBuyer, CreateSupplier, SealedPhone, TopUp, seed};

use crate::market::{BUYER, BUYER_TENANT, Market, OTHER_TENANT, market};
use crate::orders_desk::cny;

fn supplier(code: &str) -> CreateSupplier {
    CreateSupplier {
        code: code.into(),
        name: "Spare Tokens Ltd".into(),
        supplier_type: "company".into(),
        operator: "first operator".into(),
        phone: SealedPhone {
            cipher: "v1.envelope".into(),
            cipher_algo: "AES-256-GCM".into(),
            key_alias: "alias".into(),
            key_version: 1,
            fingerprint: "0".repeat(64),
            masked: "138****0000".into(),
        },
    }
}

fn buyer(market: &Market, code: &str) -> CreateBuyer {
    let expires_at = market.now().plus(Duration::from_secs(90 * 24 * 3600));
    let hmac = Digest::of(code.as_bytes());
    let key = ApiKey { name: "first".into(), prefix: "lgw_abcdefgh".into(), hmac, expires_at };
    CreateBuyer { code: code.into(), name: "A buyer".into(), key }
}

#[tokio::test]
async fn a_supplier_has_a_principal_an_operator_and_something_to_lock() {
    let market = market().await;
    let told = market.administer(1, supplier("spare")).await;
    assert_eq!(told.code, 201, "{told:?}");
    let id = |name: &str| told.body["data"][name].as_i64().unwrap();
    let (tenant, user, operator) = (id("tenant_id"), id("user_id"), id("operator_id"));
    assert_ne!(user, operator);
    let rows = "select count(*) from billing_accounts where owner_type = 'supplier' and owner_id = $1 and tenant_id = $2 and balance = 0";
    assert_eq!(market.count(rows, values![user, tenant]).await, 4);
    let users = "select count(*) from iam_users where tenant_id = $1 and id in ($2, $3)";
    assert_eq!(market.count(users, values![tenant, user, operator]).await, 2);
    let second = market.administer(1, supplier("more")).await;
    assert_eq!(second.code, 201, "{second:?}");
    let bonus = Bonus { amount: cny("100"), description: "welcome".into() };
    assert_eq!(market.administer(tenant, bonus).await.code, 201);
    market.sound("a bonus").await;
}

#[tokio::test]
async fn a_code_of_a_tenant_is_taken_once() {
    let market = market().await;
    market.administer(1, supplier("spare")).await;
    assert_eq!(market.administer(1, supplier("spare")).await.error(), "SUP_COM_4091");
    assert_eq!(market.administer(1, buyer(&market, "spare")).await.error(), "SUP_COM_4091");
    for wrong in [
        CreateSupplier { code: " ".into(), ..supplier("a") },
        CreateSupplier { name: "a\nb".into(), ..supplier("a") },
        CreateSupplier { supplier_type: "shop".into(), ..supplier("a") },
        CreateSupplier { operator: "principal".into(), ..supplier("a") },
    ] {
        let told = market.administer(1, wrong).await;
        assert_eq!((told.code, told.error()), (400, "SUP_COM_4001"), "{told:?}");
    }
}

#[tokio::test]
async fn a_buyer_can_be_topped_up_and_its_key_can_be_found() {
    let market = market().await;
    let told = market.administer(1, buyer(&market, "shop")).await;
    assert_eq!(told.code, 201, "{told:?}");
    let id = |name: &str| told.body["data"][name].as_i64().unwrap();
    let (tenant, buyer_id) = (id("tenant_id"), id("buyer_id"));
    let keys = "select count(*) from auth_api_keys where id = $1 and tenant_id = $2 and user_id = $3 and status = 'active'";
    assert_eq!(market.count(keys, values![id("api_key_id"), tenant, buyer_id]).await, 1);
    for expected in ["2000", "4000"] {
        let told = market.administer(tenant, TopUp { buyer_id, amount: cny("2000") }).await;
        assert_eq!(told.body["data"]["balance_minor"], expected, "{told:?}");
    }
    assert_eq!(market.derived("cash_clearing").await, "4000");
    market.sound("top-ups").await;
}

#[tokio::test]
async fn a_top_up_is_of_whole_cents_above_zero_of_a_known_buyer() {
    let market = market().await;
    let top_up = |amount| TopUp { buyer_id: BUYER, amount };
    let count = |count| Money::from_count(count, Currency::CNY);
    for amount in [count(0), count(-1_000_000), count(i64::MIN), cny("0.5")] {
        assert_eq!(market.administer(BUYER_TENANT, top_up(amount)).await.error(), "SUP_COM_4001", "{amount}");
    }
    let dollar = Money::from_count(1_000_000, Currency::from_code("USD").unwrap());
    assert_eq!(market.administer(BUYER_TENANT, top_up(dollar)).await.error(), "SUP_COM_4003");
    assert_eq!(market.administer(OTHER_TENANT, top_up(cny("1"))).await.error(), "SUP_COM_4041");
    // A balance that would not fit any more is refused, not wrapped.
    let most = count(i64::MAX / 1_000_000 * 1_000_000);
    assert_eq!(market.administer(BUYER_TENANT, top_up(most)).await.code, 201);
    assert_eq!(market.administer(BUYER_TENANT, top_up(most)).await.error(), "SUP_COM_4001");
    market.sound("top-ups").await;
}

#[tokio::test]
async fn a_top_up_sent_twice_under_a_key_is_one() {
    let market = market().await;
    let admin = || supply::Caller {
        capacity: supply::Capacity::Admin,
        ..market.caller(BUYER_TENANT, crate::market::ADMIN, "key-0000000000001")
    };
    let top_up = TopUp { buyer_id: BUYER, amount: cny("100") };
    let first = market.run_as(admin(), top_up).await;
    let again = market.run_as(admin(), top_up).await;
    assert_eq!((again.replayed, &again.body), (true, &first.body));
    assert_eq!(market.derived("buyer_prepaid").await, "100");
}

#[tokio::test]
async fn the_platforms_accounts_of_a_currency_are_opened_once() {
    let market = market().await;
    let dollar = Currency::from_code("USD").unwrap();
    for _ in 0..2 {
        seed(&market.door, dollar).await.unwrap();
    }
    let opened = "select count(*) from billing_accounts where owner_type = 'platform' and currency_code = 'USD' and balance is null";
    assert_eq!(market.count(opened, vec![]).await, 5);
}
