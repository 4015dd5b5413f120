//! Withdrawals: answers, repeats, codes, limits, and what is never written.

use std::time::Duration;

use custody::Place;
use kernel::Time;
use kernel::money::{Currency, Money};
use secrecy::ExposeSecret;
use store::{Query, Write, values};
use supply::Policy;
use supply::settlements::{Cancel, Complete, SendCode, Start};

use super::desk::{PHONE, asks, funded, purse, swift};
use crate::market::{OTHER_SUPPLIER, OTHER_TENANT, SUPPLIER_TENANT, market, market_with};

const WITHDRAW: &str = "supply.settlement.withdraw.create";

#[tokio::test]
async fn a_withdrawal_is_made_once_and_told_again_without_a_new_code() {
    let market = funded(60).await;
    let code = market.code().await;
    let first = market.run("key-0000000000001", asks("50.00", &code)).await;
    assert_eq!((first.code, first.replayed), (201, false), "{first:?}");
    let data = &first.body["data"];
    assert_eq!((&data["status"], &data["net_amount_minor"]), (&"pending".into(), &"4950".into()));
    for _ in 0..3 {
        let repeat = market.run("key-0000000000001", asks("50.00", &code)).await;
        assert_eq!((repeat.code, repeat.replayed, &repeat.body), (201, true, &first.body));
    }
    let other = market.run("key-0000000000001", asks("40.00", &code)).await;
    assert!(other.replayed && !other.same);
    assert_eq!(market.purse().await, purse("1000", "5000"));
    assert_eq!(market.rows("supply_settlements").await, 1);
    assert_eq!(
        (market.audited(WITHDRAW, "OK").await, market.audited("idempotency.replayed", "OK").await),
        (1, 3)
    );
    assert_eq!(market.announced("supply.settlement.withdraw.succeeded").await, 1);
}

#[tokio::test]
async fn the_sum_is_taken_from_the_oldest_earnings() {
    let market = market_with(swift()).await;
    for earning in [3, 1, 2] {
        market.fund(earning, 20).await;
        market.clock.advance(Duration::from_secs(60));
    }
    let id = market.granted("key-0000000000001", "50").await;
    let sql = "select i.earning_id, i.amount, e.available_amount, e.frozen_amount, e.status
        from supply_settlement_items i join supply_earnings e on e.id = i.earning_id
        where i.settlement_id = $1 order by e.available_at";
    let rows = market.door.store().query(Query::new("items", sql, values![id])).await.unwrap();
    let items: Vec<_> = rows
        .iter()
        .map(|row| {
            let minor = |column| row.int(column).unwrap() / 1_000_000;
            (row.int(0).unwrap(), minor(1), minor(2), minor(3), row.text(4).unwrap())
        })
        .collect();
    assert_eq!(
        items,
        [(3, 2000, 0, 2000, "frozen"), (1, 2000, 0, 2000, "frozen"), (2, 1000, 1000, 1000, "frozen")]
    );
}

#[tokio::test]
async fn of_442_38136_fen_442_may_go_and_the_fraction_stays() {
    let minimum = Money::from_count(1_000_000, Currency::CNY);
    let market = market_with(Policy { withdraw_min: minimum, ..swift() }).await;
    market.fund_exactly(1, Money::parse_minor("442.38136", Currency::CNY).unwrap()).await;
    let refused = market.withdraw("key-0000000000001", "4.43").await;
    assert_eq!((refused.code, refused.error()), (400, "SUP_SET_4001"));
    let details = &refused.body["error"]["details"];
    assert_eq!((&details["available_amount"], &details["rule_code"]), (&4.42.into(), &"INV-SET-002".into()));
    assert_eq!(market.audited("invariant_violation", "SUP_SET_4001").await, 1);
    assert_eq!(market.purse().await, purse("442.38136", "0"));
    market.granted("key-0000000000002", "4.42").await;
    assert_eq!(market.purse().await, purse("0.38136", "442"));
}

#[tokio::test]
async fn five_wrong_tries_kill_a_code_and_a_used_one_is_used() {
    let market = funded(100).await;
    let code = market.code().await;
    let wrong = if code == "000000" { "000001" } else { "000000" };
    for n in 0..5 {
        let told = market.run(&format!("key-wrong-00000000{n}"), asks("20", wrong)).await;
        assert_eq!((told.code, told.error()), (400, "SUP_SET_4003"));
        let burnt = market.count("select max(attempts) from supply_sms_codes", vec![]).await;
        assert_eq!(burnt, n + 1);
    }
    let dead = market.run("key-0000000000001", asks("20", &code)).await;
    assert_eq!(dead.error(), "SUP_SET_4003");
    let code = market.code().await;
    let id = market.run("key-0000000000002", asks("20", &code)).await.body["data"]["settlement_id"].as_i64();
    market.run("key-0000000000003", Cancel { settlement_id: id.unwrap() }).await;
    let used = market.run("key-0000000000004", asks("20", &code)).await;
    assert_eq!(used.error(), "SUP_SET_4003");
    let late = market.code().await;
    market.clock.advance(Duration::from_secs(300));
    assert_eq!(market.run("key-0000000000005", asks("20", &late)).await.error(), "SUP_SET_4003");
    assert_eq!(market.purse().await, purse("10000", "0"));
}

