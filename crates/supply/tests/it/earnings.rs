//! Releases, bonuses and compensations through the door.

use kernel::money::{Currency, Money};
use ledger::ids;
use ledger::posting::Beneficiary;
use supply::Caller;
use supply::earnings::{Bonus, Compensate, Release};
use supply::orders::Close;
use supply::platform::{earnings_to_release, orders_to_close};

use crate::market::{BUYER, BUYER_TENANT, OTHER_TENANT, SUPPLIER, SUPPLIER_TENANT, told};
use crate::orders_desk::{DAY, WAIT, call, cny, trading};

fn bonus(minor: &str) -> Bonus {
    Bonus { amount: cny(minor), description: "first of the month".into() }
}

#[tokio::test]
async fn a_release_raced_over_two_doors_posts_once() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    market.administer(BUYER_TENANT, call(&market, order, "call-1", (1_000, 2_000))).await;
    market.clock.advance(DAY * 7);
    let due = market.due(earnings_to_release(market.now(), 10)).await[0];
    let submit = || market.submission(due.caller("release"), Release { earning_id: due.id }, WAIT);
    let (one, two) = tokio::join!(market.door.submit(submit()), market.other.submit(submit()));
    let (one, two) = (told(one), told(two));
    assert_eq!((one.code, two.code, &one.body), (200, 200, &two.body));
    assert!(one.replayed != two.replayed);
    let posted = "select count(*) from billing_journals where journal_type = 'J-RELEASE'";
    assert_eq!(market.count(posted, vec![]).await, 1);
    assert_eq!(market.announced("supply.earning.release.succeeded").await, 1);
    market.sound("the race").await;
}

#[tokio::test]
async fn a_release_without_a_key_is_refused_the_second_time() {
    let market = trading().await;
    let id =
        market.administer(SUPPLIER_TENANT, bonus("1000")).await.body["data"]["earning_id"].as_i64().unwrap();
    market.clock.advance(DAY * 7);
    let submit = || market.submission(market.operator(""), Release { earning_id: id }, WAIT);
    let (one, two) = tokio::join!(market.door.submit(submit()), market.other.submit(submit()));
    let (one, two) = (told(one), told(two));
    let mut codes = [one.code, two.code];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409], "{one:?} {two:?}");
    assert_eq!(market.balance("supplier_available").await, "1000");
    market.sound("the race").await;
}

#[tokio::test]
async fn what_another_node_did_already_is_no_refusal_of_the_system_and_one_of_a_person() {
    let market = trading().await;
    assert_eq!(market.administer(SUPPLIER_TENANT, bonus("1000")).await.code, 201);
    market.top_up("20000").await;
    let order_id = market.order(1_000_000).await;
    market.clock.advance(DAY * 400);
    let due = market.due(earnings_to_release(market.now(), 10)).await[0];
    let close = market.due(orders_to_close(market.now(), 10)).await[0];
    let release = Release { earning_id: due.id };
    let keyless = |caller| Caller { idempotency_key: None, ..caller };
    for code in [200, 409] {
        assert_eq!(market.run_as(keyless(due.caller("release")), release).await.code, code);
        assert_eq!(market.run_as(keyless(close.caller("close")), Close { order_id }).await.code, code);
    }
    for event in ["supply.earning.release", "supply.order.close"] {
        let rows = "select count(*) from audit_events where event_name = $1";
        assert_eq!(market.count(rows, store::values![event]).await, 1, "{event}");
    }
    assert_eq!(market.administer(SUPPLIER_TENANT, release).await.code, 409);
    assert_eq!(market.audited("supply.earning.release", "SUP_COM_4091").await, 1);
}

#[tokio::test]
async fn a_bonus_is_held_and_a_compensation_is_not() {
    let market = trading().await;
    assert_eq!(market.administer(SUPPLIER_TENANT, bonus("12.5")).await.code, 201);
    let to = Beneficiary::Supplier(ids::Supplier(SUPPLIER));
    let compensate = |to| Compensate { to, amount: cny("7"), description: "an outage".into() };
    assert_eq!(market.administer(SUPPLIER_TENANT, compensate(to)).await.code, 201);
    assert_eq!(
        (market.balance("supplier_pending").await, market.balance("supplier_available").await),
        ("12.5".into(), "7".into())
    );
    let to = Beneficiary::Buyer(ids::Buyer(BUYER));
    assert_eq!(market.administer(BUYER_TENANT, compensate(to)).await.code, 201);
    assert_eq!(
        (market.derived("buyer_prepaid").await, market.derived("compensation_expense").await),
        ("7".into(), "14".into())
    );
    market.sound("gifts").await;
}

#[tokio::test]
async fn what_is_given_is_above_zero_in_the_right_currency_and_to_somebody() {
    let market = trading().await;
    let dollar = Money::from_count(1, Currency::from_code("USD").unwrap());
    let to = Beneficiary::Buyer(ids::Buyer(BUYER));
    let compensate = |amount| Compensate { to, amount, description: "x".into() };
    for (told, code) in [
        (market.administer(SUPPLIER_TENANT, bonus("0")).await, "SUP_COM_4001"),
        (
            market.administer(SUPPLIER_TENANT, Bonus { description: String::new(), ..bonus("1") }).await,
            "SUP_COM_4001",
        ),
        (market.administer(SUPPLIER_TENANT, Bonus { amount: dollar, ..bonus("1") }).await, "SUP_COM_4003"),
        (market.administer(BUYER_TENANT, bonus("1")).await, "SUP_COM_4041"),
        (market.administer(BUYER_TENANT, compensate(cny("0"))).await, "SUP_COM_4001"),
        (market.administer(BUYER_TENANT, compensate(dollar)).await, "SUP_COM_4003"),
        (market.administer(OTHER_TENANT, compensate(cny("1"))).await, "SUP_COM_4041"),
    ] {
        assert_eq!(told.error(), code);
    }
    let posted = market.count("select count(*) from billing_journals", vec![]).await;
    assert_eq!(posted, 0);
    let most = Money::from_count(i64::MAX, Currency::CNY);
    let all = Bonus { amount: most, ..bonus("1") };
    assert_eq!(market.administer(SUPPLIER_TENANT, all.clone()).await.code, 201);
    assert_eq!(market.administer(SUPPLIER_TENANT, all).await.error(), "SUP_COM_4001", "no alarm");
}
