//! What the scheduler and the payout worker find and do.

use std::time::Duration;

use custody::payout::Method;
use secrecy::ExposeSecret;
use store::{Write, values};
use supply::Policy;
use supply::platform::Due;
use supply::settlements::{Fail, Payee, Start, Stuck, attempts, due};

use super::desk::{PHONE, funded, swift};
use crate::market::{Market, OTHER_TENANT, SUPPLIER, SUPPLIER_TENANT, market_with};

async fn listed(market: &Market, query: store::Query) -> Vec<Due> {
    let rows = market.door.store().query(query).await.unwrap();
    rows.iter().map(|row| Due::read(row).unwrap()).collect()
}

#[tokio::test]
async fn what_has_been_reviewed_is_due_unless_its_supplier_is_blocked() {
    let market = market_with(Policy { withdraw_review: Duration::from_secs(900), ..swift() }).await;
    market.fund(1, 100).await;
    let id = market.granted("key-0000000000001", "10").await;
    let waiting = || due::to_start(market.now(), 10, &market.house);
    assert_eq!(listed(&market, waiting()).await, []);
    market.clock.advance(Duration::from_secs(900));
    let cases = |open: i64| {
        let sql = "update supply_suppliers set open_risk_cases = $1 where user_id = $2";
        market.force(vec![Write::one("cases", sql, values![open, SUPPLIER])])
    };
    cases(1).await;
    assert_eq!(listed(&market, waiting()).await, []);
    cases(0).await;
    let found = listed(&market, waiting()).await;
    assert_eq!(found, [Due { tenant_id: SUPPLIER_TENANT, id }]);
    for replayed in [false, true] {
        let told = market.run_as(found[0].caller("payout_start"), Start { settlement_id: id }).await;
        assert_eq!((told.code, told.replayed), (200, replayed));
    }
    assert_eq!(listed(&market, waiting()).await, []);
}

#[tokio::test]
async fn a_payout_of_more_than_three_business_days_is_told_once() {
    let market = funded(100).await;
    // A Friday.
    let id = market.granted("key-0000000000001", "10").await;
    market.step(Start { settlement_id: id }).await;
    market.clock.advance(Duration::from_secs(5 * 86_400 - 1));
    assert_eq!(listed(&market, due::stuck(market.now(), 10)).await, []);
    assert_eq!(market.step_stuck(id).await, (409, 0));
    market.clock.advance(Duration::from_secs(1));
    let found = listed(&market, due::stuck(market.now(), 10)).await;
    assert_eq!(found, [Due { tenant_id: SUPPLIER_TENANT, id }]);
    assert_eq!(
        market.found_by_both(found[0].caller("payout_stuck"), Stuck { settlement_id: id }).await,
        [200, 409]
    );
    assert_eq!(market.step_stuck(id).await, (409, 1));
    assert_eq!(listed(&market, due::stuck(market.now(), 10)).await, []);
    assert_eq!(market.settlement(id).await, ("processing".into(), 1));
}

impl Market {
    /// Status of the answer, and how many alerts there are.
    async fn step_stuck(&self, id: i64) -> (u16, i64) {
        let due = Due { tenant_id: SUPPLIER_TENANT, id };
        let fact = format!("payout_stuck:{}", self.now().seconds());
        let told = self.run_as(due.caller(&fact), Stuck { settlement_id: id }).await;
        (told.code, self.announced("supply.alert.raise.succeeded").await)
    }
}

#[tokio::test]
async fn the_payout_account_opens_while_it_is_paid_and_at_no_other_time() {
    let market = funded(100).await;
    let id = market.granted("key-0000000000001", "10").await;
    let (store, keys) = (market.door.store(), &market.house.keys);
    assert!(Payee::open(store, keys, SUPPLIER_TENANT, id).await.unwrap().is_none());
    market.step(Start { settlement_id: id }).await;
    let payee = Payee::open(store, keys, SUPPLIER_TENANT, id).await.unwrap().unwrap();
    assert_eq!((payee.method, payee.account.expose_secret()), (Method::Alipay, PHONE));
    assert!(payee.payout_ref.starts_with("STL20260327") && !format!("{payee:?}").contains(PHONE));
    assert!(Payee::open(store, keys, OTHER_TENANT, id).await.unwrap().is_none());
    market.step(Fail { settlement_id: id, failure_code: "closed".into() }).await;
    assert!(Payee::open(store, keys, SUPPLIER_TENANT, id).await.unwrap().is_none());
}

#[tokio::test]
async fn an_attempt_whose_answer_was_lost_is_followed_by_another() {
    let market = funded(100).await;
    let id = market.granted("key-0000000000001", "10").await;
    market.step(Start { settlement_id: id }).await;
    let at = market.now();
    let lost = attempts::ended(id, attempts::Result::Unknown, Some("timeout"), at);
    market.force(vec![lost, attempts::next(id, at)]).await;
    market.step(Fail { settlement_id: id, failure_code: "closed".into() }).await;
    let results = "select count(*) from supply_payout_attempts where settlement_id = $1 and (
        (attempt = 1 and result = 'unknown' and raw_code = 'timeout') or (attempt = 2 and result = 'failed'))";
    assert_eq!(market.count(results, values![id]).await, 2);
}
