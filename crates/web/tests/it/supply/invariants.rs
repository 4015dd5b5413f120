//! Every invariant of section 10 over HTTP: its code, its rule, one audit row with the state that was seen, and
//! nothing changed.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value as Json, json};

use super::desk::{ACCOUNTS, BATCH, Desk, WITHDRAW, cancelling, code, is, moving, prices};
use crate::house::Got;

/// What a broken invariant leaves in the audit.
struct Left<'a> {
    rule: &'a str,
    code: &'a str,
    status: u16,
    action: &'a str,
    object: (&'a str, String),
    state: Json,
}

/// Newest first, so that a test may break one after another.
async fn violated(desk: &Desk, got: &Got, before: &[String], left: &Left<'_>) {
    let Left { rule, code: name, status, action, object, state } = left;
    assert_eq!(code(got), is(*status, name), "{}", got.text());
    assert_eq!(got.json()["error"]["details"]["rule_code"], *rule, "{}", got.text());
    assert_eq!(desk.business().await, before, "{rule}");
    let request = got.header("x-request-id");
    let of =
        format!("from audit_events where event_name = 'invariant_violation' and request_id = '{request}'");
    assert_eq!(desk.api.count(&format!("select count(*) {of}")).await, 1, "{rule}");
    let column =
        async |name: &str| desk.api.texts(&format!("select cast({name} as text) {of}")).await.remove(0);
    assert_eq!((column("rule_code").await.as_str(), column("result_code").await.as_str()), (*rule, *name));
    assert_eq!((column("action").await.as_str(), column("object_type").await.as_str()), (*action, object.0));
    assert_eq!(
        (column("object_id").await, column("tenant_id").await),
        (object.1.clone(), desk.tenant.to_string())
    );
    assert_eq!(column("operator_id").await, desk.operator.to_string());
    assert!(!column("created_at").await.is_empty() && column("idempotency_key").await.starts_with("key-"));
    let seen = |text: String| serde_json::from_str::<Json>(&text).expect("a state");
    let (was, is) = (seen(column("before_state").await), seen(column("after_state").await));
    assert_eq!((&was, &is), (state, state), "{rule}");
    let ordinary = format!(
        "select count(*) from audit_events where request_id = '{request}' and event_name = '{action}'
        and result_code = '{name}'"
    );
    assert_eq!(desk.api.count(&ordinary).await, 1, "{rule}");
}

#[tokio::test]
async fn inv_acc_001_an_active_account_is_not_deleted() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let (before, key) = (desk.business().await, desk.api.key());
    let path = format!("{ACCOUNTS}/{account}");
    let got = desk.api.write((Method::DELETE, &path), &desk.token, &key, "").await;
    let left = Left {
        rule: "INV-ACC-001",
        code: "SUP_ACC_4092",
        status: 409,
        action: "supply.account.delete",
        object: ("supply_account", account.to_string()),
        state: json!({ "status": "active", "version": 1 }),
    };
    violated(&desk, &got, &before, &left).await;
}

#[tokio::test]
async fn inv_acc_002_a_disabled_account_is_activated_by_staff_only() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let reason = json!({ "reason": "complaints" }).to_string();
    desk.api.admin(&format!("/api/v1/platform/supply/accounts/{account}/disable"), &reason).await;
    let (before, path) = (desk.business().await, format!("{ACCOUNTS}/{account}/activate"));
    let got = desk.ask(&path, "").await;
    let left = Left {
        rule: "INV-ACC-002",
        code: "SUP_ACC_4031",
        status: 403,
        action: "supply.account.activate",
        object: ("supply_account", account.to_string()),
        state: json!({ "status": "disabled", "version": 2 }),
    };
    violated(&desk, &got, &before, &left).await;
    let restored = desk.api.admin(&path, "").await;
    assert_eq!(restored["status"], "active");
    desk.sound().await;
}

