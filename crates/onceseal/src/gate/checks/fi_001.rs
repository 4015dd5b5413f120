//! FI-001: the database fails in the middle of a withdrawal, after its settlement was put in. Nothing of it is left, the
//! code is still good, and the same request under the same key is paid once.

use std::time::Duration;

use play::{Answer, Call};
use serde_json::{Value as Json, json};

use super::super::check::{Book, Check};
use super::super::database::{Engine, Fault, Spot};
use super::super::desk::{Desk, Write, cancelling, code, is};
use super::super::list::STEPS;
use super::super::raw::Raw;
use super::super::stage::Stage;

/// How long a lock is held: past the time that the server waits for one.
const HELD: Duration = Duration::from_millis(2600);
/// How long the server may go on with a request whose caller is gone.
const WITHIN: Duration = Duration::from_secs(10);
/// What the engines say of the faults that are put in.
const FAULTS: [&str; 9] = [
    "injected",
    "overflow",
    "constraint",
    "statement",
    "locked",
    "trigger",
    "gate_",
    "billing_",
    "supply_settlement",
];

pub(super) async fn run(stage: &Stage, book: &Book) {
    for (verb, table) in STEPS {
        let spot = Spot { verb, table };
        let fault = match stage.engine {
            Engine::Postgres => Fault::Hangs,
            Engine::Sqlite => Fault::Breaks,
        };
        book.check(&format!("FI-001.withdraw.{table}"), async |check| {
            faulty(stage, check, (spot, fault)).await
        })
        .await;
    }
    let slow = Spot { verb: "insert", table: "billing_ledger_entries" };
    book.check("FI-001.withdraw.timeout", async |check| match stage.engine {
        Engine::Postgres => faulty(stage, check, (slow, Fault::Hangs)).await,
        // A file has no time-out of statements; what takes too long there is the wait for its lock.
        Engine::Sqlite => locked(stage, check).await,
    })
    .await;
    book.check("FI-001.withdraw.lock", async |check| locked(stage, check).await).await;
    let settled = Spot { verb: "insert", table: "supply_settlements" };
    book.check("FI-001.withdraw.commit", async |check| {
        faulty(stage, check, (settled, Fault::AtCommit)).await
    })
    .await;
    book.check("FI-001.withdraw.hangup", async |check| hung_up(stage, check).await).await;
}

async fn faulty(stage: &Stage, check: &mut Check, (spot, fault): (Spot, Fault)) -> Result<(), String> {
    let desk = stage.funded()?;
    let (write, key) = (desk.withdrawing("50").await?, desk.key());
    let before = stage.business().await?;
    stage.database.plant(spot, fault).await?;
    let failed = desk.post(check, &write, &key).await;
    stage.database.heal(spot).await?;
    // What was late may come again. An error of the engine is our mistake, but for what the outbox can't take (FI-005).
    let answer = match fault {
        Fault::Breaks | Fault::AtCommit if spot.table != "outbox" => is(500, "SUP_COM_5001"),
        _ => is(503, "SUP_COM_5031"),
    };
    undone(check, (&failed?, &answer));
    before.unchanged(check, "tables after the failure", &stage.business().await?);
    again(&desk, check, (&write, &key)).await
}

/// Another session holds what the withdrawal needs, for longer than the server waits.
async fn locked(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let (write, key) = (desk.withdrawing("50").await?, desk.key());
    let before = stage.business().await?;
    let user = desk.owner.user_id;
    let held = stage.database.hold("billing_accounts", &format!("owner_id = {user}")).await?;
    let failed = tokio::time::timeout(HELD * 4, desk.post(check, &write, &key)).await;
    drop(held);
    // The lock of the file is one for all, the keys included.
    let answer = match stage.engine {
        Engine::Sqlite => is(503, "IDEMPOTENCY_UNAVAILABLE"),
        Engine::Postgres => is(503, "SUP_COM_5031"),
    };
    undone(check, (&failed.map_err(|_| "no answer while the lock was held")??, &answer));
    before.unchanged(check, "tables after the failure", &stage.business().await?);
    again(&desk, check, (&write, &key)).await
}

/// What the failure is answered with.
fn undone(check: &mut Check, (failed, answer): (&Answer, &(u16, String))) {
    check.equal("while it fails", answer, &code(failed));
    check.equal("no data in the failure", &None, &failed.json().get("data").cloned());
    let told = String::from_utf8_lossy(&failed.body).to_lowercase();
    let words: Vec<&str> = FAULTS.into_iter().filter(|word| told.contains(word)).collect();
    check.equal("words of the fault in the answer", &Vec::<&str>::new(), &words);
}

/// The same request once more: paid once, and then given again.
async fn again(desk: &Desk<'_>, check: &mut Check, (write, key): (&Write, &str)) -> Result<(), String> {
    let retried = desk.post(check, write, key).await?;
    check.equal("the retry", &(201, false), &(retried.code(), retried.is_replay()));
    let repeat = desk.post(check, write, key).await?;
    check.equal("its repeat", &(201, true), &(repeat.code(), repeat.is_replay()));
    check.equal("the same result", &retried.data(), &repeat.data());
    one(desk, check).await?;
    let id = retried.data().get("settlement_id").and_then(Json::as_i64).unwrap_or_default();
    desk.done(&cancelling(id), Json::Null).await.map(drop)
}

async fn one(desk: &Desk<'_>, check: &mut Check) -> Result<(), String> {
    let made = format!("select count(*) from supply_settlements where user_id = {}", desk.owner.user_id);
    let made = desk.stage.database.count(&made).await?;
    check.value("settlements", made);
    check.equal("settlements of the supplier", &1, &made);
    Ok(())
}

/// The caller is gone before the answer: the retry is paid once, whether the first one was or not.
async fn hung_up(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let (write, key) = (desk.withdrawing("50").await?, desk.key());
    let raw = Raw { method: "POST".into(), body: write.body.to_string(), ..Raw::get(write.path.clone()) }
        .with("authorization", format!("Bearer {}", desk.owner.token))
        .with("x-request-id", "6f1c0000-0000-4000-8000-000000000001")
        .with("idempotency-key", key.as_str())
        .with("content-type", "application/json");
    raw.hang_up(&stage.base()).await?;
    let call: Call = desk.call(&write, &key);
    let mut told = None;
    stage
        .awaited("the answer to the retry", WITHIN, async || {
            Ok(stage.market.client.send(&call).await?.code() == 201)
        })
        .await?;
    let answer = desk.post(check, &write, &key).await?;
    let data = answer.data();
    told.get_or_insert(data);
    check.equal("the retry after the retry", &(201, true), &(answer.code(), answer.is_replay()));
    one(&desk, check).await?;
    let id = told.unwrap_or(json!(null)).get("settlement_id").and_then(Json::as_i64).unwrap_or_default();
    desk.done(&cancelling(id), Json::Null).await.map(drop)
}
