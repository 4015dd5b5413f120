//! What staff decide of suppliers and accounts over HTTP, and what their suppliers meet then.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use serde_json::{Value as Json, json};

use super::desk::{ACCOUNTS, BATCH, Desk, WITHDRAW, code, is, mount, moving};
use super::openapi::{document, operations};

/// Writes nothing but their audit.
const NO_WRITES: [&str; 3] = ["verifyAccount", "lookUpOperation", "introspectToken"];

async fn staff(desk: &Desk, path: &str, body: Json) -> crate::house::Got {
    let path = format!("/api/v1/platform/{path}");
    desk.api.write((Method::POST, &path), desk.api.admin_token(), &desk.api.key(), &body.to_string()).await
}

async fn stands(desk: &Desk, measure: &str) -> Json {
    let supplier = desk.api.count("select id from supply_suppliers").await;
    let reason = json!({ "reason": "a complaint" });
    let got = staff(desk, &format!("suppliers/{supplier}/{measure}"), reason).await;
    assert_eq!(got.status, 200, "{}", got.text());
    got.json()["data"].clone()
}

/// Every write of a supplier with what it would succeed with, by its operation.
async fn writes(desk: &Desk) -> BTreeMap<&'static str, (Method, String, String)> {
    let (active, pending) = (desk.account("a").await, desk.done(ACCOUNTS, &mount("b")).await);
    let pending = pending["account_id"].as_i64().expect("an account");
    let (draft, on_sale) = (desk.draft(active, ("8", "32"), 30).await, desk.active(active).await);
    let settlement = desk.settlement("50").await;
    let account = |tail: &str| format!("{ACCOUNTS}/{pending}{tail}");
    let package = json!({ "supply_account_id": active, "model": "gpt-x", "total_quota": 1000,
        "price_per_1m_input": 9, "price_per_1m_output": 33, "valid_days": 30 })
    .to_string();
    let item = json!({ "package_id": on_sale, "price_per_1m_input": 9, "price_per_1m_output": 33 });
    let secret = json!({ "credential_input": testkit::canary::credential("d") }).to_string();
    let none = String::new;
    let withdraw = json!({ "withdraw_amount": 20, "payment_method": "alipay",
        "payment_account": "13800000000", "sms_code": "123456" });
    let post = |path: String, body: String| (Method::POST, path, body);
    BTreeMap::from([
        ("createAccount", post(ACCOUNTS.into(), mount("c"))),
        ("activateAccount", post(account("/activate"), none())),
        ("suspendAccount", post(format!("{ACCOUNTS}/{active}/suspend"), none())),
        ("deleteAccount", (Method::DELETE, account(""), none())),
        ("rotateCredential", post(account("/rotate-credential"), secret)),
        ("savePackageDraft", post("/api/v1/supply/packages/draft".into(), package.clone())),
        ("editPackageDraft", (Method::PUT, moving(draft, "draft"), package)),
        ("publishPackage", post(moving(draft, "publish"), none())),
        ("pausePackage", post(moving(on_sale, "pause"), none())),
        ("unlistPackage", post(moving(on_sale, "unlist"), none())),
        ("clonePackage", post(moving(draft, "clone"), none())),
        ("batchPrice", post(BATCH.into(), json!({ "items": [item] }).to_string())),
        ("sendWithdrawCode", post(format!("{WITHDRAW}/sms-code"), none())),
        ("withdraw", post(WITHDRAW.into(), withdraw.to_string())),
        ("cancelWithdrawal", post(format!("/api/v1/supply/settlements/{settlement}/cancel"), none())),
    ])
}

