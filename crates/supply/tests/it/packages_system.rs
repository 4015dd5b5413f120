//! What staff and the system do to packages, through the door: freezes, floors, selling out, restocking, ends.

use std::time::Duration;

use kernel::money::Price;
use store::{Value, Write, values};
use supply::packages::{CloneDraft, Due, Expire, Freeze, Pause, Publish, Restock, SellOut, Turn, Unlist};
use supply::platform::{Basis, ProtectPrice};
use supply::{Caller, Capacity};

use crate::market::{ADMIN, Market, SUPPLIER_TENANT, Told, told};
use crate::packages::{package, with_draft};
use crate::packages_moves::{quota, with_active};

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

fn admin(market: &Market, tenant: i64, key: &str) -> Caller {
    Caller { capacity: Capacity::Admin, role: "admin", ..market.caller(tenant, ADMIN, key) }
}

async fn due(market: &Market, turn: Turn) -> Vec<Due> {
    Due::list(market.door.store(), turn, market.now(), 10).await.unwrap()
}

/// All that is due, done: the answers.
async fn turn(market: &Market, turn: Turn) -> Vec<Told> {
    let mut answers = Vec::new();
    for each in due(market, turn).await {
        let (caller, package_id) = (each.caller(), each.package_id);
        answers.push(match turn {
            Turn::Expire => market.run_as(caller, Expire { package_id }).await,
            Turn::SellOut => market.run_as(caller, SellOut { package_id }).await,
            Turn::Restock => market.run_as(caller, Restock { package_id }).await,
        });
    }
    answers
}

/// Sells so many tokens of the package past all rules; the rest is available.
async fn sold(market: &Market, id: i64, tokens: i64) {
    let (sold, left) = (tokens * 1_000_000, (5_000_000 - tokens) * 1_000_000);
    let sql = "update supply_packages set sold_quota = $1, available_quota = $2, version = version + 1 where id = $3";
    let row = vec![Value::Money(sold), Value::Money(left), id.into()];
    market.force(vec![Write::one("sold", sql, row)]).await;
}

#[tokio::test]
async fn a_frozen_package_is_paused_and_stays_so_until_its_owner_resumes_it() {
    let market = with_active().await;
    let frozen = market.run_as(admin(&market, SUPPLIER_TENANT, "key-0000000000001"), Freeze::On(17)).await;
    assert_eq!(
        (frozen.code, &frozen.body["data"]["status"]),
        (200, &serde_json::json!("paused")),
        "{frozen:?}"
    );
    let resumed = market.run("key-0000000000002", Publish { package_id: 17 }).await;
    assert_eq!((resumed.code, resumed.error()), (409, "SUP_PKG_4094"));
    let again = market.run_as(admin(&market, SUPPLIER_TENANT, "key-0000000000003"), Freeze::On(17)).await;
    assert_eq!((again.code, again.error()), (409, "SUP_PKG_4091"));
    assert_eq!(
        market.run_as(admin(&market, SUPPLIER_TENANT, "key-0000000000004"), Freeze::Off(17)).await.code,
        200
    );
    assert_eq!(package(&market, 17).await, ("paused".into(), 3));
    assert_eq!(market.run("key-0000000000005", Publish { package_id: 17 }).await.code, 200);
    let by_staff = "select count(*) from audit_events where event_name in ('supply.package.freeze', 'supply.package.unfreeze')
        and result_code = 'OK' and operator_type = 'admin' and operator_id = $1 and tenant_id = $2";
    assert_eq!(market.count(by_staff, values![ADMIN, SUPPLIER_TENANT]).await, 2);
    let owners = market.run("key-0000000000006", Freeze::On(17)).await;
    assert_eq!((owners.code, owners.error()), (404, "SUP_PKG_4041"));
}

