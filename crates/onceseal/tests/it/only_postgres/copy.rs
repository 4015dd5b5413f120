//! A living installation becomes a database of many nodes, and nobody who was answered notices.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value as Json, json};
use testkit::postgres;

use super::moving::Moving;
use crate::home::{Ran, Running};
use crate::supply::{done, in_market};

fn report(ran: &Ran) -> Json {
    assert_eq!(ran.code(), 0, "{}", ran.all());
    serde_json::from_str(&ran.out()).unwrap()
}

/// Sends events until they are turned away for the fence; gives the results that were answered.
fn living(moving: &Moving, stop: &AtomicBool) -> BTreeMap<String, String> {
    let mut answered = BTreeMap::new();
    for n in 0.. {
        let id = format!("evt_living{n}");
        match moving.sent(&id) {
            (status, Some(hash)) if status == "processed" => answered.insert(id, hash),
            (code, None) if code == "STORE_FENCED" => break,
            other => panic!("{other:?}"),
        };
        assert!(!stop.load(Ordering::SeqCst), "the fence never came");
    }
    answered
}

#[test]
fn what_was_answered_before_and_during_the_move_is_found_after_it() {
    let moving = Moving::new();
    let server = moving.serve();
    for n in 0..3 {
        assert_eq!(moving.run(&["send", "sample:refund-full", "--id", &format!("evt_early{n}")]).code(), 0);
    }
    let stop = AtomicBool::new(false);
    let (answered, copied) = std::thread::scope(|scope| {
        let living = scope.spawn(|| living(&moving, &stop));
        let copied = moving.copied(&[]);
        stop.store(copied.code() != 0, Ordering::SeqCst);
        (living.join().unwrap(), copied)
    });
    let report = report(&copied);
    assert_eq!(report["finished"], true);
    assert!(report["tables"].as_array().unwrap().iter().all(|table| table["agrees"] == true), "{report}");
    assert!(!answered.is_empty());
    assert_eq!(server.stop(), 0);
    let home = &moving.home;
    let _server = home.serve();
    for (id, hash) in &answered {
        let again = home.json(&["send", "sample:checkout-paid", "--id", id]);
        let answer = &again[0]["answer"];
        assert_eq!(
            (&answer["status"], answer["run_hash"].as_str()),
            (&"duplicate_reused".into(), Some(hash.as_str())),
            "{id}"
        );
    }
    let fresh = home.json(&["send", "sample:checkout-paid", "--id", "evt_fresh"]);
    assert_eq!(fresh[0]["answer"]["status"], "processed");
    assert_eq!(home.json(&["check"])["problems"], 0);
    let lines = home.run(&["export"]).out().lines().count();
    assert_eq!(lines, answered.len() + 1);
}

#[test]
fn announcements_go_on_on_the_other_side() {
    let moving = Moving::new();
    // Nobody sends what no channel is configured for.
    let announce = [
        "--set",
        "announce.channels=[\"telegram\"]",
        "--set",
        "announce.telegram={ token = { file = \"secrets/stripe\" }, chat_id = 1, base_url = \"http://127.0.0.1:9\" }",
    ];
    let serve = [&["serve", "--listen", "127.0.0.1:0"][..], &announce].concat();
    let server = moving.home.serve_with(moving.command(&serve));
    assert_eq!(moving.sent("evt_told").0, "processed");
    report(&moving.copied(&[]));
    server.stop();
    let waiting = "select status || ' ' || destination from outbox_deliveries";
    let waiting = postgres::rows(&moving.database.direct, waiting);
    assert!(matches!(waiting.as_slice(), [one] if one.ends_with(" telegram")), "{waiting:?}");
    let server = moving.home.serve_with(moving.home.command(&serve));
    let tried =
        "select status from outbox_deliveries where attempt > 1 or status not in ('pending', 'sending')";
    while postgres::rows(&moving.database.direct, tried).is_empty() {
        std::thread::yield_now();
    }
    server.stop();
}

