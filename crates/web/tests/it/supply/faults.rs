//! Failure injections FI-001 to FI-006 (section 20), over HTTP, with real faults in the database.

use axum::http::Method;
use onceseal_http::Profile;
use serde_json::{Value as Json, json};

use crate::house::Got;

use super::desk::{ACCOUNTS, BATCH, Desk, WITHDRAW, asks, cancelling, code, is, mount, moving, prices};

/// The tables of a withdrawal, in the order of its writes.
const STEPS: [(&str, &str); 8] = [
    ("insert", "supply_settlements"),
    ("insert", "supply_settlement_items"),
    ("update", "supply_earnings"),
    ("insert", "billing_journals"),
    ("insert", "billing_ledger_entries"),
    ("update", "billing_accounts"),
    ("update", "supply_sms_codes"),
    ("insert", "outbox"),
];

#[tokio::test]
async fn fi_001_whatever_fails_in_a_withdrawal_leaves_all_as_it_was_and_its_retry_pays_once() {
    let desk = Desk::funded(200).await;
    for fault in STEPS {
        let (key, body) = (desk.api.key(), desk.asks("12").await);
        let (before, made) = (desk.business().await, settlements(&desk).await);
        desk.breaks(fault).await;
        let failed = desk.post(WITHDRAW, &key, &body).await;
        assert!(failed.status >= 500, "{fault:?}: {}", failed.text());
        assert!(
            failed.json().get("data").is_none() && !failed.text().contains("injected"),
            "{}",
            failed.text()
        );
        assert_eq!(desk.business().await, before, "{fault:?}");
        desk.heals(fault).await;
        let again = desk.post(WITHDRAW, &key, &body).await;
        assert_eq!(
            (again.status, &again.json()["idempotent_replay"]),
            (201, &Json::Bool(false)),
            "{fault:?}"
        );
        assert_eq!(settlements(&desk).await, made + 1);
        let repeat = desk.post(WITHDRAW, &key, &body).await;
        assert_eq!((repeat.status, &repeat.json()["data"]), (201, &again.json()["data"]));
        let id = again.json()["data"]["settlement_id"].as_i64().expect("an id");
        desk.done(&cancelling(id), "").await;
    }
    desk.sound().await;
}

async fn settlements(desk: &Desk) -> i64 {
    desk.api.count("select count(*) from supply_settlements").await
}

#[tokio::test]
async fn fi_001_a_statement_that_takes_too_long_is_answered_503_and_its_retry_pays_once() {
    let desk = Desk::funded(100).await;
    if !desk.api.on_postgres() {
        return;
    }
    let (key, body) = (desk.api.key(), desk.asks("50").await);
    let before = desk.seen().await;
    let fault = ("insert", "billing_ledger_entries");
    desk.hangs(fault).await;
    let failed = desk.post(WITHDRAW, &key, &body).await;
    assert_eq!(code(&failed), is(503, "SUP_COM_5031"), "{}", failed.text());
    assert!(!failed.header("retry-after").is_empty());
    assert_eq!(desk.seen().await, before);
    desk.heals(fault).await;
    let again = desk.post(WITHDRAW, &key, &body).await;
    assert_eq!((again.status, settlements(&desk).await), (201, 1), "{}", again.text());
    desk.sound().await;
}

#[tokio::test]
async fn a_check_that_a_row_breaks_is_a_mistake_of_ours_and_no_lost_race() {
    let desk = Desk::funded(100).await;
    let (body, before) = (desk.asks("50").await, desk.seen().await);
    let fault = ("insert", "supply_settlements");
    desk.rejects(fault).await;
    let failed = desk.ask(WITHDRAW, &body).await;
    assert_eq!(code(&failed), is(500, "SUP_COM_5001"), "{}", failed.text());
    assert_eq!(desk.seen().await, before);
    desk.heals(fault).await;
    assert_eq!(desk.ask(WITHDRAW, &body).await.status, 201);
}

/// What another payload under a key gets, and what it leaves.
async fn mismatched(desk: &Desk, path: &str, key: &str, other: &str) {
    let before = desk.business().await;
    let mismatches = desk.audited("idempotency.payload_mismatch", "IDEMPOTENCY_PAYLOAD_MISMATCH").await;
    let refused = desk.post(path, key, other).await;
    assert_eq!(code(&refused), is(409, "IDEMPOTENCY_PAYLOAD_MISMATCH"));
    let details =
        json!({ "retryable": false, "expected_action": "reuse_same_payload_or_new_idempotency_key" });
    assert_eq!(refused.json()["error"]["details"], details);
    assert_eq!(desk.business().await, before);
    let now = desk.audited("idempotency.payload_mismatch", "IDEMPOTENCY_PAYLOAD_MISMATCH").await;
    assert_eq!(now, mismatches + 1);
}

