//! FI-002: the same key with another payload, in each state of its record. 409, nothing changed, and the first payload
//! is still answered. Publishing and cancelling have no body that could differ: there the record is given the hash of
//! another payload, past all rules, and so it is where a state can't be had otherwise.

use std::time::Duration;

use play::Answer;
use serde_json::{Value as Json, json};

use super::super::check::{Book, Check};
use super::super::database::Engine;
use super::super::desk::{Desk, Write, code, is};
use super::super::list::WRITES;
use super::super::stage::Stage;

/// How long the first request may take to claim its key.
const CLAIMED_WITHIN: Duration = Duration::from_secs(10);
/// How often a mount is tried whose provider is slow.
const TRIES: u32 = 8;
/// The hash of a payload that nobody sent.
const OTHER: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
const COLUMNS: &str = "payload_hash, status, coalesce(cast(response_code as text), ''), coalesce(cast(response_body as text), ''), request_id, cast(attempt_no as text)";

pub(super) async fn run(stage: &Stage, book: &Book) {
    for write in WRITES {
        let id = |state: &str| format!("FI-002.{write}.{state}");
        book.check(&id("processing"), async |check| match write {
            "mount" => held(stage, check).await,
            _ => planted(stage, check, (write, State::Processing)).await,
        })
        .await;
        book.check(&id("succeeded"), async |check| ended(stage, check, (write, State::Succeeded)).await)
            .await;
        book.check(&id("failed"), async |check| match write {
            // Every receipt of a batch is a success.
            "batch_price" => planted(stage, check, (write, State::Failed)).await,
            _ => ended(stage, check, (write, State::Failed)).await,
        })
        .await;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Processing,
    Succeeded,
    Failed,
}

/// A record, from outside.
struct Record<'s> {
    stage: &'s Stage,
    key: String,
}

impl Record<'_> {
    async fn row(&self) -> Result<Vec<String>, String> {
        let sql =
            format!("select {COLUMNS} from supply_idempotency_record where idempotency_key = '{}'", self.key);
        self.stage.database.rows(&sql).await?.pop().ok_or_else(|| "the key has no record".to_owned())
    }

    async fn set(&self, what: &str) -> Result<(), String> {
        let sql =
            format!("update supply_idempotency_record set {what} where idempotency_key = '{}'", self.key);
        self.stage.database.run(&sql).await
    }

    async fn hash(&self, hash: &str) -> Result<(), String> {
        self.set(&format!("payload_hash = '{hash}'")).await
    }
}

/// What another payload is answered with, and what it leaves.
async fn mismatched(
    stage: &Stage,
    check: &mut Check,
    send: impl AsyncFnOnce(&mut Check) -> Result<Answer, String>,
) -> Result<(), String> {
    const EVENT: (&str, &str) = ("idempotency.payload_mismatch", "IDEMPOTENCY_PAYLOAD_MISMATCH");
    let (before, audited) = (stage.business().await?, stage.audited(EVENT.0, EVENT.1).await?);
    let refused = send(check).await?;
    check.equal("another payload", &is(409, EVENT.1), &code(&refused));
    let details =
        json!({ "retryable": false, "expected_action": "reuse_same_payload_or_new_idempotency_key" });
    check.equal("its details", &Some(&details), &refused.json().pointer("/error/details"));
    before.unchanged(check, "tables after another payload", &stage.business().await?);
    check.equal("audited", &(audited + 1), &stage.audited(EVENT.0, EVENT.1).await?);
    Ok(())
}

