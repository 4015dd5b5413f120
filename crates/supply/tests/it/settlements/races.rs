//! Many at once, over the doors of two nodes.

use std::sync::Arc;
use std::time::Duration;

use supply::settlements::{Cancel, Start};

use super::desk::{asks, funded, purse};
use crate::market::{Market, OPERATOR, SUPPLIER, SUPPLIER_TENANT, Told, told};

const WAIT: Duration = Duration::from_secs(30);

/// Runs withdrawals of an amount at the same time, each under its key, on either door.
async fn together(market: &Arc<Market>, amount: &'static str, keys: Vec<String>, code: &str) -> Vec<Told> {
    let asked = keys.into_iter().enumerate().map(|(n, key)| {
        let (market, code) = (Arc::clone(market), code.to_owned());
        tokio::spawn(async move {
            let submission = market.submission(market.operator(&key), asks(amount, &code), WAIT);
            let door = if n % 2 == 0 { &market.door } else { &market.other };
            told(door.submit(submission).await)
        })
    });
    let mut all = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        all.push(asked.await.unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_withdrawals_at_once_one_is_granted() {
    // CON-SET-001, RACE-02, RACE-03.
    let market = Arc::new(funded(100).await);
    let code = market.code().await;
    let keys = (0..10).map(|n| format!("key-00000000000{n:02}")).collect();
    let all = together(&market, "10", keys, &code).await;
    let granted = all.iter().filter(|told| told.code == 201).count();
    let open = all.iter().filter(|told| told.code == 409 && told.error() == "SUP_SET_4091").count();
    assert_eq!((granted, open), (1, 9), "{all:?}");
    assert_eq!(market.purse().await, purse("9000", "1000"));
    assert_eq!(market.rows("supply_settlements").await, 1);
    assert_eq!(market.audited("supply.settlement.withdraw.create", "SUP_SET_4091").await, 9);
    assert_eq!(market.announced("supply.settlement.withdraw.succeeded").await, 1);
    market.reconciled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_of_one_key_at_once_are_one_withdrawal() {
    let market = Arc::new(funded(100).await);
    let code = market.code().await;
    let all = together(&market, "10", vec!["key-0000000000001".into(); 20], &code).await;
    assert!(all.iter().all(|told| told.code == 201 && told.body == all[0].body), "{all:?}");
    assert_eq!(all.iter().filter(|told| !told.replayed).count(), 1);
    assert_eq!(market.purse().await, purse("9000", "1000"));
    assert_eq!(market.rows("supply_settlements").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_of_one_supplier_have_one_withdrawal_between_them() {
    // the same key of two operators is two keys, and one supplier all the same.
    let market = funded(100).await;
    let code = market.code().await;
    let asked = |operator| {
        let caller = market.caller(SUPPLIER_TENANT, operator, "key-0000000000001");
        market.submission(caller, asks("10", &code), WAIT)
    };
    let (one, two) = tokio::join!(market.door.submit(asked(OPERATOR)), market.other.submit(asked(SUPPLIER)));
    let (one, two) = (told(one), told(two));
    let mut codes = [(one.code, one.error()), (two.code, two.error())];
    codes.sort_unstable();
    assert_eq!(codes, [(201, ""), (409, "SUP_SET_4091")]);
    assert_eq!(market.purse().await, purse("9000", "1000"));
}

#[tokio::test]
async fn twenty_repeats_are_the_first_and_another_body_is_refused() {
    // CON-SET-002.
    let market = funded(100).await;
    let code = market.code().await;
    let first = market.run("key-0000000000001", asks("10", &code)).await;
    for _ in 0..20 {
        let repeat = market.run("key-0000000000001", asks("10", &code)).await;
        assert_eq!((repeat.code, repeat.replayed, &repeat.body), (201, true, &first.body));
    }
    let other = market.run("key-0000000000001", asks("11", &code)).await;
    assert!(other.replayed && !other.same);
    assert_eq!(market.audited("idempotency.payload_mismatch", "IDEMPOTENCY_PAYLOAD_MISMATCH").await, 1);
    assert_eq!(market.purse().await, purse("9000", "1000"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_cancellation_and_a_start_one_wins_a_hundred_times() {
    let market = funded(1000).await;
    let mut cancelled = 0;
    for n in 0..100 {
        let id = market.granted(&format!("key-withdraw-{n:05}"), "10").await;
        let cancel = market.submission(
            market.operator(&format!("key-cancel-00{n:05}")),
            Cancel { settlement_id: id },
            WAIT,
        );
        let start = market.submission(
            market.admin(&format!("key-start-000{n:05}")),
            Start { settlement_id: id },
            WAIT,
        );
        let (cancel, start) = if n % 2 == 0 {
            tokio::join!(market.door.submit(cancel), market.other.submit(start))
        } else {
            let (start, cancel) = tokio::join!(market.other.submit(start), market.door.submit(cancel));
            (cancel, start)
        };
        let (cancel, start) = (told(cancel), told(start));
        match (cancel.code, start.code) {
            (200, 409) => {
                assert_eq!(start.error(), "SUP_SET_4094");
                assert_eq!(market.settlement(id).await, ("failed".into(), 1));
                cancelled += 1;
            }
            (409, 200) => {
                assert_eq!(cancel.error(), "SUP_SET_4092");
                assert_eq!(cancel.body["error"]["details"]["rule_code"], "INV-SET-001");
                assert_eq!(market.settlement(id).await, ("processing".into(), 1));
                let failed = supply::settlements::Fail { settlement_id: id, failure_code: "closed".into() };
                assert_eq!(market.step(failed).await.code, 200);
            }
            other => panic!("{other:?}: {cancel:?} {start:?}"),
        }
        assert_eq!(market.purse().await, purse("100000", "0"));
    }
    assert_eq!(market.announced("supply.settlement.cancel.succeeded").await, cancelled);
    assert_eq!(market.audited("invariant_violation", "SUP_SET_4092").await, 100 - cancelled);
    market.reconciled().await;
}
