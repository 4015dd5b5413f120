//! Real answers of the server against the document: nothing is missing in them, nothing undescribed.

use axum::http::Method;
use kernel::Clock as _;
use serde_json::{Value as Json, json};

use super::checker::check_all;
use super::{document, operations};
use crate::house::Got;
use crate::supply::api::Api;
use crate::supply::life::{offer, supplier};

struct Told {
    api: Api,
    document: Json,
    operations: Vec<(String, String, Json)>,
    token: String,
}

impl Told {
    async fn new() -> Self {
        let api = Api::new().await;
        let document = document(&api).await;
        let operations = operations(&document);
        let (_, _, token) = supplier(&api, "one").await;
        Self { api, document, operations, token }
    }

    /// Calls an operation with a body that fits it, and checks what it answers. `staff` is the administrator.
    async fn call(&self, id: &str, ids: Option<&Json>, body: Json) -> Json {
        let (method, path, operation) =
            self.operations.iter().find(|(_, _, one)| one["operationId"] == id).expect(id);
        let path = path.split('/').map(|part| match (part.starts_with('{'), ids) {
            (true, Some(Json::String(text))) => text.clone(),
            (true, Some(id)) => id.to_string(),
            _ => part.to_owned(),
        });
        let path = path.collect::<Vec<_>>().join("/");
        let staff = path.starts_with("/api/v1/platform");
        let token = if staff { self.api.admin_token() } else { &self.token };
        let got = if method == "get" {
            self.api.read(&path, token).await
        } else {
            if body != Json::Null {
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                check_all(&self.document, schema, &body).expect(id);
            }
            let text = if body == Json::Null { String::new() } else { body.to_string() };
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            self.api.write((method, &path), token, &self.api.key(), &text).await
        };
        self.fits(id, operation, &got)
    }

    fn fits(&self, id: &str, operation: &Json, got: &Got) -> Json {
        assert!(got.status < 300, "{id}: {} {}", got.status, got.text());
        let response = &operation["responses"][got.status.to_string()];
        assert!(response.is_object(), "{id}: {} is not described", got.status);
        if got.status == 204 {
            assert!(got.body.is_empty() && response.get("content").is_none(), "{id}");
            return Json::Null;
        }
        let answer = got.json();
        let schema = &response["content"]["application/json"]["schema"];
        check_all(&self.document, schema, &answer).expect(id);
        answer["data"].clone()
    }
}

#[tokio::test]
async fn answers_about_accounts_and_packages_are_as_described() {
    let told = Told::new().await;
    let credential = json!({ "provider": "openai", "account_type": "api_key",
        "credential_input": format!("sk-{}", "a".repeat(40)) });
    told.call("verifyAccount", None, credential.clone()).await;
    let package = json!(offer(&told.api, &told.token, "a").await);
    let mut mount = credential;
    mount["credential_input"] = format!("sk-{}", "b".repeat(40)).into();
    mount["risk_ack"] = true.into();
    let account = told.call("createAccount", None, mount).await["account_id"].clone();
    for id in ["activateAccount", "suspendAccount", "getAccount", "listAccounts", "listAccountAuditLogs"] {
        told.call(id, Some(&account), Json::Null).await;
    }
    let log = told.call("listAccountAuditLogs", Some(&account), Json::Null).await;
    told.call("getAuditEvent", Some(&log[0]["event_id"]), Json::Null).await;
    told.call("deleteAccount", Some(&account), Json::Null).await;
    let clone = told.call("clonePackage", Some(&package), Json::Null).await;
    let draft = json!({ "supply_account_id": clone["supply_account_id"], "model": "gpt-x", "total_quota": "1000",
        "price_per_1m_input": "8.5", "price_per_1m_output": 40, "valid_days": 30, "min_purchase": 10 });
    told.call("editPackageDraft", Some(&clone["package_id"]), draft.clone()).await;
    told.call("savePackageDraft", None, draft).await;
    let item = |id: &Json, price| json!({ "package_id": id, "price_per_1m_input": price, "price_per_1m_output": 40 });
    let items = json!({ "items": [item(&package, json!(9)), item(&json!(999), json!(9))] });
    let receipt = told.call("batchPrice", None, items).await;
    assert_eq!((&receipt["success_count"], &receipt["failed_count"]), (&json!(1), &json!(1)));
    for id in [
        "getPackage",
        "listPackages",
        "pausePackage",
        "publishPackage",
        "freezePackage",
        "unfreezePackage",
        "publishPackage",
        "unlistPackage",
    ] {
        told.call(id, Some(&package), Json::Null).await;
    }
}