#[tokio::test]
async fn a_clone_does_not_get_around_a_freeze() {
    let market = with_active().await;
    let staff = |key| admin(&market, SUPPLIER_TENANT, key);
    assert_eq!(market.run_as(staff("key-0000000000001"), Freeze::On(17)).await.code, 200);
    let mut origin = 17;
    // Of the frozen one, and of its clone.
    for key in ["key-0000000000002", "key-0000000000003"] {
        let cloned = market.run(key, CloneDraft { package_id: origin }).await;
        let data = &cloned.body["data"];
        assert_eq!((cloned.code, &data["platform_frozen"]), (201, &serde_json::json!(true)), "{cloned:?}");
        origin = data["package_id"].as_i64().unwrap();
        let published = market.run(&format!("{key}-publish"), Publish { package_id: origin }).await;
        assert_eq!((published.code, published.error()), (409, "SUP_PKG_4094"));
    }
    // Its end is by staff, and each package's own.
    assert_eq!(market.run_as(staff("key-0000000000004"), Freeze::Off(17)).await.code, 200);
    assert_eq!(market.run("key-0000000000005", Publish { package_id: origin }).await.error(), "SUP_PKG_4094");
    assert_eq!(market.run_as(staff("key-0000000000006"), Freeze::Off(origin)).await.code, 200);
    assert_eq!(market.run("key-0000000000007", Publish { package_id: origin }).await.code, 200);
}

#[tokio::test]
async fn what_sold_out_keeps_its_state_when_frozen_and_is_restocked_after_it() {
    let market = with_active().await;
    sold(&market, 17, 5_000_000).await;
    let done = turn(&market, Turn::SellOut).await;
    assert_eq!(done.iter().map(|told| told.code).collect::<Vec<_>>(), [200]);
    assert_eq!(
        market.run_as(admin(&market, SUPPLIER_TENANT, "key-0000000000001"), Freeze::On(17)).await.code,
        200
    );
    assert_eq!(package(&market, 17).await.0, "sold_out");
    sold(&market, 17, 4_000_000).await;
    assert!(due(&market, Turn::Restock).await.is_empty());
    let waits =
        market.run_as(Caller::system(SUPPLIER_TENANT, "restock:17:x"), Restock { package_id: 17 }).await;
    assert_eq!((waits.code, waits.error()), (409, "SUP_PKG_4094"));
    assert_eq!(
        market.run_as(admin(&market, SUPPLIER_TENANT, "key-0000000000002"), Freeze::Off(17)).await.code,
        200
    );
    let done = turn(&market, Turn::Restock).await;
    assert_eq!(done.iter().map(|told| told.code).collect::<Vec<_>>(), [200]);
    assert_eq!(package(&market, 17).await.0, "active");
    // Sold out once more: another fact under another key.
    sold(&market, 17, 5_000_000).await;
    assert_eq!(turn(&market, Turn::SellOut).await.len(), 1);
    assert_eq!(market.announced("supply.package.sold_out.succeeded").await, 2);
    assert_eq!(market.announced("supply.package.restock.succeeded").await, 1);
}

#[tokio::test]
async fn a_restock_waits_for_its_account() {
    let market = with_active().await;
    sold(&market, 17, 5_000_000).await;
    turn(&market, Turn::SellOut).await;
    sold(&market, 17, 1).await;
    let suspend = |status: &'static str| {
        Write::one("account", "update supply_accounts set status = $1 where id = 5", values![status])
    };
    market.force(vec![suspend("suspended")]).await;
    assert!(turn(&market, Turn::Restock).await.is_empty());
    market.force(vec![suspend("active")]).await;
    assert_eq!(turn(&market, Turn::Restock).await.len(), 1);
}

