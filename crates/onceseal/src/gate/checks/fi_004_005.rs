//! FI-004 and FI-005: neither audit row nor event can be written. None of the five writes happens without them, and a
//! refusal that can't be audited is none yet.

use super::super::check::{Book, Check};
use super::super::database::{Fault, Spot};
use super::super::desk::{Desk, code, is};
use super::super::list::WRITES;
use super::super::stage::Stage;

const AUDIT: Spot = Spot { verb: "insert", table: "audit_events" };
const OUTBOX: Spot = Spot { verb: "insert", table: "outbox" };

pub(super) async fn run(stage: &Stage, book: &Book) {
    for write in WRITES {
        for (rule, spot) in [("FI-004", AUDIT), ("FI-005", OUTBOX)] {
            book.check(&format!("{rule}.{write}"), async |check| without(stage, check, (write, spot)).await)
                .await;
        }
        book.check(&format!("FI-004.refusal.{write}"), async |check| refusal(stage, check, write).await)
            .await;
    }
}

async fn desk<'s>(stage: &'s Stage, write: &str) -> Result<Desk<'s>, String> {
    if matches!(write, "withdraw" | "cancel") { stage.funded() } else { stage.desk().await }
}

/// The write fails with this fault in, leaves nothing, and succeeds without it.
async fn without(stage: &Stage, check: &mut Check, (name, spot): (&str, Spot)) -> Result<(), String> {
    let desk = desk(stage, name).await?;
    let (write, key) = (desk.ready(name).await?, desk.key());
    let before = stage.seen().await?;
    stage.database.plant(spot, Fault::Breaks).await?;
    let failed = desk.post(check, &write, &key).await;
    stage.database.heal(spot).await?;
    let failed = failed?;
    check.equal("while it fails", &is(503, "SUP_COM_5031"), &code(&failed));
    check.so("it says when to come again", !failed.header("retry-after").is_empty());
    before.unchanged(check, "tables after the failure", &stage.seen().await?);
    let again = desk.post(check, &write, &key).await?;
    check.so(format!("its retry, {} {}", again.code(), again.error()), again.code() < 202);
    check.equal("it is no replay", &false, &again.is_replay());
    let repeat = desk.post(check, &write, &key).await?;
    check.equal("the repeat of the retry", &(again.code(), true), &(repeat.code(), repeat.is_replay()));
    Ok(())
}

async fn refusal(stage: &Stage, check: &mut Check, name: &str) -> Result<(), String> {
    let desk = desk(stage, name).await?;
    let (write, status, error) = desk.refused(name).await?;
    let key = desk.key();
    let before = stage.seen().await?;
    stage.database.plant(AUDIT, Fault::Breaks).await?;
    let failed = desk.post(check, &write, &key).await;
    stage.database.heal(AUDIT).await?;
    check.equal("a refusal that can't be audited", &is(503, "SUP_COM_5031"), &code(&failed?));
    before.unchanged(check, "tables after the failure", &stage.seen().await?);
    let refused = desk.post(check, &write, &key).await?;
    check.equal("the same, audited", &is(status, error), &code(&refused));
    check.equal("it is no replay", &false, &refused.is_replay());
    let audited = format!("select count(*) from audit_events where request_id = '{}'", refused.request_id);
    let rows = stage.database.count(&audited).await?;
    check.value("audit rows", rows);
    check.so("it is audited", rows >= 1);
    Ok(())
}
