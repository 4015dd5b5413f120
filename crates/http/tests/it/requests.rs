//! What stands around a handler: bounds, types, nested routers, echoes.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{StreamExt as _, once, pending};
use onceseal_http::{Limits, Profile};

use crate::bank::Bank;
use crate::wire::{Got, request_id};

const KEY: &str = "order-1001-attempt";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const BODY: &str = r#"{"kind":"data"}"#;

async fn send(bank: &Bank, more: &[(&str, &str)], body: impl Into<reqwest::Body>) -> Got {
    let id = request_id(1);
    let ids = [("x-request-id", id.as_str()), ("idempotency-key", KEY)];
    bank.server.send("/acts", &[&ids, more].concat(), body).await
}

#[tokio::test]
async fn ids_are_echoed_and_nothing_that_came_with_them() {
    let bank = Bank::new(Profile::Seed).await;
    let json = ("content-type", "application/json; charset=utf-8");
    let quoted = format!("\"{KEY}\"");
    let id = request_id(0xab).to_uppercase();
    let headers = [json, ("x-request-id", &id), ("idempotency-key", &quoted), ("traceparent", TRACE)];
    for kind in ["data", "refused"] {
        let body = format!(r#"{{"kind":"{kind}"}}"#);
        let got = bank.server.send("/acts", &headers, body).await;
        assert_eq!(got.header("x-request-id"), Some(id.to_lowercase().as_str()));
        assert_eq!(got.header("idempotency-key"), Some(quoted.as_str()));
        assert_eq!(got.header("traceparent"), Some(TRACE));
    }
    let more = format!("{quoted};p=parameter-of-a-client");
    let later = format!("{}-more-of-a-client", TRACE.replacen("00-", "01-", 1));
    let headers = [json, ("x-request-id", &id), ("idempotency-key", &more), ("traceparent", &later)];
    let got = bank.server.send("/acts", &headers, BODY).await;
    assert_eq!((got.status, got.header("idempotency-key")), (201, Some(quoted.as_str())));
    assert_eq!(got.header("traceparent"), Some(TRACE.replacen("00-", "01-", 1).as_str()));
    assert_eq!(got.header("cache-control"), Some("no-store"));
    let wrong = [json, ("traceparent", "00-nonsense")];
    let got = bank.server.send("/free", &wrong, BODY).await;
    assert_eq!((got.status, got.header("traceparent"), got.header("idempotency-key")), (201, None, None));
}

#[tokio::test]
async fn without_a_key_nothing_is_kept() {
    let bank = Bank::new(Profile::Seed).await;
    let json = ("content-type", "application/json");
    for _ in 0..2 {
        let got = bank.server.send("/free", &[json, ("x-request-id", "not-a-uuid")], BODY).await;
        assert_eq!((got.status, got.header("idempotency-expires")), (201, None));
        assert_ne!(got.header("x-request-id"), Some("not-a-uuid"));
        assert!(!got.text.contains("idempotent_replay"));
    }
    assert_eq!((bank.effects().await, bank.count("select count(*) from bank_records").await), (2, 0));
    for replayed in [None, Some("true")] {
        let got = bank.server.send("/free", &[json, ("idempotency-key", KEY)], BODY).await;
        assert_eq!((got.status, got.header("idempotent-replayed")), (201, replayed));
    }
    assert_eq!(bank.effects().await, 3);
}

#[tokio::test]
async fn a_body_is_json_unencoded_and_of_bounded_size() {
    let bank = Bank::new(Profile::Seed).await;
    let large = format!("{}{}", " ".repeat(64 * 1024), BODY);
    let chunks = futures::stream::iter(
        large.clone().into_bytes().chunks(4096).map(Bytes::copy_from_slice).collect::<Vec<_>>(),
    );
    let chunked = reqwest::Body::wrap_stream(chunks.map(Ok::<_, std::io::Error>));
    let json = [("content-type", "application/json")];
    for (headers, body, status, code) in [
        (&[("content-type", "text/plain")][..], BODY.to_owned().into(), 415, "SUP_COM_4151"),
        (&[("content-type", "application/jsonp")][..], BODY.to_owned().into(), 415, "SUP_COM_4151"),
        (&[json[0], ("content-encoding", "gzip")][..], BODY.to_owned().into(), 415, "SUP_COM_4151"),
        (&json[..], reqwest::Body::from(large), 413, "SUP_COM_4131"),
        (&json[..], chunked, 413, "SUP_COM_4131"),
    ] {
        let got = send(&bank, headers, body).await;
        assert_eq!((got.status, got.code().trim_matches('"')), (status, code));
        assert_eq!(got.header("x-request-id"), Some(request_id(1).as_str()));
    }
    let good =
        send(&bank, &[("content-type", "Application/JSON"), ("content-encoding", "identity")], BODY).await;
    assert_eq!(good.status, 201);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let limits = Limits { body_within: Duration::from_millis(50), ..Limits::default() };
    let bank = Bank::limited(Profile::Seed, limits).await;
    let begun = once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"{")) }).chain(pending());
    let got = send(&bank, &[("content-type", "application/json")], reqwest::Body::wrap_stream(begun)).await;
    assert_eq!((got.status, got.code().as_str()), (408, r#""SUP_COM_4081""#));
}

/// DUP-09: a nested router takes the beginning of the path off; the key belongs to the whole.
#[tokio::test]
async fn a_key_belongs_to_the_whole_path_by_its_present_name() {
    let bank = Bank::new(Profile::Seed).await;
    let mut replayed = Vec::new();
    for path in ["/acts", "/api/v1/acts", "/old/acts", "/acts?x=1"] {
        let got = bank.server.post(path, KEY, 1, BODY).await;
        replayed.push((got.status, got.header("idempotent-replayed").is_some()));
    }
    assert_eq!(replayed, [(201, false), (201, false), (201, true), (201, true)]);
    assert_eq!(bank.effects().await, 2);
}

/// DUP-20: no layer, no effect.
#[tokio::test]
async fn a_handler_outside_of_the_layer_does_not_run() {
    let bank = Bank::new(Profile::Seed).await;
    assert_eq!(bank.server.post("/bare", KEY, 1, BODY).await.status, 500);
    assert_eq!(bank.effects().await, 0);
}
