//! What is read back: settlements, earnings, sums of a period.

use std::time::Duration;

use serde_json::{Value as Json, json};
use store::values;
use supply::orders::{Ending, Refund};
use supply::rows::{EarningStatus, SettlementStatus};
use supply::settlements::billing::Billing;
use supply::settlements::period::Period;
use supply::settlements::records::Records;
use supply::settlements::view::{self, List};
use supply::settlements::{Cancel, Complete, Start};

use super::desk::funded;
use crate::market::{BUYER_TENANT, Market, OTHER_TENANT, SUPPLIER_TENANT};
use crate::orders_desk::{call, cny, trading};

fn list(page: u32) -> List {
    List { tenant_id: SUPPLIER_TENANT, status: None, page, page_size: 2 }
}

async fn billing(market: &Market, start: &str, end: &str) -> Json {
    let period = Period::read(Some(start), Some(end), market.now()).unwrap();
    let found = Billing::of(market.door.store(), SUPPLIER_TENANT, &period).await.unwrap().unwrap();
    serde_json::to_value(found).unwrap()
}

#[tokio::test]
async fn settlements_are_listed_the_newest_first_and_only_to_their_tenant() {
    let market = funded(100).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        let id = market.granted(&format!("key-withdraw-000{n}"), "50").await;
        market.run("", Cancel { settlement_id: id }).await;
        ids.insert(0, id);
        market.clock.advance(Duration::from_secs(60));
    }
    let store = market.door.store();
    let (first, second) = (list(1).page(store).await.unwrap(), list(2).page(store).await.unwrap());
    let listed: Vec<_> = first.items.iter().chain(&second.items).map(|view| view.settlement_id).collect();
    assert_eq!((listed, first.total, second.items.len()), (ids.clone(), 3, 1));
    let pending = List { status: Some(SettlementStatus::Pending), ..list(1) };
    assert_eq!(pending.page(store).await.unwrap().total, 0);
    let stranger = List { tenant_id: OTHER_TENANT, ..list(1) };
    assert_eq!(stranger.page(store).await.unwrap().items, []);
    assert_eq!(view::get(store, OTHER_TENANT, ids[0]).await.unwrap(), None);
    let one = view::get(store, SUPPLIER_TENANT, ids[0]).await.unwrap().unwrap();
    let shown = serde_json::to_value(&one).unwrap();
    assert_eq!(first.items[0], one);
    assert_eq!((&shown["status"], &shown["fail_reason"]), (&json!("failed"), &json!("cancelled")));
    assert_eq!((&shown["total_amount"], &shown["net_amount_minor"]), (&json!(50), &json!("4950")));
    assert_eq!((&shown["payment_account_masked"], &shown["version"]), (&json!("138****0000"), &json!(1)));
    assert_eq!((&shown["period_start"], &shown["paid_at"]), (&json!("2026-03-27"), &Json::Null));
}

/// The calls of section 11.6, one that failed, and all of it released.
async fn sold() -> (Market, i64) {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(5_000_000).await;
    for (id, tokens) in [("call-1", (2_000_000, 1_500_000)), ("call-2", (1_234, 567))] {
        assert!(market.administer(BUYER_TENANT, call(&market, order, id, tokens)).await.code < 300);
    }
    let mut failed = call(&market, order, "call-3", (10, 0));
    failed.call.ending = Ending::Failure;
    assert!(market.administer(BUYER_TENANT, failed).await.code < 300);
    market.clock.advance(Duration::from_secs(7 * 86_400));
    market.release_due().await;
    (market, order)
}

