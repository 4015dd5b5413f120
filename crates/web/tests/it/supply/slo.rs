//! What counts against the service, and the metrics of the gate (sections 18, 19), read as auditors read them.

use axum::http::Method;
use door::AuditRow;
use serde_json::{Value as Json, json};

use super::desk::{ACCOUNTS, BATCH, Desk, WITHDRAW, asks, code, is, mount, moving, prices};

const PUBLISH: &str = "BTN-PKG-002";

/// The one metric, over the last 30 days.
async fn metric(desk: &Desk, slug: &str) -> Json {
    let got = desk.api.read(&format!("/api/v1/audit/metrics/{slug}"), desk.api.admin_token()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    got.json()["data"].clone()
}

/// Value, verdict, numerator and denominator.
async fn figures(desk: &Desk, slug: &str) -> (Json, String, Json, Json) {
    let read = metric(desk, slug).await;
    let status = read["status"].as_str().expect("a verdict").to_owned();
    (read["value"].clone(), status, read["numerator"].clone(), read["denominator"].clone())
}

fn figure(
    value: Json,
    status: &str,
    numerator: u64,
    denominator: impl Into<Json>,
) -> (Json, String, Json, Json) {
    (value, status.into(), numerator.into(), denominator.into())
}

/// How many requests of a button ended so, of all that were kept.
async fn ended(desk: &Desk, button: &str, end: &str) -> u64 {
    metric(desk, "m015").await;
    let kept = "select cast(metadata as text) from audit_events where event_name = 'supply.slo.tally'";
    let rows = desk.api.texts(kept).await;
    let of = |text: &String| {
        let row: Json = serde_json::from_str(text).expect("JSON");
        row["buttons"][button]["ends"][end].as_u64().unwrap_or(0)
    };
    rows.iter().map(of).sum()
}

#[tokio::test]
async fn a_refusal_is_no_error_a_lost_race_and_a_fault_are() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.draft(account, ("8", "32"), 30).await;
    let path = moving(package, "publish");
    desk.outruns(("update", "supply_packages")).await;
    let lost = desk.ask(&path, "").await;
    assert_eq!(code(&lost), is(409, "SUP_PKG_4091"));
    assert_eq!(lost.json()["error"]["details"]["lost_race"], true);
    desk.heals(("update", "supply_packages")).await;
    desk.breaks(("insert", "audit_events")).await;
    assert_eq!(desk.ask(&path, "").await.status, 503);
    desk.heals(("insert", "audit_events")).await;
    let key = desk.api.key();
    assert_eq!(desk.post(&path, &key, "").await.status, 200);
    assert_eq!(desk.post(&path, &key, "").await.status, 200);
    let again = desk.ask(&path, "").await;
    assert_eq!(code(&again), is(409, "SUP_PKG_4091"), "an active package");
    assert_eq!(again.json()["error"]["details"]["lost_race"], Json::Null);
    assert_eq!(desk.api.read("/api/v1/supply/packages/1/publish", &desk.token).await.status, 405);
    for (end, count) in
        [("lost_race", 1), ("failed", 1), ("done", 1), ("replayed", 1), ("refused", 1), ("running", 0)]
    {
        assert_eq!(ended(&desk, PUBLISH, end).await, count, "{end}");
    }
}