#[tokio::test]
async fn codes_come_one_a_minute_and_ten_a_day() {
    let market = market().await;
    for n in 0..10 {
        assert_eq!(market.run("", SendCode).await.body["data"]["expires_in_seconds"], 300, "{n}");
        let soon = market.run("", SendCode).await;
        let details = &soon.body["error"]["details"];
        assert_eq!((soon.code, soon.error()), (429, "SUP_SET_4292"));
        assert!(n == 9 || details["retry_after_seconds"] == 60, "{details}");
        market.clock.advance(Duration::from_secs(60));
    }
    assert_eq!(market.run("", SendCode).await.error(), "SUP_SET_4292");
    let midnight = market.now().shanghai_midnight().plus(Duration::from_secs(86_400));
    market.clock.advance(midnight.since(market.now()));
    assert_eq!(market.run("", SendCode).await.code, 200);
    assert_eq!(market.announced("supply.settlement.sms_code.succeeded").await, 11);
    assert_eq!(market.audited("supply.settlement.sms.send", "SUP_SET_4292").await, 11);
}

#[tokio::test]
async fn the_last_payout_cools_down_and_the_key_of_the_refusal_stays_open() {
    let market = market_with(Policy { withdraw_cooldown: Duration::from_secs(900), ..swift() }).await;
    market.fund(1, 100).await;
    let id = market.granted("key-0000000000001", "20").await;
    assert_eq!(market.step(Start { settlement_id: id }).await.code, 200);
    let paid = Complete { settlement_id: id, payment_transaction_id: "T1".into() };
    assert_eq!(market.step(paid).await.code, 200);
    market.clock.advance(Duration::from_secs(899));
    let refused = market.withdraw("key-0000000000002", "20").await;
    assert_eq!((refused.code, refused.error()), (429, "SUP_SET_4291"));
    assert_eq!(refused.body["error"]["details"]["retry_after_seconds"], 1);
    market.clock.advance(Duration::from_secs(1));
    assert_eq!(market.withdraw("key-0000000000002", "20").await.code, 201);
}

#[tokio::test]
async fn the_daily_limit_begins_again_at_midnight_in_shanghai() {
    let market = market_with(swift()).await;
    market.fund(1, 1_000_000).await;
    market.clock.set(Time::parse_rfc3339("2026-03-27T15:59:00Z").unwrap().seconds());
    for n in 0..4 {
        let id = market.granted(&format!("key-000000000000{n}"), "50000").await;
        market.step(Start { settlement_id: id }).await;
        market.step(Complete { settlement_id: id, payment_transaction_id: format!("T{n}") }).await;
    }
    let over = market.withdraw("key-0000000000010", "10").await;
    assert_eq!((over.code, over.error()), (400, "SUP_SET_4007"));
    assert_eq!(over.body["error"]["details"]["left"], 0);
    market.clock.advance(Duration::from_secs(60));
    let id = market.granted("key-0000000000011", "50000").await;
    market.run("key-0000000000012", Cancel { settlement_id: id }).await;
    for n in 0..4 {
        // What was cancelled does not count.
        let id = market.granted(&format!("key-000000000002{n}"), "50000").await;
        market.step(Start { settlement_id: id }).await;
        market.step(Complete { settlement_id: id, payment_transaction_id: format!("U{n}") }).await;
    }
    assert_eq!(market.withdraw("key-0000000000030", "10").await.error(), "SUP_SET_4007");
}

