//! A whole life of money, from the API alone: mounting, publishing, buying, using, withdrawing.

use axum::http::Method;
use kernel::Clock as _;
use serde_json::{Value as Json, json};

use super::api::Api;

const SCOPES: [&str; 9] = [
    "supply:account:read",
    "supply:account:write",
    "supply:package:read",
    "supply:package:write",
    "supply:package:publish",
    "supply:package:offline",
    "supply:settlement:withdraw",
    "billing:read",
    "supply:audit:read",
];

/// A supplier over the API: its tenant, its operator, a token.
pub(crate) async fn supplier(api: &Api, code: &str) -> (i64, i64, String) {
    let body = json!({ "code": code, "name": code, "supplier_type": "company", "operator": "first",
        "phone": "+8613800000000" });
    let made = api.admin("/api/v1/platform/suppliers", &body.to_string()).await;
    let id = |name: &str| made[name].as_i64().expect(name);
    let (tenant, operator) = (id("tenant_id"), id("operator_id"));
    (tenant, operator, api.token((tenant, operator), &SCOPES).await)
}

fn mount(letter: &str) -> String {
    json!({ "provider": "openai", "account_type": "api_key", "credential_input": testkit::canary::credential(letter),
        "account_alias": "spare-1", "min_quota_threshold": 1000, "risk_ack": true })
    .to_string()
}

/// An active package of 5,000,000 tokens at 8 and 32.
pub(crate) async fn offer(api: &Api, token: &str, letter: &str) -> i64 {
    let floors = json!({ "provider": "openai", "model": "gpt-x", "floor_input": 8, "floor_output": 32 });
    let (path, floors) = ((Method::PUT, "/api/v1/platform/price-protection"), floors.to_string());
    let put = api.write(path, api.admin_token(), &api.key(), &floors).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let account = api.done("/api/v1/supply/accounts", token, &mount(letter)).await["account_id"].clone();
    api.done(&format!("/api/v1/supply/accounts/{account}/activate"), token, "").await;
    let draft = json!({ "supply_account_id": account, "model": "gpt-x", "total_quota": 5_000_000,
        "price_per_1m_input": 8, "price_per_1m_output": 32, "valid_days": 30 });
    let draft = api.done("/api/v1/supply/packages/draft", token, &draft.to_string()).await;
    let package = draft["package_id"].as_i64().expect("a package");
    api.done(&format!("/api/v1/supply/packages/{package}/publish"), token, "").await;
    package
}

