//! The concurrency cases of section 22 over HTTP, on two servers where two calls meet.

use futures::future::join_all;
use serde_json::{Value as Json, json};

use super::desk::{Desk, WITHDRAW, asks, cancelling, code, is};

const MANY: usize = 20;

#[tokio::test]
async fn con_set_001_of_ten_withdrawals_under_ten_keys_one_is_made() {
    let desk = Desk::funded(1000).await;
    let second = desk.api.second().await;
    let body = desk.asks("1000").await;
    let keys: Vec<String> = (0..10).map(|_| desk.api.key()).collect();
    let calls = keys.iter().enumerate().map(async |(n, key)| {
        if n % 2 == 0 {
            desk.post(WITHDRAW, key, &body).await
        } else {
            desk.api.write_at(&second, WITHDRAW, (&desk.token, key), &body).await
        }
    });
    let mut ends: Vec<_> = join_all(calls).await.iter().map(code).collect();
    ends.sort();
    assert_eq!(ends[0], is(201, ""));
    assert_eq!(ends[1..], vec![is(409, "SUP_SET_4091"); 9]);
    assert_eq!(desk.api.count("select count(*) from supply_settlements").await, 1);
    let left =
        "select count(*) from billing_accounts where account_code = 'supplier_available' and balance = 0";
    assert_eq!(desk.api.count(left).await, 1);
    desk.sound().await;
}

#[tokio::test]
async fn con_set_002_one_key_twenty_times_is_one_settlement_and_another_body_is_refused() {
    let desk = Desk::funded(100).await;
    let (key, body) = (desk.api.key(), desk.asks("50").await);
    let first = desk.post(WITHDRAW, &key, &body).await;
    assert_eq!(first.status, 201, "{}", first.text());
    for _ in 1..MANY {
        let again = desk.post(WITHDRAW, &key, &body).await;
        assert_eq!((again.status, &again.json()["data"]), (201, &first.json()["data"]));
        assert_eq!(again.json()["idempotent_replay"], true);
        assert_eq!(again.json()["original_request_id"], first.json()["request_id"]);
    }
    assert_eq!(
        code(&desk.post(WITHDRAW, &key, &asks("51", "000000")).await),
        is(409, "IDEMPOTENCY_PAYLOAD_MISMATCH")
    );
    assert_eq!(desk.audited("idempotency.replayed", "OK").await, 19);
    assert_eq!(desk.api.count("select count(*) from supply_settlements").await, 1);
    desk.sound().await;
}

#[tokio::test]
async fn one_key_twenty_times_at_once_over_two_servers_is_one_settlement() {
    let desk = Desk::funded(100).await;
    let second = desk.api.second().await;
    let (key, body) = (desk.api.key(), desk.asks("50").await);
    let calls = (0..MANY).map(async |n| {
        if n % 2 == 0 {
            desk.post(WITHDRAW, &key, &body).await
        } else {
            desk.api.write_at(&second, WITHDRAW, (&desk.token, &key), &body).await
        }
    });
    let answers = join_all(calls).await;
    let of = |replay: bool| {
        answers
            .iter()
            .filter(move |got| got.status == 201 && got.json()["idempotent_replay"] == replay)
            .count()
    };
    let running = answers.iter().filter(|got| code(got) == is(202, "IDEMPOTENCY_IN_PROGRESS")).count();
    assert_eq!((of(false), of(true) + running), (1, MANY - 1));
    let made: Vec<Json> =
        answers.iter().filter(|got| got.status == 201).map(|got| got.json()["data"].clone()).collect();
    assert!(made.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(desk.api.count("select count(*) from supply_settlements").await, 1);
    desk.sound().await;
}

#[tokio::test]
async fn of_a_cancellation_and_a_payout_that_meet_one_happens() {
    let desk = Desk::funded(100_000).await;
    let second = desk.api.second().await;
    let mut started = 0;
    for round in 0..50 {
        let settlement = desk.settlement("10").await;
        let (path, (one, two)) =
            (format!("/api/v1/platform/settlements/{settlement}/start"), (desk.api.key(), desk.api.key()));
        let cancelling = cancelling(settlement);
        let admin = (desk.api.admin_token(), two.as_str());
        let (cancelled, paying) = if round % 2 == 0 {
            tokio::join!(desk.post(&cancelling, &one, ""), desk.api.write_at(&second, &path, admin, ""))
        } else {
            let (paying, cancelled) =
                tokio::join!(desk.api.write_at(&second, &path, admin, ""), desk.post(&cancelling, &one, ""));
            (cancelled, paying)
        };
        match (code(&cancelled), code(&paying)) {
            ((200, _), lost) => assert_eq!(lost, is(409, "SUP_SET_4094"), "{}", paying.text()),
            (lost, (200, _)) => {
                assert_eq!(lost, is(409, "SUP_SET_4092"), "{}", cancelled.text());
                started += 1;
                let body = json!({ "failure_code": "bank_refused" }).to_string();
                desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/fail"), &body).await;
            }
            both => panic!("{both:?}"),
        }
    }
    let ends = "select count(*) from supply_settlements where status = 'failed' and version = ";
    assert_eq!(desk.api.count(&format!("{ends} 1")).await, 50 - started);
    assert_eq!(desk.api.count(&format!("{ends} 2")).await, started);
    let whole =
        "select count(*) from billing_accounts where account_code = 'supplier_frozen' and balance <> 0";
    assert_eq!(desk.api.count(whole).await, 0);
    desk.sound().await;
}
