//! Operations by their keys: where they stand, for whoever sent them.

use axum::http::Method;
use serde_json::{Value as Json, json};

use super::desk::{ACCOUNTS, Desk, SCOPES, WITHDRAW, asks, code, is, mount, moving};
use crate::house::Got;

const LOOK_UP: &str = "/api/v1/supply/operations/look-up";

async fn token(desk: &Desk, of: (i64, i64)) -> String {
    desk.api.token(of, &[&SCOPES[..], &["supply:audit:read"]].concat()).await
}

async fn looked_up(desk: &Desk, token: &str, (path, key): (&str, &str)) -> Got {
    let body = json!({ "path": path, "idempotency_key": key }).to_string();
    desk.api.write((Method::POST, LOOK_UP), token, &desk.api.key(), &body).await
}

#[tokio::test]
async fn an_operation_tells_where_it_stands_by_path_and_key() {
    let desk = Desk::funded(100).await;
    let token = token(&desk, (desk.tenant, desk.operator)).await;
    let account = desk.account("a").await;
    let publish = moving(desk.draft(account, ("8", "32"), 30).await, "publish");
    let key = desk.api.key();
    assert_eq!(code(&looked_up(&desk, &token, (&publish, &key)).await), is(404, "SUP_COM_4041"));
    let published = desk.post(&publish, &key, "").await;
    // The path as it was sent, the key as it stood in the header.
    let quoted = format!("\"{key}\"");
    for (path, key) in [(publish.clone(), key.clone()), (format!("{publish}/"), quoted)] {
        let got = looked_up(&desk, &token, (&path, &key)).await;
        let data = got.json()["data"].clone();
        assert_eq!((got.status, &data["state"]), (200, &json!("succeeded")), "{}", got.text());
        assert_eq!(data["response_code"], 200);
        assert_eq!(data["original_request_id"], published.json()["request_id"]);
        assert_eq!(data["expires_at"].as_str(), Some(published.header("idempotency-expires")));
        assert!(!got.text().contains("package_id") && !got.text().contains(&key), "{}", got.text());
    }
    let key = desk.api.key();
    assert_eq!(desk.post(WITHDRAW, &key, &asks("5000", "000000")).await.status, 400);
    let refused = looked_up(&desk, &token, (WITHDRAW, &key)).await.json()["data"].clone();
    assert_eq!((&refused["state"], &refused["response_code"]), (&json!("failed"), &json!(400)));
}

#[tokio::test]
async fn an_operation_that_runs_tells_when_to_ask_again() {
    let desk = Desk::new().await;
    let token = token(&desk, (desk.tenant, desk.operator)).await;
    let (key, provider) = (desk.api.key(), desk.api.provider.clone());
    let held = provider.write().await;
    let body = mount("a");
    let meanwhile = async {
        loop {
            let got = looked_up(&desk, &token, (ACCOUNTS, &key)).await;
            if got.status == 200 {
                drop(held);
                return got.json()["data"].clone();
            }
        }
    };
    let (made, running) = tokio::join!(desk.post(ACCOUNTS, &key, &body), meanwhile);
    assert_eq!((made.status, &running["state"]), (201, &json!("processing")));
    assert!(running["retry_after_ms"].as_u64() >= Some(200), "{running}");
    assert_eq!(running.get("response_code"), None::<&Json>);
}

#[tokio::test]
async fn nobody_finds_another_ones_operation_and_a_bad_question_says_what_is_wrong() {
    let desk = Desk::new().await;
    let key = desk.api.key();
    assert_eq!(desk.post(ACCOUNTS, &key, &mount("a")).await.status, 201);
    let (tenant, operator, _) = super::life::supplier(&desk.api, "two").await;
    for token in [desk.api.admin_token().to_owned(), token(&desk, (tenant, operator)).await] {
        assert_eq!(code(&looked_up(&desk, &token, (ACCOUNTS, &key)).await), is(404, "SUP_COM_4041"));
    }
    assert_eq!(code(&looked_up(&desk, &desk.token, (ACCOUNTS, &key)).await), is(403, "AUTH_SCOPE_DENIED"));
    let own = token(&desk, (desk.tenant, desk.operator)).await;
    for (path, key, field) in
        [("accounts", key.as_str(), "path"), (ACCOUNTS, "short", "idempotency_key"), ("/a//b", &key, "path")]
    {
        let got = looked_up(&desk, &own, (path, key)).await;
        assert_eq!(code(&got), is(400, "SUP_COM_4001"), "{}", got.text());
        assert_eq!(got.json()["error"]["details"]["fields"][0]["field"], field);
    }
}
