//! The example's two routes, by the requests that the README shows.

use door::Door;
use futures::future::join_all;
use secrecy::SecretSlice;
use store::Query;
use tempfile::TempDir;

use crate::two_routes::router;
use crate::wire::{Server, request_id};

const DEPOSIT: &str = "/wallets/7/deposits";

async fn served() -> (Server, Door, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (routes, door) = router(folder.path(), SecretSlice::from(vec![7; 32])).await.unwrap();
    (Server::over(routes).await, door, folder)
}

async fn number(door: &Door, sql: &'static str) -> i64 {
    door.store().query(Query::new("number", sql, vec![])).await.unwrap()[0].int(0).unwrap()
}

#[tokio::test]
async fn a_repeat_gets_the_first_result_and_moves_nothing() {
    let (server, door, _folder) = served().await;
    let first = server.post(DEPOSIT, "deposit-000000001", 1, r#"{"cents": 1000}"#).await;
    assert_eq!(first.status, 201);
    let expected = format!(
        r#"{{"request_id":"{}","idempotent_replay":false,"data":{{"to":7,"cents":1000}}}}"#,
        request_id(1)
    );
    assert_eq!(first.text, expected);
    let again =
        server.post("/wallets/007/deposits/", "\"deposit-000000001\"", 2, r#" {"cents":1.0e3} "#).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (404, None), "the router is strict");
    let again =
        server.post("/wallets/007/deposits", "\"deposit-000000001\"", 2, r#" {"cents":1.0e3} "#).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(again.json()["original_request_id"], request_id(1));
    assert_eq!(again.json()["request_id"], request_id(2));
    assert_eq!(again.header("idempotency-expires"), first.header("idempotency-expires"));
    assert_eq!(number(&door, "select cents from wallets where id = 7").await, 1000);
}

#[tokio::test]
async fn a_key_belongs_to_one_path_and_one_payload() {
    let (server, door, _folder) = served().await;
    let key = "shared-key-000001";
    let body = r#"{"cents":5}"#;
    assert_eq!(server.post(DEPOSIT, key, 1, body).await.status, 201);
    let other = server.post("/wallets/8/deposits", key, 2, body).await;
    assert_eq!((other.status, other.header("idempotent-replayed")), (201, None));
    let changed = server.post(DEPOSIT, key, 3, r#"{"cents":6}"#).await;
    assert_eq!((changed.status, changed.code().as_str()), (409, r#""IDEMPOTENCY_PAYLOAD_MISMATCH""#));
    assert_eq!(number(&door, "select sum(cents) from wallets").await, 10);
}

#[tokio::test]
async fn a_refused_transfer_stays_refused_under_its_key() {
    let (server, door, _folder) = served().await;
    let transfer = r#"{"from":7,"to":8,"cents":30}"#;
    let refused = server.post("/transfers", "transfer-0000001", 1, transfer).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, r#""FUNDS""#));
    assert_eq!(server.post(DEPOSIT, "deposit-000000001", 2, r#"{"cents":100}"#).await.status, 201);
    let repeat = server.post("/transfers", "transfer-0000001", 3, transfer).await;
    assert_eq!((repeat.status, &repeat.json()["idempotent_replay"]), (409, &true.into()));
    assert_eq!(server.post("/transfers", "transfer-0000002", 4, transfer).await.status, 201);
    assert_eq!(number(&door, "select cents from wallets where id = 7").await, 70);
}

#[tokio::test]
async fn twenty_sends_of_one_key_at_once_move_the_money_once() {
    let (server, door, _folder) = served().await;
    let sends = (1..=20).map(|n| server.post(DEPOSIT, "race-000000000001", n, r#"{"cents":100}"#));
    let got = join_all(sends).await;
    let firsts = got.iter().filter(|got| got.json()["idempotent_replay"] == false).count();
    assert_eq!(firsts, 1);
    for got in &got {
        assert!(matches!(got.status, 201 | 202), "{got:?}");
    }
    assert_eq!(number(&door, "select cents from wallets where id = 7").await, 100);
    assert_eq!(number(&door, "select count(*) from audit_events where event_name = 'pay.move'").await, 1);
}

#[tokio::test]
async fn a_bad_request_burns_no_key() {
    let (server, door, _folder) = served().await;
    let bad = server.post(DEPOSIT, "careless-0000001", 1, r#"{"cents":0,"note":"x"}"#).await;
    assert_eq!((bad.status, bad.code().as_str()), (400, r#""SUP_COM_4000""#));
    let fields = bad.json()["error"]["details"]["fields"].to_string();
    assert_eq!(fields, r#"[{"field":"cents","rule":"range 1..1000000"},{"field":"note","rule":"unknown"}]"#);
    assert_eq!(number(&door, "select count(*) from pay_records").await, 0);
    assert_eq!(server.post(DEPOSIT, "careless-0000001", 2, r#"{"cents":1}"#).await.status, 201);
}
