//! Pausing and unlisting through the door: quota, orders that wait, races.

use std::time::Duration;

use store::{Value, Write, values};
use supply::packages::{Pause, Publish, Unlist};

use crate::market::{BUYER, BUYER_TENANT, Market, SUPPLIER, SUPPLIER_TENANT, Told, told};
use crate::packages::{package, with_draft};

const WAIT: Duration = Duration::from_secs(10);

/// A market whose package, 17, is published.
pub(crate) async fn with_active() -> Market {
    let market = with_draft().await;
    assert_eq!(market.run("key-published-0001", Publish { package_id: 17 }).await.code, 200);
    market
}

/// Available and frozen quota of the account, in whole tokens.
pub(crate) async fn quota(market: &Market) -> (i64, i64) {
    let sql = "select available_quota, frozen_quota from supply_accounts where id = 5";
    let rows = market.door.store().query(store::Query::new("quota", sql, vec![])).await.unwrap();
    (rows[0].int(0).unwrap() / 1_000_000, rows[0].int(1).unwrap() / 1_000_000)
}

/// An order of the package that is not paid.
async fn pending_order(market: &Market, id: i64, package_id: i64) {
    let at = market.now();
    let sql = "insert into supply_orders (id, order_no, tenant_id, buyer_user_id, buyer_tenant_id, supply_account_id, supplier_user_id, supply_package_id, platform, model, quota_amount, quota_tokens, price_per_1m_input, price_per_1m_output, unit_price, total_amount, remaining_quota, created_at, updated_at, request_id, audit_trace_id)
        values ($1, $2, $3, $4, $5, 5, $6, $7, 'openai', 'gpt-x', $8, 1000, $9, $10, $11, $12, $13, $14, $15, 'fixture', 'fixture')";
    let quota = Value::Money(1_000_000_000);
    let (input, output) = (Value::Money(8_000_000), Value::Money(32_000_000));
    let row = [
        values![
            id,
            format!("ORD20260327{id:012}"),
            SUPPLIER_TENANT,
            BUYER,
            BUYER_TENANT,
            SUPPLIER,
            package_id
        ],
        vec![quota.clone(), input, output.clone(), output, Value::Money(4_000_000), quota],
        values![at, at],
    ];
    market.force(vec![Write::one("order", sql, row.concat())]).await;
}

fn both(one: &Told, two: &Told) -> [u16; 2] {
    let mut codes = [one.code, two.code];
    codes.sort_unstable();
    codes
}

#[tokio::test]
async fn a_package_is_paused_resumed_and_unlisted_and_its_quota_comes_back_once() {
    let market = with_active().await;
    assert_eq!(quota(&market).await, (5_000_000, 5_000_000));
    assert_eq!(market.run("key-0000000000001", Pause { package_id: 17 }).await.code, 200);
    assert_eq!(market.run("key-0000000000002", Publish { package_id: 17 }).await.code, 200);
    assert_eq!(quota(&market).await, (5_000_000, 5_000_000));
    let first = market.run("key-0000000000003", Unlist { package_id: 17 }).await;
    assert_eq!((first.code, &first.body["data"]["status"]), (200, &serde_json::json!("expired")));
    let repeat = market.run("key-0000000000003", Unlist { package_id: 17 }).await;
    assert_eq!((repeat.replayed, &repeat.body), (true, &first.body));
    let again = market.run("key-0000000000004", Unlist { package_id: 17 }).await;
    assert_eq!((again.code, again.error()), (409, "SUP_PKG_4091"));
    assert_eq!((quota(&market).await, package(&market, 17).await), ((10_000_000, 0), ("expired".into(), 4)));
    let reason = "select count(*) from supply_packages where id = 17 and close_reason = 'unlisted'";
    assert_eq!(market.count(reason, vec![]).await, 1);
    let steps = "select count(*) from outbox where object_type = 'supply_package' and object_id = '17'";
    assert_eq!(market.count(steps, vec![]).await, 4, "an event for each version");
}

