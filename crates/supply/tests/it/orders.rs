//! Orders and calls through the door: the worked example of section 11.6, repeats, races.

use std::time::Duration;

use serde_json::json;
use store::{Query, Value, Write, values};
use supply::orders::{Cancel, Cause, Close, Create, Pay, Refund};
use supply::platform::{orders_to_close, orders_to_time_out};
use supply::rows::Earning;
use supply::{Caller, Capacity};

use crate::market::{ADMIN, BUYER, BUYER_TENANT, OTHER_TENANT, SUPPLIER_TENANT, told};
use crate::orders_desk::{DAY, WAIT};
pub(crate) use crate::orders_desk::{call, cny, trading};

#[tokio::test]
async fn the_worked_example_comes_out_to_the_last_digit() {
    // Section 11.6; rows 5 to 7 are the withdrawals' own tests.
    let market = trading().await;
    assert_eq!(market.top_up("20000").await.code, 201);
    assert_eq!(market.table().await, ["20000", "20000", "0", "0", "0", "0", "0", "0", "0"]);
    let order = market.order(5_000_000).await;
    assert_eq!(market.table().await, ["20000", "4000", "16000", "0", "0", "0", "0", "0", "0"]);
    for (id, tokens) in [("call-1", (2_000_000, 1_500_000)), ("call-2", (1_234, 567))] {
        let told = market.administer(BUYER_TENANT, call(&market, order, id, tokens)).await;
        assert_eq!(told.code, 200, "{told:?}");
    }
    assert_eq!(
        market.table().await,
        ["20000", "4000", "9597.1984", "5442.38136", "0", "0", "960.42024", "0", "0"]
    );
    market.clock.advance(DAY * 7 - Duration::from_micros(1));
    assert_eq!(market.release_due().await, 0);
    market.clock.advance(Duration::from_micros(1));
    assert_eq!(market.release_due().await, 2);
    assert_eq!(
        market.table().await,
        ["20000", "4000", "9597.1984", "0", "5442.38136", "0", "960.42024", "0", "0"]
    );
    market.sound("releases").await;
    market.paid_out(1, cny("5000")).await;
    assert_eq!(
        market.table().await,
        ["15050", "4000", "9597.1984", "0", "442.38136", "0", "960.42024", "50", "0"]
    );
    let refund = Refund { order_id: order, charge: Some(cny("1000")) };
    let told = market.administer(SUPPLIER_TENANT, refund).await;
    assert_eq!(told.code, 200, "{told:?}");
    // Rows 9 and 10 are one command: it gives 10.00 of charges back and closes.
    let last = ["15050", "14597.1984", "0", "0", "0", "0", "810.42024", "50", "407.61864"];
    assert_eq!(market.table().await, last);
    assert_eq!(told.body["data"]["returned_amount_minor"], "9597.1984");
    market.sound("the refund").await;
    let after_nine =
        "select count(*) from billing_ledger_entries e join billing_journals j on j.id = e.journal_id
        where j.journal_type = 'J-REFUND' and e.direction = 'cr' and e.balance_after = $1";
    assert_eq!(market.count(after_nine, vec![Value::Money(5_000_000_000)]).await, 1, "row 9: prepaid 5000");
}

