//! Only an active supplier writes: every kind of write through the door, for a supplier that staff suspended.

use store::values;
use supply::accounts::{Activate, Delete, Suspend};
use supply::packages::{BatchPrice, CloneDraft, Item, Pause, Publish, Unlist};
use supply::platform::{Measure, Stand};
use supply::{Caller, Capacity};

use crate::market::{ADMIN, Market, SUPPLIER, SUPPLIER_TENANT, Told, market};

async fn stand(market: &Market, key: &str, measure: Measure) -> Told {
    let sql = "select id from supply_suppliers where user_id = $1";
    let supplier_id = market.count(sql, values![SUPPLIER]).await;
    let admin =
        Caller { capacity: Capacity::Admin, role: "admin", ..market.caller(SUPPLIER_TENANT, ADMIN, key) };
    market.run_as(admin, Stand { supplier_id, measure, reason: "a complaint".into() }).await
}

/// What each write says, in the order of the list; a refused one leaves the next its state.
async fn writes(market: &Market, round: &str) -> Vec<(u16, String)> {
    let key = |n: u32| format!("key-of-{round}-{n:010}");
    let item = Item::parse(17, "9", "33");
    let batch = BatchPrice::of(&market.house.policy, vec![item]).unwrap();
    let told = [
        market.run(&key(1), Publish { package_id: 17 }).await,
        market.run(&key(2), Pause { package_id: 17 }).await,
        market.run(&key(3), batch).await,
        market.run(&key(4), CloneDraft { package_id: 17 }).await,
        market.run(&key(5), Unlist { package_id: 17 }).await,
        market.run(&key(6), Suspend { account_id: 5 }).await,
        market.run(&key(7), Activate { account_id: 6 }).await,
        market.run(&key(8), Delete { account_id: 7 }).await,
    ];
    told.iter().map(|told| (told.code, told.error().to_owned())).collect()
}

#[tokio::test]
async fn a_suspended_supplier_writes_nothing_and_goes_on_where_it_was() {
    let market = market().await;
    for (id, status) in [(5, "active"), (6, "pending"), (7, "suspended")] {
        market.account(id, status).await;
    }
    market.floor("openai", "gpt-x", 8, 32).await;
    market.package(17, 5, "draft").await;
    assert_eq!(stand(&market, "key-0000000000001", Measure::Suspend).await.code, 200);
    let twice = stand(&market, "key-0000000000002", Measure::Suspend).await;
    assert_eq!((twice.code, twice.error()), (409, "SUP_COM_4091"));
    // Pausing and unlisting a draft, cloning nothing: their own refusals come first, as ever.
    let mut refused = vec![(409, "SUP_SET_4095".to_owned()); 8];
    (refused[1], refused[4]) = ((409, "SUP_PKG_4091".into()), (409, "SUP_PKG_4091".into()));
    assert_eq!(writes(&market, "suspended").await, refused);
    let prices = "select count(*) from supply_batch_jobs";
    assert_eq!(market.count(prices, vec![]).await, 0, "no slice was begun");
    assert_eq!(stand(&market, "key-0000000000003", Measure::Resume).await.code, 200);
    let codes: Vec<u16> = writes(&market, "resumed").await.into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [200, 200, 200, 201, 200, 200, 200, 204]);
    for event in ["platform.supplier.suspend", "platform.supplier.resume"] {
        assert_eq!(market.audited(event, "OK").await, 1, "{event}");
    }
}

#[tokio::test]
async fn a_risk_case_holds_back_the_suspension_of_accounts_until_it_is_closed() {
    let market = market().await;
    market.account(5, "active").await;
    assert_eq!(stand(&market, "key-0000000000001", Measure::CloseCase).await.error(), "SUP_COM_4091");
    let told = stand(&market, "key-0000000000002", Measure::OpenCase).await;
    assert_eq!((told.code, &told.body["data"]["open_risk_cases"]), (200, &1.into()), "{told:?}");
    let held = market.run("key-0000000000003", Suspend { account_id: 5 }).await;
    assert_eq!((held.code, held.error()), (409, "SUP_ACC_4095"));
    assert_eq!(stand(&market, "key-0000000000004", Measure::CloseCase).await.code, 200);
    assert_eq!(market.run("key-0000000000005", Suspend { account_id: 5 }).await.code, 200);
}
