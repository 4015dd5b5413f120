//! FI-008: a planted credential in an answer, an audit row, an outbox row, a key, and a part of a live one. What
//! would hold it is not committed, not sent, and told without it.

use axum::http::Method;
use guard::canary::contains_run;
use serde_json::json;

use super::desk::{ACCOUNTS, Desk, code, is, moving};

fn canary() -> String {
    format!("sk-{}", "Q7xZ".repeat(12))
}

/// Withheld, audited as this event, alerted, and nowhere to be found.
pub(crate) async fn withheld(desk: &Desk, event: &str, exposures: i64) {
    let sql = format!(
        "select count(*) from audit_events where event_name = '{event}' and result_code = 'SUP_COM_5002'"
    );
    assert_eq!(desk.api.count(&sql).await, exposures, "{event}");
    let alerts = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
        and cast(payload as text) like '%credential_exposure_blocked%' and cast(payload as text) like '%P0%'";
    assert_eq!(desk.api.count(alerts).await, exposures);
    let blocked = "select cast(metadata as text) from audit_events where event_name like 'CRED-EXPOSE-%'";
    for metadata in desk.api.texts(blocked).await {
        let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
        assert_eq!(metadata["blocked"], true);
        assert_eq!(metadata["mac"].as_str().map(str::len), Some(64), "{metadata}");
    }
    let rows = "select cast(before_state as text) || cast(after_state as text) || cast(metadata as text)
        || coalesce(idempotency_key, '') || object_id from audit_events";
    for text in desk.api.texts(rows).await {
        assert!(!contains_run(&text, &canary(), 8), "{text}");
    }
    for text in desk.api.texts("select cast(payload as text) from outbox").await {
        assert!(!contains_run(&text, &canary(), 8), "{text}");
    }
}

#[tokio::test]
async fn fi_008_an_answer_with_a_credential_is_not_stored_and_not_sent() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.draft(account, ("8", "32"), 30).await;
    // Past all rules; a clone would store and tell it.
    desk.api.force(&format!("update supply_packages set model = '{}'", canary())).await;
    let key = desk.api.key();
    let got = desk.post(&moving(package, "clone"), &key, "").await;
    assert_eq!(code(&got), is(500, "SUP_COM_5002"), "{}", got.text());
    assert!(!contains_run(&got.body, &canary(), 8));
    assert_eq!(desk.api.count("select count(*) from supply_packages").await, 1);
    let stored = "select coalesce(cast(response_body as text), '') from supply_idempotency_record";
    for text in desk.api.texts(stored).await {
        assert!(!contains_run(&text, &canary(), 8), "{text}");
    }
    withheld(&desk, "CRED-EXPOSE-RESPONSE", 1).await;
    desk.sound().await;
}

#[tokio::test]
async fn fi_008_an_audit_row_with_a_part_of_a_credential_fails_its_transaction() {
    let desk = Desk::funded(100).await;
    let settlement = desk.settlement("50").await;
    desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/start"), "").await;
    let before = desk.seen().await;
    // What has the shape of one is refused where it comes in; a part of a live one has none.
    desk.api.guard.remember("account", &canary()).expect("long enough");
    let part = canary().get(8..24).expect("long enough").to_owned();
    let path = format!("/api/v1/platform/settlements/{settlement}/fail");
    let cause = json!({ "failure_code": format!("see {part}") }).to_string();
    let got = desk.api.write((Method::POST, &path), desk.api.admin_token(), &desk.api.key(), &cause).await;
    assert_eq!(code(&got), is(500, "SUP_COM_5002"), "{}", got.text());
    assert!(!contains_run(&got.body, &canary(), 8));
    let told = |line: &&String| !line.starts_with("audit_events") && !line.starts_with("outbox");
    let now = desk.seen().await;
    assert_eq!(now.iter().filter(told).collect::<Vec<_>>(), before.iter().filter(told).collect::<Vec<_>>());
    withheld(&desk, "CRED-EXPOSE-LOG", 1).await;
    desk.sound().await;
}

#[tokio::test]
async fn fi_008_a_part_of_a_live_credential_is_withheld_wherever_it_stands() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.active(account).await;
    // Without a shape of its own; twelve characters of it are enough.
    let live = "zx81-Quick4Brown7Foxes9Jump";
    desk.api.guard.remember("account", live).expect("long enough");
    desk.api.force("update supply_packages set model = 'see Quick4Brown7'").await;
    let read = desk.api.read(&format!("/api/v1/supply/packages/{package}"), &desk.token).await;
    assert_eq!(code(&read), is(500, "SUP_COM_5002"), "{}", read.text());
    assert!(!contains_run(&read.body, live, 8));
    withheld(&desk, "CRED-EXPOSE-RESPONSE", 1).await;
    let cloned = desk.ask(&moving(package, "clone"), "").await;
    assert_eq!(code(&cloned), is(500, "SUP_COM_5002"), "{}", cloned.text());
    assert_eq!(desk.api.count("select count(*) from supply_packages").await, 1);
}

