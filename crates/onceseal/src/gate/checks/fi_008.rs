//! FI-008: an answer, an error, an audit row, a log line and an export that would hold a credential. It is planted in
//! the database past all rules, or sent by a caller; what would carry it out is withheld, audited without it, and
//! alerted.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use play::{Answer, Call};
use reqwest::Method;
use serde_json::{Value as Json, json};

use guard::canary::contains_run;

use super::super::check::{Book, Check};
use super::super::database::Engine;
use super::super::desk::{ACCOUNTS, code, is, moving};
use super::super::ground::letters;
use super::super::metrics::counter;
use super::super::proven::Kept;
use super::super::raw::Raw;
use super::super::stage::Stage;

/// How long a line may take to be logged.
const LOGGED_WITHIN: Duration = Duration::from_secs(20);
const BLOCKED: &str = "onceseal_credential_exposure_blocked_total";
const EXPOSED: &str = "select count(*) from audit_events where event_name like 'CRED-EXPOSE-%'
    and result_code = 'SUP_COM_5002'";
const ALERTED: &str = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
    and cast(payload as text) like '%credential_exposure_blocked%' and cast(payload as text) like '%P0%'";

/// Where an answer, an event or a fact is kept.
const KEPT: [Kept; 3] = [
    Kept {
        what: "audit",
        table: "audit_events",
        columns: &["before_state", "after_state", "metadata", "idempotency_key", "object_id", "user_agent"],
    },
    Kept { what: "outbox", table: "outbox", columns: &["payload", "object_id"] },
    Kept {
        what: "stored answers",
        table: "supply_idempotency_record",
        columns: &["response_body", "idempotency_key"],
    },
];

pub(super) async fn run(stage: &Stage, book: &Book) {
    let injected = AtomicI64::new(0);
    let before = counts(stage).await;
    book.check("FI-008.answer", async |check| answer(stage, check, &injected).await).await;
    book.check("FI-008.fragment", async |check| fragment(stage, check, &injected).await).await;
    book.check("FI-008.error", async |check| error(stage, check, &injected).await).await;
    book.check("FI-008.audit", async |check| audit(stage, check, &injected).await).await;
    book.check("FI-008.export", async |check| export(stage, check, &injected).await).await;
    book.check("FI-008.log", async |check| log(stage, check, &injected).await).await;
    book.check("FI-008.key", async |check| key(stage, check).await).await;
    book.check("FI-008.counted", async |check| {
        let (before, now) = (before?, counts(stage).await?);
        let sent = injected.load(Ordering::SeqCst);
        check.value("injections", sent);
        check.so("there were some", sent >= 4);
        let counted = [now[0] - before[0], now[1] - before[1], now[2] - before[2]];
        check.equal("audited, alerted, counted", &[sent; 3], &counted);
        for kept in KEPT {
            kept.proven(&stage.database, check, &planted()).await?;
        }
        Ok(())
    })
    .await;
}

async fn counts(stage: &Stage) -> Result<[i64; 3], String> {
    let database = &stage.database;
    Ok([database.count(EXPOSED).await?, database.count(ALERTED).await?, counter(stage, BLOCKED).await?])
}

/// What would have carried it out: withheld, and nothing of it in what came instead.
async fn withheld(
    stage: &Stage,
    check: &mut Check,
    (got, planted): (&Answer, &str),
    injected: &AtomicI64,
) -> Result<(), String> {
    injected.fetch_add(1, Ordering::SeqCst);
    check.equal("withheld", &is(500, "SUP_COM_5002"), &code(got));
    check.so("no part of it in the body", !contains_run(&got.body, planted, 8));
    let headers: Vec<&[u8]> = got.headers.values().map(reqwest::header::HeaderValue::as_bytes).collect();
    check.so("nor in a header", headers.iter().all(|value| !contains_run(*value, planted, 8)));
    let sql = format!(
        "select cast(metadata as text) from audit_events where event_name like 'CRED-EXPOSE-%' and request_id = '{}'",
        got.request_id
    );
    let rows = stage.database.texts(&sql).await?;
    check.equal("audited once", &1, &rows.len());
    let row: Json = rows.first().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    check.equal("as blocked", &Some(&Json::Bool(true)), &row.get("blocked"));
    check.equal(
        "with a digest of the match",
        &Some(64),
        &row.get("mac").and_then(Json::as_str).map(str::len),
    );
    nowhere(stage, check, planted).await
}

/// In no audit row, no outbox row, no stored answer.
async fn nowhere(stage: &Stage, check: &mut Check, planted: &str) -> Result<(), String> {
    for kept in KEPT {
        kept.without(&stage.database, check, planted).await?;
    }
    Ok(())
}

