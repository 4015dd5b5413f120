//! Orders about anchor keys, and what a server says that may not sign.

use axum::http::Method;
use serde_json::json;
use source::samples::CHECKOUT_PAID;
use store::{Write, values};

use crate::house::{House, payment};

/// A public key whose private half nobody here has (RFC 8032, section 7.1, test 1).
const FOREIGN: &[u8; 32] = b"\xd7\x5a\x98\x01\x82\xb1\x0a\xb7\xd5\x4b\xfe\xd3\xc9\x64\x07\x3a\x0e\xe1\x72\xf3\xda\xa6\x23\x25\xaf\x02\x1a\x68\xf7\x07\x51\x1a";

#[tokio::test]
async fn a_key_is_announced_published_and_activated() {
    let house = House::new().await;
    let announced = house.order(Method::POST, "keys/announce").await;
    let key = announced.json()["announced"].clone();
    assert_eq!(announced.json()["file"], format!("anchor-{}.pem", key.as_str().expect("a key")));
    let published = house.get("/.well-known/onceseal/keys.json").await.json();
    let found = published["keys"].as_array().expect("a list").iter().find(|found| found["kid"] == key);
    assert_eq!(found.expect("it is published")["onceseal:status"], "announced");
    let standing = house.order(Method::GET, "keys").await.json();
    assert_eq!((&standing["announced"], &standing["not_loaded_by"]), (&key, &json!([])));
    assert_eq!(house.order(Method::POST, "keys/activate").await.json()["active"], key);
    assert_eq!(house.deliver(CHECKOUT_PAID).await.json()["key_id"], key);
}

#[tokio::test]
async fn what_the_keys_state_does_not_allow_is_refused_and_changes_nothing() {
    let house = House::new().await;
    for path in ["keys/activate", "keys/withdraw"] {
        assert_eq!(house.order(Method::POST, path).await.problem(), (409, "KEYS_STATE".into()), "{path}");
    }
    house.order(Method::POST, "keys/announce").await;
    for path in ["keys/announce", "keys/rotate"] {
        assert_eq!(house.order(Method::POST, path).await.problem(), (409, "KEYS_STATE".into()), "{path}");
    }
    assert_eq!(house.order(Method::POST, "keys/withdraw").await.status, 200);
    assert_eq!(house.count("certify_keys").await, 1);
    assert_eq!(house.order(Method::POST, "keys/announce?key=x").await.status, 401);
    assert_eq!(house.get("/api/v1/certify/keys").await.status, 401);
}

#[tokio::test]
async fn a_server_without_the_active_key_is_not_ready_and_answers_repeats() {
    let house = House::new().await;
    let first = house.deliver(CHECKOUT_PAID).await.json();
    let switched = house.visa.door().maintain("test.switch", Vec::new(), move |_, now| {
        let close = "update certify_keys set status = 'closing' where status = 'active'";
        let open = "insert into certify_keys (key_id, public_key, status, announced_at, active_from) values ('other', $1, 'active', $2, $3)";
        let row = values![FOREIGN.to_vec(), now, now];
        Ok((vec![Write::one("test.close", close, vec![]), Write::one("test.open", open, row)], ()))
    });
    switched.await.expect("switched");
    house.visa.tend_keys().await.expect("tended");
    let ready = house.get("/readyz").await;
    let reason = ready.json()["reasons"]["keys"].as_str().expect("a reason").to_owned();
    assert!(ready.status == 503 && reason.contains("no private key file"), "{reason}");
    let refused = house.deliver(payment("evt_new")).await;
    assert_eq!((refused.status, refused.json()["code"].clone()), (503, json!("KEYS_UNUSABLE")));
    assert!(!refused.header("retry-after").is_empty());
    let again = house.deliver(CHECKOUT_PAID).await.json();
    assert_eq!((&again["status"], &again["html_url"]), (&json!("duplicate_reused"), &first["html_url"]));
}
