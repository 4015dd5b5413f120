//! What the specification says, copied: the table of section 8, the exchanges of section 25.

use serde_json::{Value as Json, json};

use super::checker::check;
use super::{codes, document, operations, resolved};
use crate::supply::api::Api;

/// A line of the table.
type Row = (&'static str, &'static str, u16, &'static [&'static str], &'static [&'static str]);

/// Sections 8.1 to 8.5 and 3.3 of the domain's specification: method, path, status of success, required fields of
/// the body, and codes that its table names. `{}` stands for any parameter.
const SECTION_8: &[Row] = &[
    (
        "post",
        "supply/accounts/verify",
        200,
        &["provider", "account_type", "credential_input"],
        &["SUP_ACC_4001", "SUP_ACC_4002", "SUP_ACC_4003", "SUP_COM_4001"],
    ),
    (
        "post",
        "supply/accounts",
        201,
        &["provider", "account_type", "credential_input", "risk_ack"],
        &["SUP_ACC_4001", "SUP_ACC_4002", "SUP_ACC_4003", "SUP_ACC_4004", "SUP_ACC_4094"],
    ),
    ("get", "supply/accounts", 200, &[], &[]),
    ("get", "supply/accounts/{}", 200, &[], &["SUP_ACC_4041"]),
    (
        "post",
        "supply/accounts/{}/activate",
        200,
        &[],
        &["SUP_ACC_4041", "SUP_ACC_4091", "SUP_ACC_4096", "SUP_ACC_4031"],
    ),
    ("post", "supply/accounts/{}/suspend", 200, &[], &["SUP_ACC_4041", "SUP_ACC_4091", "SUP_ACC_4095"]),
    ("delete", "supply/accounts/{}", 204, &[], &["SUP_ACC_4041", "SUP_ACC_4092", "SUP_ACC_4093"]),
    ("get", "supply/accounts/{}/audit-logs", 200, &[], &["SUP_ACC_4041"]),
    (
        "post",
        "supply/accounts/{}/rotate-credential",
        200,
        &["credential_input"],
        &["SUP_ACC_4001", "SUP_ACC_4002", "SUP_ACC_4003", "SUP_ACC_4094"],
    ),
    (
        "post",
        "supply/packages/draft",
        201,
        &[
            "supply_account_id",
            "model",
            "total_quota",
            "price_per_1m_input",
            "price_per_1m_output",
            "valid_days",
        ],
        &["SUP_COM_4001", "SUP_ACC_4041", "SUP_PKG_4004", "SUP_PKG_4005"],
    ),
    (
        "put",
        "supply/packages/{}/draft",
        200,
        &[
            "supply_account_id",
            "model",
            "total_quota",
            "price_per_1m_input",
            "price_per_1m_output",
            "valid_days",
        ],
        &["SUP_PKG_4091"],
    ),
    (
        "post",
        "supply/packages/{}/publish",
        200,
        &[],
        &[
            "SUP_PKG_4041",
            "SUP_PKG_4001",
            "SUP_PKG_4002",
            "SUP_PKG_4003",
            "SUP_PKG_4005",
            "SUP_PKG_4091",
            "SUP_PKG_4092",
            "SUP_PKG_4093",
            "SUP_PKG_4094",
        ],
    ),
    (
        "post",
        "supply/packages/{}/pause",
        200,
        &[],
        &["SUP_PKG_4041", "SUP_PKG_4091", "SUP_PKG_4092", "SUP_PKG_4094"],
    ),
    (
        "post",
        "supply/packages/{}/unlist",
        200,
        &[],
        &["SUP_PKG_4041", "SUP_PKG_4091", "SUP_PKG_4092", "SUP_PKG_4094"],
    ),
    ("post", "supply/packages/{}/clone", 201, &[], &["SUP_PKG_4041"]),
    ("post", "supply/packages/batch-price", 200, &["items"], &["SUP_COM_4001"]),
    ("get", "supply/packages", 200, &[], &[]),
    ("get", "supply/packages/{}", 200, &[], &["SUP_PKG_4041"]),
    ("get", "supply/billing", 200, &[], &[]),
    ("get", "supplier/billing", 200, &[], &[]),
    ("get", "supply/earnings/records", 200, &[], &[]),
    ("post", "supply/settlements/withdraw/sms-code", 200, &[], &["SUP_SET_4292", "SUP_SET_5031"]),
    (
        "post",
        "supply/settlements/withdraw",
        201,
        &["withdraw_amount", "payment_method", "payment_account", "sms_code"],
        &[
            "SUP_SET_4001",
            "SUP_SET_4002",
            "SUP_SET_4003",
            "SUP_SET_4004",
            "SUP_SET_4005",
            "SUP_SET_4006",
            "SUP_SET_4007",
            "SUP_SET_4091",
            "SUP_SET_4095",
            "SUP_SET_4291",
            "SUP_SET_5031",
        ],
    ),
    ("post", "supply/settlements/{}/cancel", 200, &[], &["SUP_SET_4041", "SUP_SET_4092", "SUP_SET_4094"]),
    ("get", "supply/settlements", 200, &[], &[]),
    ("get", "supply/settlements/{}", 200, &[], &["SUP_SET_4041"]),
    ("get", "supply/settlements/{}/statement", 200, &[], &["SUP_SET_4041"]),
    ("get", "audit/events/{}", 200, &[], &[]),
    ("post", "platform/supply/accounts/{}/disable", 200, &["reason"], &[]),
    ("post", "platform/supply/packages/{}/freeze", 200, &[], &[]),
    ("post", "platform/supply/packages/{}/unfreeze", 200, &[], &[]),
    ("post", "platform/settlements/{}/start", 200, &[], &["SUP_SET_4094"]),
    ("post", "platform/settlements/{}/complete", 200, &["payment_transaction_id"], &["SUP_SET_4094"]),
    ("post", "platform/settlements/{}/fail", 200, &["failure_code"], &["SUP_SET_4094"]),
    ("post", "platform/settlements/{}/reject", 200, &["reason"], &["SUP_SET_4094"]),
    ("post", "platform/settlements/{}/return", 200, &[], &["SUP_SET_4094"]),
    ("put", "platform/price-protection", 200, &["provider", "model"], &[]),
    ("post", "platform/suppliers", 201, &["code", "name", "supplier_type", "operator", "phone"], &[]),
    ("post", "platform/buyers", 201, &["code", "name"], &[]),
    ("post", "platform/buyers/{}/topups", 201, &["amount"], &[]),
    ("post", "platform/orders", 201, &["buyer_id", "package_id", "quota_amount"], &["SUP_ORD_4001"]),
    ("post", "platform/orders/{}/pay", 200, &[], &["SUP_ORD_4021", "SUP_ORD_4041", "SUP_ORD_4091"]),
    ("post", "platform/orders/{}/cancel", 200, &[], &["SUP_ORD_4091"]),
    ("post", "platform/orders/{}/refund", 200, &[], &["SUP_ORD_4091"]),
    (
        "post",
        "platform/usage-records",
        200,
        &[
            "order_id",
            "api_key_id",
            "request_id",
            "request_tokens",
            "response_tokens",
            "success",
            "endpoint",
            "response_status",
            "latency_ms",
            "started_at",
            "completed_at",
        ],
        &[],
    ),
    ("post", "platform/tokens/issue", 201, &["tenant_id", "user_id", "role", "user_type", "scope"], &[]),
    ("post", "platform/tokens/{}/refresh", 200, &[], &[]),
    ("post", "platform/tokens/{}/revoke", 200, &[], &[]),
    ("post", "platform/tokens/introspect", 200, &[], &["SUP_COM_4001"]),
];