fn planted() -> String {
    format!("sk-{}", letters(48))
}

/// Of a package whose model was changed past all rules.
async fn model(stage: &Stage, package: i64, text: &str) -> Result<(), String> {
    stage.database.run(&format!("update supply_packages set model = '{text}' where id = {package}")).await
}

async fn answer(stage: &Stage, check: &mut Check, injected: &AtomicI64) -> Result<(), String> {
    let (desk, planted) = (stage.desk().await?, planted());
    let account = desk.account().await?;
    let package = desk.draft(account).await?;
    model(stage, package, &planted).await?;
    let before = stage.business().await?.without("outbox");
    // A clone would store it and tell it.
    let cloned = desk.by(check, Method::POST, &moving(package, "clone"), &desk.owner.token).await?;
    before.unchanged(check, "tables after the clone", &stage.business().await?.without("outbox"));
    let read = stage
        .send(check, &Call::get(format!("/api/v1/supply/packages/{package}"), &desk.owner.token))
        .await?;
    model(stage, package, play::market::MODEL).await?;
    withheld(stage, check, (&cloned, &planted), injected).await?;
    withheld(stage, check, (&read, &planted), injected).await
}

/// Twelve characters out of the middle of a mounted credential, which have no shape.
async fn fragment(stage: &Stage, check: &mut Check, injected: &AtomicI64) -> Result<(), String> {
    let desk = stage.desk().await?;
    let credential = format!("sk-{}", letters(48));
    let account = stage.market.account(&desk.owner, &credential).await?;
    let package = desk.draft(account).await?;
    let part = credential.get(20..32).unwrap_or_default();
    model(stage, package, &format!("see {part}")).await?;
    let read = stage
        .send(check, &Call::get(format!("/api/v1/supply/packages/{package}"), &desk.owner.token))
        .await?;
    model(stage, package, play::market::MODEL).await?;
    withheld(stage, check, (&read, &credential), injected).await
}

/// An error that would repeat what the caller sent: the name of a field that there is not.
async fn error(stage: &Stage, check: &mut Check, injected: &AtomicI64) -> Result<(), String> {
    let (desk, planted) = (stage.desk().await?, planted());
    let mut write = desk.mounting();
    if let Some(fields) = write.body.as_object_mut() {
        fields.insert(planted.clone(), json!(1));
    }
    let got = desk.ask(check, &write).await?;
    if got.error() == "SUP_COM_5002" {
        return withheld(stage, check, (&got, &planted), injected).await;
    }
    // It repeats nothing: so nothing had to be withheld.
    check.equal("refused without a repetition", &400, &got.code());
    check.so("no part of it in the body", !contains_run(&got.body, &planted, 8));
    nowhere(stage, check, &planted).await
}

async fn audit(stage: &Stage, check: &mut Check, injected: &AtomicI64) -> Result<(), String> {
    let (desk, planted) = (stage.funded()?, planted());
    stage.market.account(&desk.owner, &planted).await?;
    let settlement = desk.settlement("50").await?;
    let step = async |check: &mut Check, verb: &str, body: Json| {
        let path = format!("/api/v1/platform/settlements/{settlement}/{verb}");
        stage.send(check, &Call::post(path, &stage.market.admin, &desk.key(), body)).await
    };
    let started = step(check, "start", Json::Null).await?;
    check.equal("its payout begins", &200, &started.code());
    let before = stage.business().await?.without("outbox");
    // What has the shape of one is refused where it comes in; a part of a mounted one has none.
    let part = planted.get(20..32).unwrap_or_default();
    let got = step(check, "fail", json!({ "failure_code": format!("see {part}") })).await?;
    before.unchanged(check, "tables after it", &stage.business().await?.without("outbox"));
    withheld(stage, check, (&got, &planted), injected).await?;
    let ended = step(check, "fail", json!({ "failure_code": "gate" })).await?;
    check.equal("the payout fails", &200, &ended.code());
    Ok(())
}

