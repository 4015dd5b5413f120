//! Batches of price changes through the door: slices, receipts, repeats, take-overs, races.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use door::Door;
use kernel::Random;
use serde_json::json;
use store::{Query, Write, values};
use supply::Policy;
use supply::packages::{BatchPrice, Item, Pause};

use crate::market::{Market, OTHER_SUPPLIER, OTHER_TENANT, SUPPLIER_TENANT, market_with, told};
use crate::packages::package;

const WAIT: Duration = Duration::from_secs(30);
const KEY: &str = "key-0000000000001";
const BATCH: &str = "supply.package.price.batch_update";

/// A market with an account, 5, and floors; slices of `slice` items.
async fn sliced(slice: usize) -> Market {
    let market = market_with(Policy { batch_slice: slice, ..Policy::default() }).await;
    market.account(5, "active").await;
    market.floor("openai", "gpt-x", 8, 32).await;
    market
}

async fn with_packages(slice: usize, ids: std::ops::RangeInclusive<i64>) -> Market {
    let market = sliced(slice).await;
    for id in ids {
        market.package(id, 5, "active").await;
    }
    market
}

fn batch(ids: impl IntoIterator<Item = i64>, input: &str, output: &str) -> BatchPrice {
    let items = ids.into_iter().map(|id| Item::parse(id, input, output)).collect();
    BatchPrice::of(&Policy::default(), items).unwrap()
}

/// How many packages have this price, whose version is this.
async fn priced(market: &Market, input: i64, version: i64) -> i64 {
    let sql = "select count(*) from supply_packages where price_per_1m_input = $1 and version = $2";
    market.count(sql, vec![store::Value::Money(input * 1_000_000), version.into()]).await
}

async fn receipts(market: &Market) -> i64 {
    market.count("select count(*) from supply_batch_items", vec![]).await
}

async fn record(market: &Market) -> (String, i64, i64) {
    let sql = "select status, attempt_no, claim_generation from supply_idempotency_record where idempotency_key = $1";
    let rows = market.door.store().query(Query::new("record", sql, values![KEY])).await.unwrap();
    (rows[0].text(0).unwrap().to_owned(), rows[0].int(1).unwrap(), rows[0].int(2).unwrap())
}