#[tokio::test]
async fn a_twin_counts_against_the_service_once_the_first_runs_for_half_a_minute() {
    let desk = Desk::new().await;
    let held = desk.api.provider.clone().write_owned().await;
    let key = desk.api.key();
    let body = mount("a");
    let twins = async {
        while desk
            .api
            .count("select count(*) from supply_idempotency_record where status = 'processing'")
            .await
            == 0
        {
            tokio::task::yield_now().await;
        }
        assert_eq!(desk.post(ACCOUNTS, &key, &body).await.status, 202);
        assert_eq!(ended(&desk, "BTN-ACC-002", "stuck").await, 0);
        let aged = if desk.api.on_postgres() { "interval '40 seconds'" } else { "40000000" };
        let sql = format!("update supply_idempotency_record set created_at = created_at - {aged}");
        desk.api.force(&sql).await;
        assert_eq!(desk.post(ACCOUNTS, &key, &body).await.status, 202);
        drop(held);
    };
    let (first, ()) = tokio::join!(desk.post(ACCOUNTS, &key, &body), twins);
    assert_eq!(first.status, 201, "{}", first.text());
    let ends = [("running", 1), ("stuck", 1), ("done", 1), ("failed", 0)];
    for (end, count) in ends {
        assert_eq!(ended(&desk, "BTN-ACC-002", end).await, count, "{end}");
    }
}

#[tokio::test]
async fn m_014_is_of_all_requests_that_reached_a_handler_and_of_none_it_is_no_sample() {
    let desk = Desk::new().await;
    let empty = "/api/v1/audit/metrics/m014?start=2026-02-01T00:00:00Z&end=2026-03-01T00:00:00Z";
    let none = desk.api.read(empty, desk.api.admin_token()).await.json()["data"].clone();
    assert_eq!((&none["status"], &none["value"]), (&json!("no_sample"), &Json::Null), "{none}");
    let before = metric(&desk, "m014").await;
    let counted = before["numerator"].as_u64().expect("a count");
    assert_eq!(figures(&desk, "m014").await, figure(json!(100), "pass", counted + 1, counted + 1));
    for _ in 0..3 {
        assert_eq!(desk.api.read(ACCOUNTS, &desk.token).await.status, 200);
    }
    // Turned away: by no token, another's scope, a method, an address; and what is nobody's business.
    for (path, token) in [(ACCOUNTS, "nonsense"), ("/api/v1/supply/billing", desk.token.as_str())] {
        assert!(desk.api.read(path, token).await.status > 400);
    }
    assert_eq!(desk.api.read(WITHDRAW, &desk.token).await.status, 405);
    assert_eq!(desk.api.house.get(&format!("{ACCOUNTS}?key=x")).await.status, 401);
    assert_eq!(desk.api.house.get("/api/v1/openapi.json").await.status, 200);
    // The three, and the readings themselves.
    let now = metric(&desk, "m014").await;
    assert_eq!((&now["numerator"], &now["denominator"]), (&json!(counted + 5), &json!(counted + 5)), "{now}");
    assert!(now["samples"].as_array().is_some_and(|ids| ids.len() > 4), "{now}");
}

#[tokio::test]
async fn m_016_compares_what_was_seen_with_what_is_on_record_as_refused() {
    let desk = Desk::new().await;
    assert_eq!(figures(&desk, "m016").await, figure(Json::Null, "no_sample", 0, 0));
    for path in [ACCOUNTS, "/v1/chat/completions", "/nowhere"] {
        assert_eq!(desk.api.house.get(&format!("{path}?api_key=x")).await.status, 401);
    }
    assert_eq!(figures(&desk, "m016").await, figure(json!(100), "pass", 3, 3));
    assert_eq!(metric(&desk, "m016").await["samples"].as_array().map(Vec::len), Some(3));
    desk.breaks(("insert", "audit_events")).await;
    assert_eq!(desk.api.house.get("/nowhere?api_key=x").await.status, 401);
    desk.heals(("insert", "audit_events")).await;
    assert_eq!(figures(&desk, "m016").await, figure(json!(75), "fail", 3, 4));
}