/// Sends another payload, or the same one under a record of another.
async fn differs(
    desk: &Desk<'_>,
    check: &mut Check,
    (write, record): (&Write, &Record<'_>),
) -> Result<(), String> {
    if let Some(other) = desk.another(write) {
        return mismatched(desk.stage, check, async |check| desk.post(check, &other, &record.key).await)
            .await;
    }
    let hash = record.row().await?.first().cloned().unwrap_or_default();
    record.hash(OTHER).await?;
    let done = mismatched(desk.stage, check, async |check| desk.post(check, write, &record.key).await).await;
    record.hash(&hash).await?;
    done
}

/// The record has ended: with success, or with a refusal.
async fn ended(stage: &Stage, check: &mut Check, (name, state): (&str, State)) -> Result<(), String> {
    let desk = if matches!(name, "withdraw" | "cancel") { stage.funded()? } else { stage.desk().await? };
    let write = match state {
        State::Failed => desk.refused(name).await?.0,
        _ => desk.ready(name).await?,
    };
    let record = Record { stage, key: desk.key() };
    let first = desk.post(check, &write, &record.key).await?;
    check.equal("the first", &(state == State::Succeeded), &first.status.is_success());
    let kept = record.row().await?;
    differs(&desk, check, (&write, &record)).await?;
    check.equal("the record", &kept, &record.row().await?);
    replayed(&desk, check, (&write, &record.key), &first).await
}

/// The first payload is answered as it was.
async fn replayed(
    desk: &Desk<'_>,
    check: &mut Check,
    (write, key): (&Write, &str),
    first: &Answer,
) -> Result<(), String> {
    let repeat = desk.post(check, write, key).await?;
    check.equal("the first payload again", &(first.code(), true), &(repeat.code(), repeat.is_replay()));
    check.equal("its result", &first.data(), &repeat.data());
    check.equal("its error", &first.error(), &repeat.error());
    check.equal("its header", &"true", &repeat.header("idempotent-replayed"));
    Ok(())
}

/// The record of a success is put into another state past all rules, and back.
async fn planted(stage: &Stage, check: &mut Check, (name, state): (&str, State)) -> Result<(), String> {
    let desk = if matches!(name, "withdraw" | "cancel") { stage.funded()? } else { stage.desk().await? };
    let (write, record) = (desk.ready(name).await?, Record { stage, key: desk.key() });
    let first = desk.post(check, &write, &record.key).await?;
    check.so(format!("the first, {}", first.code()), first.status.is_success());
    let kept = record.row().await?;
    let (body, response) = (kept.get(3).cloned().unwrap_or_default(), first.code());
    let (token, lease) = match stage.engine {
        Engine::Sqlite => ("x'00112233445566778899aabbccddeeff'", "(unixepoch() + 600) * 1000000"),
        Engine::Postgres => ("'\\x00112233445566778899aabbccddeeff'", "now() + interval '10 minutes'"),
    };
    let running = format!(
        "status = 'processing', response_code = null, response_body = null, claim_token = {token}, locked_until = {lease}"
    );
    let refused =
        "status = 'failed', response_code = 400, response_body = '{\"error\":{\"code\":\"SUP_COM_4001\"}}'";
    record.set(if state == State::Processing { &running } else { refused }).await?;
    differs(&desk, check, (&write, &record)).await?;
    let same = desk.post(check, &write, &record.key).await?;
    let expected = match state {
        State::Processing => is(202, "IDEMPOTENCY_IN_PROGRESS"),
        _ => is(400, "SUP_COM_4001"),
    };
    check.equal("the first payload meanwhile", &expected, &code(&same));
    let back = format!(
        "status = 'succeeded', response_code = {response}, response_body = '{}', claim_token = null, locked_until = null",
        body.replace('\'', "''")
    );
    record.set(&back).await?;
    replayed(&desk, check, (&write, &record.key), &first).await
}

/// A mount whose provider takes its time: its record is running, truly. A provider is given up after 700 ms, so on a
/// machine that is busy it may be over before all was seen; then it is tried again.
async fn held(stage: &Stage, check: &mut Check) -> Result<(), String> {
    for attempt in 1..=TRIES {
        let mut tried = Check::default();
        if held_once(stage, &mut tried).await? {
            tried.value("attempts", attempt);
            *check = tried;
            return Ok(());
        }
    }
    Err(format!("the provider was given up {TRIES} times before all was seen"))
}

/// Whether it was still running when all was seen.
async fn held_once(stage: &Stage, check: &mut Check) -> Result<bool, String> {
    let desk = stage.desk().await?;
    let (write, key) = (desk.mounting(), desk.key());
    let call = desk.call(&write, &key);
    let gate = stage.provider.hold().await;
    let client = stage.market.client.clone();
    let first = tokio::spawn({
        let call = call.clone();
        async move { client.send(&call).await }
    });
    let running = format!(
        "select count(*) from supply_idempotency_record where idempotency_key = '{key}' and status = 'processing'"
    );
    let claimed = stage
        .awaited("the claim", CLAIMED_WITHIN, async || Ok(stage.database.count(&running).await? == 1))
        .await;
    let met = async {
        claimed?;
        let other = desk.mounting();
        mismatched(stage, check, async |check| desk.post(check, &other, &key).await).await?;
        let twin = desk.post(check, &write, &key).await?;
        check.equal("the same payload meanwhile", &is(202, "IDEMPOTENCY_IN_PROGRESS"), &code(&twin));
        check.equal("no data in a 202", &Json::Null, &twin.data());
        check.so("it says when to come again", !twin.header("retry-after").is_empty());
        Ok::<_, String>(())
    }
    .await;
    drop(gate);
    let first = first.await.map_err(|cause| cause.to_string())??;
    if first.error() == "SUP_ACC_5031" {
        return Ok(false);
    }
    met?;
    stage.noted(check, &call, &first).await?;
    check.equal("the first", &201, &first.code());
    replayed(&desk, check, (&write, &key), &first).await?;
    Ok(true)
}
