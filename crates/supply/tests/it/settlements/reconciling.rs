//! The full check of section 11.5: silent when all is well, and each way of being off is found.

use std::time::Duration;

use kernel::money::{Currency, Money};
use ledger::check::Rule;
use store::{Value, Write, values};
use supply::Caller;
use supply::settlements::{Cancel, Complete, Fail, Reject, Return, Start, Unbalanced, reconcile};
use testkit::Seeded;

use super::desk::funded;
use crate::market::{Market, SUPPLIER, SUPPLIER_TENANT, Told};

const STRAY: Value = Value::Money(1_000_000);

async fn rules(market: &Market) -> Vec<Rule> {
    let mut rules: Vec<_> =
        reconcile(market.door.store()).await.unwrap().into_iter().map(|found| found.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// A market with a paid settlement and a pending one, the second.
async fn busy() -> (Market, i64) {
    let market = funded(100).await;
    let first = market.granted("key-0000000000001", "20").await;
    market.step(Start { settlement_id: first }).await;
    market.step(Complete { settlement_id: first, payment_transaction_id: "T-1".into() }).await;
    let second = market.granted("key-0000000000002", "30").await;
    assert_eq!(rules(&market).await, []);
    (market, second)
}

#[tokio::test]
async fn a_cached_balance_that_moved_alone_is_found() {
    let (market, _) = busy().await;
    let sql = "update billing_accounts set balance = balance + $1 where account_code = $2 and owner_id = $3";
    let change = |code: &str| Write::one("stray", sql, vec![STRAY, code.into(), SUPPLIER.into()]);
    market.force(vec![change("supplier_frozen")]).await;
    assert_eq!(rules(&market).await, [Rule::Frozen, Rule::Cache]);
    market.force(vec![change("supplier_pending")]).await;
    assert_eq!(rules(&market).await, [Rule::Frozen, Rule::Pending, Rule::Cache]);
}

#[tokio::test]
async fn an_earning_that_moved_alone_is_found() {
    let (market, _) = busy().await;
    let sql = "update supply_earnings set available_amount = available_amount - $1, reversed_amount = reversed_amount + $2 where id = 1";
    market.force(vec![Write::one("stray", sql, vec![STRAY, STRAY])]).await;
    assert_eq!(rules(&market).await, [Rule::Available]);
}

#[tokio::test]
async fn an_entry_without_its_other_side_is_found() {
    let (market, _) = busy().await;
    let sql = "insert into billing_ledger_entries (journal_id, billing_account_id, tenant_id, request_id, trace_id, entry_type, direction, amount, currency_code, ref_type, ref_id, occurred_at, created_at)
        values ((select min(id) from billing_journals), (select id from billing_accounts where account_code = 'cash_clearing'), $1, 'stray', 'stray', 'J-BONUS', 'dr', $2, 'CNY', 'earning', '1', $3, $4)";
    let at = market.now();
    market.force(vec![Write::one("stray", sql, vec![1_i64.into(), STRAY, at.into(), at.into()])]).await;
    assert_eq!(rules(&market).await, [Rule::Journal, Rule::Whole]);
}

#[tokio::test]
async fn an_item_too_many_and_a_closing_journal_too_early_are_found() {
    let (market, second) = busy().await;
    market.fund(2, 10).await;
    let at = market.now();
    let item = "insert into supply_settlement_items (settlement_id, earning_id, tenant_id, amount, created_at) values ($1, 2, $2, $3, $4)";
    let item = Write::one("item", item, vec![second.into(), SUPPLIER_TENANT.into(), STRAY, at.into()]);
    let journal = "insert into billing_journals (journal_type, source_type, source_id, tenant_id, request_id, trace_id, occurred_at, created_at) values ('J-CANCEL', 'settlement', $1, $2, 'stray', 'stray', $3, $4)";
    let journal = Write::one("journal", journal, values![second.to_string(), SUPPLIER_TENANT, at, at]);
    market.force(vec![item]).await;
    assert_eq!(rules(&market).await, [Rule::SettlementItems]);
    market.force(vec![journal]).await;
    assert_eq!(rules(&market).await, [Rule::Journal, Rule::SettlementItems, Rule::Closing]);
}

#[tokio::test]
async fn a_settlement_of_another_sum_is_found() {
    let (market, second) = busy().await;
    let sql = "update supply_settlements set total_amount = total_amount + $1, net_amount = net_amount + $2 where id = $3";
    market.force(vec![Write::one("stray", sql, vec![STRAY, STRAY, second.into()])]).await;
    assert_eq!(rules(&market).await, [Rule::SettlementItems, Rule::Frozen]);
    let sql = "update supply_settlements set status = 'failed', fail_reason = 'cancelled', closed_at = $1 where id = $2";
    market.force(vec![Write::one("stray", sql, values![market.now(), second])]).await;
    assert_eq!(rules(&market).await, [Rule::SettlementItems, Rule::Frozen, Rule::Closing]);
}

#[tokio::test]
async fn what_is_found_is_an_invariant_violation_and_an_alert() {
    let (market, second) = busy().await;
    let sql = "update supply_settlements set total_amount = total_amount + $1, net_amount = net_amount + $2 where id = $3";
    market.force(vec![Write::one("stray", sql, vec![STRAY, STRAY, second.into()])]).await;
    let found = reconcile(market.door.store()).await.unwrap();
    for violation in found {
        let caller = Caller { idempotency_key: None, ..Caller::system(SUPPLIER_TENANT, "reconcile") };
        let told = market.run_as(caller, Unbalanced { violation }).await;
        assert_eq!((told.code, told.error()), (500, "SUP_SET_5002"));
    }
    assert_eq!(market.audited("invariant_violation", "SUP_SET_5002").await, 2);
    assert_eq!(market.announced("supply.alert.raise.succeeded").await, 2);
    let about = "select count(*) from audit_events where rule_code = 'INV-SET-003' and object_type = 'supply_settlement' and object_id = $1";
    assert_eq!(market.count(about, values![second.to_string()]).await, 2);
}

/// One step of a walk, by chance; on the settlement that was asked for last.
async fn stepped(market: &Market, chance: &mut Seeded, n: u64, last: &mut i64) -> Told {
    let settlement_id = *last;
    match chance.below(8) {
        0 | 1 => {
            let amount = format!("{}.{:02}", 10 + chance.below(60), chance.below(100));
            let told = market.withdraw(&format!("key-walk-{n:08}"), &amount).await;
            *last = told.body["data"]["settlement_id"].as_i64().unwrap_or(settlement_id);
            told
        }
        2 => market.run("", Cancel { settlement_id }).await,
        3 | 4 => market.step(Start { settlement_id }).await,
        5 => market.step(Complete { settlement_id, payment_transaction_id: format!("T-{n}") }).await,
        6 => market.step(Fail { settlement_id, failure_code: "closed".into() }).await,
        _ if chance.chance(50) => market.step(Return { settlement_id }).await,
        _ => market.step(Reject { settlement_id, reason: "for the walk".into() }).await,
    }
}

#[tokio::test]
async fn nothing_comes_apart_on_a_walk_of_steps() {
    for seed in 1..=2 {
        let market = funded(40).await;
        for earning in 2..8 {
            market.fund_exactly(earning, Money::from_count(1_234_567_891, Currency::CNY)).await;
        }
        let (mut chance, mut last, mut done) = (Seeded::new(seed), 0, 0);
        for n in 0..80 {
            let told = stepped(&market, &mut chance, n, &mut last).await;
            assert!(told.code < 500, "step {n} of seed {seed}: {told:?}");
            done += u32::from(told.code < 300);
            market.clock.advance(Duration::from_secs(60));
            let found = reconcile(market.door.store()).await.unwrap();
            assert_eq!(found, [], "step {n} of seed {seed}: {told:?}");
        }
        assert!(done > 10, "the walk goes somewhere: {done} steps");
    }
}