#[tokio::test]
async fn a_debt_is_paid_by_the_next_release() {
    let market = trading().await;
    market.top_up("40000").await;
    let order = market.order(2_000_000).await;
    market.administer(BUYER_TENANT, call(&market, order, "call-1", (0, 1_000_000))).await;
    market.clock.advance(DAY * 7);
    market.release_due().await;
    market.paid_out(1, cny("2700")).await;
    let told = market.administer(SUPPLIER_TENANT, Refund { order_id: order, charge: None }).await;
    assert_eq!(told.body["data"]["refunded_amount_minor"], "3200");
    assert_eq!(market.balance("supplier_receivable").await, "2700");
    market.sound("the refund").await;
    let next = market.order(2_000_000).await;
    market.administer(BUYER_TENANT, call(&market, next, "call-2", (0, 1_500_000))).await;
    market.clock.advance(DAY * 7);
    assert_eq!(market.release_due().await, 1);
    assert_eq!(
        (market.balance("supplier_receivable").await, market.balance("supplier_available").await),
        ("0".into(), "1380".into())
    );
    assert_eq!(market.announced("supply.earning.reverse.succeeded").await, 2);
    // Refund and recovery; and what is on record of the released earning is what was committed.
    assert_eq!(market.audited("supply.earning.reverse", "OK").await, 2);
    let sql = format!("select {} from supply_earnings e order by e.id desc limit 1", Earning::COLUMNS);
    let row = market.door.store().query(Query::new("earning", sql, vec![])).await.unwrap().remove(0);
    let stands = Earning::read(&row).unwrap();
    for event in ["supply.earning.release", "supply.earning.reverse"] {
        let sql = "select after_state from audit_events where event_name = $1 order by id desc limit 1";
        let row =
            market.door.store().query(Query::new("audit", sql, values![event])).await.unwrap().remove(0);
        let after: serde_json::Value = serde_json::from_str(row.text(0).unwrap()).unwrap();
        assert_eq!(after, stands.state(), "{event}");
    }
    let versions = "select count(*) from outbox where object_type = 'supply_earning' and object_id = $1 and aggregate_version = $2";
    assert_eq!(market.count(versions, values![stands.id.to_string(), stands.version]).await, 2);
    market.sound("the recovery").await;
}

#[tokio::test]
async fn a_call_reported_again_is_billed_once_and_answered_alike() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    let report = || market.administer(BUYER_TENANT, call(&market, order, "call-1", (1_000, 2_000)));
    let first = report().await;
    let again = report().await;
    assert_eq!((first.code, &again.body), (200, &first.body));
    market.clock.advance(DAY);
    let other = market.administer(BUYER_TENANT, call(&market, order, "call-1", (1_000, 2_001))).await;
    assert_eq!((other.code, other.error()), (409, "SUP_COM_4092"));
    assert_eq!(market.audited("supply.order.use", "SUP_COM_4092").await, 1);
    let records = market.count("select count(*) from supply_usage_records", vec![]).await;
    let journals =
        market.count("select count(*) from billing_journals where journal_type = 'J-USAGE'", vec![]).await;
    assert_eq!((records, journals), (1, 1));
    market.sound("repeats").await;
}

#[tokio::test]
async fn a_call_raced_over_two_doors_is_billed_once() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    for round in 0..5 {
        let submit = |key: &str| {
            let caller = Caller { capacity: Capacity::System, ..market.caller(BUYER_TENANT, ADMIN, key) };
            market.submission(caller, call(&market, order, &format!("call-{round}"), (100, 200)), WAIT)
        };
        let (one, two) = tokio::join!(market.door.submit(submit("")), market.other.submit(submit("")));
        let (one, two) = (told(one), told(two));
        assert_eq!((one.code, two.code, &one.body), (200, 200, &two.body), "{one:?} {two:?}");
    }
    assert_eq!(market.count("select count(*) from supply_usage_records", vec![]).await, 5);
    assert_eq!(market.count("select count(*) from supply_earnings", vec![]).await, 5);
    market.sound("the race").await;
}

#[tokio::test]
async fn calls_of_one_order_side_by_side_are_all_billed() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    let submit = |id: &str| {
        let caller = Caller { capacity: Capacity::System, ..market.caller(BUYER_TENANT, ADMIN, "") };
        market.submission(caller, call(&market, order, id, (10, 20)), WAIT)
    };
    let (a, b, c, d) = tokio::join!(
        market.door.submit(submit("a")),
        market.other.submit(submit("b")),
        market.door.submit(submit("c")),
        market.other.submit(submit("d"))
    );
    assert_eq!([a, b, c, d].map(|answer| told(answer).code), [200; 4]);
    let counted = "select count(*) from supply_accounts where total_requests = 4 and total_tokens = 120 and success_rate = $1";
    assert_eq!(market.count(counted, vec![Value::Money(100_000_000)]).await, 1);
    market.sound("side by side").await;
}