#[tokio::test]
async fn m_013_counts_what_left_and_apart_what_was_withheld() {
    let desk = Desk::new().await;
    assert_eq!(figures(&desk, "m013").await, figure(json!(0), "pass", 0, Json::Null));
    let account = desk.account("a").await;
    let package = desk.draft(account, ("8", "32"), 30).await;
    let canary = format!("sk-{}", "Q7xZ".repeat(12));
    desk.api.force(&format!("update supply_packages set model = '{canary}'")).await;
    assert_eq!(code(&desk.ask(&moving(package, "clone"), "").await), is(500, "SUP_COM_5002"));
    let read = metric(&desk, "m013").await;
    assert_eq!((&read["value"], &read["status"], &read["blocked"]), (&json!(0), &json!("pass"), &json!(1)));
    assert_eq!(read["samples"].as_array().map(Vec::len), Some(1));
    // As an auditor would put on record what was found outside.
    let mut row = AuditRow::system("CRED-EXPOSE-EXPORT", "export", "found".into(), "audit-1".into());
    row.metadata = json!({ "blocked": false });
    desk.api.audit(row).await;
    assert_eq!(figures(&desk, "m013").await, figure(json!(1), "fail", 1, Json::Null));
}

#[tokio::test]
async fn money_providers_and_suppliers_have_their_metrics() {
    let desk = Desk::funded(100).await;
    assert_eq!(figures(&desk, "m011").await, figure(Json::Null, "no_sample", 0, 0));
    desk.account("a").await;
    let verified =
        json!({ "provider": "openai", "account_type": "api_key", "credential_input": "not-a-key" });
    let refused = desk.ask("/api/v1/supply/accounts/verify", &verified.to_string()).await;
    assert_eq!(code(&refused), is(400, "SUP_ACC_4001"));
    assert_eq!(figures(&desk, "m011").await, figure(json!(50), "fail", 1, 2));
    assert_eq!(figures(&desk, "m012").await, figure(json!(1), "fail", 1, Json::Null));
    let (key, body) = (desk.api.key(), desk.asks("50").await);
    assert_eq!(desk.post(WITHDRAW, &key, &body).await.status, 201);
    assert_eq!(desk.post(WITHDRAW, &key, &asks("51", "000000")).await.status, 409);
    // The compensation that funded it, the withdrawal, the mismatch.
    assert_eq!(figures(&desk, "m005").await, figure(json!(33.3333), "fail", 1, 3));
    assert_eq!(figures(&desk, "m004").await, figure(json!(0), "pass", 0, 3));
    assert_eq!(figures(&desk, "m015").await, figure(json!(0), "pass", 0, Json::Null));
}

#[tokio::test]
async fn a_call_that_is_reported_twice_with_other_tokens_is_a_billing_conflict_whatever_its_key() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.active(account).await;
    let admin = async |path: &str, body: Json| desk.api.admin(path, &body.to_string()).await;
    let buyer = admin("/api/v1/platform/buyers", json!({ "code": "b", "name": "b" })).await;
    admin(&format!("/api/v1/platform/buyers/{}/topups", buyer["buyer_id"]), json!({ "amount": "100" })).await;
    let order = json!({ "buyer_id": buyer["buyer_id"], "package_id": package, "quota_amount": "100" });
    let order = admin("/api/v1/platform/orders", order).await["order_id"].clone();
    desk.api.admin(&format!("/api/v1/platform/orders/{order}/pay"), "").await;
    let report = async |key: &str, tokens: u64| {
        let body = json!({ "order_id": order, "api_key_id": buyer["api_key_id"], "request_id": "call-1",
            "request_tokens": tokens, "response_tokens": 1, "success": true, "endpoint": "/v1", "response_status": 200,
            "latency_ms": 9, "started_at": "2026-01-02T00:00:00Z", "completed_at": "2026-01-02T00:00:00Z" });
        let (path, token) = ("/api/v1/platform/usage-records", desk.api.admin_token());
        desk.api.write((Method::POST, path), token, key, &body.to_string()).await
    };
    let key = desk.api.key();
    for (key, tokens, expected) in [
        (key.clone(), 7, is(200, "")),
        (key, 8, is(409, "IDEMPOTENCY_PAYLOAD_MISMATCH")),
        (desk.api.key(), 8, is(409, "SUP_COM_4092")),
        (desk.api.key(), 9, is(409, "SUP_COM_4092")),
        (desk.api.key(), 7, is(200, "")),
    ] {
        assert_eq!(code(&report(&key, tokens).await), expected, "{tokens}");
    }
    // What the buyer paid in, the payment of the order, the five reports.
    assert_eq!(figures(&desk, "m005").await, figure(json!(42.8571), "fail", 3, 7));
}

