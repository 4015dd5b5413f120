//! The concurrency cases of section 22 of the domain's specification; where two calls meet, they meet on two servers,
//! if the engine has room for two.

use futures::future::join_all;
use play::{Answer, Call};
use serde_json::{Value as Json, json};

use super::super::check::{Book, Check};
use super::super::desk::{WITHDRAW, Write, asks, code, is};
use super::super::proven::Question;
use super::super::stage::Stage;

/// Sends of one key.
const MANY: usize = 20;
/// Withdrawals under keys of their own.
const TEN: usize = 10;
/// Meetings of a cancellation and a payout.
const MEETINGS: usize = 100;

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("CON-SET-001", async |check| ten_keys(stage, check).await).await;
    book.check("CON-SET-002", async |check| one_key(stage, check).await).await;
    book.check("CON-PKG-001", async |check| two_publish(stage, check).await).await;
    book.check("CON-KEY.withdraw", async |check| one_key_at_once(stage, check).await).await;
    book.check("CON-PAYOUT.cancel", async |check| payouts(stage, check).await).await;
}

/// All at once, by turns at both servers.
async fn at_once(stage: &Stage, check: &mut Check, calls: &[Call]) -> Result<Vec<Answer>, String> {
    let sends = calls.iter().enumerate().map(async |(nth, call)| {
        if nth % 2 == 0 { stage.market.client.send(call).await } else { stage.second.send(call).await }
    });
    let answers: Vec<Answer> = join_all(sends).await.into_iter().collect::<Result<_, _>>()?;
    for (call, answer) in calls.iter().zip(&answers) {
        stage.noted(check, call, answer).await?;
    }
    Ok(answers)
}

async fn ten_keys(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    // Nine more would fit into what is there: only the open one stands in their way.
    let write = desk.withdrawing("100").await?;
    let calls: Vec<Call> = (0..TEN).map(|_| desk.call(&write, &desk.key())).collect();
    let mut ends: Vec<_> = at_once(stage, check, &calls).await?.iter().map(code).collect();
    ends.sort();
    let mut expected = vec![is(201, "")];
    expected.extend(vec![is(409, "SUP_SET_4091"); TEN - 1]);
    check.equal("one 201, nine 409", &expected, &ends);
    let user = desk.owner.user_id;
    let made = format!("select count(*) from supply_settlements where user_id = {user}");
    check.equal("settlements", &1, &stage.database.count(&made).await?);
    let negative = Question {
        what: "balances below zero",
        sql: &format!("select id from billing_accounts where owner_id = {user} and balance < 0"),
        tables: &["billing_accounts"],
        plants: &[&format!("update billing_accounts set balance = -1 where owner_id = {user}")],
    };
    negative.none(&stage.database, check).await?;
    balanced(stage, check).await
}

async fn balanced(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let ledger = stage.operated("/ledger").await?;
    check.equal("the ledger's violations", &Some(&json!([])), &ledger.get("violations"));
    Ok(())
}

async fn one_key(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let (write, key) = (desk.withdrawing("50").await?, desk.key());
    let first = desk.post(check, &write, &key).await?;
    check.equal("the first", &(201, false), &(first.code(), first.is_replay()));
    let replayed = stage.audited("idempotency.replayed", "OK").await?;
    let mut same = 0;
    for _ in 1..MANY {
        let again = desk.post(check, &write, &key).await?;
        let original = again.json().get("original_request_id").cloned();
        let whole = again.code() == 201 && again.is_replay() && again.data() == first.data();
        same += usize::from(whole && original == Some(json!(first.request_id)));
    }
    check.equal("given again as it was", &(MANY - 1), &same);
    let other = Write { path: WITHDRAW.into(), body: asks("51", "000000") };
    let refused = desk.post(check, &other, &key).await?;
    check.equal("another body", &is(409, "IDEMPOTENCY_PAYLOAD_MISMATCH"), &code(&refused));
    let now = stage.audited("idempotency.replayed", "OK").await?;
    check.equal("replays audited", &i64::try_from(MANY - 1).unwrap_or_default(), &(now - replayed));
    let made = format!("select count(*) from supply_settlements where user_id = {}", desk.owner.user_id);
    check.equal("settlements", &1, &stage.database.count(&made).await?);
    Ok(())
}

