//! Every row of section 7.5 in both profiles, over a socket, from a real door.

use futures::future::join_all;
use onceseal_http::Profile::{self, Draft, Seed};
use serde_json::{Value as Json, json};

use crate::bank::{Bank, EXACT};
use crate::wire::{Got, request_id};

const KEY: &str = "order-1001-attempt";
/// 24 h after the clock's 2026-03-27T02:03:04Z.
const EXPIRES: Option<&str> = Some("2026-03-28T02:03:04.000Z");

fn body(kind: &str) -> String {
    format!(r#"{{"kind":"{kind}"}}"#)
}

async fn post(bank: &Bank, n: u32, kind: &str) -> Got {
    bank.server.post("/acts", KEY, n, &body(kind)).await
}

/// Status, code, media type and `Retry-After`.
fn face(got: &Got) -> (u16, String, Option<&str>, Option<&str>) {
    (got.status, got.code().replace('"', ""), got.header("content-type"), got.header("retry-after"))
}

#[tokio::test]
async fn a_first_result_and_its_repeat_differ_in_the_marks_only() {
    for profile in [Seed, Draft] {
        let bank = Bank::new(profile).await;
        let first = post(&bank, 1, "data").await;
        let expected =
            format!(r#"{{"request_id":"{}","idempotent_replay":false,"data":{EXACT}}}"#, request_id(1));
        assert_eq!((first.status, first.text.as_str()), (201, expected.as_str()));
        assert_eq!(
            (first.header("idempotent-replayed"), first.header("idempotency-expires")),
            (None, EXPIRES)
        );
        let again = post(&bank, 2, "data").await;
        let expected = format!(
            r#"{{"request_id":"{}","idempotent_replay":true,"original_request_id":"{}","data":{EXACT}}}"#,
            request_id(2),
            request_id(1)
        );
        assert_eq!((again.status, again.text.as_str()), (201, expected.as_str()));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(
            (again.header("idempotency-expires"), again.header("content-type")),
            (EXPIRES, Some("application/json"))
        );
        assert_eq!(bank.effects().await, 1);
    }
}

#[tokio::test]
async fn a_result_without_a_body_is_told_in_headers() {
    let bank = Bank::new(Seed).await;
    for (n, replayed) in [(1, None), (2, Some("true"))] {
        let got = post(&bank, n, "none").await;
        assert_eq!((got.status, got.text.as_str(), got.header("content-type")), (204, "", None));
        assert_eq!(
            (got.header("idempotent-replayed"), got.header("idempotency-expires")),
            (replayed, EXPIRES)
        );
        assert_eq!(got.header("x-request-id"), Some(request_id(n).as_str()));
    }
}

#[tokio::test]
async fn a_stored_refusal_is_the_same_again_with_its_mark() {
    let details = json!({ "available_amount": 42.00, "rule_code": "INV-SET-002" });
    let bank = Bank::new(Seed).await;
    let first = post(&bank, 1, "refused").await.json();
    assert_eq!(first.as_object().unwrap().keys().collect::<Vec<_>>(), ["error", "request_id"]);
    let again = post(&bank, 2, "refused").await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (400, Some("true")));
    assert!(again.text.contains(r#""available_amount":42.00, "rule"#), "byte for byte: {}", again.text);
    let again = again.json();
    assert_eq!((&again["error"], &again["idempotent_replay"]), (&first["error"], &json!(true)));
    assert_eq!(
        (&again["error"]["details"], &again["original_request_id"]),
        (&details, &json!(request_id(1)))
    );
    let bank = Bank::new(Draft).await;
    for (n, replay) in [(1, Json::Null), (2, json!(true))] {
        let got = post(&bank, n, "refused").await;
        assert_eq!(face(&got), (400, "SUP_SET_4001".into(), Some("application/problem+json"), None));
        assert!(got.text.contains(r#""available_amount":42.00, "rule"#), "{}", got.text);
        let got = got.json();
        assert_eq!(
            (&got["type"], &got["title"]),
            (&json!("https://onceseal.dev/errors/SUP_SET_4001"), &json!("too much"))
        );
        assert_eq!(
            (&got["status"], &got["details"], &got["idempotent_replay"]),
            (&json!(400), &details, &replay)
        );
        assert_eq!((&got["message_zh"], &got["request_id"]), (&json!("超额"), &json!(request_id(n))));
    }
}

#[tokio::test]
async fn another_payload_under_the_key_is_told_nothing_of_the_first() {
    for (profile, status, kind) in [(Seed, 409, "application/json"), (Draft, 422, "application/problem+json")]
    {
        let bank = Bank::new(profile).await;
        post(&bank, 1, "data").await;
        let other = post(&bank, 2, "list").await;
        assert_eq!(face(&other), (status, "IDEMPOTENCY_PAYLOAD_MISMATCH".into(), Some(kind), None));
        assert_eq!((other.header("idempotency-expires"), other.header("idempotent-replayed")), (None, None));
        assert!(!other.text.contains(&request_id(1)) && !other.text.contains("idempotent_replay"));
        let json = other.json();
        let error = json.get("error").unwrap_or(&json);
        let details =
            json!({ "retryable": false, "expected_action": "reuse_same_payload_or_new_idempotency_key" });
        assert_eq!(error["details"], details);
        assert!(error["message"].is_string() && error["message_zh"].is_string());
        assert!(json.get("data").is_none() && bank.effects().await == 1);
        if profile == Draft {
            assert_eq!(
                (&json["status"], &json["title"]),
                (&json!(422), &json!("Idempotency-Key is already used"))
            );
        }
    }
}

#[tokio::test]
async fn while_the_first_runs_twins_are_told_to_come_again_and_then_get_its_result() {
    for (profile, kind, status) in
        [(Seed, "slow", 202), (Seed, "leased", 202), (Draft, "slow", 409), (Draft, "leased", 409)]
    {
        let bank = Bank::new(profile).await;
        let slow = body(kind);
        let first = bank.server.post("/acts", KEY, 1, &slow);
        let rest = async {
            bank.reached().await;
            let got = join_all((2..=20).map(|n| post(&bank, n, kind))).await;
            for got in got {
                let (status_got, code, _, after) = face(&got);
                assert_eq!((status_got, code.as_str()), (status, "IDEMPOTENCY_IN_PROGRESS"), "{kind}");
                let json = got.json();
                let details = json.pointer("/error/details").unwrap_or(&json["details"]);
                let millis = details["retry_after_ms"].as_u64().unwrap();
                assert!((200..=2000).contains(&millis) && details["retryable"] == true, "{details}");
                assert_eq!(after, Some(millis.div_ceil(1000).to_string().as_str()));
                assert!(json.get("data").is_none());
            }
            let other = bank.server.post("/acts", KEY, 21, &body("data")).await;
            assert_eq!(other.status, if profile == Seed { 409 } else { 422 }, "{kind}");
            bank.gate.open.add_permits(1);
        };
        let (first, ()) = futures::join!(first, rest);
        assert_eq!((first.status, &first.json()["idempotent_replay"]), (201, &json!(false)));
        let again = join_all((30..50).map(|n| post(&bank, n, kind))).await;
        assert!(again.iter().all(|got| got.status == 201 && got.json()["idempotent_replay"] == true));
        assert_eq!(bank.effects().await, 1);
    }
}

#[tokio::test]
async fn what_went_wrong_on_our_side_is_a_5xx_and_the_key_stays_open() {
    for (kind, status, code) in [
        ("broken", 503, "SUP_COM_5031"),
        ("panic", 503, "SUP_COM_5031"),
        ("damaged", 500, "SUP_COM_5001"),
        ("silent", 500, "SUP_COM_5001"),
    ] {
        for profile in [Seed, Draft] {
            let bank = Bank::new(profile).await;
            for n in 1..3 {
                let got = post(&bank, n, kind).await;
                assert_eq!((got.status, got.code().trim_matches('"')), (status, code), "{kind}");
                assert_eq!(got.header("retry-after").is_some(), status == 503, "{kind}");
                assert_eq!(
                    (got.header("idempotent-replayed"), got.header("idempotency-expires")),
                    (None, None)
                );
                assert!(!got.text.contains("provider") && !got.text.contains("wallets"), "{}", got.text);
            }
        }
    }
}

#[tokio::test]
async fn without_the_store_of_keys_nothing_runs() {
    for (profile, kind) in [(Seed, "application/json"), (Draft, "application/problem+json")] {
        let bank = Bank::embedded(profile).await;
        post(&bank, 1, "data").await;
        bank.door.store().fence().await.unwrap();
        let got = bank.server.post("/acts", "another-key-00001", 2, &body("data")).await;
        assert_eq!(face(&got), (503, "IDEMPOTENCY_UNAVAILABLE".into(), Some(kind), Some("2")));
        let keyless = bank.server.send("/free", &[("content-type", "application/json")], body("data")).await;
        assert_eq!((keyless.status, keyless.code().as_str()), (503, r#""SUP_COM_5031""#));
        assert_eq!(bank.effects().await, 1);
        bank.door.store().lift_fence().await.unwrap();
        let again = bank.server.post("/acts", "another-key-00001", 3, &body("data")).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, None));
    }
}

/// DUP-20.
#[tokio::test]
async fn a_lost_table_of_keys_is_never_worked_around() {
    let bank = Bank::new(Seed).await;
    bank.force("alter table bank_records rename to elsewhere").await;
    assert_eq!(post(&bank, 1, "data").await.status, 500);
    assert_eq!(bank.effects().await, 0);
    bank.force("alter table elsewhere rename to bank_records").await;
    assert_eq!(post(&bank, 2, "data").await.status, 201);
}

#[tokio::test]
async fn a_passing_refusal_is_not_kept() {
    let bank = Bank::new(Seed).await;
    for n in 1..3 {
        let got = post(&bank, n, "later").await;
        assert_eq!(face(&got), (429, "SUP_SET_4291".into(), Some("application/json"), Some("90")));
        assert_eq!((got.header("idempotent-replayed"), got.json().get("idempotent_replay")), (None, None));
    }
    assert_eq!(bank.effects().await, 2);
}

#[tokio::test]
async fn a_stored_body_of_another_form_is_data_and_a_damaged_one_is_never_shown() {
    let bank = Bank::new(Seed).await;
    assert!(post(&bank, 1, "list").await.text.ends_with(r#""data":[1.10]}"#));
    // PostgreSQL's JSON column would not keep it.
    let bank = Bank::embedded(Seed).await;
    let got = post(&bank, 2, "junk").await;
    assert_eq!((got.status, got.code().as_str()), (500, r#""SUP_COM_5001""#));
}

#[tokio::test]
async fn past_its_end_a_key_is_new() {
    let bank = Bank::new(Seed).await;
    post(&bank, 1, "data").await;
    bank.clock.advance(std::time::Duration::from_secs(24 * 3600 - 1));
    assert_eq!(post(&bank, 2, "data").await.header("idempotent-replayed"), Some("true"));
    bank.clock.advance(std::time::Duration::from_secs(1));
    let anew = post(&bank, 3, "data").await;
    assert_eq!((anew.status, anew.header("idempotent-replayed")), (201, None));
    assert_eq!(anew.header("idempotency-expires"), Some("2026-03-29T02:03:04.000Z"));
    assert_eq!(bank.effects().await, 2);
}

/// The codes that refuse a request before the door, in both profiles.
#[tokio::test]
async fn a_refused_request_is_answered_in_its_profile() {
    for (profile, kind) in [(Seed, "application/json"), (Draft, "application/problem+json")] {
        let bank = Bank::new(profile).await;
        let id = request_id(1);
        let json = ("content-type", "application/json");
        for (headers, sent, status, code) in [
            (vec![json], "{}", 400, "REQUEST_ID_MISSING"),
            (vec![json, ("x-request-id", "no")], "{}", 400, "REQUEST_ID_INVALID"),
            (vec![json, ("x-request-id", &id)], "{}", 400, "IDEMPOTENCY_KEY_MISSING"),
            (
                vec![json, ("x-request-id", &id), ("idempotency-key", "no")],
                "{}",
                400,
                "IDEMPOTENCY_KEY_INVALID",
            ),
            (vec![json, ("x-request-id", &id), ("idempotency-key", KEY)], "{", 400, "SUP_COM_4000"),
            (vec![json, ("x-request-id", &id), ("idempotency-key", KEY)], "{}", 400, "SUP_COM_4001"),
            (vec![("x-request-id", &id), ("idempotency-key", KEY)], "{}", 415, "SUP_COM_4151"),
        ] {
            let got = bank.server.send("/acts", &headers, sent).await;
            assert_eq!(face(&got), (status, code.into(), Some(kind), None));
            assert_eq!(got.header("x-request-id").map(str::len), Some(36));
            assert_eq!(got.json()["request_id"], got.header("x-request-id").unwrap());
        }
        assert_eq!(bank.count("select count(*) from bank_records").await, 0);
    }
}

#[test]
fn the_seed_is_the_default() {
    assert_eq!(Profile::default(), Seed);
}