#[test]
fn a_copy_that_is_killed_at_any_moment_is_taken_up_again() {
    let moving = Moving::new();
    let server = moving.serve();
    for n in 0..40 {
        assert_eq!(moving.sent(&format!("evt_{n}")).0, "processed");
    }
    let direct = &moving.database.direct;
    let is = |sql: &str| postgres::rows(direct, sql) == ["t"];
    let marked = "select to_regclass('copy_mark') is not null";
    let mut killed = 0;
    for table in ["copy_mark", "audit_events", "certify_events", "certify_search", "certify_keys"] {
        let mut child = moving.copy(&moving.database, &[]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = format!("select exists(select 1 from {table})");
        while child.try_wait().unwrap().is_none() && !(is(marked) && is(&begun)) {}
        let _ = child.kill();
        child.wait().unwrap();
        if is("select exists(select 1 from copy_mark where finished_at is null)") {
            killed += 1;
            let ran = moving.home.run(&["status", "--data", "another"]);
            assert!(ran.code() == 1 && ran.error().contains("not finished"), "{}", ran.all());
        }
    }
    assert!(killed > 0, "no kill came before the end");
    report(&moving.copied(&[]));
    assert_eq!(report(&moving.copied(&[]))["finished"], true);
    server.stop();
    let _server = moving.home.serve();
    assert_eq!(moving.home.json(&["check"])["problems"], 0);
    assert_eq!(moving.home.json(&["check"])["events"], 40);
}

#[test]
fn a_fenced_server_still_gives_certificates_out_and_may_be_taken_back() {
    let moving = Moving::new();
    let server = moving.serve();
    assert_eq!(moving.sent("evt_one").0, "processed");
    report(&moving.copied(&["--rehearse"]));
    assert_eq!(moving.sent("evt_two").0, "processed", "a rehearsal touches nothing");
    report(&moving.copied(&[]));
    assert_eq!(moving.sent("evt_three").0, "STORE_FENCED");
    let shown = moving.json(&["show", "evt_one"]);
    let text = page(shown["html_url"].as_str().unwrap());
    assert!(text.contains("evt_one"));
    server.stop();
    let ran = moving.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code() == 1 && ran.error().contains("fenced"), "{}", ran.all());
    moving.json(&["copy", "--unfence"]);
    let server = moving.serve();
    assert_eq!(moving.sent("evt_three").0, "processed");
    let late = moving.copied(&[]);
    assert!(late.code() == 3 && late.error().contains("fence was lifted"), "{}", late.all());
    server.stop();
}

#[test]
fn where_no_server_runs_the_command_fences_the_folder_itself() {
    let moving = Moving::new();
    let server = moving.serve();
    assert_eq!(moving.sent("evt_one").0, "processed");
    server.stop();
    report(&moving.copied(&[]));
    assert_eq!(moving.run(&["status"]).code(), 1);
    moving.json(&["copy", "--unfence"]);
    assert_eq!(moving.run(&["status"]).code(), 0);
    assert_eq!(moving.json(&["check"])["problems"], 0);
}

#[test]
fn what_can_not_be_copied_says_why_and_touches_nothing() {
    let moving = Moving::new();
    let nothing = moving.copied(&[]);
    assert_eq!(nothing.code(), 6, "{}", nothing.all());
    moving.serve().stop();
    let strange = postgres::required();
    postgres::execute(&strange.direct, "create table invoices (id int)");
    let ran = Ran(moving.copy(&strange, &[]).output().unwrap());
    assert!(ran.code() == 3 && ran.error().contains("invoices"), "{}", ran.all());
    for (arguments, code) in [
        (&["copy"][..], 2),
        (&["copy", "--to", "mysql://a@b/c"], 2),
        (&["copy", "--to", "postgres://a:b@c/d"], 2),
        (&["copy", "--to", "postgres://a@b/c", "--unfence"], 2),
        (&["copy", "--to", "postgres://a@b/c", "--server", "http://x"], 2),
    ] {
        assert_eq!(moving.run(arguments).code(), code, "{arguments:?}");
    }
    assert_eq!(moving.run(&["status"]).code(), 0, "the source is not fenced");
}

/// A page, by a client of its own.
fn page(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    std::io::read_to_string(stream).unwrap()
}

