//! What becomes of a withdrawal.

use std::time::Duration;

use kernel::money::{Currency, Money};
use store::{Query, Write, values};
use supply::Policy;
use supply::settlements::{Cancel, Complete, Fail, Reject, Return, Start};

use super::desk::{funded, purse, swift};
use crate::market::{SUPPLIER, market_with};

fn paid(settlement_id: i64) -> Complete {
    Complete { settlement_id, payment_transaction_id: "T-1".into() }
}

fn failed(settlement_id: i64) -> Fail {
    Fail { settlement_id, failure_code: "account_closed".into() }
}

fn rejected(settlement_id: i64) -> Reject {
    Reject { settlement_id, reason: "stolen account".into() }
}

#[tokio::test]
async fn the_worked_example_as_far_as_settlements_go() {
    // Rows 4 to 8 of section 11.6.
    let market = market_with(swift()).await;
    market.fund_exactly(1, Money::parse_minor("5442.38136", Currency::CNY).unwrap()).await;
    let id = market.granted("key-0000000000005", "50.00").await;
    assert_eq!(market.purse().await, purse("442.38136", "5000"));
    let cancelled = market.run("key-0000000000006", Cancel { settlement_id: id }).await;
    let data = &cancelled.body["data"];
    assert_eq!(
        (cancelled.code, &data["status"], &data["fail_reason"]),
        (200, &"failed".into(), &"cancelled".into())
    );
    assert_eq!((&data["settlement_id"], &data["version"]), (&id.into(), &1.into()));
    assert_eq!(market.purse().await, purse("5442.38136", "0"));
    let id = market.granted("key-0000000000007", "50.00").await;
    market.step(Start { settlement_id: id }).await;
    assert_eq!(market.step(failed(id)).await.code, 200);
    assert_eq!(market.purse().await, purse("5442.38136", "0"));
    let id = market.granted("key-0000000000008", "50.00").await;
    market.step(Start { settlement_id: id }).await;
    assert_eq!(market.step(paid(id)).await.body["data"]["payment_transaction_id"], "T-1");
    assert_eq!(market.purse().await, purse("442.38136", "0"));
    let sql = "select sum(case e.direction when 'cr' then e.amount else -e.amount end)
        from billing_ledger_entries e join billing_accounts a on a.id = e.billing_account_id where a.account_code = $1";
    assert_eq!(market.count(sql, values!["withdraw_fee_revenue"]).await, 50_000_000);
    assert_eq!(market.count(sql, values!["cash_clearing"]).await, 4_950_000_000);
    let parts = "select count(*) from supply_earnings where withdrawn_amount = $1 and frozen_amount = 0 and status = 'available'";
    assert_eq!(market.count(parts, vec![store::Value::Money(5_000_000_000)]).await, 1);
    assert_eq!(market.withdraw("key-0000000000009", "4.43").await.error(), "SUP_SET_4005");
    market.reconciled().await;
}

#[tokio::test]
async fn every_step_from_every_state() {
    // The table of section 6.4, row by row.
    let market = funded(100).await;
    let pending = market.granted("key-0000000000001", "10").await;
    for told in [
        market.step(paid(pending)).await,
        market.step(failed(pending)).await,
        market.step(Return { settlement_id: pending }).await,
    ] {
        assert_eq!((told.code, told.error()), (409, "SUP_SET_4094"));
    }
    assert_eq!(market.step(Start { settlement_id: pending }).await.code, 200);
    let processing = pending;
    let told = market.run("", Cancel { settlement_id: processing }).await;
    assert_eq!(
        (told.error(), &told.body["error"]["details"]["status"]),
        ("SUP_SET_4092", &"processing".into())
    );
    for told in [
        market.step(Start { settlement_id: processing }).await,
        market.step(rejected(processing)).await,
        market.step(Return { settlement_id: processing }).await,
    ] {
        assert_eq!(told.error(), "SUP_SET_4094");
    }
    assert_eq!(market.step(paid(processing)).await.code, 200);
    let completed = processing;
    assert_eq!(market.run("", Cancel { settlement_id: completed }).await.error(), "SUP_SET_4092");
    for told in [
        market.step(Start { settlement_id: completed }).await,
        market.step(rejected(completed)).await,
        market.step(paid(completed)).await,
        market.step(failed(completed)).await,
    ] {
        assert_eq!(told.error(), "SUP_SET_4094");
    }
    assert_eq!(market.step(Return { settlement_id: completed }).await.code, 200);
    assert_eq!(market.step(Return { settlement_id: completed }).await.error(), "SUP_SET_4094");
    assert_eq!(
        (market.settlement(completed).await, market.purse().await),
        (("completed".into(), 3), purse("10000", "0"))
    );
    let failed_one = market.granted("key-0000000000002", "10").await;
    assert_eq!(market.step(rejected(failed_one)).await.body["data"]["fail_reason"], "risk_rejected");
    for told in [
        market.run("", Cancel { settlement_id: failed_one }).await,
        market.step(Start { settlement_id: failed_one }).await,
        market.step(rejected(failed_one)).await,
        market.step(paid(failed_one)).await,
        market.step(failed(failed_one)).await,
        market.step(Return { settlement_id: failed_one }).await,
    ] {
        assert_eq!(told.error(), "SUP_SET_4094");
    }
    market.reconciled().await;
    assert_eq!(market.step(Start { settlement_id: 999 }).await.error(), "SUP_SET_4041");
    for (event, count) in [("payout_start", 1), ("payout", 1), ("payout_return", 1), ("risk_reject", 1)] {
        assert_eq!(market.announced(&format!("supply.settlement.{event}.succeeded")).await, count, "{event}");
    }
}