#[tokio::test]
async fn inv_pkg_001_sold_out_is_the_systems_alone() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.active(account).await;
    let sold =
        "update supply_packages set status = 'sold_out', sold_quota = total_quota, available_quota = 0";
    desk.api.force(sold).await;
    let before = desk.business().await;
    for verb in ["publish", "pause", "unlist"] {
        let got = desk.ask(&moving(package, verb), "").await;
        let action = format!("supply.package.{verb}");
        let left = Left {
            rule: "INV-PKG-001",
            code: "SUP_PKG_4092",
            status: 409,
            action: &action,
            object: ("supply_package", package.to_string()),
            state: json!({ "status": "sold_out", "version": 1 }),
        };
        violated(&desk, &got, &before, &left).await;
    }
}

#[tokio::test]
async fn inv_pkg_002_what_expired_is_not_restored_though_the_sweeper_is_late() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let (unlisted, late) = (desk.active(account).await, desk.draft(account, ("8", "32"), 1).await);
    desk.done(&moving(unlisted, "unlist"), "").await;
    desk.done(&moving(late, "publish"), "").await;
    desk.done(&moving(late, "pause"), "").await;
    desk.api.house.clock.advance(Duration::from_secs(25 * 3600));
    let before = desk.business().await;
    for (package, state) in [
        (unlisted, json!({ "status": "expired", "version": 2 })),
        (late, json!({ "status": "paused", "version": 2 })),
    ] {
        let got = desk.ask(&moving(package, "publish"), "").await;
        let left = Left {
            rule: "INV-PKG-002",
            code: "SUP_PKG_4093",
            status: 409,
            action: "supply.package.publish",
            object: ("supply_package", package.to_string()),
            state,
        };
        violated(&desk, &got, &before, &left).await;
    }
}

#[tokio::test]
async fn inv_pkg_003_neither_price_is_below_its_floor_when_it_is_published() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    for (input, output, field) in [
        ("7.999999", "32", "price_per_1m_input"),
        ("8", "31.999999", "price_per_1m_output"),
        ("0", "32", "price_per_1m_input"),
    ] {
        let package = desk.draft(account, (input, output), 30).await;
        let before = desk.business().await;
        let got = desk.ask(&moving(package, "publish"), "").await;
        let left = Left {
            rule: "INV-PKG-003",
            code: "SUP_PKG_4001",
            status: 400,
            action: "supply.package.publish",
            object: ("supply_package", package.to_string()),
            state: json!({ "status": "draft", "version": 0 }),
        };
        violated(&desk, &got, &before, &left).await;
        let details = &got.json()["error"]["details"];
        assert_eq!(details["field"], field);
        assert!(!details["floor"].is_null() && !details["given"].is_null(), "{details}");
    }
}

#[tokio::test]
async fn inv_pkg_003_each_failed_item_of_a_batch_has_its_own_violation() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let (fine, low, lower) =
        (desk.active(account).await, desk.active(account).await, desk.draft(account, ("8", "32"), 30).await);
    let items = [prices(low, "7", "32"), prices(fine, "9", "33"), prices(lower, "8", "1")];
    let got = desk.ask(BATCH, &json!({ "items": items }).to_string()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let data = &got.json()["data"];
    assert_eq!(
        (&data["total"], &data["success_count"], &data["failed_count"]),
        (&json!(3), &json!(1), &json!(2))
    );
    let failed: Vec<_> = (0..2)
        .map(|n| (data["failures"][n]["package_id"].clone(), data["failures"][n]["error_code"].clone()))
        .collect();
    assert_eq!(failed, [(json!(low), json!("SUP_PKG_4001")), (json!(lower), json!("SUP_PKG_4001"))]);
    for (package, state) in [(low, ("active", 1)), (lower, ("draft", 0))] {
        let sql = format!(
            "select cast(before_state as text) from audit_events where event_name = 'invariant_violation'
            and rule_code = 'INV-PKG-003' and result_code = 'SUP_PKG_4001' and object_id = '{package}'"
        );
        let states = desk.api.texts(&sql).await;
        assert_eq!(states.len(), 1, "{package}");
        let state_seen: Json = serde_json::from_str(&states[0]).expect("a state");
        assert_eq!((&state_seen["status"], &state_seen["version"]), (&json!(state.0), &json!(state.1)));
    }
    assert_eq!(desk.audited("invariant_violation", "SUP_PKG_4001").await, 2);
    desk.sound().await;
}

