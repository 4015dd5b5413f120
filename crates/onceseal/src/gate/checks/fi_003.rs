//! FI-003: a package's state is another than its publication needs. One wins, all others are told 409, and the state
//! makes one step.

use serde_json::Value as Json;

use super::super::check::{Book, Check};
use super::super::database::{Fault, Spot};
use super::super::desk::{Desk, code, is, moving};
use super::super::stage::Stage;

/// Drafts that two publish at once.
const ROUNDS: usize = 5;

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("FI-003.publish.race", async |check| raced(stage, check).await).await;
    book.check("FI-003.publish.stale", async |check| stale(stage, check).await).await;
    book.check("FI-003.publish.active", async |check| active(stage, check).await).await;
}

/// What the tables and the audit say of a package that was published once.
async fn once(desk: &Desk<'_>, check: &mut Check, (package, conflicts): (i64, i64)) -> Result<(), String> {
    let database = &desk.stage.database;
    let state =
        format!("select status || ' ' || cast(version as text) from supply_packages where id = {package}");
    check.equal("state and version", &vec!["active 1".to_owned()], &database.texts(&state).await?);
    let audited = async |code: &str| {
        database
            .count(&format!(
                "select count(*) from audit_events where object_id = '{package}' and object_type = 'supply_package'
                 and event_name = 'supply.package.publish' and result_code = '{code}'"
            ))
            .await
    };
    let told = format!(
        "select count(*) from outbox where object_id = '{package}' and object_type = 'supply_package'
         and event_name = 'supply.package.publish.succeeded'"
    );
    let seen = (audited("OK").await?, audited("SUP_PKG_4091").await?, database.count(&told).await?);
    check.equal("audited OK, audited conflicts, events", &(1, conflicts, 1), &seen);
    Ok(())
}

/// The quota of an account, committed once for each package.
async fn frozen(desk: &Desk<'_>, account: i64) -> Result<i64, String> {
    let sql = format!("select cast(frozen_quota as text) from supply_accounts where id = {account}");
    let text = desk.stage.database.texts(&sql).await?.pop().unwrap_or_default();
    let whole = text.split('.').next().unwrap_or_default().parse::<i64>().unwrap_or(-1);
    // The file counts millionths.
    Ok(if text.contains('.') { whole } else { whole / 1_000_000 })
}

async fn raced(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    for round in 1..=ROUNDS {
        let package = desk.draft(account).await?;
        let (write, one, two) = (desk.publishing(package), desk.key(), desk.key());
        let (one, two) = (desk.call(&write, &one), desk.call(&write, &two));
        let (first, second) = tokio::join!(stage.market.client.send(&one), stage.second.send(&two));
        let (first, second) = (first?, second?);
        stage.noted(check, &one, &first).await?;
        stage.noted(check, &two, &second).await?;
        let mut ends = [code(&first), code(&second)];
        ends.sort();
        check.equal(format!("two at once, round {round}"), &[is(200, ""), is(409, "SUP_PKG_4091")], &ends);
        once(&desk, check, (package, 1)).await?;
        let committed = i64::try_from(round).unwrap_or_default() * 1000;
        check.equal("quota committed", &committed, &frozen(&desk, account).await?);
    }
    Ok(())
}

/// The row moved between look and write: the write hits nothing.
async fn stale(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let package = desk.draft(account).await?;
    let (write, before) = (desk.publishing(package), stage.business().await?);
    let spot = Spot { verb: "update", table: "supply_packages" };
    stage.database.plant(spot, Fault::Ignored).await?;
    let lost = desk.ask(check, &write).await;
    stage.database.heal(spot).await?;
    let lost = lost?;
    check.equal("a version that moved", &is(409, "SUP_PKG_4091"), &code(&lost));
    before.unchanged(check, "tables after the lost race", &stage.business().await?);
    let again = desk.ask(check, &write).await?;
    check.equal("asked again", &200, &again.code());
    once(&desk, check, (package, 1)).await
}

async fn active(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let package = desk.active(account).await?;
    let before = stage.business().await?;
    let got = desk.ask(check, &desk.publishing(package)).await?;
    check.equal("an active one", &is(409, "SUP_PKG_4091"), &code(&got));
    before.unchanged(check, "tables after the refusal", &stage.business().await?);
    once(&desk, check, (package, 1)).await?;
    // And on with the chain: what is paused is resumed.
    desk.done(&moving(package, "pause"), Json::Null).await?;
    let resumed = desk.ask(check, &desk.publishing(package)).await?;
    check.equal("a paused one", &200, &resumed.code());
    Ok(())
}