#[tokio::test]
async fn money_lives_from_top_up_to_payout() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let package = offer(&api, &token, "a").await;
    let buyer = api.admin("/api/v1/platform/buyers", &json!({ "code": "b", "name": "B" }).to_string()).await;
    let (buyer_id, key_id) = (buyer["buyer_id"].clone(), buyer["api_key_id"].clone());
    api.admin(&format!("/api/v1/platform/buyers/{buyer_id}/topups"), &json!({ "amount": 200 }).to_string())
        .await;
    let order = json!({ "buyer_id": buyer_id, "package_id": package, "quota_amount": 5_000_000 });
    let order = api.admin("/api/v1/platform/orders", &order.to_string()).await["order_id"].clone();
    api.admin(&format!("/api/v1/platform/orders/{order}/pay"), "").await;
    let now = api.house.clock.now().to_rfc3339_millis();
    let used = json!({ "order_id": order, "api_key_id": key_id, "request_id": "call-1", "request_tokens": 2_000_000,
        "response_tokens": 1_500_000, "success": true, "endpoint": "/v1/chat/completions", "response_status": 200,
        "latency_ms": 900, "started_at": now, "completed_at": now });
    api.admin("/api/v1/platform/usage-records", &used.to_string()).await;
    release(&api).await;
    api.done("/api/v1/supply/settlements/withdraw/sms-code", &token, "").await;
    let ask = json!({ "withdraw_amount": 50.00, "payment_method": "alipay", "payment_account": "13800000000",
        "sms_code": api.sms_code().await });
    let (key, path) = (api.key(), (Method::POST, "/api/v1/supply/settlements/withdraw"));
    let first = api.write(path.clone(), &token, &key, &ask.to_string()).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let data = first.json()["data"].clone();
    assert_eq!(
        (&data["fee_amount_minor"], &data["payment_account_masked"]),
        (&json!("50"), &json!("138****0000"))
    );
    let repeat = api.write(path, &token, &key, &ask.to_string()).await;
    assert_eq!((repeat.status, repeat.header("idempotent-replayed")), (201, "true"));
    assert_eq!((&repeat.json()["data"], &repeat.json()["idempotent_replay"]), (&data, &Json::Bool(true)));
    let settlement = &data["settlement_id"];
    api.admin(&format!("/api/v1/platform/settlements/{settlement}/start"), "").await;
    let late = api
        .write(
            (Method::POST, &format!("/api/v1/supply/settlements/{settlement}/cancel")),
            &token,
            &api.key(),
            "",
        )
        .await;
    assert_eq!((late.status, &late.json()["error"]["code"]), (409, &json!("SUP_SET_4092")));
    let paid = json!({ "payment_transaction_id": "bank-1" }).to_string();
    api.admin(&format!("/api/v1/platform/settlements/{settlement}/complete"), &paid).await;
    let billing = api.read("/api/v1/supply/billing", &token).await.json()["data"].clone();
    assert_eq!(
        (&billing["balance"]["available_amount_minor"], &billing["summary"]["total_orders"]),
        (&json!("440"), &json!(1))
    );
    let old = api.read("/api/v1/supplier/billing", &token).await;
    assert_eq!((old.header("deprecation"), old.json()["data"].get("balance")), ("true", None));
    let earned = api.read("/api/v1/supply/earnings/records?status=frozen", &token).await;
    assert_eq!((earned.status, &earned.json()["pagination"]["total"]), (200, &json!(0)));
    let seen = api.read(&format!("/api/v1/supply/settlements/{settlement}"), &token).await.json();
    assert_eq!((&seen["data"]["status"], seen["data"].get("payment_account")), (&json!("completed"), None));
    let unbalanced = "select count(*) from (select journal_id from billing_ledger_entries group by journal_id
        having sum(case direction when 'dr' then amount else -amount end) <> 0) x";
    assert_eq!(api.count(unbalanced).await, 0);
    assert_eq!(api.count("select count(*) from supply_settlements where status = 'completed'").await, 1);
}

/// What the scheduler does at T+7.
async fn release(api: &Api) {
    assert!(api.released().await > 0, "an earning is due");
}

#[tokio::test]
async fn an_account_is_seen_by_its_owner_and_by_nobody_else() {
    let api = Api::new().await;
    let (_, _, token) = supplier(&api, "one").await;
    let (_, _, stranger) = supplier(&api, "two").await;
    let mounted = api.done("/api/v1/supply/accounts", &token, &mount("a")).await;
    let path = format!("/api/v1/supply/accounts/{}", mounted["account_id"]);
    let own = api.read(&path, &token).await;
    assert_eq!((own.status, &own.json()["data"]["account_alias"]), (200, &json!("spare-1")));
    let (other, absent) =
        (api.read(&path, &stranger).await, api.read("/api/v1/supply/accounts/999", &stranger).await);
    assert_eq!((other.status, absent.status), (404, 404));
    assert_eq!(other.json()["error"], absent.json()["error"]);
    let list = api.read("/api/v1/supply/accounts?page=1&page_size=5&provider=openai", &token).await;
    assert_eq!((list.status, &list.json()["pagination"]["total"]), (200, &json!(1)));
    let log = api.read(&format!("{path}/audit-logs"), &token).await;
    assert_eq!(log.json()["data"][0]["event_name"], "supply.account.create");
}
