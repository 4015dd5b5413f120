//! Failures that no test brings about at will, through the table of answers itself.

use axum::http::HeaderMap;
use door::{Answer, Failure};
use onceseal_http::headers::{Asked, IDEMPOTENCY_KEY, Need, read};
use onceseal_http::{Answers, Profile};
use store::{Error, Raise, RaiseKind};
use testkit::CountingRandom;

fn asked(key: Option<&'static str>) -> Asked {
    let mut headers = HeaderMap::new();
    headers.extend(key.map(|key| (IDEMPOTENCY_KEY, key.parse().unwrap())));
    read(&headers, Need::Optional, &CountingRandom::default()).unwrap()
}

/// Status, code, `retryable`, `Retry-After`.
async fn answered(
    asked: &Asked,
    result: Result<Answer, Failure>,
) -> (u16, String, Option<bool>, Option<String>) {
    let response = Answers { profile: Profile::Seed, ..Answers::default() }.answered(asked, &result);
    let after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let error = &json["error"];
    assert!(!error.to_string().contains("CANARY"), "what went wrong inside stays inside");
    (status, error["code"].as_str().unwrap().to_owned(), error["details"]["retryable"].as_bool(), after)
}

fn unavailable() -> Error {
    Error::Unavailable { cause: "CANARY".into() }
}

fn lost() -> Error {
    Error::Indeterminate { cause: "CANARY".into() }
}

#[tokio::test]
async fn each_class_of_failure_has_its_answer() {
    let raised = Error::Raised(Raise { write: "CANARY", kind: RaiseKind::Rule });
    let statement = Error::Statement { name: "CANARY", cause: "CANARY".into() };
    let corrupt = Error::Corrupt { table: "CANARY", column: "CANARY".into() };
    let step = Failure::Step { step: "call", cause: "CANARY".into() };
    let keyed = asked(Some("order-1001-attempt"));
    let keys_gone = (503, "IDEMPOTENCY_UNAVAILABLE", Some(true), Some("2"));
    let gone = (503, "SUP_COM_5031", Some(true), Some("2"));
    let ours = (500, "SUP_COM_5001", Some(false), None);
    let running = (202, "IDEMPOTENCY_IN_PROGRESS", Some(true), Some("1"));
    for (failure, with_key, without) in [
        (Failure::Store(unavailable()), keys_gone, gone),
        (Failure::Store(Error::Fenced), keys_gone, gone),
        (Failure::Store(Error::Setup("CANARY".into())), keys_gone, gone),
        // Without a key, asking again might do it twice.
        (Failure::Store(lost()), keys_gone, (503, "SUP_COM_5031", Some(false), None)),
        // The failure is on record under its key: keys are there.
        (Failure::Undone(unavailable()), gone, gone),
        (Failure::Undone(lost()), gone, gone),
        (Failure::Store(Error::Busy { same: true }), gone, gone),
        (step, gone, gone),
        (Failure::Crowded, gone, gone),
        (Failure::Stopping, gone, gone),
        (Failure::Store(raised), ours, ours),
        (Failure::Store(corrupt), ours, ours),
        (Failure::Store(statement), ours, ours),
        (Failure::LeaseLost, running, running),
    ] {
        for (asked, (status, code, retryable, after)) in [(&keyed, with_key), (&asked(None), without)] {
            let expected = (status, code.to_owned(), retryable, after.map(ToOwned::to_owned));
            assert_eq!(answered(asked, Err(failure.clone())).await, expected, "{failure:?}");
        }
    }
    let orphaned = answered(&keyed, Ok(Answer::Orphaned)).await;
    assert_eq!((orphaned.0, orphaned.1.as_str()), (503, "IDEMPOTENCY_UNAVAILABLE"));
}