#[tokio::test]
async fn the_sums_of_a_period_are_those_of_calls_and_ledger() {
    let (market, order) = sold().await;
    let id = market.granted("key-0000000000001", "50").await;
    market.clock.advance(Duration::from_secs(900));
    market.step(Start { settlement_id: id }).await;
    market.step(Complete { settlement_id: id, payment_transaction_id: "T-1".into() }).await;
    let refund = Refund { order_id: order, charge: Some(cny("1000")) };
    assert_eq!(market.administer(SUPPLIER_TENANT, refund).await.code, 200);
    let sold = billing(&market, "2026-03-27", "2026-03-27").await;
    assert_eq!(
        sold["summary"],
        json!({ "total_revenue": 64.028016, "total_revenue_minor": "6402.8016", "total_orders": 1,
            "total_usage": 3_501_811, "total_requests": 3, "avg_success_rate": 66.67,
            "platform_fee": 9.6042024, "platform_fee_minor": "960.42024",
            "net_earnings": 54.4238136, "net_earnings_minor": "5442.38136" })
    );
    assert_eq!(
        sold["by_platform"],
        json!([{ "platform": "openai", "revenue": 64.028016, "revenue_minor": "6402.8016", "orders": 1,
            "tokens": 3_501_811, "success_rate": 66.67 }])
    );
    // The refund came a week later: row 9 of section 11.6.
    let refunded = billing(&market, "2026-04-03", "2026-04-03").await;
    assert_eq!(refunded["summary"]["net_earnings_minor"], "-850");
    assert_eq!(refunded["by_platform"], json!([]));
    let balance = &refunded["balance"];
    assert_eq!(
        (&balance["available_amount"], &balance["receivable_amount_minor"]),
        (&json!(0), &json!("407.61864"))
    );
    assert_eq!((&balance["withdrawn_amount"], &balance["frozen_amount"]), (&json!(50), &json!(0)));
    market.reconciled().await;
}

#[tokio::test]
async fn the_old_path_has_no_balance_and_a_stranger_sees_nothing() {
    let market = funded(100).await;
    let period = Period::read(None, None, market.now()).unwrap();
    let store = market.door.store();
    let own = Billing::of(store, SUPPLIER_TENANT, &period).await.unwrap().unwrap();
    assert_eq!(own.balance.as_ref().unwrap().available_amount_minor, "10000");
    let old = serde_json::to_value(own.without_balance()).unwrap();
    assert!(old.get("balance").is_none() && old["by_platform"] == json!([]));
    let other = Billing::of(store, OTHER_TENANT, &period).await.unwrap().unwrap();
    assert_eq!(other.balance.unwrap().available_amount_minor, "0");
    assert_eq!(Billing::of(store, BUYER_TENANT, &period).await.unwrap(), None);
}

#[tokio::test]
async fn earnings_name_the_last_settlement_that_took_of_them() {
    let (market, _) = sold().await;
    let first = market.granted("key-0000000000001", "20").await;
    market.run("", Cancel { settlement_id: first }).await;
    market.clock.advance(Duration::from_secs(60));
    let last = market.granted("key-0000000000002", "54.42").await;
    let records = Records { tenant_id: SUPPLIER_TENANT, period: None, status: None, page: 1, page_size: 20 };
    let store = market.door.store();
    let page = records.page(store).await.unwrap();
    let shown: Vec<_> =
        page.items.iter().map(|it| (it.amount_minor.as_str(), it.settlement_id, it.status)).collect();
    assert_eq!((page.total, shown.len()), (2, 2));
    assert!(shown.contains(&("5440", Some(last), "frozen")), "{shown:?}");
    assert!(shown.contains(&("2.38136", Some(last), "frozen")), "{shown:?}");
    let status = |status| Records { status: Some(status), ..records.clone() };
    assert_eq!(status(EarningStatus::Withdrawn).page(store).await.unwrap().total, 0);
    let today = Period::read(Some("2026-04-03"), None, market.now()).unwrap();
    assert_eq!(Records { period: Some(today), ..records.clone() }.page(store).await.unwrap().total, 0);
    let own = market
        .count("select count(*) from supply_earnings where tenant_id = $1", values![SUPPLIER_TENANT])
        .await;
    assert_eq!(
        (own, Records { tenant_id: OTHER_TENANT, ..records }.page(store).await.unwrap().total),
        (2, 0)
    );
}