/// `/api/v1/a/{x}` as `a/{}`.
fn shortened(path: &str) -> String {
    let parts = path.trim_start_matches("/api/v1/").split('/');
    parts.map(|part| if part.starts_with('{') { "{}" } else { part }).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn paths_fields_statuses_and_codes_are_those_of_the_specification() {
    let api = Api::new().await;
    let document = document(&api).await;
    let operations = operations(&document);
    for (method, path, status, fields, wanted) in SECTION_8 {
        let found = operations.iter().find(|(verb, one, _)| verb == method && shortened(one) == *path);
        let (_, _, operation) = found.expect(path);
        let responses = operation["responses"].as_object().expect("responses");
        assert!(responses.contains_key(&status.to_string()), "{method} {path}");
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let body = resolved(&document, schema);
        let required: Vec<_> =
            body["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        assert_eq!(required, *fields, "{method} {path}");
        assert!(body.is_null() || body["additionalProperties"] == false, "{method} {path} is open");
        let told: Vec<_> = codes(&document, operation).into_iter().map(|(_, code)| code).collect();
        for code in *wanted {
            assert!(told.iter().any(|one| one == code), "{method} {path}: {code}");
        }
        let keyed = ["IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_PAYLOAD_MISMATCH"];
        assert_eq!(
            keyed.iter().all(|code| told.iter().any(|one| one == code)),
            *method != "get",
            "{method} {path}"
        );
    }
}

/// Section 25: operation, status, request, answer. Where it has "…", something of the right form stands here; the
/// Chinese texts are left out there.
const SECTION_25: &[(&str, &str, &str, &str)] = &[
    (
        "createAccount",
        "201",
        r#"{"provider":"openai","account_type":"api_key","credential_input":"<secret>","account_alias":"spare-1","min_quota_threshold":1000,"risk_ack":true}"#,
        r#"{"request_id":"…","idempotent_replay":false,"data":{"account_id":7,"provider":"openai","account_type":"api_key","account_alias":"spare-1","key_id":"ck_…","status":"pending","available_quota":5000000,"quota_unit":"token","risk_score":10,"is_verified":true,"version":0,"created_at":"2026-03-27T02:03:04.123Z"}}"#,
    ),
    (
        "publishPackage",
        "200",
        "{}",
        r#"{"request_id":"…","idempotent_replay":false,"data":{"package_id":17,"status":"active","version":1,"start_at":"…","end_at":"…","updated_at":"…"}}"#,
    ),
    (
        "publishPackage",
        "409",
        "{}",
        r#"{"request_id":"…","error":{"code":"SUP_PKG_4093","message":"package expired, clone it","details":{"status":"expired","rule_code":"INV-PKG-002"}}}"#,
    ),
    (
        "batchPrice",
        "200",
        r#"{"items":[{"package_id":17,"price_per_1m_input":8.5,"price_per_1m_output":32},{"package_id":18,"price_per_1m_input":0.01,"price_per_1m_output":32},{"package_id":99,"price_per_1m_input":9,"price_per_1m_output":33}]}"#,
        r#"{"request_id":"…","idempotent_replay":false,"data":{"batch_id":"…","total":3,"success_count":1,"failed_count":2,"failures":[{"package_id":18,"error_code":"SUP_PKG_4001","message":"…"},{"package_id":99,"error_code":"SUP_PKG_4041","message":"…"}]}}"#,
    ),
    (
        "withdraw",
        "201",
        r#"{"withdraw_amount":50.00,"payment_method":"alipay","payment_account":"13800000000","sms_code":"246810"}"#,
        r#"{"request_id":"…","idempotent_replay":false,"data":{"settlement_id":301,"settlement_no":"STL20260327…","status":"pending","total_amount":50.00,"total_amount_minor":"5000","fee_amount":0.50,"fee_amount_minor":"50","net_amount":49.50,"net_amount_minor":"4950","currency_code":"CNY","payment_method":"alipay","payment_account_masked":"138****0000","version":0,"created_at":"…"}}"#,
    ),
    (
        "withdraw",
        "202",
        "",
        r#"{"request_id":"…","error":{"code":"IDEMPOTENCY_IN_PROGRESS","message":"request is processing","details":{"retry_after_ms":2000,"retryable":true}}}"#,
    ),
    (
        "withdraw",
        "409",
        "",
        r#"{"request_id":"…","error":{"code":"IDEMPOTENCY_PAYLOAD_MISMATCH","message":"…","details":{"retryable":false,"expected_action":"reuse_same_payload_or_new_idempotency_key"}}}"#,
    ),
    (
        "withdraw",
        "400",
        "",
        r#"{"request_id":"…","error":{"code":"SUP_SET_4001","message":"…","details":{"available_amount":42.00,"currency_code":"CNY","rule_code":"INV-SET-002"}}}"#,
    ),
    (
        "cancelWithdrawal",
        "200",
        "{}",
        r#"{"request_id":"…","idempotent_replay":false,"data":{"settlement_id":301,"status":"failed","fail_reason":"cancelled","version":1,"updated_at":"…"}}"#,
    ),
    (
        "cancelWithdrawal",
        "409",
        "{}",
        r#"{"request_id":"…","error":{"code":"SUP_SET_4092","message":"…","details":{"status":"processing","rule_code":"INV-SET-001"}}}"#,
    ),
];

/// An exchange with the Chinese texts that the specification leaves out.
fn whole(text: &str) -> Json {
    let mut answer: Json = serde_json::from_str(text).expect("JSON");
    if let Some(error) = answer.get_mut("error") {
        error["message_zh"] = "…".into();
    }
    let failures = answer.pointer_mut("/data/failures").and_then(Json::as_array_mut);
    for failure in failures.into_iter().flatten() {
        failure["message_zh"] = "…".into();
    }
    answer
}

#[tokio::test]
async fn the_exchanges_of_the_specification_fit() {
    let api = Api::new().await;
    let document = document(&api).await;
    let operations = operations(&document);
    for (id, status, request, answer) in SECTION_25 {
        let (_, _, operation) =
            operations.iter().find(|(_, _, one)| one["operationId"] == *id).expect("an operation");
        let schema = |of: &'static str| operation.pointer(of).expect("a schema");
        if !request.is_empty() {
            let request: Json = serde_json::from_str(request).expect("JSON");
            let body = schema("/requestBody/content/application~1json/schema");
            check(&document, body, &request).expect(id);
        }
        let response = resolved(&document, &operation["responses"][*status]);
        let content = &response["content"]["application/json"]["schema"];
        check(&document, content, &whole(answer)).expect(id);
    }
}

#[tokio::test]
async fn examples_in_the_document_fit_their_schemas() {
    let api = Api::new().await;
    let document = document(&api).await;
    let mut seen = 0;
    for (_, path, operation) in operations(&document) {
        let responses = operation["responses"].as_object().expect("responses").values();
        for holder in responses.chain([&operation["requestBody"]]) {
            let content = &holder["content"]["application/json"];
            if let Some(example) = content.get("example") {
                check(&document, &content["schema"], example).expect(&path);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 8, "three requests and five answers");
}

#[tokio::test]
async fn what_the_server_refuses_does_not_fit() {
    let api = Api::new().await;
    let document = document(&api).await;
    let schema = |name: &str| document["components"]["schemas"][name].clone();
    let ask = |amount: Json| {
        json!({ "withdraw_amount": amount, "payment_method": "alipay", "payment_account": "13800000000",
            "sms_code": "246810" })
    };
    for right in [json!(50), json!("50.00"), json!(0.5)] {
        check(&document, &schema("Withdraw"), &ask(right)).expect("an amount");
    }
    for wrong in [json!(-1), json!("1e3"), json!("050"), json!(null), json!("+5"), json!(20_000_000_000_u64)]
    {
        assert!(check(&document, &schema("Withdraw"), &ask(wrong.clone())).is_err(), "{wrong}");
    }
    let mut more = ask(json!(50));
    more["colour"] = "red".into();
    assert!(check(&document, &schema("Withdraw"), &more).is_err(), "an unknown field");
    assert!(check(&document, &schema("BatchPrice"), &json!({ "items": [] })).is_err(), "no item");
    assert!(check(&document, &schema("Empty"), &json!({ "a": 1 })).is_err());
}