#[tokio::test]
async fn fi_002_another_payload_is_refused_while_the_first_runs() {
    let desk = Desk::new().await;
    let (key, running) = (desk.api.key(), desk.api.provider.clone());
    let held = running.write().await;
    let body = mount("a");
    let first = desk.post(ACCOUNTS, &key, &body);
    let meanwhile = async {
        let processing = "select count(*) from supply_idempotency_record where status = 'processing'";
        while desk.api.count(processing).await == 0 {
            tokio::task::yield_now().await;
        }
        mismatched(&desk, ACCOUNTS, &key, &mount("b")).await;
        let twin = desk.post(ACCOUNTS, &key, &mount("a")).await;
        assert_eq!(code(&twin), is(202, "IDEMPOTENCY_IN_PROGRESS"));
        assert!(twin.json().get("data").is_none() && !twin.header("retry-after").is_empty());
        drop(held);
    };
    let (first, ()) = tokio::join!(first, meanwhile);
    assert_eq!(first.status, 201, "{}", first.text());
    let repeat = desk.post(ACCOUNTS, &key, &mount("a")).await;
    assert_eq!((repeat.status, &repeat.json()["data"]), (201, &first.json()["data"]));
    desk.sound().await;
}

#[tokio::test]
async fn fi_002_another_payload_is_refused_after_success_and_after_failure() {
    let desk = Desk::funded(100).await;
    let (sent, key) = (desk.asks("50").await, desk.api.key());
    let wrong = sent.replace("\"50\"", "\"5000\"");
    for (body, status) in [(&wrong, 400), (&sent, 201)] {
        let key = if status == 201 { key.clone() } else { desk.api.key() };
        let first = desk.post(WITHDRAW, &key, body).await;
        assert_eq!(first.status, status, "{}", first.text());
        mismatched(&desk, WITHDRAW, &key, &asks("51", "000000")).await;
        let repeat = desk.post(WITHDRAW, &key, body).await;
        let member = if status == 201 { "data" } else { "error" };
        assert_eq!((repeat.status, &repeat.json()[member]), (status, &first.json()[member]));
        assert_eq!(repeat.json()["idempotent_replay"], true);
    }
    desk.sound().await;
}

#[tokio::test]
async fn the_draft_s_profile_answers_with_its_own_statuses_and_problems() {
    let desk = Desk::in_profile(Profile::Draft).await;
    let (key, provider) = (desk.api.key(), desk.api.provider.clone());
    let told = |got: &Got| {
        let problem = got.header("content-type") == "application/problem+json";
        (got.status, got.json()["code"].as_str().unwrap_or_default().to_owned(), problem)
    };
    let problem = |status: u16, code: &str| (status, code.to_owned(), true);
    let held = provider.write().await;
    let body = mount("a");
    let meanwhile = async {
        let processing = "select count(*) from supply_idempotency_record where status = 'processing'";
        while desk.api.count(processing).await == 0 {
            tokio::task::yield_now().await;
        }
        let twin = desk.post(ACCOUNTS, &key, &mount("a")).await;
        let other = desk.post(ACCOUNTS, &key, &mount("b")).await;
        drop(held);
        [told(&twin), told(&other)]
    };
    let (first, repeats) = tokio::join!(desk.post(ACCOUNTS, &key, &body), meanwhile);
    let expected = [problem(409, "IDEMPOTENCY_IN_PROGRESS"), problem(422, "IDEMPOTENCY_PAYLOAD_MISMATCH")];
    assert_eq!((first.status, repeats), (201, expected));
    let replay = desk.post(ACCOUNTS, &key, &mount("a")).await;
    assert_eq!((replay.status, &replay.json()["idempotent_replay"]), (201, &json!(true)));
    assert_eq!(
        told(&desk.post(ACCOUNTS, "short", &mount("c")).await),
        problem(400, "IDEMPOTENCY_KEY_INVALID")
    );
    assert_eq!(desk.audited("supply.write.refused", "IDEMPOTENCY_KEY_INVALID").await, 1);
    let account = first.json()["data"]["account_id"].as_i64().expect("an id");
    let refused = desk.ask(&moving(account + 1000, "publish"), "").await;
    assert_eq!(told(&refused), problem(404, "SUP_PKG_4041"), "{}", refused.text());
}

#[tokio::test]
async fn fi_003_con_pkg_001_of_two_servers_that_publish_one_draft_one_does() {
    let desk = Desk::new().await;
    let second = desk.api.second().await;
    let account = desk.account("a").await;
    for round in 1..=5 {
        let path = moving(desk.draft(account, ("8", "32"), 30).await, "publish");
        let (one, two) = (desk.api.key(), desk.api.key());
        let (one, two) = tokio::join!(
            desk.post(&path, &one, ""),
            desk.api.write_at(&second, &path, (&desk.token, &two), "")
        );
        let mut ends = [code(&one), code(&two)];
        ends.sort();
        assert_eq!(ends, [is(200, ""), is(409, "SUP_PKG_4091")], "{} {}", one.text(), two.text());
        let won = if one.status == 200 { one } else { two };
        assert_eq!(
            (&won.json()["data"]["status"], &won.json()["data"]["version"]),
            (&json!("active"), &json!(1))
        );
        assert_eq!(desk.audited("supply.package.publish", "OK").await, round);
        assert_eq!(desk.audited("supply.package.publish", "SUP_PKG_4091").await, 2 * round - 1);
        let told = "select count(*) from outbox where event_name = 'supply.package.publish.succeeded'";
        assert_eq!(desk.api.count(told).await, round);
        // And of one that is active already.
        assert_eq!(code(&desk.ask(&path, "").await), is(409, "SUP_PKG_4091"));
    }
    desk.sound().await;
}