async fn two_publish(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let write = desk.publishing(desk.draft(account).await?);
    let calls = [desk.call(&write, &desk.key()), desk.call(&write, &desk.key())];
    let answers = at_once(stage, check, &calls).await?;
    let mut ends: Vec<_> = answers.iter().map(code).collect();
    ends.sort();
    check.equal("one 200, one 409", &vec![is(200, ""), is(409, "SUP_PKG_4091")], &ends);
    for answer in &answers {
        let result = if answer.code() == 200 { "OK" } else { "SUP_PKG_4091" };
        let audited = format!(
            "select count(*) from audit_events where event_name = 'supply.package.publish' and result_code = '{result}'
             and request_id = '{}'",
            answer.request_id
        );
        check.equal(format!("audited as {result}"), &1, &stage.database.count(&audited).await?);
    }
    Ok(())
}

async fn one_key_at_once(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let (write, key) = (desk.withdrawing("50").await?, desk.key());
    let calls = vec![desk.call(&write, &key); MANY];
    let answers = at_once(stage, check, &calls).await?;
    let done =
        |replay: bool| answers.iter().filter(|one| one.code() == 201 && one.is_replay() == replay).count();
    let running = answers.iter().filter(|one| code(one) == is(202, "IDEMPOTENCY_IN_PROGRESS")).count();
    check.value("first answers", done(false));
    check.value("replays", done(true));
    check.value("in progress", running);
    check.equal("one first, all others replays or 202", &(1, MANY - 1), &(done(false), done(true) + running));
    // Whatever met whom: once all are answered, one more is given the result.
    let last = desk.post(check, &write, &key).await?;
    check.equal("one more, after all", &(201, true), &(last.code(), last.is_replay()));
    let other = answers.iter().filter(|one| one.code() == 201 && one.data() != last.data()).count();
    check.equal("other results than its", &0, &other);
    let made = format!("select count(*) from supply_settlements where user_id = {}", desk.owner.user_id);
    check.equal("settlements", &1, &stage.database.count(&made).await?);
    Ok(())
}

/// A cancellation meets the start of the payout: one of them happens, a hundred times.
async fn payouts(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let (mut started, mut cancelled, mut odd) = (0, 0, Vec::new());
    for round in 0..MEETINGS {
        let settlement = desk.settlement("10").await?;
        let path = |step: &str| format!("/api/v1/platform/settlements/{settlement}/{step}");
        let cancel = desk.call(&desk.cancelling(settlement), &desk.key());
        let start = Call::post(path("start"), &stage.market.admin, &desk.key(), Json::Null);
        let mut calls = [cancel, start];
        if round % 2 == 1 {
            calls.reverse();
        }
        let mut answers = at_once(stage, check, &calls).await?;
        if round % 2 == 1 {
            answers.reverse();
        }
        let ends: Vec<_> = answers.iter().map(code).collect();
        if ends == [is(200, ""), is(409, "SUP_SET_4094")] {
            cancelled += 1;
        } else if ends == [is(409, "SUP_SET_4092"), is(200, "")] {
            started += 1;
            stage.market.platform(&path("fail"), json!({ "failure_code": "bank_refused" })).await?;
        } else {
            odd.push(ends);
            break;
        }
    }
    check.value("cancelled", cancelled);
    check.value("started", started);
    check.equal("both or neither", &Vec::new(), &odd);
    check.equal("meetings", &MEETINGS, &(cancelled + started));
    let user = desk.owner.user_id;
    let ends = async |version: i64| {
        let sql = format!(
            "select count(*) from supply_settlements where user_id = {user} and status = 'failed' and version = {version}"
        );
        stage.database.count(&sql).await
    };
    let whole = |count: usize| i64::try_from(count).unwrap_or_default();
    check.equal("ended in one step", &whole(cancelled), &ends(1).await?);
    check.equal("ended in two", &whole(started), &ends(2).await?);
    let frozen = Question {
        what: "money that stayed frozen",
        sql: &format!(
            "select id from billing_accounts where owner_id = {user} and account_code = 'supplier_frozen' and balance <> 0"
        ),
        tables: &["billing_accounts"],
        plants: &[&format!("update billing_accounts set balance = 1 where owner_id = {user}")],
    };
    frozen.none(&stage.database, check).await?;
    balanced(stage, check).await
}
