//! Batch price (section 3.2): slices, an itemised receipt, and a server that is killed between two slices.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::super::check::{Book, Check};
use super::super::database::{Fault, Spot};
use super::super::desk::{BATCH, Desk, Write, prices};
use super::super::stage::{End, Stage};

/// Items of one batch, and of one slice.
const ITEMS: usize = 200;
const SLICE: i64 = 50;
/// How long the first slice may take, with a fault that slows each item.
const SLICED_WITHIN: Duration = Duration::from_secs(60);
/// How long the lease of a killed server may last.
const OVER_WITHIN: Duration = Duration::from_secs(90);
/// What each item waits at.
const SLOW: Spot = Spot { verb: "insert", table: "supply_batch_items" };

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("CON-BATCH.partial", async |check| partial(stage, check).await).await;
    book.check("CON-BATCH.crash", async |check| crash(stage, check).await).await;
}

/// So many drafts.
async fn drafts(desk: &Desk<'_>, count: usize) -> Result<Vec<i64>, String> {
    let account = desk.account().await?;
    let mut drafts = Vec::new();
    while drafts.len() < count {
        let some = (count - drafts.len()).min(8);
        drafts.extend(futures::future::try_join_all((0..some).map(|_| desk.draft(account))).await?);
    }
    Ok(drafts)
}

async fn partial(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let mut packages = drafts(&desk, 3).await?;
    packages.push(999_999_999);
    let items: Vec<Json> = packages
        .iter()
        .enumerate()
        .map(|(nth, package)| prices(*package, if nth == 1 { "0.01" } else { "9" }, "33"))
        .collect();
    let write = Write { path: BATCH.into(), body: json!({ "items": items }) };
    let got = desk.ask(check, &write).await?;
    let data = got.data();
    let number = |name: &str| data.get(name).and_then(Json::as_i64).unwrap_or(-1);
    let counts = (number("total"), number("success_count"), number("failed_count"));
    check.equal("status; total, success, failed", &(200, (4, 2, 2)), &(got.code(), counts));
    let failures = data.get("failures").and_then(Json::as_array).cloned().unwrap_or_default();
    let codes: Vec<_> = failures
        .iter()
        .map(|one| (one.get("package_id").and_then(Json::as_i64), one.get("error_code").cloned()))
        .collect();
    let expected = vec![
        (packages.get(1).copied(), Some(json!("SUP_PKG_4001"))),
        (packages.last().copied(), Some(json!("SUP_PKG_4041"))),
    ];
    check.equal("each failure by its item and code", &expected, &codes);
    check.so(
        "each with a message",
        failures.iter().all(|one| one.get("message").is_some_and(Json::is_string)),
    );
    let sql = format!(
        "select cast(metadata as text) from audit_events where event_name = 'supply.package.price.batch_update'
         and request_id = '{}'",
        got.request_id
    );
    let audited = stage.database.texts(&sql).await?;
    check.equal("audited once", &1, &audited.len());
    let row: Json = audited.first().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let told = ["total", "success", "failed"].map(|name| row.get(name).and_then(Json::as_i64).unwrap_or(-1));
    check.equal("total, success, failed in the audit", &[4, 2, 2], &told);
    check.equal(
        "failed_items[] in the audit",
        &Some(2),
        &row.get("failed_items").and_then(Json::as_array).map(Vec::len),
    );
    Ok(())
}

/// The server is killed after the first slice; the same request under the same key goes on behind it.
async fn crash(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let packages = drafts(&desk, ITEMS).await?;
    let items: Vec<Json> = packages.iter().map(|package| prices(*package, "9", "33")).collect();
    let write = Write { path: BATCH.into(), body: json!({ "items": items }) };
    let key = desk.key();
    stage.database.plant(SLOW, Fault::Slow).await?;
    let sent = tokio::spawn({
        let (client, call) = (stage.market.client.clone(), desk.call(&write, &key));
        async move { client.send(&call).await }
    });
    let tenant = desk.owner.tenant_id;
    let done = format!("select count(*) from supply_batch_items where tenant_id = {tenant}");
    let sliced = stage
        .awaited("the first slice", SLICED_WITHIN, async || Ok(stage.database.count(&done).await? >= SLICE))
        .await;
    let killed = stage.restart(End::Killed).await;
    stage.database.heal(SLOW).await?;
    sliced?;
    killed?;
    check.so("no answer came", sent.await.is_ok_and(|answer| answer.is_err()));
    let before = stage.database.count(&done).await?;
    check.value("items before the kill", before);
    check.so(
        "it was killed between two slices",
        before > 0 && before < i64::try_from(ITEMS).unwrap_or_default(),
    );
    let call = desk.call(&write, &key);
    stage
        .awaited("the end of the killed server's lease", OVER_WITHIN, async || {
            let running = stage.market.client.send(&call).await?;
            Ok(running.code() != 202)
        })
        .await?;
    let got = desk.post(check, &write, &key).await?;
    let data = got.data();
    let number = |name: &str| data.get(name).and_then(Json::as_i64).unwrap_or(-1);
    let counts = (number("total"), number("success_count"), number("failed_count"));
    check.equal("total, success, failed", &(200, (200, 200, 0)), &(got.code(), counts));
    let once = format!(
        "select count(*) from supply_packages where tenant_id = {tenant} and version = 1 and price_per_1m_input <> 0"
    );
    check.equal(
        "each price changed once",
        &i64::try_from(ITEMS).unwrap_or_default(),
        &stage.database.count(&once).await?,
    );
    let told = format!(
        "select count(*) from outbox where tenant_id = {tenant} and event_name = 'supply.package.price_update.succeeded'"
    );
    check.equal(
        "each told once",
        &i64::try_from(ITEMS).unwrap_or_default(),
        &stage.database.count(&told).await?,
    );
    Ok(())
}