/// The five writes, one after the other: each fails with this fault in, leaves nothing, and succeeds without it.
async fn five_with(fault: (&str, &str)) {
    let desk = Desk::funded(100).await;
    let account = desk.account("a").await;
    let (draft, active) = (desk.draft(account, ("8", "32"), 30).await, desk.active(account).await);
    let batch = json!({ "items": [prices(active, "9", "33")] }).to_string();
    let withdrawal = desk.asks("50").await;
    let mut calls = vec![
        (ACCOUNTS.to_owned(), mount("b")),
        (moving(draft, "publish"), String::new()),
        (BATCH.to_owned(), batch),
        (WITHDRAW.to_owned(), withdrawal),
    ];
    for write in 0..5 {
        let (path, body) = calls[write].clone();
        let (key, before) = (desk.api.key(), desk.seen().await);
        desk.breaks(fault).await;
        let failed = desk.post(&path, &key, &body).await;
        assert_eq!(failed.status, 503, "{path}: {}", failed.text());
        assert_eq!(desk.seen().await, before, "{path}");
        desk.heals(fault).await;
        let again = desk.post(&path, &key, &body).await;
        assert!(again.status < 202 && again.json()["idempotent_replay"] == false, "{path}: {}", again.text());
        if path == WITHDRAW {
            let id = again.json()["data"]["settlement_id"].as_i64().expect("an id");
            calls.push((cancelling(id), String::new()));
        }
    }
    desk.sound().await;
}

#[tokio::test]
async fn fi_004_none_of_the_five_writes_happens_without_its_audit() {
    five_with(("insert", "audit_events")).await;
}

#[tokio::test]
async fn fi_005_none_of_the_five_writes_happens_without_its_event() {
    five_with(("insert", "outbox")).await;
}

#[tokio::test]
async fn fi_004_a_refusal_that_can_not_be_audited_is_no_refusal_yet() {
    let desk = Desk::funded(100).await;
    let (key, body, before) = (desk.api.key(), desk.asks("5000").await, desk.seen().await);
    let fault = ("insert", "audit_events");
    desk.breaks(fault).await;
    let failed = desk.post(WITHDRAW, &key, &body).await;
    assert_eq!(code(&failed), is(503, "SUP_COM_5031"), "{}", failed.text());
    assert_eq!(desk.seen().await, before);
    desk.heals(fault).await;
    let refused = desk.post(WITHDRAW, &key, &body).await;
    assert_eq!(code(&refused), is(400, "SUP_SET_4001"));
    assert_eq!(refused.json().get("idempotent_replay"), None, "{}", refused.text());
    assert_eq!(desk.audited("invariant_violation", "SUP_SET_4001").await, 1);
}

#[tokio::test]
async fn fi_004_a_refusal_before_the_door_waits_for_its_audit_too() {
    let desk = Desk::new().await;
    let narrow = desk.api.token((desk.tenant, desk.operator), &["supply:account:read"]).await;
    let fault = ("insert", "audit_events");
    let asked = async || {
        let denied = desk.api.write((Method::POST, ACCOUNTS), &narrow, &desk.api.key(), &mount("a")).await;
        [code(&denied), code(&desk.ask(ACCOUNTS, "{nonsense").await)]
    };
    desk.breaks(fault).await;
    assert_eq!(asked().await, [is(503, "SUP_COM_5031"), is(503, "SUP_COM_5031")]);
    desk.heals(fault).await;
    assert_eq!(asked().await, [is(403, "AUTH_SCOPE_DENIED"), is(400, "SUP_COM_4000")]);
    assert_eq!(desk.audited("supply.write.refused", "AUTH_SCOPE_DENIED").await, 1);
}

#[tokio::test]
async fn fi_006_no_answer_waits_for_a_channel_that_nobody_serves() {
    let desk = Desk::funded(100).await;
    let account = desk.account("a").await;
    let package = desk.draft(account, ("8", "32"), 30).await;
    let published =
        desk.api.write((Method::POST, &moving(package, "publish")), &desk.token, &desk.api.key(), "").await;
    assert_eq!(published.status, 200);
    let settlement = desk.settlement("50").await;
    desk.done(&cancelling(settlement), "").await;
    let waiting = "select count(*) from outbox_deliveries where destination = 'bus' and status = 'pending'";
    let told = "select count(*) from outbox where event_name like 'supply.%'";
    assert_eq!(desk.api.count(waiting).await, desk.api.count(told).await);
    assert!(desk.api.count(waiting).await >= 3);
}
