//! What is refused for now says when to come again; what is read of money and audit is on record; what an account has
//! seen.

use std::time::Duration;

use serde_json::{Value as Json, json};
use supply::Policy;

use super::api::Api;
use super::desk::{ACCOUNTS, Desk, WITHDRAW, code, is, mount};
use super::life::supplier;
use crate::house::Got;

/// Header and details agree.
fn again(got: &Got) -> u64 {
    let header: u64 = got.header("retry-after").parse().expect("Retry-After");
    assert_eq!(got.json()["error"]["details"]["retry_after_seconds"], json!(header), "{}", got.text());
    header
}

#[tokio::test]
async fn a_provider_out_of_reach_says_when_to_come_again() {
    let desk = Desk::new().await;
    let held = desk.api.provider.write().await;
    let got = desk.ask(ACCOUNTS, &mount("a")).await;
    drop(held);
    assert_eq!((code(&got), again(&got)), (is(503, "SUP_ACC_5031"), 2));
}

#[tokio::test]
async fn withdrawals_that_are_off_or_too_early_say_when_to_come_again() {
    let off = Api::with(Policy::default()).await;
    let (tenant, operator, _) = supplier(&off, "one").await;
    let token = off.token((tenant, operator), &["supply:settlement:withdraw"]).await;
    let sms = format!("{WITHDRAW}/sms-code");
    let got = off.write((axum::http::Method::POST, &sms), &token, &off.key(), "").await;
    assert_eq!((code(&got), again(&got)), (is(503, "SUP_SET_5031"), 600));
    let early =
        Api::with(Policy { withdraw_enabled: true, sms_pause: Duration::from_secs(60), ..Policy::default() });
    let early = early.await;
    let (tenant, operator, _) = supplier(&early, "one").await;
    let token = early.token((tenant, operator), &["supply:settlement:withdraw"]).await;
    early.done(&sms, &token, "").await;
    let got = early.write((axum::http::Method::POST, &sms), &token, &early.key(), "").await;
    assert_eq!(code(&got), is(429, "SUP_SET_4292"));
    assert!((1..=60).contains(&again(&got)));
}

#[tokio::test]
async fn who_read_earnings_or_an_audit_is_on_record() {
    let desk = Desk::funded(10).await;
    let account = desk.account("a").await;
    let scopes = ["billing:read", "supply:audit:read"];
    let token = desk.api.token((desk.tenant, desk.operator), &scopes).await;
    let (earnings, logs) = ("/api/v1/supply/earnings/records", format!("{ACCOUNTS}/{account}/audit-logs"));
    for path in
        [earnings, &logs, "/api/v1/supply/earnings/records?page_size=0", &format!("{ACCOUNTS}/99/audit-logs")]
    {
        desk.api.read(path, &token).await;
    }
    let viewed =
        "select event_name || ' ' || object_type || ' ' || object_id || ' ' || cast(operator_id as text)
        from audit_events where event_name like '%.view' order by id";
    let (user, operator) = (desk.user, desk.operator);
    let wanted = [
        format!("supply.earnings.records.view supplier {user} {operator}"),
        format!("supply.account.audit.view supply_account {account} {operator}"),
    ];
    assert_eq!(desk.api.texts(viewed).await, wanted, "what was refused is not viewed");
}

#[tokio::test]
async fn an_account_tells_when_it_was_checked_and_what_its_calls_came_to() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let read = async || -> Json {
        desk.api.read(&format!("{ACCOUNTS}/{account}"), &desk.token).await.json()["data"].clone()
    };
    let fresh = read().await;
    assert!(fresh["verified_at"].is_string() && fresh["last_check_at"].is_string(), "{fresh}");
    let sql = "update supply_accounts set total_requests = 3, total_tokens = 900, success_rate = 66666666, total_cost = 1250000";
    if desk.api.on_postgres() {
        desk.api.force(&sql.replace("66666666", "66.666666").replace("1250000", "1.25")).await;
    } else {
        desk.api.force(sql).await;
    }
    let used = read().await;
    let seen = ["total_requests", "total_tokens", "total_cost_minor", "currency_code", "success_rate"];
    assert_eq!(
        seen.map(|name| used[name].clone()),
        [json!(3), json!(900), json!("1.25"), json!("CNY"), json!(66.66)]
    );
    assert_eq!(used["total_cost"], json!(0.0125));
}
