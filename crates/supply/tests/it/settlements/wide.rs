//! Very much: sums of many rows pass what one amount holds (section 4, rule 2) and nothing that adds up breaks of it;
//! a withdrawal from very many earnings is taken in parts.

use kernel::money::Currency;
use ledger::Code;
use ledger::check::{Object, Rule};
use serde_json::json;
use store::{Value, Write, values};
use supply::caller::PLATFORM;
use supply::settlements::billing::Billing;
use supply::settlements::period::Period;
use supply::settlements::{reconcile, totals};

use super::desk::{asks, funded};
use crate::market::{BUYER_TENANT, Market, SUPPLIER, SUPPLIER_TENANT};
use crate::orders_desk::{call, trading};

/// Nearly what an amount holds.
const VAST: i64 = 9_000_000_000_000_000_000;

impl Market {
    /// A journal of its own with these legs, all of the same vast amount and all of the platform's cash.
    async fn stray(&self, name: &str, directions: &[&str]) {
        let at = self.now();
        let journal = "insert into billing_journals (journal_type, source_type, source_id, tenant_id, request_id, trace_id, occurred_at, created_at)
            values ('J-TOPUP', 'topup', $1, $2, 'stray', 'stray', $3, $4)";
        let entry = "insert into billing_ledger_entries (journal_id, billing_account_id, tenant_id, request_id, trace_id, entry_type, direction, amount, currency_code, ref_type, ref_id, occurred_at, created_at)
            values ((select id from billing_journals where source_id = $1), (select id from billing_accounts where account_code = 'cash_clearing'), $2, 'stray', 'stray', 'J-TOPUP', $3, $4, 'CNY', 'topup', '1', $5, $6)";
        let mut writes = vec![Write::one("journal", journal, values![name, PLATFORM, at, at])];
        for direction in directions {
            let row =
                [values![name, PLATFORM, *direction], vec![Value::Money(VAST)], values![at, at]].concat();
            writes.push(Write::one("entry", entry, row));
        }
        self.force(writes).await;
    }
}

#[tokio::test]
async fn a_ledger_of_any_size_is_looked_through_to_its_end() {
    let market = funded(100).await;
    for name in ["one", "two", "three"] {
        market.stray(name, &["dr", "cr"]).await;
    }
    market.reconciled().await;
    let totals = totals(market.door.store()).await.unwrap();
    let cash = totals.iter().find(|total| total.code == Code::CashClearing).unwrap();
    assert_eq!((cash.debits.count(), cash.credits.count()), (3 * i128::from(VAST), 3 * i128::from(VAST)));
    assert_eq!((cash.debits.major().as_str(), cash.balance.major().as_str()), ("270000000000", "0"));
}

#[tokio::test]
async fn what_is_off_beyond_the_range_of_an_amount_is_found() {
    let market = funded(100).await;
    market.stray("off", &["dr", "dr", "dr", "cr"]).await;
    let found = reconcile(market.door.store()).await.unwrap();
    let vast = i128::from(VAST);
    let (journal, whole) = (&found[0], &found[1]);
    assert_eq!((journal.rule, journal.expected, journal.found), (Rule::Journal, 3 * vast, vast));
    assert_eq!((whole.rule, whole.object), (Rule::Whole, Object::Ledger(Currency::CNY)));
    assert_eq!((whole.expected - whole.found, found.len()), (2 * vast, 2));
}

#[tokio::test]
async fn what_a_supplier_turned_over_is_told_in_full() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(5_000_000).await;
    assert!(market.administer(BUYER_TENANT, call(&market, order, "call-1", (10, 10))).await.code < 300);
    let same = "tenant_id, order_id, buyer_user_id, client_tenant_id, api_key_id, supply_account_id, supplier_user_id, trace_id, platform, model, endpoint, request_tokens, response_tokens, unit_price, output_cost, response_status, latency_ms, success, started_at, completed_at, created_at, audit_trace_id";
    let usage = format!(
        "insert into supply_usage_records (request_id, input_cost, total_cost, platform_fee, supplier_part, {same})
         select $1, $2, $3 + output_cost, 0, $4 + output_cost, {same} from supply_usage_records where request_id = 'call-1'"
    );
    let earning = "insert into supply_earnings (tenant_id, user_id, earnings_type, amount, withdrawn_amount, status, earned_at, available_at, source_request_id, created_at, updated_at, request_id, audit_trace_id)
        values ($1, $2, 'bonus', $3, $4, 'withdrawn', $5, $6, 'wide', $7, $8, 'fixture', 'fixture')";
    let (vast, at) = (|| Value::Money(VAST), market.now());
    for name in ["wide-1", "wide-2"] {
        let usage = Write::one("usage", usage.clone(), vec![name.into(), vast(), vast(), vast()]);
        let row =
            [values![SUPPLIER_TENANT, SUPPLIER], vec![vast(), vast()], values![at, at, at, at]].concat();
        market.force(vec![usage, Write::one("earning", earning, row)]).await;
    }
    let period = Period::read(None, None, at).unwrap();
    let found = Billing::of(market.door.store(), SUPPLIER_TENANT, &period).await.unwrap().unwrap();
    let found = serde_json::to_value(found).unwrap();
    assert_eq!(found["summary"]["total_revenue_minor"], "18000000000000.104");
    assert_eq!(found["summary"]["platform_fee_minor"], "0.006");
    assert_eq!(found["summary"]["net_earnings_minor"], "18000000000000.098");
    assert_eq!(found["by_platform"][0]["revenue_minor"], "18000000000000.104");
    assert_eq!(found["balance"]["withdrawn_amount"], json!(180_000_000_000_i64));
    // Rows without a posting are told of, as ever.
    assert!(reconcile(market.door.store()).await.is_ok());
}

impl Market {
    /// Splits the supplier's only earning, past all rules, into so many of a fen each.
    async fn split_into_fen(&self, many: i64) {
        let sql = "with recursive n(i) as (select 2 union all select i + 1 from n where i <= $1)
            insert into supply_earnings (id, tenant_id, user_id, earnings_type, amount, available_amount, status, earned_at, available_at, source_request_id, created_at, updated_at, request_id, audit_trace_id)
            select i, tenant_id, user_id, earnings_type, $2, $3, status, earned_at, available_at, source_request_id, created_at, updated_at, request_id, audit_trace_id from n, supply_earnings e where e.id = 1";
        let fen = || Value::Money(1_000_000);
        let gone = "update supply_earnings set available_amount = 0, withdrawn_amount = amount, status = 'withdrawn' where id = 1";
        let writes =
            vec![Write::any("fen", sql, vec![many.into(), fen(), fen()]), Write::one("gone", gone, vec![])];
        self.force(writes).await;
    }
}

#[tokio::test]
async fn what_takes_more_earnings_than_one_settlement_may_names_the_sum_that_goes() {
    let market = funded(1001).await;
    market.split_into_fen(100_100).await;
    let code = market.code().await;
    let all = market.run("key-0000000000001", asks("1000.01", &code)).await;
    assert_eq!((all.code, all.error()), (400, "SUP_SET_4006"), "{all:?}");
    let details = &all.body["error"]["details"];
    assert_eq!((&details["maximum"], &details["maximum_earnings"]), (&json!(1000), &json!(100_000)));
    let part = market.run("key-0000000000002", asks("1000", &code)).await;
    assert_eq!(part.code, 201, "{part:?}");
    let taken = "select count(*) from supply_earnings where status = 'frozen' and frozen_amount = amount";
    assert_eq!(market.count(taken, vec![]).await, 100_000);
}