#[tokio::test]
async fn an_order_that_waits_for_its_payment_keeps_a_package_listed() {
    let market = with_active().await;
    pending_order(&market, 71, 17).await;
    let refused = market.run("key-0000000000001", Unlist { package_id: 17 }).await;
    assert_eq!((refused.code, refused.error()), (409, "SUP_PKG_4094"));
    assert_eq!(market.run("key-0000000000002", Pause { package_id: 17 }).await.code, 200);
    assert_eq!(
        (quota(&market).await, package(&market, 17).await),
        ((5_000_000, 5_000_000), ("paused".into(), 2))
    );
}

#[tokio::test]
async fn of_two_that_pause_one_is_refused() {
    let market = with_active().await;
    let one = market.submission(market.operator("key-0000000000001"), Pause { package_id: 17 }, WAIT);
    let two = market.submission(market.operator("key-0000000000002"), Pause { package_id: 17 }, WAIT);
    let (one, two) = tokio::join!(market.door.submit(one), market.other.submit(two));
    let (one, two) = (told(one), told(two));
    assert_eq!(both(&one, &two), [200, 409]);
    let lost = if one.code == 409 { one } else { two };
    assert_eq!(lost.error(), "SUP_PKG_4091");
    assert_eq!(package(&market, 17).await, ("paused".into(), 2));
    let event = "supply.package.pause";
    assert_eq!((market.audited(event, "OK").await, market.audited(event, "SUP_PKG_4091").await), (1, 1));
    assert_eq!(market.announced("supply.package.pause.succeeded").await, 1);
}

#[tokio::test]
async fn publishing_and_unlisting_at_once_leave_one_story() {
    let market = with_active().await;
    for round in 0..10 {
        let id = 100 + round;
        market.package(id, 5, "draft").await;
        let quota_before = quota(&market).await;
        for (key, action) in [("a", 0), ("b", 1)] {
            let key = format!("key-00000-{key}-{id}-");
            match action {
                0 => assert_eq!(market.run(&key, Publish { package_id: id }).await.code, 200),
                _ => assert_eq!(market.run(&key, Pause { package_id: id }).await.code, 200),
            }
        }
        let one = market.operator(&format!("key-00000-c-{id}-"));
        let one = market.submission(one, Publish { package_id: id }, WAIT);
        let two = market.operator(&format!("key-00000-d-{id}-"));
        let two = market.submission(two, Unlist { package_id: id }, WAIT);
        let (one, two) = tokio::join!(market.door.submit(one), market.other.submit(two));
        let (resumed, unlisted) = (told(one), told(two));
        let steps = i64::from(resumed.code == 200) + i64::from(unlisted.code == 200);
        assert!(steps > 0, "{resumed:?} {unlisted:?}");
        let (status, version) = package(&market, id).await;
        assert_eq!(version, 2 + steps);
        if unlisted.code == 200 {
            assert_eq!((status.as_str(), quota(&market).await), ("expired", quota_before));
            assert!(resumed.code == 200 || ["SUP_PKG_4091", "SUP_PKG_4093"].contains(&resumed.error()));
        } else {
            assert_eq!((status.as_str(), unlisted.error()), ("active", "SUP_PKG_4091"));
            assert_eq!(market.run(&format!("key-00000-e-{id}-"), Unlist { package_id: id }).await.code, 200);
        }
    }
    assert_eq!(quota(&market).await, (5_000_000, 5_000_000));
}

#[tokio::test]
async fn what_sold_out_is_left_to_the_system_by_everybody() {
    let market = with_active().await;
    market.package(18, 5, "sold_out").await;
    for (key, told) in [
        ("pause", market.run("key-000000-pause", Pause { package_id: 18 }).await),
        ("unlist", market.run("key-00000-unlist", Unlist { package_id: 18 }).await),
    ] {
        assert_eq!((told.code, told.error()), (409, "SUP_PKG_4092"), "{key}");
        assert_eq!(told.body["error"]["details"]["rule_code"], "INV-PKG-001");
    }
    let one_each =
        "select count(*) from (select action from audit_events where event_name = 'invariant_violation'
        and rule_code = 'INV-PKG-001' and object_id = '18' group by action having count(*) = 1) x";
    assert_eq!(market.count(one_each, vec![]).await, 2);
    assert_eq!(
        market
            .count("select count(*) from audit_events where event_name = 'invariant_violation'", vec![])
            .await,
        2
    );
}
