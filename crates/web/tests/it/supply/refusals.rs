//! What the audit says of a write that was refused before the door, and of one that came too often.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value as Json, json};
use supply::Policy;
use web::supply::{Rate, Rates};

use super::api::Api;
use super::desk::{ACCOUNTS, BATCH, Desk, WITHDRAW, cancelling, code, is, moving};
use super::life::supplier;

/// The last refusal: request id, action, kind and id of the object, metadata.
async fn refusal(desk: &Desk) -> ([String; 4], Json) {
    let last = "from audit_events where event_name = 'supply.write.refused' order by id desc limit 1";
    let mut texts = Vec::new();
    for column in ["request_id", "action", "object_type", "object_id", "cast(metadata as text)"] {
        texts.extend(desk.api.texts(&format!("select {column} {last}")).await);
    }
    let metadata = serde_json::from_str(&texts.pop().expect("metadata")).expect("JSON");
    (texts.try_into().expect("four texts"), metadata)
}

#[tokio::test]
async fn a_refused_write_has_one_id_and_its_row_says_what_was_tried() {
    let desk = Desk::new().await;
    let operator = desk.operator.to_string();
    for (path, action, kind, id) in [
        (moving(17, "publish"), "supply.package.publish", "supply_package", "17"),
        (cancelling(3), "supply.settlement.withdraw.cancel", "supply_settlement", "3"),
        (ACCOUNTS.into(), "supply.account.create", "supply_account", "supply_account:new"),
        (WITHDRAW.into(), "supply.settlement.withdraw.create", "supplier", "supplier:new"),
        (BATCH.into(), "supply.package.price.batch_update", "operator", &*operator),
        (moving(17, "publish").replace("17", "x7"), "supply.package.publish", "operator", &*operator),
    ] {
        let request = Request::post(&path).header("authorization", format!("Bearer {}", desk.token));
        let got = desk.api.house.call(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(code(&got), is(400, "REQUEST_ID_MISSING"), "{}", got.text());
        let (row, metadata) = refusal(&desk).await;
        let told = got.json()["request_id"].as_str().expect("an id").to_owned();
        assert_eq!(row, [told.clone(), action.into(), kind.into(), id.into()]);
        assert_eq!(metadata, json!({ "method": "POST", "path": path }));
        assert_eq!(got.header("x-request-id"), told);
    }
    let long = desk.post(&moving(17, "publish"), "short", "").await;
    assert_eq!(code(&long), is(400, "IDEMPOTENCY_KEY_INVALID"));
    assert_eq!(refusal(&desk).await.0[0], long.header("x-request-id"));
}

#[tokio::test]
async fn writes_that_come_too_often_are_one_row_of_the_minute() {
    let api = Api::changed(Policy::default(), |supply| supply.rates = Rates::new(Rate(5), Rate(5))).await;
    let (tenant, operator, token) = supplier(&api, "one").await;
    let mut limited = 0;
    for _ in 0..12 {
        let got = api.write((Method::POST, ACCOUNTS), &token, &api.key(), "{}").await;
        limited += i64::from(code(&got) == is(429, "SUP_COM_4291"));
    }
    assert_eq!(limited, 7);
    let read = api.read("/api/v1/audit/metrics/m014", api.admin_token()).await;
    assert_eq!(read.status, 200, "{}", read.text());
    let rows = format!(
        "select cast(metadata as text) from audit_events where event_name = 'supply.write.refused'
           and result_code = 'SUP_COM_4291' and tenant_id = {tenant} and operator_id = {operator}"
    );
    let rows = api.texts(&rows).await;
    let row: Json = serde_json::from_str(rows.first().expect("a row")).expect("JSON");
    assert_eq!((rows.len(), &row["count"]), (1, &json!(7)));
}
