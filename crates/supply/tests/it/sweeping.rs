//! Records that nobody comes back for.

use std::time::Duration;

use serde_json::json;
use store::{Write, values};
use supply::Policy;
use supply::packages::{BatchPrice, Item, Pause, Publish};
use supply::sweep::{Swept, sweep};

use crate::market::{Market, market};

const RECORDS: &str = "select count(*) from supply_idempotency_record where status = $1";

async fn swept(market: &Market) -> Swept {
    sweep(&market.door, market.now(), 10).await.unwrap()
}

async fn with_package() -> Market {
    let market = market().await;
    market.account(5, "active").await;
    market.floor("openai", "gpt-x", 8, 32).await;
    market.package(17, 5, "active").await;
    market
}

fn batch() -> BatchPrice {
    BatchPrice::of(&Policy::default(), vec![Item::parse(17, "9", "33")]).unwrap()
}

#[tokio::test]
async fn a_record_goes_an_hour_after_its_key_has_ended_and_the_last_one_stays() {
    let market = with_package().await;
    assert_eq!(market.run("key-0000000000001", batch()).await.code, 200);
    assert_eq!(market.run("key-0000000000002", Pause { package_id: 17 }).await.code, 200);
    market.clock.advance(Duration::from_secs(25 * 3600 - 1));
    assert_eq!(swept(&market).await, Swept::default());
    market.clock.advance(Duration::from_secs(1));
    assert_eq!(swept(&market).await, Swept { lapsed: 0, ended: 1 });
    assert_eq!(swept(&market).await, Swept::default());
    assert_eq!(market.count(RECORDS, values!["succeeded"]).await, 1);
    // The key is free, and its job is another one.
    let again = market.run("key-0000000000001", batch()).await;
    assert_eq!((again.code, &again.body["data"]["batch_id"]), (200, &json!("2")), "{again:?}");
    assert_eq!(market.run("key-0000000000003", Publish { package_id: 17 }).await.code, 200);
}

#[tokio::test]
async fn a_claim_that_nobody_holds_ends_by_itself_and_its_repeat_does_the_work() {
    let market = with_package().await;
    assert_eq!(market.run("key-0000000000001", batch()).await.code, 200);
    let at = market.now().plus(Duration::from_secs(30));
    let sql =
        "update supply_idempotency_record set status = 'processing', claim_token = $1, locked_until = $2,
      response_code = null, response_body = null";
    market.force(vec![Write::one("vanished", sql, values![[7_u8; 16], at])]).await;
    let unfinished = "update supply_batch_jobs set finished_at = null, success_count = 0";
    market.force(vec![Write::one("unfinished", unfinished, values![])]).await;
    assert_eq!(swept(&market).await, Swept::default());
    market.clock.advance(Duration::from_secs(30));
    assert_eq!(swept(&market).await, Swept { lapsed: 1, ended: 0 });
    assert_eq!(market.count(RECORDS, values!["failed"]).await, 1);
    // Another payload is still another one; the same goes on behind the receipt.
    let items = vec![Item::parse(17, "10", "34")];
    let other = BatchPrice::of(&Policy::default(), items).unwrap();
    let other = market.submission(market.operator("key-0000000000001"), other, Duration::ZERO);
    assert!(matches!(market.door.submit(other).await, Ok(door::Answer::InProgress { same: false, .. })));
    let again = market.run("key-0000000000001", batch()).await;
    assert_eq!((again.code, &again.body["data"]["success_count"]), (200, &json!(1)), "{again:?}");
    assert_eq!(market.count("select count(*) from supply_batch_items", vec![]).await, 1);
}

#[tokio::test]
async fn nodes_that_sweep_at_once_and_clients_that_come_back_meanwhile_do_no_harm() {
    let market = with_package().await;
    for n in 0..40 {
        assert_eq!(market.run(&format!("key-000000000{n:04}"), batch()).await.code, 200);
    }
    market.clock.advance(Duration::from_secs(26 * 3600));
    let now = market.now();
    let clients = async {
        for n in 0..40 {
            let told = market.run(&format!("key-000000000{n:04}"), batch()).await;
            assert_eq!(told.code, 200, "{told:?}");
        }
    };
    let node = async |door: &door::Door| {
        for _ in 0..10 {
            sweep(door, now, 5).await.unwrap();
        }
    };
    tokio::join!(clients, node(&market.door), node(&market.other));
    assert_eq!(market.count("select count(*) from supply_batch_jobs", vec![]).await, 80);
    assert!(market.count(RECORDS, values!["succeeded"]).await >= 40);
}