#[tokio::test]
async fn a_part_of_a_mounted_credential_is_withheld_until_it_is_rotated_or_deleted() {
    let desk = Desk::new().await;
    let secret = |part: &str| format!("sk-{}", part.repeat(3));
    let (first, second) = (secret("Quick4Brown7Fox"), secret("Lazy9Hound2Leaps"));
    let mount = |secret: &str| {
        json!({ "provider": "openai", "account_type": "api_key", "credential_input": secret, "risk_ack": true })
            .to_string()
    };
    let package = desk.active(desk.account("a").await).await;
    let account = desk.done(ACCOUNTS, &mount(&first)).await["account_id"].as_i64().expect("an id");
    let told = async |secret: &str| {
        let part = secret.get(20..32).expect("long enough");
        desk.api.force(&format!("update supply_packages set model = 'see {part}'")).await;
        let read = desk.api.read(&format!("/api/v1/supply/packages/{package}"), &desk.token).await;
        assert!(read.status == 200 || !contains_run(&read.body, secret, 8));
        read.status
    };
    assert_eq!((told(&first).await, told(&second).await), (500, 200));
    let managing = desk.api.token((desk.tenant, desk.operator), &["supply:credential:manage"]).await;
    let body = json!({ "credential_input": second }).to_string();
    desk.api.done(&format!("{ACCOUNTS}/{account}/rotate-credential"), &managing, &body).await;
    assert_eq!((told(&first).await, told(&second).await), (200, 500));
    let path = format!("{ACCOUNTS}/{account}");
    let gone = desk.api.write((Method::DELETE, &path), &desk.token, &desk.api.key(), "").await;
    assert_eq!((gone.status, told(&second).await), (204, 200), "{}", gone.text());
}

#[tokio::test]
async fn nobody_makes_a_text_of_others_a_secret() {
    let desk = Desk::new().await;
    let package = desk.active(desk.account("a").await).await;
    // No provider confirms these: an opaque token of one's own choice.
    let chosen = json!({ "provider": "gemini", "account_type": "oauth", "credential_input": "gpt-x-and-request_id-and-more", "risk_ack": true });
    for path in [ACCOUNTS.to_owned(), format!("{ACCOUNTS}/verify")] {
        let mut body = chosen.clone();
        if path != ACCOUNTS {
            body.as_object_mut().expect("an object").remove("risk_ack");
        }
        let got = desk.ask(&path, &body.to_string()).await;
        assert!(got.status < 300, "{}", got.text());
    }
    desk.api.force("update supply_packages set model = 'and-request_id-and'").await;
    let read = desk.api.read(&format!("/api/v1/supply/packages/{package}"), &desk.token).await;
    assert_eq!(read.status, 200, "{}", read.text());
}

#[tokio::test]
async fn fi_008_a_key_that_is_a_credential_is_refused_and_kept_nowhere() {
    let desk = Desk::new().await;
    let got = desk.post(ACCOUNTS, &canary(), "{}").await;
    assert_eq!(code(&got), is(400, "IDEMPOTENCY_KEY_INVALID"), "{}", got.text());
    let narrow = desk.api.token((desk.tenant, desk.operator), &["supply:account:read"]).await;
    let denied = desk.api.write((Method::POST, ACCOUNTS), &narrow, &canary(), "{}").await;
    assert_eq!(code(&denied), is(403, "AUTH_SCOPE_DENIED"), "{}", denied.text());
    withheld(&desk, "CRED-EXPOSE-RESPONSE", 0).await;
    let kept =
        format!("select count(*) from supply_idempotency_record where idempotency_key = '{}'", canary());
    assert_eq!(desk.api.count(&kept).await, 0);
}

#[tokio::test]
async fn a_token_goes_out_where_it_is_made_and_where_it_is_renewed() {
    let desk = Desk::new().await;
    let asked = json!({ "token": desk.api.admin_token() }).to_string();
    assert_eq!(desk.api.admin("/api/v1/platform/tokens/introspect", &asked).await["active"], true);
    let staff = json!({ "tenant_id": 1, "user_id": super::api::ADMIN, "role": "admin", "user_type": "platform",
        "scope": ["*"], "ttl_seconds": 600 });
    let issued = desk.api.admin("/api/v1/platform/tokens/issue", &staff.to_string()).await;
    let token = issued["access_token"].as_str().expect("a token").to_owned();
    let path = format!("/api/v1/platform/tokens/{}/refresh", issued["token_id"]);
    let renewed = desk.api.write((Method::POST, &path), &token, &desk.api.key(), "").await;
    assert_eq!(renewed.status, 200, "{}", renewed.text());
    assert!(renewed.json()["data"]["access_token"].is_string(), "{}", renewed.text());
    withheld(&desk, "CRED-EXPOSE-RESPONSE", 0).await;
}