/// An event with a credential, put into the outbox past all rules, for the channel that writes to the log.
async fn log(stage: &Stage, check: &mut Check, injected: &AtomicI64) -> Result<(), String> {
    let (planted, mark) = (planted(), letters(16));
    let exposed = stage.database.count(EXPOSED).await?;
    let (id, now) = match stage.engine {
        Engine::Sqlite => ("randomblob(16)", "unixepoch() * 1000000"),
        Engine::Postgres => ("decode(md5(random()::text), 'hex')", "now()"),
    };
    let payload = json!({ "request_id": mark, "kind": "issued", "ref": planted, "event_id": planted });
    let event = format!(
        "insert into outbox (event_id, event_name, object_type, object_id, aggregate_version, tenant_id, operator_id,
           request_id, payload, occurred_at, created_at)
         values ({id}, 'supply.alert.raise.succeeded', 'gate', '{mark}', 1, 1, 1, '{mark}', '{payload}', {now}, {now})"
    );
    let delivery = format!(
        "insert into outbox_deliveries (outbox_id, destination, object_key, next_attempt_at, created_at, updated_at)
         select id, 'log', 'gate/{mark}', {now}, {now}, {now} from outbox where object_id = '{mark}'"
    );
    stage.database.run(&format!("{event};\n{delivery}")).await?;
    let line = || {
        let logs = stage.logs();
        let text =
            logs.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect::<String>();
        text.lines().find(|line| line.contains(&mark)).map(str::to_owned)
    };
    stage.awaited("the log line", LOGGED_WITHIN, async || Ok(line().is_some())).await?;
    let line = line().unwrap_or_default();
    check.value("the line", stage.redacted(&line));
    check.so("no part of it in the line", !contains_run(&line, &planted, 8));
    check.so("its place is marked", line.contains("[REDACTED:"));
    injected.fetch_add(1, Ordering::SeqCst);
    stage
        .awaited("the audit of the line", LOGGED_WITHIN, async || {
            Ok(stage.database.count(EXPOSED).await? > exposed)
        })
        .await?;
    // The row goes, and nothing else may tell it.
    let gone = format!(
        "delete from outbox_deliveries where object_key = 'gate/{mark}'; delete from outbox where object_id = '{mark}'"
    );
    stage.database.run(&gone).await?;
    nowhere(stage, check, &planted).await
}

/// A statement that would hold it: the description of what was earned is changed past all rules.
async fn export(stage: &Stage, check: &mut Check, injected: &AtomicI64) -> Result<(), String> {
    let (desk, planted) = (stage.funded()?, planted());
    let user = desk.owner.user_id;
    let described = format!("select description from supply_earnings where user_id = {user}");
    let kept = stage.database.texts(&described).await?.into_iter().next().unwrap_or_default();
    let describe = async |text: &str| {
        let sql = format!("update supply_earnings set description = '{text}' where user_id = {user}");
        stage.database.run(&sql).await
    };
    describe(&planted).await?;
    let exposed = stage.database.count(EXPOSED).await?;
    let settlement = desk.settlement("50").await?;
    injected.fetch_add(1, Ordering::SeqCst);
    stage
        .awaited("the refusal of the file", LOGGED_WITHIN, async || {
            Ok(stage.database.count(EXPOSED).await? > exposed)
        })
        .await?;
    let path = format!("/api/v1/supply/settlements/{settlement}/statement");
    let got = stage.send(check, &Call::get(path, &desk.owner.token)).await?;
    describe(&kept).await?;
    check.equal("there is no file", &is(503, "SUP_COM_5031"), &code(&got));
    check.so("no part of it in the body", !contains_run(&got.body, &planted, 8));
    let event = "select count(*) from audit_events where event_name = 'CRED-EXPOSE-EXPORT'";
    check.so("audited as an export", stage.database.count(event).await? > 0);
    let shelved = super::search::shelved(stage)?;
    check.so("there are statements of others", !shelved.is_empty());
    for (name, bytes) in shelved {
        check.so(format!("no part of it in {name}"), !contains_run(&bytes, &planted, 8));
    }
    nowhere(stage, check, &planted).await?;
    desk.done(&super::super::desk::cancelling(settlement), Json::Null).await.map(drop)
}

/// A credential in the place of a key is refused before anything is kept of it.
async fn key(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let (desk, planted) = (stage.desk().await?, planted());
    let got = desk.post(check, &desk.mounting(), &planted).await?;
    check.equal("refused as a key", &is(400, "IDEMPOTENCY_KEY_INVALID"), &code(&got));
    check.so("no part of it in the body", !contains_run(&got.body, &planted, 8));
    let raw = Raw { method: "POST".into(), ..Raw::get(ACCOUNTS) }
        .with("authorization", format!("Bearer {planted}"))
        .with("x-request-id", "6f1c0000-0000-4000-8000-0000000000ab")
        .with("idempotency-key", desk.key());
    let got = stage.raw(check, &raw).await?;
    check.equal("refused as a token", &is(401, "AUTH_UPSTREAM_CREDENTIAL"), &code(&got));
    check.so("no part of it in the body", !contains_run(&got.body, &planted, 8));
    nowhere(stage, check, &planted).await
}
