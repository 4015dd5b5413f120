//! An operation by its key.

use std::time::Duration;

use onceseal_http::Profile;
use serde_json::{Value as Json, json};

use crate::bank::Bank;
use crate::wire::request_id;

const KEY: &str = "order-1001-attempt";

async fn looked_up(bank: &Bank) -> (u16, Json) {
    let got = bank.server.post("/look", KEY, 99, "").await;
    (got.status, got.json()["data"].clone())
}

async fn act(bank: &Bank, n: u32, kind: &str) -> u16 {
    bank.server.post("/acts", KEY, n, &format!(r#"{{"kind":"{kind}"}}"#)).await.status
}

#[tokio::test]
async fn a_finished_operation_tells_its_state_its_request_and_its_end() {
    for (kind, state, code) in [("data", "succeeded", 201), ("refused", "failed", 400)] {
        let bank = Bank::new(Profile::Seed).await;
        assert_eq!(looked_up(&bank).await, (404, Json::Null));
        act(&bank, 1, kind).await;
        act(&bank, 2, kind).await;
        let expected = json!({
            "state": state, "response_code": code, "original_request_id": request_id(1),
            "expires_at": "2026-03-28T02:03:04.000Z",
        });
        assert_eq!(looked_up(&bank).await, (200, expected));
        bank.clock.advance(Duration::from_secs(24 * 3600));
        assert_eq!(looked_up(&bank).await, (404, Json::Null), "past its end nothing stands there");
    }
}

#[tokio::test]
async fn a_failed_operation_may_be_sent_again() {
    let bank = Bank::new(Profile::Seed).await;
    assert_eq!(act(&bank, 1, "broken").await, 503);
    let expected = json!({ "state": "failed", "original_request_id": request_id(1),
        "expires_at": "2026-03-28T02:03:04.000Z" });
    assert_eq!(looked_up(&bank).await, (200, expected));
    assert_eq!(act(&bank, 2, "data").await, 409, "a failure holds its key for its payload");
}

#[tokio::test]
async fn a_running_operation_tells_when_to_ask_again() {
    let bank = Bank::new(Profile::Seed).await;
    let rest = async {
        bank.reached().await;
        let expected =
            json!({ "state": "processing", "original_request_id": request_id(1), "retry_after_ms": 2000 });
        assert_eq!(looked_up(&bank).await, (200, expected));
        bank.gate.open.add_permits(1);
    };
    let (status, ()) = futures::join!(act(&bank, 1, "leased"), rest);
    assert_eq!((status, &looked_up(&bank).await.1["state"]), (201, &json!("succeeded")));
}