#[tokio::test]
async fn a_suspended_supplier_writes_nothing_by_any_operation() {
    let desk = Desk::funded(1000).await;
    let scopes: Vec<&str> = super::desk::SCOPES.into_iter().chain(["supply:credential:manage"]).collect();
    let token = desk.api.token((desk.tenant, desk.operator), &scopes).await;
    let writes = writes(&desk).await;
    assert_eq!(stands(&desk, "suspend").await["status"], "suspended");
    let before = desk.business().await;
    for (id, (method, path, body)) in &writes {
        let got = desk.api.write((method.clone(), path), &token, &desk.api.key(), body).await;
        assert_eq!(code(&got), is(409, "SUP_SET_4095"), "{id}: {}", got.text());
    }
    assert_eq!(desk.business().await, before, "nothing was changed");
    let operations = operations(&document(&desk.api).await);
    let described: BTreeSet<String> = operations
        .iter()
        .filter(|(method, _, operation)| {
            let scope = operation["security"][0]["bearer"][0].as_str().unwrap_or_default();
            method != "get" && scope.starts_with("supply:")
        })
        .map(|(_, _, operation)| operation["operationId"].as_str().expect("an id").to_owned())
        .filter(|id| !NO_WRITES.contains(&id.as_str()))
        .collect();
    assert_eq!(described, writes.keys().map(|id| (*id).to_owned()).collect(), "all of them");
    assert_eq!(stands(&desk, "resume").await["status"], "active");
    let (method, path, body) = &writes["publishPackage"];
    let got = desk.api.write((method.clone(), path), &token, &desk.api.key(), body).await;
    assert_eq!(got.status, 200, "{}", got.text());
}

#[tokio::test]
async fn an_open_risk_case_holds_money_and_accounts_and_nothing_else() {
    let desk = Desk::funded(1000).await;
    let account = desk.account("a").await;
    assert_eq!(stands(&desk, "risk-cases").await["open_risk_cases"], 1);
    let sms = desk.ask(&format!("{WITHDRAW}/sms-code"), "").await;
    assert_eq!(code(&sms), is(409, "SUP_SET_4095"));
    let suspend = desk.ask(&format!("{ACCOUNTS}/{account}/suspend"), "").await;
    assert_eq!(code(&suspend), is(409, "SUP_ACC_4095"));
    desk.active(account).await;
    assert_eq!(stands(&desk, "risk-cases/close").await["open_risk_cases"], 0);
    assert_eq!(desk.ask(&format!("{WITHDRAW}/sms-code"), "").await.status, 200);
}

#[tokio::test]
async fn an_oauth_account_is_published_from_once_a_person_accepted_it() {
    let desk = Desk::new().await;
    let secret = "r".repeat(40);
    let body = json!({ "provider": "openai", "account_type": "oauth", "credential_input": secret, "risk_ack": true });
    let mounted = desk.done(ACCOUNTS, &body.to_string()).await;
    let (id, verified) = (&mounted["account_id"], &mounted["is_verified"]);
    assert_eq!(verified, false);
    let activate = format!("{ACCOUNTS}/{id}/activate");
    assert_eq!(code(&desk.ask(&activate, "").await), is(409, "SUP_ACC_4096"));
    let review = format!("supply/accounts/{id}/review");
    let both = json!({ "decision": "reject", "reason": "x", "available_quota": 1 });
    assert_eq!(code(&staff(&desk, &review, both).await), is(400, "SUP_COM_4001"));
    let accept = json!({ "decision": "accept", "reason": "seen the contract", "available_quota": 5000 });
    let got = staff(&desk, &review, accept).await;
    assert_eq!(got.status, 200, "{}", got.text());
    desk.done(&activate, "").await;
    desk.active(id.as_i64().expect("an account")).await;
}

#[tokio::test]
async fn the_guard_keeps_knowing_a_credential_that_got_out() {
    let desk = Desk::new().await;
    let (account, secret) = (desk.account("q").await, testkit::canary::credential("q"));
    let part = secret.get(3..30).expect("a part");
    let compromised = json!({ "reason": "it leaked", "compromised": true });
    let got = staff(&desk, &format!("supply/accounts/{account}/disable"), compromised).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let kept = "select encrypted_credentials from supply_accounts";
    assert_eq!(desk.api.texts(kept).await, [""]);
    assert!(desk.api.guard.body("test", "body", part.as_bytes()).clean().is_err(), "it still must not leave");
    let revoked = "select object_id from audit_events where event_name = 'CRED-REVOKE'";
    assert_eq!(desk.api.texts(revoked).await, [account.to_string()]);
}
