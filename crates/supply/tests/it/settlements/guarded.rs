//! Check 4 of section 11.5 before every commit that moves a supplier's available or pending balance: where the balance
//! and the earnings are apart already, nothing is posted on top of it.

use ledger::ids;
use ledger::posting::Beneficiary;
use store::{Value, Write, values};
use supply::earnings::{Bonus, Compensate, Release};
use supply::orders::Refund;
use supply::platform::earnings_to_release;
use supply::settlements::{Cancel, Complete, Fail, Reject, Return, Start};

use super::desk::{funded, swift};
use crate::market::{BUYER_TENANT, Market, SUPPLIER, SUPPLIER_TENANT, Told, market_with};
use crate::orders_desk::{DAY, call, cny, trading};

impl Market {
    /// The cached balance alone, by 60.00.
    async fn drift(&self, code: &str) {
        let sql =
            "update billing_accounts set balance = balance + $1 where account_code = $2 and owner_id = $3";
        let row = vec![Value::Money(6_000_000_000), code.into(), SUPPLIER.into()];
        self.force(vec![Write::one("stray", sql, row)]).await;
    }

    async fn posted(&self) -> i64 {
        self.count("select count(*) from billing_journals", vec![]).await
    }

    /// Refused as an invariant, told of, and nothing was posted since there were `before` journals.
    async fn stopped(&self, told: Told, before: i64) {
        assert_eq!((told.code, told.error()), (500, "SUP_SET_5002"), "{told:?}");
        assert!(told.body["error"]["details"].get("lost_race").is_none(), "{told:?}");
        assert_eq!(self.posted().await, before);
        assert_eq!(self.audited("invariant_violation", "SUP_SET_5002").await, 1);
        assert_eq!(self.announced("supply.alert.raise.succeeded").await, 1);
    }
}

#[tokio::test]
async fn a_withdrawal_of_what_no_earning_holds_is_stopped() {
    let market = funded(10).await;
    market.drift("supplier_available").await;
    let before = market.posted().await;
    let told = market.withdraw("key-0000000000001", "10").await;
    market.stopped(told, before).await;
    assert_eq!(market.rows("supply_settlements").await, 0);
}

#[tokio::test]
async fn no_step_of_a_settlement_gives_back_on_top_of_a_wrong_balance() {
    for step in 0..4 {
        let market = funded(100).await;
        let settlement_id = market.granted("key-0000000000001", "50").await;
        if step >= 2 {
            market.step(Start { settlement_id }).await;
        }
        if step == 3 {
            market.step(Complete { settlement_id, payment_transaction_id: "T-1".into() }).await;
        }
        let stood = market.settlement(settlement_id).await;
        market.drift("supplier_available").await;
        let before = market.posted().await;
        let told = match step {
            0 => market.run("", Cancel { settlement_id }).await,
            1 => market.step(Reject { settlement_id, reason: "a test".into() }).await,
            2 => market.step(Fail { settlement_id, failure_code: "closed".into() }).await,
            _ => market.step(Return { settlement_id }).await,
        };
        market.stopped(told, before).await;
        assert_eq!(market.settlement(settlement_id).await, stood, "step {step}");
    }
}

#[tokio::test]
async fn a_release_and_a_compensation_are_stopped() {
    for release in [true, false] {
        let market = market_with(swift()).await;
        let bonus = Bonus { amount: cny("1000"), description: "x".into() };
        assert_eq!(market.administer(SUPPLIER_TENANT, bonus).await.code, 201);
        market.clock.advance(DAY * 7);
        market.drift("supplier_available").await;
        let before = market.posted().await;
        let due = market.due(earnings_to_release(market.now(), 1)).await[0];
        let to = Beneficiary::Supplier(ids::Supplier(SUPPLIER));
        let compensate = Compensate { to, amount: cny("7"), description: "an outage".into() };
        let told = if release {
            market.run_as(due.caller("release"), Release { earning_id: due.id }).await
        } else {
            market.administer(SUPPLIER_TENANT, compensate).await
        };
        market.stopped(told, before).await;
    }
}

#[tokio::test]
async fn a_refund_is_stopped_by_either_balance_and_a_bonus_by_what_pends() {
    for (code, released) in [("supplier_pending", false), ("supplier_available", true)] {
        let market = trading().await;
        market.top_up("20000").await;
        let order_id = market.order(2_000_000).await;
        market.administer(BUYER_TENANT, call(&market, order_id, "call-1", (1_000_000, 0))).await;
        if released {
            market.clock.advance(DAY * 7);
            assert_eq!(market.release_due().await, 1);
        }
        market.drift(code).await;
        let before = market.posted().await;
        let refund = Refund { order_id, charge: Some(cny("100")) };
        let told = market.administer(SUPPLIER_TENANT, refund).await;
        market.stopped(told, before).await;
    }
    let market = market_with(swift()).await;
    market.drift("supplier_pending").await;
    let bonus = Bonus { amount: cny("1000"), description: "x".into() };
    let told = market.administer(SUPPLIER_TENANT, bonus).await;
    market.stopped(told, 0).await;
}

/// A release costs the same with any number of earnings before it; what it leaves is the hourly look's.
#[tokio::test]
async fn a_release_adds_up_fewer_than_a_thousand_earnings() {
    let sql = "insert into supply_earnings (tenant_id, user_id, earnings_type, amount, available_amount, status, earned_at, available_at, source_request_id, created_at, updated_at, request_id, audit_trace_id)
        values ($1, $2, 'bonus', $3, $4, 'available', $5, $6, 'stray', $7, $8, 'fixture', 'fixture')";
    for (others, code) in [(998, 500), (999, 200)] {
        let market = market_with(swift()).await;
        let bonus = Bonus { amount: cny("1000"), description: "x".into() };
        assert_eq!(market.administer(SUPPLIER_TENANT, bonus).await.code, 201);
        let (at, one) = (market.now(), Value::Money(1));
        let row =
            [values![SUPPLIER_TENANT, SUPPLIER], vec![one.clone(), one], values![at, at, at, at]].concat();
        market.force(vec![Write::one("earning", sql, row); others]).await;
        market.clock.advance(DAY * 7);
        let due = market.due(earnings_to_release(market.now(), 1)).await[0];
        let told = market.run_as(due.caller("release"), Release { earning_id: due.id }).await;
        assert_eq!(told.code, code, "{told:?}");
    }
}