#[test]
fn the_supply_side_moves_along_with_its_money_and_goes_on() {
    let moving = Moving::new();
    moving.home.configure("[supply]\nenabled = true\nscheduler_interval = \"10m\"");
    assert_eq!(moving.run(&["init", "--supply"]).code(), 0);
    let server = moving.serve();
    let admin = moving.run(&["supply", "admin", "ann"]).out().trim().to_owned();
    let made = |server: &Running, n: i64, code: &str| {
        let supplier = json!({ "code": code, "name": code, "supplier_type": "company", "operator": "ann",
            "phone": format!("+86138000000{n:02}") });
        done(server, ("POST", "/api/v1/platform/suppliers"), (&admin, &n.to_string()), &supplier)
    };
    let buyer = json!({ "code": "buyer", "name": "buyer" });
    let first = made(&server, 1, "one");
    let buyer = done(&server, ("POST", "/api/v1/platform/buyers"), (&admin, "2"), &buyer);
    let topup = format!("/api/v1/platform/buyers/{}/topups", buyer["buyer_id"]);
    done(&server, ("POST", &topup), (&admin, "3"), &json!({ "amount": "100.00" }));
    let floor = json!({ "provider": "openai", "model": "gpt-x", "floor_input": 8, "floor_output": 32 });
    done(&server, ("PUT", "/api/v1/platform/price-protection"), (&admin, "4"), &floor);
    let report = report(&moving.copied(&[]));
    let tables = report["tables"].as_array().unwrap();
    assert!(tables.iter().all(|table| table["agrees"] == true), "{report}");
    server.stop();
    let home = &moving.home;
    assert_eq!(home.json(&["ledger", "verify"])["violations"], json!([]));
    let server = home.serve();
    // A repeat finds its result, the next write a number of its own.
    assert_eq!(made(&server, 1, "one"), first);
    let next = made(&server, 5, "two");
    for id in ["tenant_id", "user_id", "operator_id", "supplier_id"] {
        assert!(next[id].as_i64() > first[id].as_i64() || first[id].is_null(), "{id}: {next} {first}");
    }
    done(&server, ("POST", &topup), (&admin, "6"), &json!({ "amount": "1.00" }));
    assert_eq!(home.json(&["ledger", "verify"])["violations"], json!([]));
    assert_eq!(home.json(&["supply", "keys", "list"])["versions"][0]["rows"], 2);
    server.stop();
}

#[test]
fn a_market_with_credentials_orders_and_settlements_moves_whole() {
    let moving = Moving::new();
    let home = &moving.home;
    moving.json(&["demo", "--supply", "--folder", "market"]);
    let counts = |ran: Ran| {
        let report = report(&ran);
        let tables = report["tables"].as_array().unwrap();
        assert!(tables.iter().all(|table| table["agrees"] == true), "{report}");
        let rows = |name: &str| {
            tables.iter().find(|table| table["table"] == name).unwrap()["target"]["rows"].as_u64()
        };
        ["supply_accounts", "supply_packages", "supply_orders", "supply_usage_records", "supply_settlements"]
            .map(|name| rows(name).unwrap())
    };
    let moved = counts(moving.copied(&in_market(&[])));
    assert!(moved.iter().all(|rows| *rows > 0), "{moved:?}");
    assert_eq!(home.json(&in_market(&["ledger", "verify"]))["violations"], json!([]));
    // Each sealed row is opened to be wrapped anew.
    home.json(&in_market(&["supply", "keys", "rotate"]));
    let serve = || home.serve_with(home.command(&in_market(&["serve", "--listen", "127.0.0.1:0"])));
    serve().stop();
    let round = home.json(&in_market(&["supply", "keys", "rewrap"]));
    assert!(round["left"] == 0 && round["rewrapped"].as_u64() > Some(3), "{round}");
    let server = serve();
    let admin = home.run(&in_market(&["supply", "admin", "ann"])).out().trim().to_owned();
    let supplier = json!({ "code": "late", "name": "Late", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000099" });
    done(&server, ("POST", "/api/v1/platform/suppliers"), (&admin, "1"), &supplier);
    server.stop();
    assert_eq!(home.json(&in_market(&["ledger", "verify"]))["violations"], json!([]));
}
