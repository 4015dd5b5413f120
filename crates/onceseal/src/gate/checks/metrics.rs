//! The figures of section 19 of the domain's specification after everything that was done here: billing errors and
//! conflicts, and the boundary of credentials. A figure without a sample is none, and fails.

use kernel::Clock as _;
use play::Call;
use serde_json::{Value as Json, json};

use super::super::check::{Book, Check};
use super::super::desk::{code, is};
use super::super::ground::letters;
use super::super::stage::Stage;
use crate::random::SystemClock;

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("M-004", async |check| errors(stage, check).await).await;
    book.check("M-005", async |check| conflicts(stage, check).await).await;
    book.check("M-015", async |check| past(stage, check).await).await;
    let expected = [("M-013", json!(0)), ("M-014", json!(100)), ("M-016", json!(100))];
    for (id, value) in expected {
        book.check(id, async |check| boundary(stage, check, (id, &value)).await).await;
    }
}

/// Errors of the ledger that stand; those that were put in were refused.
async fn errors(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let data = figure(stage, check, "M-004").await?;
    let count = |name: &str| data.get(name).and_then(Json::as_i64).unwrap_or(-1);
    check.so("there is a sample", count("denominator") > 100);
    // INV-SET-003 puts one in, which is refused.
    check.equal("billing errors, all of them put in here", &1, &count("numerator"));
    let ledger = stage.operated("/ledger").await?;
    check.equal("billing errors that stand", &Some(&json!([])), &ledger.get("violations"));
    Ok(())
}

/// Other payloads under a key of withdraw, cancel or usage, and another report of a call: those that this gate sent,
/// and no more.
async fn conflicts(stage: &Stage, check: &mut Check) -> Result<(), String> {
    reported_twice(stage, check).await?;
    let data = figure(stage, check, "M-005").await?;
    let count = |name: &str| data.get(name).and_then(Json::as_i64).unwrap_or(-1);
    check.so("there is a sample", count("denominator") > 100);
    // Three states of withdrawing and of cancelling (FI-002), CON-SET-002, and two reports of one call.
    check.equal("conflicts, all of them sent here", &9, &count("numerator"));
    Ok(())
}

/// A call that is reported with other tokens: under the key of its first report, and under one of its own.
async fn reported_twice(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let (desk, market) = (stage.desk().await?, &stage.market);
    let package = market.package(&desk.owner, desk.account().await?, 1_000_000).await?;
    let buyer = market.buyer(100).await?;
    let order = market.order(&buyer, package, 1_000_000).await?;
    let (now, key, call) = (SystemClock.now().to_rfc3339_millis(), desk.key(), desk.key());
    let report = |key: &str, tokens: u64| {
        let body = json!({ "order_id": order, "api_key_id": buyer.api_key_id, "request_id": call,
            "request_tokens": tokens, "response_tokens": 1, "success": true, "endpoint": "/v1/chat/completions",
            "response_status": 200, "latency_ms": 900, "started_at": now, "completed_at": now });
        Call::post("/api/v1/platform/usage-records", &market.admin, key, body)
    };
    let first = stage.send(check, &report(&key, 7)).await?;
    check.equal("a call", &is(200, ""), &code(&first));
    let other = stage.send(check, &report(&key, 8)).await?;
    check.equal("with other tokens", &is(409, "IDEMPOTENCY_PAYLOAD_MISMATCH"), &code(&other));
    let other = stage.send(check, &report(&desk.key(), 8)).await?;
    check.equal("with other tokens under another key", &is(409, "SUP_COM_4092"), &code(&other));
    let same = stage.send(check, &report(&desk.key(), 7)).await?;
    check.equal("the same under another key", &first.data(), &same.data());
    Ok(())
}

/// No call past the platform was reported, though there were calls; one that is reported counts, once, and pages.
async fn past(stage: &Stage, check: &mut Check) -> Result<(), String> {
    const ALERTS: &str = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
        and cast(payload as text) like '%direct_supplier_call%' and cast(payload as text) like '%P0%'";
    let none = figure(stage, check, "M-015").await?;
    check.equal("calls past the platform", &Some(&json!(0)), &none.get("value"));
    check.equal("it is met", &Some(&json!("pass")), &none.get("status"));
    let called = stage.database.count("select count(*) from supply_usage_records").await?;
    check.value("calls of consumers", called);
    check.so("there were calls of consumers", called > 0);
    let consumer = "select max(id) from core_tenants where type = 'consumer'";
    let body = json!({ "event_id": letters(20), "consumer_tenant_id": stage.database.count(consumer).await?,
        "provider": "openai", "host": "api.openai.com", "occurred_at": SystemClock.now().to_rfc3339_millis(),
        "source": "the gate" });
    for report in ["a call past the platform", "the same under another key"] {
        let key = stage.market.client.key();
        let call = Call::post("/api/v1/platform/egress-events", &stage.market.admin, &key, body.clone());
        let got = stage.send(check, &call).await?;
        check.equal(report, &is(201, ""), &code(&got));
    }
    let one = told(stage, check, "M-015").await?;
    check.equal("it is counted, once", &Some(&json!(1)), &one.get("value"));
    check.equal("it is not met", &Some(&json!("fail")), &one.get("status"));
    check.equal("P0 alerts", &1, &stage.database.count(ALERTS).await?);
    Ok(())
}

/// What the product says of a figure.
async fn told(stage: &Stage, check: &mut Check, id: &str) -> Result<Json, String> {
    let path = format!("/api/v1/audit/metrics/{}", id.to_lowercase().replace('-', ""));
    let answer = stage.send(check, &Call::get(path, &stage.market.admin)).await?;
    check.equal("the figure is told", &200, &answer.code());
    Ok(answer.data())
}

/// The same as evidence; there must be something to be measured.
async fn figure(stage: &Stage, check: &mut Check, id: &str) -> Result<Json, String> {
    let data = told(stage, check, id).await?;
    for (name, value) in data.as_object().into_iter().flatten() {
        check.value(name.clone(), value.clone());
    }
    check.equal("there is a sample", &false, &(data.get("status") == Some(&json!("no_sample"))));
    Ok(data)
}

async fn boundary(stage: &Stage, check: &mut Check, (id, expected): (&str, &Json)) -> Result<(), String> {
    let data = figure(stage, check, id).await?;
    check.equal(id, &Some(expected), &data.get("value"));
    check.equal("it is met", &Some(&json!("pass")), &data.get("status"));
    match id {
        "M-013" => {
            let blocked = data.get("blocked").and_then(Json::as_i64).unwrap_or(-1);
            check.so("what was held back is counted apart", blocked >= 6);
        }
        _ => {
            let whole = data.get("denominator").and_then(Json::as_i64).unwrap_or(-1);
            check.so("of some requests", whole > 100);
        }
    }
    let samples = data.get("samples").and_then(Json::as_array).map_or(0, Vec::len);
    check.so("with samples", samples > 0);
    Ok(())
}
