//! Packages through the door.

use std::time::Duration;

use store::values;
use supply::packages::Publish;

use crate::market::{Market, OTHER_SUPPLIER, OTHER_TENANT, market, told};

const PUBLISH: &str = "supply.package.publish";

/// A market with a draft, 17, of an active account, 5.
pub(crate) async fn with_draft() -> Market {
    let market = market().await;
    market.account(5, "active").await;
    market.package(17, 5, "draft").await;
    market.floor("openai", "gpt-x", 8, 32).await;
    market
}

pub(crate) async fn package(market: &Market, id: i64) -> (String, i64) {
    let query = store::Query::new(
        "package",
        "select status, version from supply_packages where id = $1",
        values![id],
    );
    let rows = market.door.store().query(query).await.unwrap();
    (rows[0].text(0).unwrap().to_owned(), rows[0].int(1).unwrap())
}

#[tokio::test]
async fn a_published_draft_is_active_once_however_often_it_is_sent() {
    let market = with_draft().await;
    let first = market.run("key-0000000000001", Publish { package_id: 17 }).await;
    assert_eq!((first.code, first.replayed), (200, false), "{first:?}");
    for _ in 0..3 {
        let repeat = market.run("key-0000000000001", Publish { package_id: 17 }).await;
        assert_eq!((repeat.code, repeat.replayed, &repeat.body), (200, true, &first.body));
    }
    assert_eq!(package(&market, 17).await, ("active".into(), 1));
    assert_eq!(
        (market.audited(PUBLISH, "OK").await, market.audited("idempotency.replayed", "OK").await),
        (1, 3)
    );
    assert_eq!(market.announced("supply.package.publish.succeeded").await, 1);
    let left = market.count("select count(*) from supply_accounts where id = 5 and version = 1 and available_quota = frozen_quota", vec![]).await;
    assert_eq!(left, 1, "half of the account's quota is committed");
}

#[tokio::test]
async fn of_two_that_publish_one_is_refused() {
    // CON-PKG-001, with the doors of two nodes.
    let market = with_draft().await;
    let wait = Duration::from_secs(10);
    let one = market.submission(market.operator("key-0000000000001"), Publish { package_id: 17 }, wait);
    let two = market.submission(market.operator("key-0000000000002"), Publish { package_id: 17 }, wait);
    let (one, two) = tokio::join!(market.door.submit(one), market.other.submit(two));
    let (one, two) = (told(one), told(two));
    let mut codes = [one.code, two.code];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409]);
    let lost = if one.code == 409 { one } else { two };
    assert_eq!(lost.error(), "SUP_PKG_4091");
    assert_eq!(package(&market, 17).await, ("active".into(), 1));
    assert_eq!((market.audited(PUBLISH, "OK").await, market.audited(PUBLISH, "SUP_PKG_4091").await), (1, 1));
    assert_eq!(market.announced("supply.package.publish.succeeded").await, 1);
}

#[tokio::test]
async fn a_refusal_by_an_invariant_is_audited_once_stored_and_replayed() {
    let market = with_draft().await;
    market.package(18, 5, "sold_out").await;
    let first = market.run("key-0000000000001", Publish { package_id: 18 }).await;
    assert_eq!((first.code, first.error()), (409, "SUP_PKG_4092"));
    assert_eq!(first.body["error"]["details"]["rule_code"], "INV-PKG-001");
    let repeat = market.run("key-0000000000001", Publish { package_id: 18 }).await;
    assert_eq!((repeat.replayed, &repeat.body), (true, &first.body));
    assert_eq!(market.audited("invariant_violation", "SUP_PKG_4092").await, 1);
    assert_eq!(package(&market, 18).await, ("sold_out".into(), 0));
}

#[tokio::test]
async fn another_payload_under_the_key_changes_nothing() {
    let market = with_draft().await;
    market.package(18, 5, "draft").await;
    market.run("key-0000000000001", Publish { package_id: 17 }).await;
    let other = market.run("key-0000000000001", Publish { package_id: 18 }).await;
    assert!(other.replayed && !other.same);
    assert_eq!(package(&market, 18).await, ("draft".into(), 0));
    assert_eq!(market.audited("idempotency.payload_mismatch", "IDEMPOTENCY_PAYLOAD_MISMATCH").await, 1);
}

#[tokio::test]
async fn a_package_of_another_tenant_is_missing() {
    let market = with_draft().await;
    let stranger = market.caller(OTHER_TENANT, OTHER_SUPPLIER, "key-0000000000001");
    let told = market.run_as(stranger, Publish { package_id: 17 }).await;
    assert_eq!((told.code, told.error()), (404, "SUP_PKG_4041"));
    assert_eq!(package(&market, 17).await, ("draft".into(), 0));
}

#[tokio::test]
async fn the_quota_that_falls_below_the_threshold_is_told_once_until_it_was_above() {
    let market = market().await;
    market.account(5, "active").await;
    market.floor("openai", "gpt-x", 8, 32).await;
    for id in [17, 18, 19] {
        market.package(id, 5, "draft").await;
    }
    // Of 10,000,000 tokens each package takes 5,000,000.
    let sql = "update supply_accounts set min_quota_threshold = $1 where id = 5";
    let threshold = store::Value::Money(5_000_001_000_000);
    market.force(vec![store::Write::one("threshold", sql, vec![threshold])]).await;
    let alerts = "supply.alert.raise.succeeded";
    assert_eq!(market.run("key-0000000000001", Publish { package_id: 17 }).await.code, 200);
    assert_eq!(market.announced(alerts).await, 1);
    assert_eq!(market.run("key-0000000000002", Publish { package_id: 18 }).await.code, 200);
    assert_eq!(market.announced(alerts).await, 1, "it was below");
    for (key, id) in [("key-0000000000003", 17), ("key-0000000000004", 18)] {
        assert_eq!(market.run(key, supply::packages::Unlist { package_id: id }).await.code, 200);
    }
    assert_eq!(market.run("key-0000000000005", Publish { package_id: 19 }).await.code, 200);
    assert_eq!(market.announced(alerts).await, 2, "it was above");
}

#[tokio::test]
async fn of_two_that_publish_at_once_one_falls_below_the_threshold() {
    let market = market().await;
    market.account(5, "active").await;
    market.floor("openai", "gpt-x", 8, 32).await;
    for id in [17, 18] {
        market.package(id, 5, "draft").await;
    }
    let sql = "update supply_accounts set min_quota_threshold = $1 where id = 5";
    let threshold = store::Value::Money(4_000_000_000_000);
    market.force(vec![store::Write::one("threshold", sql, vec![threshold])]).await;
    let wait = Duration::from_secs(10);
    let one = market.submission(market.operator("key-0000000000001"), Publish { package_id: 17 }, wait);
    let two = market.submission(market.operator("key-0000000000002"), Publish { package_id: 18 }, wait);
    let (one, two) = tokio::join!(market.door.submit(one), market.other.submit(two));
    assert_eq!((told(one).code, told(two).code), (200, 200));
    assert_eq!(market.announced("supply.alert.raise.succeeded").await, 1);
}