#[tokio::test]
async fn a_package_ends_with_its_validity_once_and_its_unsold_quota_goes_back() {
    let market = with_active().await;
    sold(&market, 17, 2_000_000).await;
    assert!(due(&market, Turn::Expire).await.is_empty());
    market.clock.advance(MONTH);
    let late = market.run("key-0000000000001", Pause { package_id: 17 }).await;
    assert_eq!(late.code, 200);
    let resumed = market.run("key-0000000000002", Publish { package_id: 17 }).await;
    assert_eq!((resumed.code, resumed.error()), (409, "SUP_PKG_4093"), "though the sweeper is late");
    let listed = due(&market, Turn::Expire).await;
    assert_eq!(listed.len(), 1);
    let submit = |door| {
        let submission =
            market.submission(listed[0].caller(), Expire { package_id: 17 }, Duration::from_secs(10));
        async move { told(door::Door::submit(door, submission).await) }
    };
    let (one, two) = tokio::join!(submit(&market.door), submit(&market.other));
    assert_eq!((one.code, two.code), (200, 200));
    assert!(one.replayed != two.replayed, "one fact, one key: {one:?} {two:?}");
    assert_eq!(quota(&market).await, (8_000_000, 2_000_000));
    assert_eq!(package(&market, 17).await, ("expired".into(), 4));
    assert_eq!(
        (
            market.audited("supply.package.expire", "OK").await,
            market.announced("supply.package.expire.succeeded").await
        ),
        (1, 1)
    );
    let key = "select count(*) from audit_events where event_name = 'supply.package.expire' and operator_type = 'system'
        and idempotency_key = 'expire:17:2026-04-26T02:03:04.000Z' and request_id = idempotency_key";
    assert_eq!(market.count(key, vec![]).await, 1);
    assert!(due(&market, Turn::Expire).await.is_empty());
    let gone = market.run("key-0000000000003", Publish { package_id: 17 }).await;
    assert_eq!(
        (gone.error(), &gone.body["error"]["details"]["rule_code"]),
        ("SUP_PKG_4093", &serde_json::json!("INV-PKG-002"))
    );
    let rules = "select count(*) from audit_events where event_name = 'invariant_violation' and rule_code = 'INV-PKG-002'";
    assert_eq!(market.count(rules, vec![]).await, 2, "one for each command that was refused");
}

#[tokio::test]
async fn selling_out_and_restocking_are_the_systems_alone() {
    let market = with_active().await;
    let told = market.run("key-0000000000001", SellOut { package_id: 17 }).await;
    assert_eq!((told.code, told.error()), (409, "SUP_PKG_4092"));
    let staff = admin(&market, SUPPLIER_TENANT, "key-0000000000002");
    let told = market.run_as(staff, Restock { package_id: 17 }).await;
    assert_eq!((told.code, told.error()), (409, "SUP_PKG_4092"));
    let rules = "select count(*) from audit_events where event_name = 'invariant_violation' and rule_code = 'INV-PKG-001'";
    assert_eq!((market.count(rules, vec![]).await, package(&market, 17).await.0), (2, "active".into()));
    assert_eq!(market.run("key-0000000000003", Unlist { package_id: 17 }).await.code, 200);
}

#[tokio::test]
async fn a_floor_holds_from_its_instant_on_and_what_was_in_force_stays_on_record() {
    let market = with_draft().await;
    let price = |text| Price::parse(text).unwrap();
    let protect = |after| ProtectPrice {
        provider: "openai".into(),
        model: "gpt-x".into(),
        input: Basis::Official(price("12.5")),
        output: Basis::Floor(price("32")),
        effective_from: Some(market.now().plus(Duration::from_secs(after))),
    };
    let set = market.run_as(admin(&market, 1, "key-0000000000001"), protect(60)).await;
    assert_eq!(
        (set.code, &set.body["data"]["floor_price_per_1m_input"]),
        (200, &serde_json::json!(10)),
        "{set:?}"
    );
    let again = market.run_as(admin(&market, 1, "key-0000000000002"), protect(60)).await;
    assert_eq!((again.code, again.error()), (409, "SUP_COM_4091"));
    assert_eq!(market.run("key-0000000000003", Publish { package_id: 17 }).await.code, 200);
    assert_eq!(market.run("key-0000000000004", Pause { package_id: 17 }).await.code, 200);
    market.clock.advance(Duration::from_secs(60));
    let below = market.run("key-0000000000005", Publish { package_id: 17 }).await;
    assert_eq!((below.code, below.error()), (400, "SUP_PKG_4001"));
    assert_eq!(below.body["error"]["details"]["floor"], 10);
    let rows = "select count(*) from supply_price_protection where model = 'gpt-x'";
    assert_eq!(market.count(rows, vec![]).await, 4);
    let rules = "select count(*) from audit_events where event_name = 'invariant_violation' and rule_code = 'INV-PKG-003'";
    assert_eq!(market.count(rules, vec![]).await, 1);
    assert_eq!(market.audited("supply.price_protection.set", "OK").await, 1);
}
