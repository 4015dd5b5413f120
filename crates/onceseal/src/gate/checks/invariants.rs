//! The eight invariants (section 4), each broken over HTTP: its code, its rule, exactly one `invariant_violation` with
//! the state that was seen, and nothing changed.

use play::{Answer, Call};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::super::check::{Book, Check};
use super::super::database::Engine;
use super::super::desk::{ACCOUNTS, BATCH, Desk, Seen, Write, code, is, moving, prices};
use super::super::stage::Stage;

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("INV-ACC-001", async |check| active_account(stage, check).await).await;
    book.check("INV-ACC-002.owner", async |check| disabled_account(stage, check, Whose::Owner).await).await;
    book.check("INV-ACC-002.staff", async |check| disabled_account(stage, check, Whose::Staff).await).await;
    for verb in ["publish", "pause", "unlist"] {
        book.check(&format!("INV-PKG-001.{verb}"), async |check| sold_out(stage, check, verb).await).await;
    }
    book.check("INV-PKG-002.unlisted", async |check| unlisted(stage, check).await).await;
    book.check("INV-PKG-002.late", async |check| late(stage, check).await).await;
    book.check("INV-PKG-003.publish", async |check| cheap(stage, check).await).await;
    book.check("INV-PKG-003.batch_price", async |check| cheap_in_a_batch(stage, check).await).await;
    for state in ["processing", "completed"] {
        book.check(&format!("INV-SET-001.{state}"), async |check| paid_out(stage, check, state).await).await;
    }
    book.check("INV-SET-002", async |check| too_much(stage, check).await).await;
    book.check("INV-SET-003", async |check| unbalanced(stage, check).await).await;
}

enum Whose {
    Owner,
    Staff,
}

/// What a broken invariant leaves in the audit.
struct Left<'a> {
    rule: &'a str,
    code: (u16, &'a str),
    action: &'a str,
    object: (&'a str, String),
    state: Json,
}

async fn violated(
    desk: &Desk<'_>,
    check: &mut Check,
    (got, before): (&Answer, &Seen),
    left: &Left<'_>,
) -> Result<(), String> {
    let (stage, rule) = (desk.stage, left.rule);
    check.equal(format!("{rule} is refused"), &is(left.code.0, left.code.1), &code(got));
    let told = got.json();
    check.equal("it names its rule", &Some(&json!(rule)), &told.pointer("/error/details/rule_code"));
    before.unchanged(check, "tables after it", &stage.business().await?);
    let sql = format!(
        "select rule_code, result_code, action, object_type, object_id, cast(tenant_id as text), cast(operator_id as text),
           coalesce(idempotency_key, ''), cast(before_state as text), cast(after_state as text)
         from audit_events where event_name = 'invariant_violation' and request_id = '{}'",
        got.request_id
    );
    let rows = stage.database.rows(&sql).await?;
    check.equal("violations audited", &1, &rows.len());
    let row = rows.into_iter().next().unwrap_or_default();
    let text = |at: usize| row.get(at).cloned().unwrap_or_default();
    let expected = [
        rule.to_owned(),
        left.code.1.to_owned(),
        left.action.to_owned(),
        left.object.0.to_owned(),
        left.object.1.clone(),
        desk.owner.tenant_id.to_string(),
        desk.owner.operator_id.to_string(),
    ];
    check.equal("who, what and why", &expected, &[0, 1, 2, 3, 4, 5, 6].map(text));
    check.so("it has the key", !text(7).is_empty());
    let state = |at: usize| serde_json::from_str::<Json>(&text(at)).unwrap_or_default();
    check.equal("the state before", &left.state, &state(8));
    check.equal("the state after", &left.state, &state(9));
    let ordinary = format!(
        "select count(*) from audit_events where request_id = '{}' and event_name = '{}' and result_code = '{}'",
        got.request_id, left.action, left.code.1
    );
    check.equal("audited as the command, too", &1, &stage.database.count(&ordinary).await?);
    Ok(())
}

async fn active_account(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let before = stage.business().await?;
    let path = format!("{ACCOUNTS}/{account}");
    let got = desk.by(check, Method::DELETE, &path, &desk.owner.token).await?;
    let left = Left {
        rule: "INV-ACC-001",
        code: (409, "SUP_ACC_4092"),
        action: "supply.account.delete",
        object: ("supply_account", account.to_string()),
        state: json!({ "status": "active", "version": 1 }),
    };
    violated(&desk, check, (&got, &before), &left).await
}

async fn disabled_account(stage: &Stage, check: &mut Check, whose: Whose) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let disable = format!("/api/v1/platform/supply/accounts/{account}/disable");
    stage.market.platform(&disable, json!({ "reason": "complaints" })).await?;
    let (before, path) = (stage.business().await?, format!("{ACCOUNTS}/{account}/activate"));
    if let Whose::Staff = whose {
        let got = desk.by(check, Method::POST, &path, &stage.market.admin).await?;
        check.equal("staff restores it", &200, &got.code());
        check.equal("its state", &Some(&json!("active")), &got.data().get("status"));
        let versions = format!("select cast(version as text) from supply_accounts where id = {account}");
        check.equal("its version", &vec!["3".to_owned()], &stage.database.texts(&versions).await?);
        return Ok(());
    }
    let got = desk.by(check, Method::POST, &path, &desk.owner.token).await?;
    let left = Left {
        rule: "INV-ACC-002",
        code: (403, "SUP_ACC_4031"),
        action: "supply.account.activate",
        object: ("supply_account", account.to_string()),
        state: json!({ "status": "disabled", "version": 2 }),
    };
    violated(&desk, check, (&got, &before), &left).await
}