#[tokio::test]
async fn what_fails_in_the_middle_leaves_balances_code_and_key_as_they_were() {
    // FI-001 and FI-004: the audit's row is refused after the settlement's was taken.
    let market = funded(60).await;
    let code = market.code().await;
    let counted = [
        "supply_settlements",
        "supply_settlement_items",
        "billing_journals",
        "billing_ledger_entries",
        "outbox",
    ];
    let mut before = Vec::new();
    for table in counted {
        before.push(market.rows(table).await);
    }
    let mut broken = market.operator("key-0000000000001");
    broken.user_agent = Some("x".repeat(257));
    let wait = Duration::from_secs(5);
    let failed = market.door.submit(market.submission(broken, asks("50", &code), wait)).await;
    assert!(failed.is_err(), "{failed:?}");
    for (table, count) in counted.iter().zip(before) {
        assert_eq!(market.rows(table).await, count, "{table}");
    }
    assert_eq!(market.purse().await, purse("6000", "0"));
    let again = market.run("key-0000000000001", asks("50", &code)).await;
    assert_eq!((again.code, again.replayed), (201, false));
    assert_eq!(market.rows("supply_settlements").await, 1);
}

#[tokio::test]
async fn a_sum_that_is_off_stops_everything_and_alerts() {
    let market = funded(60).await;
    // Somebody put a stray amount into the frozen balance.
    let sql =
        "update billing_accounts set balance = $1 where account_code = 'supplier_frozen' and owner_id = 21";
    market.force(vec![Write::one("stray", sql, vec![store::Value::Money(1_000_000)])]).await;
    let told = market.withdraw("key-0000000000001", "50").await;
    assert_eq!((told.code, told.error()), (500, "SUP_SET_5002"));
    assert_eq!(market.rows("supply_settlements").await, 0);
    assert_eq!(market.audited("invariant_violation", "SUP_SET_5002").await, 1);
    assert_eq!(market.announced("supply.alert.raise.succeeded").await, 1);
    assert_eq!(market.balance("supplier_available").await, "6000");
}

#[tokio::test]
async fn neither_payout_account_nor_code_is_in_any_row() {
    let market = funded(60).await;
    let code = market.code().await;
    let told = market.run("key-0000000000001", asks("50", &code)).await;
    assert!(!told.body.to_string().contains(PHONE));
    let wrong = market.run("key-0000000000002", asks("50", "135791")).await;
    assert_eq!(wrong.error(), "SUP_SET_4091");
    for (table, columns) in [
        (
            "supply_settlements",
            "payment_account, payment_account_masked, payment_account_fingerprint, request_id",
        ),
        ("supply_sms_codes", "code_ref, code_hash, request_id"),
        ("audit_events", "before_state, after_state, metadata, object_id"),
        ("outbox", "payload, object_id"),
        ("supply_idempotency_record", "response_body, idempotency_key, payload_hash"),
    ] {
        let query = Query::new("all", format!("select {columns} from {table}"), vec![]);
        let shown = format!("{:?}", market.door.store().query(query).await.unwrap());
        let digits: Vec<&str> = shown.split(|c: char| !c.is_ascii_digit()).collect();
        assert!(!shown.contains(PHONE), "{table}");
        assert!(!digits.contains(&code.as_str()), "{table}: {shown}");
    }
}

#[tokio::test]
async fn the_payout_account_opens_in_its_own_settlement_only() {
    let market = funded(60).await;
    market.granted("key-0000000000001", "50").await;
    let sql = "select settlement_no, payment_account, payment_account_kms_key_alias from supply_settlements";
    let rows = market.door.store().query(Query::new("sealed", sql, vec![])).await.unwrap();
    let (row, table) = (rows[0].text(0).unwrap(), "supply_settlements");
    let place = Place { tenant_id: SUPPLIER_TENANT, table, row, platform: "alipay" };
    let custody = &market.house.keys.custody;
    let (envelope, alias) = (rows[0].text(1).unwrap(), rows[0].text(2).unwrap());
    assert_eq!(custody.open(&place, alias, envelope).await.unwrap().expose_secret(), PHONE);
    let moved = Place { row: "STL20260327BBBBBBBBBBBB", ..place };
    assert!(custody.open(&moved, alias, envelope).await.is_err());
}

#[tokio::test]
async fn another_tenant_has_neither_this_money_nor_these_codes() {
    let market = funded(60).await;
    let code = market.code().await;
    let stranger = market.caller(OTHER_TENANT, OTHER_SUPPLIER, "key-0000000000001");
    let told = market.run_as(stranger, asks("50", &code)).await;
    assert_eq!(told.error(), "SUP_SET_4001");
    let id = market.run("key-0000000000002", asks("50", &code)).await.body["data"]["settlement_id"].as_i64();
    let stranger = market.caller(OTHER_TENANT, OTHER_SUPPLIER, "key-0000000000003");
    let told = market.run_as(stranger, Cancel { settlement_id: id.unwrap() }).await;
    assert_eq!((told.code, told.error()), (404, "SUP_SET_4041"));
    assert_eq!(market.settlement(id.unwrap()).await, ("pending".into(), 0));
}