#[tokio::test]
async fn a_payout_waits_for_its_review_and_for_an_unblocked_supplier() {
    let market = market_with(Policy { withdraw_review: Duration::from_secs(900), ..swift() }).await;
    market.fund(1, 100).await;
    let id = market.granted("key-0000000000001", "10").await;
    market.clock.advance(Duration::from_secs(899));
    let told = market.step(Start { settlement_id: id }).await;
    let details = &told.body["error"]["details"];
    assert_eq!((told.error(), &details["retry_after_seconds"]), ("SUP_SET_4094", &1.into()));
    market.clock.advance(Duration::from_secs(1));
    let cases = |open: i64| {
        let sql = "update supply_suppliers set open_risk_cases = $1 where user_id = $2";
        market.force(vec![Write::one("cases", sql, values![open, SUPPLIER])])
    };
    cases(1).await;
    let told = market.step(Start { settlement_id: id }).await;
    assert_eq!(
        (told.error(), &told.body["error"]["details"]["reason"]),
        ("SUP_SET_4094", &"supplier_blocked".into())
    );
    cases(0).await;
    assert_eq!(market.step(Start { settlement_id: id }).await.code, 200);
}

#[tokio::test]
async fn an_attempt_begins_with_the_payout_and_ends_with_it() {
    let market = funded(100).await;
    let mut ended = Vec::new();
    for n in 0..2 {
        let id = market.granted(&format!("key-000000000000{n}"), "10").await;
        market.step(Start { settlement_id: id }).await;
        let told = if n == 0 { market.step(failed(id)).await } else { market.step(paid(id)).await };
        assert_eq!(told.code, 200);
        let sql = "select p.attempt, p.result, p.raw_code, p.payout_ref = t.settlement_no from supply_payout_attempts p
            join supply_settlements t on t.id = p.settlement_id where t.id = $1 and p.ended_at is not null";
        let rows = market.door.store().query(Query::new("attempts", sql, values![id])).await.unwrap();
        assert!(rows[0].flag(3).unwrap());
        let word = |column| rows[0].text_or_null(column).unwrap().map(ToOwned::to_owned);
        ended.push((rows.len(), rows[0].int(0).unwrap(), word(1), word(2)));
    }
    let word = |text: &str| Some(text.to_owned());
    assert_eq!(ended, [(1, 1, word("failed"), word("account_closed")), (1, 1, word("succeeded"), None)]);
}

#[tokio::test]
async fn texts_of_the_platform_have_a_form() {
    let market = funded(100).await;
    for wrong in ["", " x", "a\nb", &"x".repeat(101)] {
        let told = market.step(Complete { settlement_id: 1, payment_transaction_id: wrong.into() }).await;
        assert_eq!((told.code, told.error()), (400, "SUP_COM_4001"), "{wrong:?}");
    }
}

#[tokio::test]
async fn cycles_of_asking_and_taking_back_move_nothing_for_good() {
    let market = funded(35).await;
    market.fund(2, 30).await;
    for n in 0..8 {
        let amount = if n % 2 == 0 { "40" } else { "65" };
        let id = market.granted(&format!("key-withdraw-000{n}"), amount).await;
        let key = format!("key-cancel-00000{n}");
        let told = market.run(&key, Cancel { settlement_id: id }).await;
        assert_eq!((told.code, market.purse().await), (200, purse("6500", "0")));
        let again = market.run(&key, Cancel { settlement_id: id }).await;
        assert_eq!((again.code, again.replayed, &again.body), (200, true, &told.body));
    }
    let whole =
        "select count(*) from supply_earnings where available_amount = amount and status = 'available'";
    assert_eq!(market.count(whole, vec![]).await, 2);
    market.reconciled().await;
}
