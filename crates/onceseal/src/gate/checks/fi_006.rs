//! FI-006: what comes after a commit is down: the place of statements, the SMS service. Withdrawing, cancelling and
//! publishing answer as ever; what waits is tried again, arrives once, and is given up with an alert when its schedule is
//! used up.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use play::{Answer, Call};
use serde_json::Value as Json;

use super::super::check::{Book, Check};
use super::super::database::Engine;
use super::super::desk::{Desk, Write, code, is};
use super::super::stage::Stage;

/// What the slowest of the buttons may take (section 7).
const WITHIN: Duration = Duration::from_millis(1200);
/// How long what was down may stay unnoticed, and what is up again unused.
const NOTICED_WITHIN: Duration = Duration::from_secs(60);
/// Attempts of a delivery before it is given up; the last one is put in place past all rules.
const ATTEMPTS: i64 = relay::schedule::ATTEMPTS_MAX;

pub(super) async fn run(stage: &Stage, book: &Book) {
    for write in ["withdraw", "cancel", "publish"] {
        book.check(&format!("FI-006.{write}"), async |check| answered(stage, check, write).await).await;
    }
    book.check("FI-006.statement", async |check| statement(stage, check).await).await;
    book.check("FI-006.dead", async |check| dead(stage, check).await).await;
    book.check("FI-006.sms", async |check| sms(stage, check).await).await;
}

/// The place of statements is a file, in every server: nothing can be put there.
struct Down(Vec<PathBuf>);

impl Down {
    fn of(stage: &Stage) -> Result<Self, String> {
        let fail = |cause: std::io::Error| format!("the place of statements can't be taken away: {cause}");
        let shelves = stage.shelves();
        for shelf in &shelves {
            std::fs::rename(shelf, shelf.with_extension("aside")).map_err(fail)?;
            std::fs::write(shelf, "no folder").map_err(fail)?;
        }
        Ok(Self(shelves))
    }

    fn up(&self) -> Result<(), String> {
        let fail = |cause: std::io::Error| format!("the place of statements can't be given back: {cause}");
        for shelf in &self.0 {
            std::fs::remove_file(shelf).map_err(fail)?;
            std::fs::rename(shelf.with_extension("aside"), shelf).map_err(fail)?;
        }
        Ok(())
    }
}

/// With the place of statements down.
async fn down<T>(stage: &Stage, meanwhile: impl AsyncFnOnce() -> Result<T, String>) -> Result<T, String> {
    let down = Down::of(stage)?;
    let made = meanwhile().await;
    down.up()?;
    made
}

async fn asked(desk: &Desk<'_>, check: &mut Check, settlement: i64) -> Result<Answer, String> {
    let path = format!("/api/v1/supply/settlements/{settlement}/statement");
    desk.stage.send(check, &Call::get(path, &desk.owner.token)).await
}

fn not_ready(check: &mut Check, got: &Answer) {
    check.equal("its statement meanwhile", &is(503, "SUP_COM_5031"), &code(got));
    check.so("it says when to come again", !got.header("retry-after").is_empty());
}

fn settlement_of(answer: &Answer) -> i64 {
    answer.data().get("settlement_id").and_then(Json::as_i64).unwrap_or_default()
}

