//! Floors that are planned, in force and past, through every command that reads them.

use std::time::Duration;

use kernel::money::Price;
use serde_json::{Value as Json, json};
use store::{Query, values};
use supply::packages::{BatchPrice, Fields, Item, Pause, Publish, SaveDraft, Texts};
use supply::platform::{Basis, ProtectPrice};
use supply::{Caller, Capacity};

use crate::market::{ADMIN, Market, Told};
use crate::packages::with_draft;

/// Plans the floor of input tokens from so many milliseconds after now on.
async fn plan(market: &Market, key: &str, (input, after): (&str, u64)) -> Told {
    let floor = |text| Basis::Floor(Price::parse(text).unwrap());
    let protect = ProtectPrice {
        provider: "openai".into(),
        model: "gpt-x".into(),
        input: floor(input),
        output: floor("32"),
        effective_from: Some(market.now().plus(Duration::from_millis(after))),
    };
    let admin = Caller { capacity: Capacity::Admin, role: "admin", ..market.caller(1, ADMIN, key) };
    market.run_as(admin, protect).await
}

/// The floor that the audit says was in force when the last one was set.
async fn before(market: &Market) -> Price {
    let sql = "select cast(before_state as text) from audit_events
        where event_name = 'supply.price_protection.set' order by id desc limit 1";
    let rows = market.door.store().query(Query::new("before", sql, values![])).await.unwrap();
    let before: Json = serde_json::from_str(rows[0].text(0).unwrap()).unwrap();
    Price::parse(before["input"].as_str().unwrap()).unwrap()
}

/// Codes of a batch of one, and of publishing what it changed, at a price of input tokens; what was published is paused.
async fn offered(market: &Market, round: &str, input: &str) -> (Json, u16) {
    let item = Item::parse(17, input, "33");
    let batch = BatchPrice::of(&market.house.policy, vec![item]).unwrap();
    let batch = market.run(&format!("key-of-batch-{round:0>9}"), batch).await;
    assert_eq!(batch.code, 200, "{batch:?}");
    let publish = market.run(&format!("key-of-publish-{round:0>9}"), Publish { package_id: 17 }).await;
    market.run(&format!("key-of-pause-{round:0>9}"), Pause { package_id: 17 }).await;
    (batch.body["data"]["failures"][0]["error_code"].clone(), publish.code)
}

#[tokio::test]
async fn floors_that_are_planned_or_past_hide_none_that_is_in_force() {
    let market = with_draft().await;
    for n in 1..=70 {
        let soon = plan(&market, &format!("key-of-soon-{n:09}"), ("9", 60_000 + n)).await;
        let late = plan(&market, &format!("key-of-late-{n:09}"), ("10", 7_200_000 + n)).await;
        assert_eq!((soon.code, late.code), (200, 200), "{soon:?} {late:?}");
    }
    for (after, floor, below) in [(0, "8", "7.99"), (61, "9", "8.99"), (7200, "10", "9.99")] {
        market.clock.advance(Duration::from_secs(after));
        assert_eq!(offered(&market, below, below).await.0, "SUP_PKG_4001", "{floor}");
        assert_eq!(offered(&market, floor, floor).await, (json!(null), 200), "{floor}");
        let set = plan(&market, &format!("key-of-set-{after:09}"), ("50", 90_000_000)).await;
        assert_eq!((set.code, before(&market).await), (200, Price::parse(floor).unwrap()));
        let texts = Texts {
            supply_account_id: Some("5"),
            model: Some("gpt-x"),
            total_quota: Some("1000"),
            price_per_1m_input: Some(floor),
            price_per_1m_output: Some("33"),
            valid_days: Some("30"),
            ..Texts::default()
        };
        let draft = SaveDraft { fields: Fields::parse(&texts).unwrap() };
        let saved = market.run(&format!("key-of-draft-{after:09}"), draft).await;
        assert_eq!(saved.code, 201, "{saved:?}");
    }
}