#[tokio::test]
async fn each_item_is_judged_by_itself_and_the_receipt_is_in_the_order_of_the_request() {
    let market = with_packages(2, 21..=23).await;
    market.package(24, 5, "draft").await;
    market.package(25, 5, "paused").await;
    market.package(26, 5, "sold_out").await;
    market.package(27, 5, "expired").await;
    let item = Item::parse;
    let items = vec![
        item(999, "9", "33"),
        item(27, "9", "33"),
        item(26, "9", "33"),
        item(25, "9", "33"),
        item(24, "9", "33"),
        item(23, "9", "-33"),
        item(22, "0.01", "33"),
        item(21, "9", "33"),
    ];
    let told = market.run(KEY, BatchPrice::of(&Policy::default(), items).unwrap()).await;
    assert_eq!((told.code, told.replayed), (200, false), "{told:?}");
    let data = &told.body["data"];
    assert_eq!(
        (&data["total"], &data["success_count"], &data["failed_count"]),
        (&json!(8), &json!(3), &json!(5))
    );
    let failures = data["failures"].as_array().unwrap();
    let failed: Vec<_> = failures
        .iter()
        .map(|each| (each["package_id"].as_i64().unwrap(), each["error_code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        failed,
        [
            (999, "SUP_PKG_4041"),
            (27, "SUP_PKG_4093"),
            (26, "SUP_PKG_4091"),
            (23, "SUP_PKG_4004"),
            (22, "SUP_PKG_4001")
        ]
    );
    assert!(failures.iter().all(|each| each["message"] != "" && each["message_zh"] != ""));
    assert_eq!((priced(&market, 9, 1).await, priced(&market, 8, 0).await), (3, 4));
    assert_eq!(market.audited("supply.package.price.update", "OK").await, 3);
    assert_eq!(market.announced("supply.package.price_update.succeeded").await, 3);
    assert_eq!(
        (market.audited(BATCH, "OK").await, market.announced("supply.package.batch_price.partial").await),
        (1, 1)
    );
    assert_eq!(market.audited("invariant_violation", "SUP_PKG_4001").await, 1);
    assert_eq!(
        market
            .count("select count(*) from audit_events where event_name = 'invariant_violation'", vec![])
            .await,
        1
    );
    let finished = "select count(*) from supply_batch_jobs where success_count = 3 and failed_count = 5 and finished_at is not null";
    assert_eq!(market.count(finished, vec![]).await, 1);
}

#[tokio::test]
async fn a_repeat_of_a_batch_gets_its_receipt_and_changes_nothing() {
    let market = with_packages(2, 21..=25).await;
    let first = market.run(KEY, batch(21..=25, "9", "33")).await;
    for _ in 0..3 {
        let repeat = market.run(KEY, batch(21..=25, "9", "33")).await;
        assert_eq!((repeat.code, repeat.replayed, &repeat.body), (200, true, &first.body));
    }
    let other = market.run(KEY, batch(21..=25, "10", "33")).await;
    assert!(other.replayed && !other.same);
    assert_eq!((priced(&market, 9, 1).await, receipts(&market).await), (5, 5));
    assert_eq!(
        (market.audited("idempotency.replayed", "OK").await, market.audited(BATCH, "OK").await),
        (3, 1)
    );
}

#[tokio::test]
async fn a_key_that_has_expired_is_another_job() {
    let market = with_packages(2, 21..=23).await;
    let first = market.run(KEY, batch(21..=23, "9", "33")).await;
    market.clock.advance(Duration::from_secs(24 * 3600));
    let second = market.run(KEY, batch(21..=23, "9", "33")).await;
    assert_eq!((second.code, second.replayed), (200, false));
    assert_ne!(first.body["data"]["batch_id"], second.body["data"]["batch_id"]);
    assert_eq!((priced(&market, 9, 2).await, receipts(&market).await), (3, 6));
    assert_eq!(record(&market).await, ("succeeded".into(), 1, 2));
}

/// Random bytes until so many draws are made; then it panics, as a node dies.
#[derive(Debug)]
struct Dying {
    left: AtomicI64,
    seed: AtomicI64,
}

impl Random for Dying {
    fn fill(&self, bytes: &mut [u8]) {
        assert!(self.left.fetch_sub(1, Ordering::SeqCst) > 0, "on purpose");
        for byte in bytes {
            *byte = self.seed.fetch_add(1, Ordering::SeqCst).to_le_bytes()[0];
        }
    }
}

/// A door that dies at the draw after this many: one for the claim, then two for each changed item.
fn dying(market: &Market, draws: i64) -> Door {
    let random = Dying { left: AtomicI64::new(draws), seed: AtomicI64::new(100) };
    Door::new(market.door.store().clone(), Arc::new(random))
}

#[tokio::test]
async fn a_batch_that_failed_between_slices_is_gone_on_with_and_nothing_is_done_twice() {
    // Dead in the third slice of two.
    let market = with_packages(2, 21..=28).await;
    let door = dying(&market, 1 + 2 * 4 + 1);
    let mixed = || {
        let items = (21..=28).rev().map(|id| Item::parse(id, if id % 4 == 0 { "1" } else { "9" }, "33"));
        BatchPrice::of(&Policy::default(), items.collect()).unwrap()
    };
    let first = door.submit(market.submission(market.operator(KEY), mixed(), WAIT)).await;
    assert!(first.is_err(), "{first:?}");
    assert_eq!((receipts(&market).await, record(&market).await), (4, ("failed".into(), 1, 1)));
    let between = market.run("key-between-00001", batch([21, 28], "10", "34")).await;
    assert_eq!(between.body["data"]["success_count"], 2);
    let second = market.run(KEY, mixed()).await;
    assert_eq!((second.code, second.replayed), (200, false), "{second:?}");
    let data = &second.body["data"];
    assert_eq!((&data["success_count"], &data["failed_count"]), (&json!(6), &json!(2)));
    assert_eq!(
        (&data["failures"][0]["package_id"], &data["failures"][1]["package_id"]),
        (&json!(28), &json!(24))
    );
    assert_eq!(record(&market).await, ("succeeded".into(), 2, 1));
    assert_eq!(
        market.count("select count(*) from supply_packages where id = 21 and version = 2", vec![]).await,
        1
    );
    assert_eq!(market.audited("supply.package.price.update", "OK").await, 6 + 2);
    assert_eq!(market.announced("supply.package.price_update.succeeded").await, 6 + 2);
    assert_eq!(market.audited("invariant_violation", "SUP_PKG_4001").await, 2);
    assert_eq!((market.audited(BATCH, "OK").await, receipts(&market).await), (2, 8 + 2));
}

#[tokio::test]
async fn a_batch_whose_node_vanished_is_taken_over_when_its_lease_has_lapsed() {
    let market = with_packages(2, 21..=26).await;
    let door = dying(&market, 1 + 2 * 2 + 1);
    let first = door.submit(market.submission(market.operator(KEY), batch(21..=26, "9", "33"), WAIT)).await;
    assert!(first.is_err(), "{first:?}");
    // As it stands when nobody was left to put the failure on record.
    let at = market.now().plus(Duration::from_secs(30));
    let sql = "update supply_idempotency_record set status = 'processing', claim_token = $1, locked_until = $2 where idempotency_key = $3";
    market.force(vec![Write::one("vanished", sql, values![[7_u8; 16], at, KEY])]).await;
    let early = market.submission(market.operator(KEY), batch(21..=26, "9", "33"), Duration::ZERO);
    assert!(matches!(
        market.door.submit(early).await,
        Ok(door::Answer::InProgress { same: true, durable: true, .. })
    ));
    market.clock.advance(Duration::from_secs(30));
    let second = market.run(KEY, batch(21..=26, "9", "33")).await;
    assert_eq!((second.code, &second.body["data"]["success_count"]), (200, &json!(6)), "{second:?}");
    assert_eq!((priced(&market, 9, 1).await, record(&market).await), (6, ("succeeded".into(), 2, 1)));
}

#[tokio::test]
async fn batches_of_opposite_orders_that_meet_both_go_through() {
    let market = with_packages(5, 21..=40).await;
    for round in 0..10 {
        let up = market.operator(&format!("key-up-{round:010}"));
        let up = market.submission(up, batch(21..=40, "9", "33"), WAIT);
        let down = market.operator(&format!("key-down-{round:010}"));
        let down = market.submission(down, batch((21..=40).rev(), "10", "34"), WAIT);
        let one = Pause { package_id: 21 + round };
        let one = market.submission(market.operator(&format!("key-one-{round:010}")), one, WAIT);
        let (up, down, one) =
            tokio::join!(market.door.submit(up), market.other.submit(down), market.other.submit(one));
        for told in [told(up), told(down)] {
            assert_eq!((told.code, &told.body["data"]["failed_count"]), (200, &json!(0)), "{told:?}");
        }
        let one = told(one);
        assert!(one.code == 200 || one.error() == "SUP_PKG_4091", "{one:?}");
    }
    let torn = "select count(*) from supply_packages where price_per_1m_output - price_per_1m_input <> $1";
    assert_eq!(market.count(torn, vec![store::Value::Money(24_000_000)]).await, 0);
    let paused = market.audited("supply.package.pause", "OK").await;
    let versions = "select sum(version) from supply_packages";
    let rows = market.door.store().query(Query::new("versions", versions, vec![])).await.unwrap();
    let told = "select count(*) from outbox where object_type = 'supply_package'";
    assert_eq!(market.count(told, vec![]).await, 10 * 2 * 20 + paused);
    assert_eq!(rows.len(), 1);
    assert_eq!(market.announced("supply.package.batch_price.succeeded").await, 20);
}

#[tokio::test]
async fn two_hundred_items_are_four_slices_and_one_batch() {
    let market = with_packages(50, 101..=300).await;
    let told = market.run(KEY, batch((101..=300).rev(), "9", "33")).await;
    assert_eq!((told.code, &told.body["data"]["success_count"]), (200, &json!(200)), "{told:?}");
    assert_eq!((priced(&market, 9, 1).await, receipts(&market).await), (200, 200));
    assert_eq!(market.announced("supply.package.price_update.succeeded").await, 200);
    let first = "select count(*) from supply_batch_items where package_id = 300 and position = 0";
    assert_eq!(market.count(first, vec![]).await, 1);
}

#[tokio::test]
async fn packages_of_another_tenant_are_missing_in_a_batch() {
    let market = with_packages(50, 21..=22).await;
    let stranger = market.caller(OTHER_TENANT, OTHER_SUPPLIER, KEY);
    let told = market.run_as(stranger, batch([21, 22, 999], "9", "33")).await;
    assert_eq!((told.code, &told.body["data"]["failed_count"]), (200, &json!(3)));
    let failures = told.body["data"]["failures"].as_array().unwrap();
    assert!(failures.iter().all(|each| each["error_code"] == "SUP_PKG_4041"));
    assert_eq!(market.announced("supply.package.batch_price.failed").await, 1);
    assert_eq!(package(&market, 21).await, ("active".into(), 0));
    let told_of_theirs =
        "select count(*) from audit_events where object_id in ('21', '22') or tenant_id = $1";
    assert_eq!(market.count(told_of_theirs, values![SUPPLIER_TENANT]).await, 0);
}