/// The write is answered as ever, and soon.
async fn timed(desk: &Desk<'_>, check: &mut Check, write: &Write) -> Result<Answer, String> {
    let since = Instant::now();
    let got = desk.ask(check, write).await?;
    let took = since.elapsed();
    check.value("milliseconds", u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    check.so(format!("answered as ever, {} {}", got.code(), got.error()), got.code() < 202);
    check.so("answered within its time", took <= WITHIN);
    Ok(got)
}

async fn answered(stage: &Stage, check: &mut Check, name: &str) -> Result<(), String> {
    let desk = if name == "publish" { stage.desk().await? } else { stage.funded()? };
    let write = desk.ready(name).await?;
    let got = down(stage, async || {
        let got = timed(&desk, check, &write).await?;
        if name != "publish" {
            let statement = asked(&desk, check, settlement_of(&got)).await?;
            not_ready(check, &statement);
        }
        Ok(got)
    })
    .await?;
    let kept = format!(
        "select count(*) from outbox where event_name like 'supply.%' and request_id = '{}'",
        got.request_id
    );
    check.equal("its event is kept", &1, &stage.database.count(&kept).await?);
    if name == "withdraw" {
        desk.done(&super::super::desk::cancelling(settlement_of(&got)), Json::Null).await?;
    }
    Ok(())
}

/// Deliveries of a settlement's events to the maker of statements: state and attempts.
async fn deliveries(stage: &Stage, settlement: i64) -> Result<Vec<(String, i64)>, String> {
    let sql = format!(
        "select d.status, cast(d.attempt as text) from outbox_deliveries d join outbox o on o.id = d.outbox_id
         where d.destination = 'statement' and o.object_type = 'supply_settlement' and o.object_id = '{settlement}'
         order by d.id"
    );
    let rows = stage.database.rows(&sql).await?;
    let read = |row: Vec<String>| Some((row.first()?.clone(), row.get(1)?.parse().ok()?));
    Ok(rows.into_iter().filter_map(read).collect())
}

async fn statement(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let write = desk.withdrawing("50").await?;
    let settlement = down(stage, async || {
        let settlement = settlement_of(&timed(&desk, check, &write).await?);
        let tried =
            async || Ok(deliveries(stage, settlement).await?.iter().any(|(_, attempt)| *attempt >= 2));
        stage.awaited("a second try", NOTICED_WITHIN, tried).await?;
        let waits = deliveries(stage, settlement).await?;
        check
            .so(format!("it is tried again: {waits:?}"), waits.iter().all(|(state, _)| state != "delivered"));
        let got = asked(&desk, check, settlement).await?;
        not_ready(check, &got);
        Ok(settlement)
    })
    .await?;
    let path = format!("/api/v1/supply/settlements/{settlement}/statement");
    let call = Call::get(path, &desk.owner.token);
    let ready = async || {
        let done = deliveries(stage, settlement).await?.iter().all(|(state, _)| state == "delivered");
        Ok(done && stage.market.client.send(&call).await?.code() == 200)
    };
    stage.awaited("the statement", NOTICED_WITHIN, ready).await?;
    let got = stage.send(check, &call).await?;
    let link = got.data().get("download_url").and_then(Json::as_str).unwrap_or_default().to_owned();
    let place = url::Url::parse(&link).map(|url| url.path().to_owned()).unwrap_or(link);
    let file = stage.market.client.send(&Call::get(place, "")).await?;
    check.equal("the file", &200, &file.code());
    let text = String::from_utf8_lossy(&file.body).into_owned();
    let number = format!("select settlement_no from supply_settlements where id = {settlement}");
    let number = stage.database.texts(&number).await?.concat();
    check.so("it is this settlement's", text.contains(&number) && !number.is_empty());
    let done = deliveries(stage, settlement).await?;
    check.equal(
        "delivered, once",
        &(1, true),
        &(done.len(), done.iter().all(|(state, _)| state == "delivered")),
    );
    desk.done(&super::super::desk::cancelling(settlement), Json::Null).await.map(drop)
}

/// The schedule is used up: given up, with its reason, and alerted.
async fn dead(stage: &Stage, check: &mut Check) -> Result<(), String> {
    const ALERTS: &str = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
        and cast(payload as text) like '%statement_held%'";
    let desk = stage.funded()?;
    let (write, alerts) = (desk.withdrawing("50").await?, stage.database.count(ALERTS).await?);
    let now = match stage.engine {
        Engine::Sqlite => "unixepoch() * 1000000",
        Engine::Postgres => "now()",
    };
    let settlement = down(stage, async || {
        let settlement = settlement_of(&timed(&desk, check, &write).await?);
        let tried = async || {
            let all = deliveries(stage, settlement).await?;
            Ok(all.iter().any(|(state, attempt)| state == "pending" && *attempt >= 1))
        };
        stage.awaited("a first try", NOTICED_WITHIN, tried).await?;
        let last = format!(
            "update outbox_deliveries set attempt = {}, next_attempt_at = {now} where destination = 'statement'
             and status = 'pending' and outbox_id in (select id from outbox where object_type = 'supply_settlement'
               and object_id = '{settlement}')",
            ATTEMPTS - 1
        );
        stage.database.run(&last).await?;
        let given_up = async || Ok(deliveries(stage, settlement).await?.iter().any(|(state, _)| state == "dead"));
        stage.awaited("the end of the schedule", NOTICED_WITHIN, given_up).await?;
        Ok(settlement)
    })
    .await?;
    let reason = format!(
        "select coalesce(d.error, '') from outbox_deliveries d join outbox o on o.id = d.outbox_id where d.status = 'dead'
         and o.object_type = 'supply_settlement' and o.object_id = '{settlement}'"
    );
    let reason = stage.database.texts(&reason).await?.concat();
    check.value("reason", reason.clone());
    check.so("given up with its reason", !reason.is_empty());
    check.equal("alerts", &(alerts + 1), &stage.database.count(ALERTS).await?);
    desk.done(&super::super::desk::cancelling(settlement), Json::Null).await.map(drop)
}

/// The SMS service is down: asking for a code and everything else is answered, and the code comes when it is up.
async fn sms(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let account = desk.account().await?;
    let package = desk.draft(account).await?;
    let (before, turned_away) = (stage.phone.count(&desk.owner.phone), stage.phone.refused());
    let outage = stage.phone.outage();
    let code = Write { path: "/api/v1/supply/settlements/withdraw/sms-code".into(), body: Json::Null };
    timed(&desk, check, &code).await?;
    timed(&desk, check, &desk.publishing(package)).await?;
    let refused = async || Ok(stage.phone.refused() > turned_away);
    stage.awaited("a try at the SMS service", NOTICED_WITHIN, refused).await?;
    check.equal("codes meanwhile", &before, &stage.phone.count(&desk.owner.phone));
    drop(outage);
    stage.phone.code(&desk.owner.phone, before).await?;
    check.equal("codes after it is up", &(before + 1), &stage.phone.count(&desk.owner.phone));
    Ok(())
}