#[tokio::test]
async fn orders_payments_and_calls_of_one_package_wait_for_each_other() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 1_000_000_000 };
    let pending = market.buy(create).await.body["data"]["order_id"].as_i64().unwrap();
    let buyer = || market.caller(BUYER_TENANT, BUYER, "");
    let gateway = || Caller { capacity: Capacity::System, ..buyer() };
    let usage = |id: &str| market.submission(gateway(), call(&market, order, id, (10, 20)), WAIT);
    let (a, b, c, d, e) = tokio::join!(
        market.door.submit(usage("a")),
        market.other.submit(market.submission(buyer(), create, WAIT)),
        market.door.submit(market.submission(buyer(), Pay { order_id: pending }, WAIT)),
        market.other.submit(usage("b")),
        market.door.submit(market.submission(buyer(), create, WAIT))
    );
    assert_eq!([a, b, c, d, e].map(|answer| told(answer).code), [200, 201, 200, 200, 201]);
    market.sound("all of them").await;
}

#[tokio::test]
async fn an_order_is_paid_once_and_only_with_the_money() {
    let market = trading().await;
    let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 1_000_000_000_000 };
    let order_id = market.buy(create).await.body["data"]["order_id"].as_i64().unwrap();
    market.top_up("3199").await;
    assert_eq!(market.buy(Pay { order_id }).await.error(), "SUP_ORD_4021");
    market.top_up("1").await;
    let submit =
        |key: &str| market.submission(market.caller(BUYER_TENANT, BUYER, key), Pay { order_id }, WAIT);
    let (one, two) = tokio::join!(
        market.door.submit(submit("key-0000000000001")),
        market.other.submit(submit("key-0000000000002"))
    );
    let mut codes = [told(one).code, told(two).code];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409]);
    assert_eq!(market.announced("supply.order.pay.succeeded").await, 1);
    let frozen = "select frozen_quota from supply_accounts where id = 5";
    assert_eq!(market.sum(frozen, vec![]).await, 4_000_000_000_000, "what is sold is consumed");
    market.sound("the payment").await;
}

#[tokio::test]
async fn of_two_buyers_of_the_last_quota_one_gets_it() {
    let market = trading().await;
    let submit = |key: &str| {
        let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 3_000_000_000_000 };
        market.submission(market.caller(BUYER_TENANT, BUYER, key), create, WAIT)
    };
    let (one, two) = tokio::join!(
        market.door.submit(submit("key-0000000000001")),
        market.other.submit(submit("key-0000000000002"))
    );
    let (one, two) = (told(one), told(two));
    let lost = if one.code == 201 { &two } else { &one };
    assert_eq!((one.code.min(two.code), lost.error()), (201, "SUP_ORD_4001"));
    assert_eq!(lost.body["error"]["details"]["available"], json!(2_000_000));
    market.sound("the race").await;
}

#[tokio::test]
async fn what_is_not_paid_in_time_may_be_bought_by_others() {
    let market = trading().await;
    market.top_up("20000").await;
    let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 5_000_000_000_000 };
    let order_id = market.buy(create).await.body["data"]["order_id"].as_i64().unwrap();
    let another = Create { quota_count: 1_000_000, ..create };
    assert_eq!(market.buy(another).await.error(), "SUP_ORD_4001");
    let list = || market.due(orders_to_time_out(market.now(), 10, &market.house));
    market.clock.advance(Duration::from_secs(899));
    assert!(list().await.is_empty());
    market.clock.advance(Duration::from_secs(1));
    assert_eq!(market.buy(Pay { order_id }).await.error(), "SUP_ORD_4091", "the scheduler is late");
    let due = list().await[0];
    let time_out = Cancel { order_id: due.id, cause: Cause::Timeout };
    assert_eq!(market.run_as(due.caller("timeout"), time_out).await.code, 200);
    let again = market.run_as(due.caller("timeout"), time_out).await;
    assert!(again.replayed);
    assert_eq!(market.buy(another).await.code, 201);
    assert_eq!(market.announced("supply.order.close.succeeded").await, 1);
    market.sound("the time-out").await;
}