#[tokio::test]
async fn answers_about_money_are_as_described() {
    let told = Told::new().await;
    let package = offer(&told.api, &told.token, "a").await;
    used(&told, package).await;
    assert!(told.api.released().await > 0);
    for id in ["getBilling", "getSupplierBilling", "listEarnings"] {
        told.call(id, None, Json::Null).await;
    }
    let first = withdrawn(&told).await;
    told.call("cancelWithdrawal", Some(&first), Json::Null).await;
    // Codes may be sent once a minute.
    told.api.house.clock.advance(std::time::Duration::from_secs(61));
    let second = withdrawn(&told).await;
    for (id, body) in [
        ("startPayout", Json::Null),
        ("completePayout", json!({ "payment_transaction_id": "bank-1" })),
        ("returnPayout", Json::Null),
        ("getSettlement", Json::Null),
        ("listSettlements", Json::Null),
    ] {
        told.call(id, Some(&second), body).await;
    }
    told.api.statements_made().await;
    told.call("getStatement", Some(&second), Json::Null).await;
}

/// A call of a buyer, paid and on record, another order refunded, a third cancelled.
async fn used(told: &Told, package: i64) {
    let buyer = told.call("createBuyer", None, json!({ "code": "b", "name": "B" })).await;
    let buyer_id = &buyer["buyer_id"];
    told.call("topUpBuyer", Some(buyer_id), json!({ "amount": "500.00" })).await;
    let order = json!({ "buyer_id": buyer_id, "package_id": package, "quota_amount": 4_000_000 });
    let order = told.call("createOrder", None, order).await["order_id"].clone();
    told.call("payOrder", Some(&order), Json::Null).await;
    let now = told.api.house.clock.now().to_rfc3339_millis();
    let report = json!({ "order_id": order, "api_key_id": buyer["api_key_id"], "request_id": "call-1",
        "request_tokens": 1_500_000, "response_tokens": 2_000_000, "success": true, "endpoint": "/v1/chat/completions",
        "response_status": 200, "latency_ms": 900, "started_at": now, "completed_at": now });
    told.call("recordUsage", None, report).await;
    for id in ["cancelOrder", "refundOrder"] {
        let order = json!({ "buyer_id": buyer_id, "package_id": package, "quota_amount": 1000 });
        let order = told.call("createOrder", None, order).await["order_id"].clone();
        if id == "refundOrder" {
            told.call("payOrder", Some(&order), Json::Null).await;
        }
        let body = if id == "refundOrder" { json!({}) } else { Json::Null };
        told.call(id, Some(&order), body).await;
    }
}

async fn withdrawn(told: &Told) -> Json {
    told.call("sendWithdrawCode", None, Json::Null).await;
    let ask = json!({ "withdraw_amount": "50.00", "payment_method": "alipay", "payment_account": "13800000000",
        "sms_code": told.api.sms_code().await });
    told.call("withdraw", None, ask).await["settlement_id"].clone()
}

#[tokio::test]
async fn answers_to_the_platforms_staff_are_as_described() {
    let told = Told::new().await;
    let body = json!({ "code": "two", "name": "Two", "supplier_type": "individual", "operator": "first",
        "phone": "+8613800000001" });
    let made = told.call("createSupplier", None, body).await;
    let floors =
        json!({ "provider": "openai", "model": "gpt-y", "official_input": 10, "floor_output": "32.5" });
    told.call("protectPrice", None, floors).await;
    let grant = json!({ "tenant_id": made["tenant_id"], "user_id": made["operator_id"], "role": "viewer",
        "user_type": "supply", "scope": ["supply:account:read"], "ttl_seconds": 600 });
    let token = told.call("issueToken", None, grant).await["token_id"].clone();
    told.call("introspectToken", None, json!({ "token_id": token })).await;
    told.call("introspectToken", None, json!({ "token": "none" })).await;
    told.call("revokeToken", Some(&token), Json::Null).await;
    let mount = json!({ "provider": "openai", "account_type": "api_key", "risk_ack": true,
        "credential_input": format!("sk-{}", "c".repeat(40)) });
    let account = told.call("createAccount", None, mount).await["account_id"].clone();
    told.call("disableAccount", Some(&account), json!({ "reason": "fraud" })).await;
}