async fn sold_out(stage: &Stage, check: &mut Check, verb: &str) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let package = desk.active(account).await?;
    let sold = format!(
        "update supply_packages set status = 'sold_out', sold_quota = total_quota, available_quota = 0 where id = {package}"
    );
    stage.database.run(&sold).await?;
    let before = stage.business().await?;
    let action = format!("supply.package.{verb}");
    let got = desk.by(check, Method::POST, &moving(package, verb), &desk.owner.token).await?;
    let left = Left {
        rule: "INV-PKG-001",
        code: (409, "SUP_PKG_4092"),
        action: &action,
        object: ("supply_package", package.to_string()),
        state: json!({ "status": "sold_out", "version": 1 }),
    };
    violated(&desk, check, (&got, &before), &left).await
}

async fn expired(desk: &Desk<'_>, check: &mut Check, (package, status): (i64, &str)) -> Result<(), String> {
    let before = desk.stage.business().await?;
    let got = desk.ask(check, &desk.publishing(package)).await?;
    let left = Left {
        rule: "INV-PKG-002",
        code: (409, "SUP_PKG_4093"),
        action: "supply.package.publish",
        object: ("supply_package", package.to_string()),
        state: json!({ "status": status, "version": 2 }),
    };
    violated(desk, check, (&got, &before), &left).await
}

async fn unlisted(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let package = desk.active(account).await?;
    desk.done(&moving(package, "unlist"), Json::Null).await?;
    expired(&desk, check, (package, "expired")).await
}

/// Its validity is over, and nobody has said so yet.
async fn late(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let package = desk.active(account).await?;
    desk.done(&moving(package, "pause"), Json::Null).await?;
    let (begun, past) = match stage.engine {
        Engine::Sqlite => ("(unixepoch() - 90000) * 1000000", "(unixepoch() - 3600) * 1000000"),
        Engine::Postgres => ("now() - interval '25 hours'", "now() - interval '1 hour'"),
    };
    let over = format!("update supply_packages set start_at = {begun}, end_at = {past} where id = {package}");
    stage.database.run(&over).await?;
    expired(&desk, check, (package, "paused")).await
}

async fn cheap(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let low = [
        ("7.999999", "32", "price_per_1m_input"),
        ("8", "31.999999", "price_per_1m_output"),
        ("0", "32", "price_per_1m_input"),
    ];
    for (input, output, field) in low {
        let package = desk.draft_at(account, (input, output), 30).await?;
        let before = stage.business().await?;
        let got = desk.ask(check, &desk.publishing(package)).await?;
        let left = Left {
            rule: "INV-PKG-003",
            code: (400, "SUP_PKG_4001"),
            action: "supply.package.publish",
            object: ("supply_package", package.to_string()),
            state: json!({ "status": "draft", "version": 0 }),
        };
        violated(&desk, check, (&got, &before), &left).await?;
        let details = got.json().pointer("/error/details").cloned().unwrap_or_default();
        check.equal("which price", &Some(&json!(field)), &details.get("field"));
        check
            .so("floor and price are told", details.get("floor").is_some() && details.get("given").is_some());
    }
    Ok(())
}

async fn cheap_in_a_batch(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let account = desk.account().await?;
    let (fine, low) = (desk.active(account).await?, desk.active(account).await?);
    let draft = desk.draft(account).await?;
    let items = [prices(low, "7", "32"), prices(fine, "9", "33"), prices(draft, "8", "1")];
    let write = Write { path: BATCH.into(), body: json!({ "items": items }) };
    let got = desk.ask(check, &write).await?;
    let data = got.data();
    let count = |name: &str| data.get(name).and_then(Json::as_i64).unwrap_or(-1);
    check.equal(
        "total, success, failed",
        &(3, 1, 2),
        &(count("total"), count("success_count"), count("failed_count")),
    );
    for (at, (package, status, version)) in [(low, "active", 1), (draft, "draft", 0)].into_iter().enumerate()
    {
        let failure = data.pointer(&format!("/failures/{at}")).cloned().unwrap_or_default();
        check.equal("which item", &Some(&json!(package)), &failure.get("package_id"));
        check.equal("its code", &Some(&json!("SUP_PKG_4001")), &failure.get("error_code"));
        let sql = format!(
            "select cast(before_state as text) from audit_events where event_name = 'invariant_violation'
             and rule_code = 'INV-PKG-003' and request_id = '{}' and object_id = '{package}'",
            got.request_id
        );
        let states = stage.database.texts(&sql).await?;
        check.equal("violations of the item", &1, &states.len());
        let seen: Json = states.first().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let seen = (seen.get("status").cloned(), seen.get("version").cloned());
        check.equal("the state seen", &(Some(json!(status)), Some(json!(version))), &seen);
    }
    Ok(())
}