#[tokio::test]
async fn m_004_fails_for_what_the_ledger_finds_without_a_request() {
    let desk = Desk::new().await;
    assert_eq!(figures(&desk, "m004").await, figure(Json::Null, "no_sample", 0, 0));
    let row = |name: &'static str, object: &str| {
        let mut row = AuditRow::system(name, "supplier", object.into(), "reconcile:1".into());
        (row.action, row.result_code) = ("supply.ledger.reconcile", "SUP_SET_5002".into());
        row.rule_code = Some("INV-SET-003");
        row
    };
    desk.api.audit(row("invariant_violation", "supplier:1")).await;
    assert_eq!(figures(&desk, "m004").await, figure(Json::Null, "fail", 1, 0));
    // A system command that another server made first is nobody's request; one that the ledger refused is.
    for (code, rule, whole) in
        [("SUP_COM_4091", None, 0), ("SUP_SET_5002", Some("INV-SET-003"), 1), ("OK", None, 2)]
    {
        let mut row = row("supply.earning.release", "1");
        (row.action, row.result_code, row.rule_code) = ("supply.earning.release", code.into(), rule);
        desk.api.audit(row).await;
        assert_eq!(figures(&desk, "m004").await.3, json!(whole), "{code}");
    }
}

const EGRESS: &str = "/api/v1/platform/egress-events";