#[tokio::test]
async fn the_end_of_validity_gives_the_rest_of_the_escrow_back() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    market.administer(BUYER_TENANT, call(&market, order, "call-1", (0, 500_000))).await;
    market.clock.advance(DAY * 30);
    let late = market.administer(BUYER_TENANT, call(&market, order, "call-2", (0, 1))).await;
    assert_eq!(late.error(), "SUP_ORD_4091");
    let due = market.due(orders_to_close(market.now(), 10)).await;
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [order]);
    assert_eq!(market.run_as(due[0].caller("close"), Close { order_id: order }).await.code, 200);
    assert_eq!(market.derived("buyer_prepaid").await, "18400");
    for refused in [
        market.administer(SUPPLIER_TENANT, Refund { order_id: order, charge: None }).await,
        market.buy(Pay { order_id: order }).await,
        market.buy(Cancel { order_id: order, cause: Cause::Buyer }).await,
    ] {
        assert_eq!(refused.error(), "SUP_ORD_4091");
    }
    market.sound("the end").await;
}

#[tokio::test]
async fn tiny_calls_never_cost_more_than_the_escrow() {
    let market = trading().await;
    // 99,999 tokens at 0.100001 a million come to one millionth less than 1, and 5,000 to half a millionth more
    // than they are rounded up from.
    let sql = "update supply_packages set price_per_1m_input = $1, price_per_1m_output = $2";
    let price = Value::Money(100_001);
    market.force(vec![Write::any("prices", sql, vec![price.clone(), price])]).await;
    market.top_up("100").await;
    let order = market.order(99_999).await;
    assert_eq!(market.derived("order_escrow").await, "1");
    let mut costs = Vec::new();
    for number in 1..=20 {
        let tokens = if number < 20 { 5_000 } else { 4_999 };
        let call = call(&market, order, &format!("call-{number}"), (tokens, 0));
        let told = market.administer(BUYER_TENANT, call).await;
        costs.push(told.body["data"]["total_cost_minor"].as_str().unwrap().to_owned());
    }
    assert_eq!(costs[..19], ["0.050001"; 19].map(ToOwned::to_owned));
    assert_eq!(costs[19], "0.049981", "0.04999 without the others' roundings");
    assert_eq!(market.derived("order_escrow").await, "0");
    market.sound("tiny calls").await;
    let over = market.administer(BUYER_TENANT, call(&market, order, "over", (1, 0))).await;
    assert_eq!(over.error(), "SUP_ORD_4091", "the last call closed the order");
}

#[tokio::test]
async fn an_order_of_others_is_missing() {
    let market = trading().await;
    market.top_up("20000").await;
    let order_id = market.order(1_000_000).await;
    let stranger = || market.caller(OTHER_TENANT, 24, "");
    let supplier = || market.operator("");
    for told in [
        market.run_as(stranger(), Pay { order_id }).await,
        market.run_as(supplier(), Cancel { order_id, cause: Cause::Buyer }).await,
        market.administer(OTHER_TENANT, Refund { order_id, charge: None }).await,
        market.administer(OTHER_TENANT, call(&market, order_id, "call-1", (1, 1))).await,
    ] {
        assert_eq!((told.code, told.error()), (404, "SUP_ORD_4041"));
    }
    let foreign = Create { buyer_id: BUYER, package_id: 17, quota_count: 1_000_000 };
    assert_eq!(market.run_as(stranger(), foreign).await.error(), "SUP_COM_4041");
}