async fn paid_out(stage: &Stage, check: &mut Check, state: &str) -> Result<(), String> {
    let desk = stage.funded()?;
    let settlement = desk.settlement("50").await?;
    let path = |step: &str| format!("/api/v1/platform/settlements/{settlement}/{step}");
    let paid = json!({ "payment_transaction_id": "bank-1" });
    stage.market.platform(&path("start"), Json::Null).await?;
    if state == "completed" {
        stage.market.platform(&path("complete"), paid.clone()).await?;
    }
    let before = stage.business().await?;
    let got = desk.ask(check, &desk.cancelling(settlement)).await?;
    let version = if state == "completed" { 2 } else { 1 };
    let left = Left {
        rule: "INV-SET-001",
        code: (409, "SUP_SET_4092"),
        action: "supply.settlement.withdraw.cancel",
        object: ("supply_settlement", settlement.to_string()),
        state: json!({ "status": state, "version": version }),
    };
    violated(&desk, check, (&got, &before), &left).await?;
    if state == "processing" {
        stage.market.platform(&path("complete"), paid).await?;
    }
    Ok(())
}

async fn too_much(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.funded()?;
    let write = desk.withdrawing("40000").await?;
    let before = stage.business().await?;
    let got = desk.ask(check, &write).await?;
    let user = desk.owner.user_id;
    let sql = format!("select cast(version as text) from supply_suppliers where user_id = {user}");
    let version = stage.database.count(&sql).await?;
    let left = Left {
        rule: "INV-SET-002",
        code: (400, "SUP_SET_4001"),
        action: "supply.settlement.withdraw.create",
        object: ("supplier", format!("supplier:{}", desk.owner.user_id)),
        state: json!({ "status": "active", "version": version, "open_settlement_id": null }),
    };
    violated(&desk, check, (&got, &before), &left).await?;
    check.so("the available amount is told", got.json().pointer("/error/details/available_amount").is_some());
    // The code was not used up.
    let less = write.with("/withdraw_amount", "50");
    let paid = desk.ask(check, &less).await?;
    check.equal("the same code with less", &201, &paid.code());
    Ok(())
}

async fn unbalanced(stage: &Stage, check: &mut Check) -> Result<(), String> {
    const ALERTS: &str = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
        and cast(payload as text) like '%S0%'";
    let desk = stage.funded()?;
    let first = desk.settlement("20").await?;
    desk.done(&super::super::desk::cancelling(first), Json::Null).await?;
    let write = desk.withdrawing("50").await?;
    let stray = if stage.engine == Engine::Postgres { "1" } else { "1000000" };
    let off = |sign: &str| {
        format!(
            "update billing_accounts set balance = balance {sign} {stray} where account_code = 'supplier_frozen' and owner_id = {}",
            desk.owner.user_id
        )
    };
    stage.database.run(&off("+")).await?;
    let (before, alerts) = (stage.business().await?, stage.database.count(ALERTS).await?);
    let call = Call::post(write.path.clone(), &desk.owner.token, &desk.key(), write.body.clone());
    let got = stage.send(check, &call).await;
    let now = stage.business().await;
    let ledger = stage.operated("/ledger").await;
    stage.database.run(&off("-")).await?;
    let (now, ledger) = (now?, ledger?);
    let found = ledger.get("violations").and_then(Json::as_array).map_or(0, Vec::len);
    check.so("`onceseal ledger verify` finds it", found > 0);
    let got = got?;
    check.equal("INV-SET-003 is refused", &is(500, "SUP_SET_5002"), &code(&got));
    let told = got.json();
    check.equal("it names its rule", &Some(&json!("INV-SET-003")), &told.pointer("/error/details/rule_code"));
    // An alert goes out, of a violation of this invariant alone.
    before.without("outbox").unchanged(check, "tables after it", &now.without("outbox"));
    check.equal("alerts", &(alerts + 1), &stage.database.count(ALERTS).await?);
    let audited = format!(
        "select count(*) from audit_events where event_name = 'invariant_violation' and rule_code = 'INV-SET-003'
         and result_code = 'SUP_SET_5002' and request_id = '{}'",
        got.request_id
    );
    check.equal("violations audited", &1, &stage.database.count(&audited).await?);
    Ok(())
}
