//! FI-001: the network between a node and its database breaks at the COMMIT of a withdrawal. On the embedded store
//! there is no network to break: there the same is asked of an undisturbed door.

use std::sync::Arc;
use std::time::Duration;

use door::Door;
use store::migration::{CORE, SUPPLY};
use store::{Settings, Store};
use testkit::proxy::{Fault, Moment, Proxy};
use testkit::{CountingRandom, postgres};

use super::desk::{asks, funded, purse};
use crate::market::{Market, told};

const WAIT: Duration = Duration::from_secs(20);
const KEY: &str = "key-0000000000001";

/// A third node of the market, and what stands between it and the database.
async fn behind_a_line(market: &Market) -> (Door, Option<Proxy>) {
    let Some(database) = postgres::beside(market.folder()) else { return (market.other.clone(), None) };
    let (behind, proxy) = database.behind_proxy();
    let clock = Arc::clone(&market.clock) as _;
    let store = Store::open(&Settings::Postgres(behind), &[CORE, SUPPLY], clock).await.unwrap();
    (Door::new(store, Arc::new(CountingRandom::default())), Some(proxy))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_found_and_told_again() {
    for moment in [Moment::Before, Moment::After, Moment::Late(Duration::from_millis(300))] {
        let market = funded(60).await;
        let code = market.code().await;
        let (door, proxy) = behind_a_line(&market).await;
        let fault = proxy.as_ref().map(|proxy| proxy.set(Fault::Commit(moment).times(1)));
        let asked = || market.submission(market.operator(KEY), asks("50", &code), WAIT);
        let first = told(door.submit(asked()).await);
        assert!(fault.is_none_or(|fault| fault.fired() == 1), "{moment:?}");
        let again = told(market.door.submit(asked()).await);
        assert_eq!((first.code, again.code, again.replayed), (201, 201, true), "{moment:?}");
        assert_eq!(first.body, again.body);
        assert_eq!(
            (market.rows("supply_settlements").await, market.purse().await),
            (1, purse("1000", "5000"))
        );
        market.reconciled().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawal_that_never_arrives_leaves_nothing_and_may_be_sent_again() {
    let market = funded(60).await;
    let code = market.code().await;
    let (door, proxy) = behind_a_line(&market).await;
    let asked = || market.submission(market.operator(KEY), asks("50", &code), WAIT);
    if let Some(proxy) = &proxy {
        let fault = proxy.set(Fault::Commit(Moment::Before).times(20));
        assert!(door.submit(asked()).await.is_err());
        assert!(fault.fired() > 0);
    }
    for table in
        ["supply_settlements", "supply_settlement_items", "billing_journals", "supply_idempotency_record"]
    {
        let before = i64::from(table == "billing_journals") * 2;
        assert_eq!(market.rows(table).await, before, "{table}");
    }
    assert_eq!(market.purse().await, purse("6000", "0"));
    let sent_again = told(market.door.submit(asked()).await);
    assert_eq!((sent_again.code, sent_again.replayed), (201, false), "{sent_again:?}");
    assert_eq!((market.rows("supply_settlements").await, market.purse().await), (1, purse("1000", "5000")));
}