#[tokio::test]
async fn m_015_counts_what_an_egress_audit_reports_once_each_and_pages() {
    let desk = Desk::new().await;
    let admin = desk.api.admin_token().to_owned();
    let buyer = desk.api.admin("/api/v1/platform/buyers", r#"{"code":"b","name":"b"}"#).await;
    let body = |event: &str, host: &str, source: &str| {
        json!({ "event_id": event, "consumer_tenant_id": buyer["tenant_id"], "provider": "openai", "host": host,
            "occurred_at": "2026-01-01T02:48:00Z", "source": source })
    };
    let report = async |body: &Json, token: &str| {
        desk.api.write((Method::POST, EGRESS), token, &desk.api.key(), &body.to_string()).await
    };
    let canary = format!("sk-{}", "Q7xZ".repeat(12));
    let first = report(&body("e-1", "api.openai.com", &format!("curl -H {canary}")), &admin).await;
    assert_eq!(first.status, 201, "{}", first.text());
    assert!(!first.text().contains("Q7xZQ7xZ"), "{}", first.text());
    let again = report(&body("e-1", "api.openai.com", &format!("curl -H {canary}")), &admin).await;
    assert_eq!((again.status, &again.json()["data"]), (201, &first.json()["data"]));
    for (body, token, expected) in [
        (body("e-1", "api.anthropic.com", "x"), &admin, is(409, "SUP_COM_4091")),
        (body("e-2", "api.openai.com/v1", "x"), &admin, is(400, "SUP_COM_4001")),
        (body("e-2", &canary, "x"), &admin, is(400, "SUP_COM_4001")),
        (body(&canary, "api.openai.com", "x"), &admin, is(400, "SUP_COM_4001")),
        (body("e-2", "api.openai.com", "x"), &desk.token, is(403, "AUTH_SCOPE_DENIED")),
        (json!({ "consumer_tenant_id": desk.tenant }), &admin, is(400, "SUP_COM_4001")),
    ] {
        assert_eq!(code(&report(&body, token).await), expected, "{body}");
    }
    let mut stranger = body("e-2", "api.openai.com", "x");
    stranger["consumer_tenant_id"] = json!(desk.tenant);
    assert_eq!(code(&report(&stranger, &admin).await), is(404, "SUP_COM_4041"), "a supplier is no consumer");
    assert_eq!(figures(&desk, "m015").await, figure(json!(1), "fail", 1, Json::Null));
    assert_eq!(report(&body("e-2", "api.openai.com", "x"), &admin).await.status, 201);
    assert_eq!(figures(&desk, "m015").await, figure(json!(2), "fail", 2, Json::Null));
    let alerts = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
        and cast(payload as text) like '%direct_supplier_call%' and cast(payload as text) like '%P0%'";
    assert_eq!(desk.api.count(alerts).await, 2);
    let rows = "select count(*) from audit_events where event_name = 'CRED-DIRECT-SUPPLIER' and result_code = 'OK'
        and action = 'platform.egress.report' and object_type = 'egress_event' and coalesce(idempotency_key, '') <> ''";
    assert_eq!(desk.api.count(rows).await, 2);
}

#[tokio::test]
async fn an_egress_event_is_there_with_its_alert_or_not_at_all() {
    let desk = Desk::new().await;
    let buyer = desk.api.admin("/api/v1/platform/buyers", r#"{"code":"b","name":"b"}"#).await;
    let body = json!({ "event_id": "e-1", "consumer_tenant_id": buyer["tenant_id"], "provider": "openai",
        "host": "api.openai.com", "occurred_at": "2026-01-01T02:48:00Z", "source": "x" });
    for table in ["audit_events", "outbox"] {
        desk.breaks(("insert", table)).await;
        let got = desk
            .api
            .write((Method::POST, EGRESS), desk.api.admin_token(), &desk.api.key(), &body.to_string())
            .await;
        desk.heals(("insert", table)).await;
        assert_eq!(code(&got), is(503, "SUP_COM_5031"), "{table}");
        assert_eq!(figures(&desk, "m015").await, figure(json!(0), "pass", 0, Json::Null), "{table}");
    }
    let two = futures::future::join_all((0..2).map(async |_| {
        desk.api
            .write((Method::POST, EGRESS), desk.api.admin_token(), &desk.api.key(), &body.to_string())
            .await
            .status
    }));
    assert_eq!(two.await, [201, 201], "two sources at once");
    assert_eq!(figures(&desk, "m015").await, figure(json!(1), "fail", 1, Json::Null));
}

#[tokio::test]
async fn a_metric_is_the_platforms_and_its_period_has_an_order_and_a_span() {
    let desk = Desk::new().await;
    let path = "/api/v1/audit/metrics/m013";
    assert_eq!(code(&desk.api.read(path, &desk.token).await), is(403, "AUTH_SCOPE_DENIED"));
    let read =
        async |query: &str| code(&desk.api.read(&format!("{path}{query}"), desk.api.admin_token()).await);
    assert_eq!(read("?start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z").await, is(400, "SUP_COM_4001"));
    assert_eq!(read("?start=2024-01-01T00:00:00Z&end=2026-01-01T00:00:00Z").await, is(400, "SUP_COM_4001"));
    assert_eq!(read("?start=yesterday").await, is(400, "SUP_COM_4002"));
    assert_eq!(read("?page=1").await, is(400, "SUP_COM_4002"));
    assert_eq!(read("?start=2026-01-01T00:00:00Z&end=2026-01-02T08:00:00%2B08:00").await, is(200, ""));
    let unknown = desk.api.read("/api/v1/audit/metrics/m001", desk.api.admin_token()).await;
    assert_eq!(code(&unknown), is(404, "SUP_COM_4041"));
}

#[tokio::test]
async fn the_log_of_tokens_is_the_staffs_and_has_pages() {
    let desk = Desk::new().await;
    let path = "/api/v1/platform/tokens/audit-events";
    assert_eq!(code(&desk.api.read(path, &desk.token).await), is(403, "AUTH_SCOPE_DENIED"));
    let grant = json!({ "tenant_id": desk.tenant, "user_id": desk.operator, "role": "viewer", "user_type": "supply",
        "scope": ["supply:account:read"] });
    let issued = desk.api.admin("/api/v1/platform/tokens/issue", &grant.to_string()).await;
    let revoke = format!("/api/v1/platform/tokens/{}/revoke", issued["token_id"]);
    desk.api.admin(&revoke, "").await;
    let first = desk.api.read(&format!("{path}?page_size=2"), desk.api.admin_token()).await.json();
    let names: Vec<_> =
        first["data"].as_array().expect("events").iter().map(|it| &it["event_name"]).collect();
    assert_eq!(names, ["token.revoke", "token.issue"], "{first}");
    assert!(first["pagination"]["total"].as_i64().is_some_and(|total| total >= 3), "{first}");
    let token = issued["access_token"].as_str().expect("a token");
    assert!(!first.to_string().contains(token));
}

#[tokio::test]
async fn a_batch_that_explains_its_failures_is_done() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.active(account).await;
    let body = json!({ "items": [prices(package, "9", "33"), prices(999, "9", "33")] });
    assert_eq!(desk.ask(BATCH, &body.to_string()).await.status, 200);
    assert_eq!(ended(&desk, "BTN-PKG-005", "done").await, 1);
    let put = desk.api.write((Method::POST, BATCH), "nonsense", &desk.api.key(), "{}").await;
    assert_eq!(put.status, 401);
    assert_eq!(ended(&desk, "BTN-PKG-005", "refused").await, 1);
}

#[tokio::test]
async fn operators_are_told_what_came_of_every_promise() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.draft(account, ("8", "32"), 30).await;
    desk.done(&moving(package, "publish"), "").await;
    desk.outruns(("update", "supply_packages")).await;
    assert_eq!(desk.ask(&moving(package, "pause"), "").await.status, 409);
    desk.heals(("update", "supply_packages")).await;
    let body = json!({ "items": [prices(package, "9", "33"), prices(999, "9", "33")] });
    desk.done(BATCH, &body.to_string()).await;
    let got = desk.api.house.order(Method::GET, "slo").await;
    assert_eq!(got.status, 200, "{}", got.text());
    let report = got.json();
    let button = |id: &str| {
        let buttons = report["buttons"].as_array().expect("buttons");
        buttons.iter().find(|one| one["button"] == id).expect(id).clone()
    };
    let (mounted, paused, priced) = (button("BTN-ACC-002"), button("BTN-PKG-003"), button("BTN-PKG-005"));
    assert_eq!((&mounted["requests"], &mounted["status"]), (&json!(1), &json!("pass")), "{mounted}");
    assert_eq!((&mounted["success_pct"], &mounted["budget_left_pct"]), (&json!(100), &json!(100)));
    assert_eq!((&paused["errors"], &paused["status"]), (&json!(1), &json!("fail")), "{paused}");
    assert_eq!((&priced["explained_pct"], &priced["status"]), (&json!(100), &json!("pass")), "{priced}");
    let promised = (&priced["explained_objective_pct"], &priced["explained_budget_left_pct"]);
    assert_eq!(promised, (&json!(100), &json!(100)), "{priced}");
    assert_eq!(button("BTN-SET-002")["status"], "no_sample");
    assert_eq!((report["metrics"].as_array().map(Vec::len), &report["broken"]), (Some(8), &json!(true)));
    let past = "slo?since=2020-01-01T00:00:00Z&until=2020-02-01T00:00:00Z";
    assert_eq!(desk.api.house.order(Method::GET, past).await.json()["buttons"][1]["requests"], 0);
    let year = "slo?since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z";
    assert_eq!(desk.api.house.order(Method::GET, year).await.status, 200);
    let longer = "slo?since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00.001Z";
    for wrong in ["slo?since=yesterday", "slo?since=2030-01-01T00:00:00Z", "slo?page=1", longer] {
        assert_eq!(desk.api.house.order(Method::GET, wrong).await.status, 400, "{wrong}");
    }
}