#[tokio::test]
async fn inv_set_001_what_is_paid_out_or_was_is_not_cancelled() {
    let desk = Desk::funded(100).await;
    let settlement = desk.settlement("50").await;
    let steps = [
        ("start", String::new(), "processing"),
        ("complete", json!({ "payment_transaction_id": "bank-1" }).to_string(), "completed"),
    ];
    for (version, (step, body, status)) in (1..).zip(steps) {
        desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/{step}"), &body).await;
        let before = desk.business().await;
        let got = desk.ask(&cancelling(settlement), "").await;
        let left = Left {
            rule: "INV-SET-001",
            code: "SUP_SET_4092",
            status: 409,
            action: "supply.settlement.withdraw.cancel",
            object: ("supply_settlement", settlement.to_string()),
            state: json!({ "status": status, "version": version }),
        };
        violated(&desk, &got, &before, &left).await;
    }
    desk.sound().await;
}

/// The state of the supplier that a refused withdrawal saw, as the audit has it.
async fn supplier_seen(desk: &Desk) -> (String, Json) {
    let of = "from audit_events where event_name = 'invariant_violation' order by id desc limit 1";
    let object = desk.api.texts(&format!("select object_id {of}")).await.remove(0);
    let state = desk.api.texts(&format!("select cast(before_state as text) {of}")).await.remove(0);
    (object, serde_json::from_str(&state).expect("a state"))
}

#[tokio::test]
async fn inv_set_002_no_more_is_withdrawn_than_there_is() {
    let desk = Desk::funded(100).await;
    let body = desk.asks("100.01").await;
    let before = desk.business().await;
    let got = desk.ask(WITHDRAW, &body).await;
    let (object, state) = supplier_seen(&desk).await;
    assert!(state["status"].is_string(), "{state}");
    let left = Left {
        rule: "INV-SET-002",
        code: "SUP_SET_4001",
        status: 400,
        action: "supply.settlement.withdraw.create",
        object: ("supplier", object),
        state,
    };
    violated(&desk, &got, &before, &left).await;
    let details = &got.json()["error"]["details"];
    assert_eq!(details["available_amount"].to_string().trim_matches('"').trim_end_matches(".00"), "100");
    assert_eq!(details["asked"].to_string().trim_matches('"'), "100.01");
    let metadata = "select cast(metadata as text) from audit_events where event_name = 'invariant_violation'";
    let metadata = desk.api.texts(metadata).await.remove(0);
    for number in ["asked", "available_amount"] {
        assert!(metadata.contains(number), "{metadata}");
    }
    // The code was not used up.
    assert_eq!(desk.ask(WITHDRAW, &body.replace("100.01", "100")).await.status, 201);
    desk.sound().await;
}

#[tokio::test]
async fn inv_set_003_a_balance_that_is_off_stops_everything_and_alerts() {
    let desk = Desk::funded(100).await;
    let first = desk.settlement("20").await;
    desk.done(&cancelling(first), "").await;
    let body = desk.asks("50").await;
    let stray = if desk.api.on_postgres() { "1" } else { "1000000" };
    desk.api
        .force(&format!(
            "update billing_accounts set balance = balance + {stray} where account_code = 'supplier_frozen'"
        ))
        .await;
    let before: Vec<String> = without_outbox(desk.business().await);
    let got = desk.ask(WITHDRAW, &body).await;
    assert_eq!(code(&got), is(500, "SUP_SET_5002"), "{}", got.text());
    assert_eq!(got.json()["error"]["details"]["rule_code"], "INV-SET-003");
    assert_eq!(without_outbox(desk.business().await), before);
    let request = got.header("x-request-id");
    let audited = format!(
        "select count(*) from audit_events where event_name = 'invariant_violation'
        and rule_code = 'INV-SET-003' and result_code = 'SUP_SET_5002' and request_id = '{request}'"
    );
    assert_eq!(desk.api.count(&audited).await, 1);
    let alert = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'";
    assert_eq!(desk.api.count(alert).await, 1);
}

/// An alert goes out, of a violation of this invariant alone.
fn without_outbox(seen: Vec<String>) -> Vec<String> {
    seen.into_iter().filter(|line| !line.starts_with("outbox")).collect()
}
