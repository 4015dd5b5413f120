//! What an operator does, with a server running and without.

use serde_json::Value as Json;

use crate::home::{EVENT, Home};

#[test]
fn an_event_sent_five_times_at_once_is_one_certificate_with_five_arrivals() {
    let home = Home::new();
    let _server = home.serve();
    let sent = home.send("checkout-paid", "5");
    let result = |word: &str| sent.iter().filter(|one| one["answer"]["status"] == word).count();
    assert_eq!((result("processed"), result("duplicate_reused")), (1, 4), "{sent:?}");
    let event = home.json(&["show", EVENT]);
    assert_eq!(event["arrivals"], 5);
    assert_eq!(event["questions"]["2_how_often"], 5);
    assert_eq!(event["questions"]["7_inconsistent_side_effects"], serde_json::json!([]));
}

#[test]
fn commands_say_the_same_through_the_server_and_without_one() {
    let home = Home::new();
    let server = home.serve();
    home.send("checkout-paid", "2");
    home.send("checkout-unpaid", "1");
    // The announcement's state moves on by itself; everything else stands still.
    let ask = || {
        let listed = home.json(&["list"]);
        (listed, home.json(&["keys", "list"]), home.run(&["export"]).out(), home.json(&["check"]))
    };
    let through = ask();
    server.stop();
    let without = ask();
    let public =
        |json: &Json| json["events"].as_array().unwrap().iter().map(|e| e["ref"].clone()).collect::<Vec<_>>();
    assert_eq!(public(&through.0), public(&without.0));
    assert_eq!((through.1, through.3), (without.1, without.3));
    assert_eq!(through.2.lines().count(), without.2.lines().count());
}

#[test]
fn what_is_not_there_ends_with_six() {
    let home = Home::new();
    assert_eq!(home.run(&["list"]).code(), 6, "no data folder");
    let _server = home.serve();
    assert_eq!(home.run(&["list"]).code(), 6, "no event");
    assert_eq!(home.run(&["show", "evt_none"]).code(), 6);
    assert_eq!(home.run(&["show", "../../etc/passwd"]).code(), 6);
    assert_eq!(home.run(&["verify", "no.zip"]).code(), 6);
}

#[test]
fn a_server_that_is_gone_ends_with_seven() {
    let home = Home::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}");
    assert_eq!(home.run(&["send", "sample:checkout-paid", "--server", &url]).code(), 7);
    let ran = home.run(&["list", "--server", &url, "--token", "ost_x"]);
    assert_eq!(ran.code(), 7, "{}", ran.all());
}

#[test]
fn after_a_kill_the_folder_is_used_directly() {
    let home = Home::new();
    let server = home.serve();
    home.send("checkout-paid", "1");
    server.kill();
    assert!(home.path("data/run/server.json").exists(), "left behind");
    assert_eq!(home.json(&["show", EVENT])["arrivals"], 1);
    assert_eq!(home.json(&["check"])["problems"], 0);
}

#[test]
fn a_token_opens_the_api_from_elsewhere_and_a_revoked_one_does_not() {
    let home = Home::new();
    let server = home.serve();
    for name in ["ann", "bob"] {
        home.write(name, &home.run(&["token", "issue", name, "--for", "90d"]).out());
    }
    home.send("checkout-paid", "1");
    home.json(&["token", "revoke", "bob"]);
    let ask = |file: &str| home.run(&["show", EVENT, "--server", &server.base, "--token-file", file]);
    assert_eq!(ask("ann").code(), 0, "{}", ask("ann").all());
    assert_eq!(ask("bob").code(), 1);
    let token = std::fs::read_to_string(home.path("ann")).unwrap();
    assert!(!home.run(&["token", "list"]).all().contains(token.trim()));
}

#[test]
fn an_export_imported_elsewhere_keeps_its_events_from_being_certified_again() {
    let old = Home::new();
    let server = old.serve();
    old.send("checkout-paid", "1");
    server.stop();
    let new = Home::new();
    new.write("processed.jsonl", &old.run(&["export"]).out());
    new.json(&["import", "processed.jsonl", "--source", "stripe"]);
    let events = new.json(&["list"]);
    new.json(&["import", "processed.jsonl", "--source", "stripe"]);
    assert_eq!(events, new.json(&["list"]), "a second import changes nothing");
    let _server = new.serve();
    let sent = new.send("checkout-paid", "1");
    assert_eq!(sent[0]["answer"]["status"], "duplicate_reused", "{sent:?}");
}

#[test]
fn half_a_list_is_refused_as_a_whole() {
    let old = Home::new();
    let server = old.serve();
    old.send("checkout-paid", "1");
    old.send("checkout-paid-jpy", "1");
    server.stop();
    let list = old.run(&["export"]).out();
    let new = Home::new();
    for cut in [list.len() - 1, list.len() - 20] {
        new.write("cut.jsonl", &list[..cut]);
        let ran = new.run(&["import", "cut.jsonl", "--source", "stripe"]);
        assert_eq!(ran.code(), 3, "{}", ran.all());
    }
    new.write("cut.jsonl", &format!("{}\n", &list[..list.len() - 20]));
    assert_ne!(new.run(&["import", "cut.jsonl", "--source", "stripe"]).code(), 0);
    assert_eq!(new.run(&["list"]).code(), 6);
}

#[test]
fn erasing_wants_to_be_meant_and_keeps_the_proof() {
    let home = Home::new();
    let _server = home.serve();
    home.send("checkout-paid", "1");
    assert_eq!(home.run(&["erase", EVENT]).code(), 2);
    home.json(&["erase", EVENT, "--yes"]);
    let event = home.json(&["show", EVENT]);
    assert_eq!((&event["mark"], event["run_hash"].is_string()), (&Json::from("erased"), true), "{event}");
    assert_eq!(home.json(&["check"])["problems"], 0);
}

#[test]
fn a_source_that_is_not_configured_is_named_with_those_that_are() {
    let home = Home::new();
    let ran = home.run(&["send", "sample:checkout-paid", "--source", "shop"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.error().contains("\"shop\"") && ran.error().contains("stripe"), "{}", ran.error());
}

#[test]
fn completions_come_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(home.run(&["completions", shell]).out().contains("announcements"), "{shell}");
    }
}

#[test]
fn buffered_arrivals_are_all_there_after_a_graceful_stop() {
    let home = Home::new();
    home.configure("[arrivals]\nmode = \"buffered\"");
    let server = home.serve();
    home.send("checkout-paid", "1");
    let sent = home.send("checkout-paid", "40");
    assert!(sent.iter().all(|one| one["answer"]["status"] == "duplicate_reused"), "{sent:?}");
    server.stop();
    assert_eq!(home.json(&["show", EVENT])["arrivals"], 41);
    assert_eq!(home.json(&["check"])["problems"], 0);
}

#[test]
fn every_kind_with_a_shared_secret_can_be_configured_and_sent() {
    let home = Home::new();
    let key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    home.write("secrets/plain", &format!("{key}\n"));
    home.write("secrets/standard", &format!("whsec_{key}\n"));
    let kinds = ["github", "paddle", "lemon-squeezy", "internal", "standard-webhooks", "generic-hmac"];
    for kind in kinds {
        let secret = if kind == "standard-webhooks" { "standard" } else { "plain" };
        home.configure(&format!(
            "[sources.{kind}]\nkind = \"{kind}\"\nsecrets = [{{ file = \"secrets/{secret}\" }}]"
        ));
    }
    home.configure(
        "generic = { signature_header = \"X-Sign\", id = { pointer = \"/id\" }, type = \"/type\" }",
    );
    home.write("event.json", BODY);
    let _server = home.serve();
    for kind in kinds {
        let arguments = ["send", "event.json", "--source", kind, "--times", "2", "--type", "order_created"];
        let ran = home.run(&arguments);
        assert_eq!(ran.code(), 0, "{kind}: {}", ran.all());
        let listed = home.json(&["list", "--source", kind]);
        assert_eq!(listed["events"].as_array().unwrap().len(), 1, "{kind}: {listed}");
    }
}

/// A body that has what each of these senders puts into its own.
const BODY: &str = r#"{"id":"e1","event_id":"evt_e1","event_type":"transaction.created","type":"task.done",
"occurred_at":"2026-03-01T09:49:14Z","notification_id":"ntf_1","source":"jobs","time":"2026-03-01T09:49:14Z",
"timestamp":"2026-03-01T09:49:14Z","created_at":"2026-03-01T09:49:14Z","action":"opened",
"meta":{"event_name":"order_created","webhook_id":"w1"},
"data":{"id":"1","type":"orders","status":"draft","updated_at":"2026-03-01T09:49:14Z",
"attributes":{"status":"pending","total":500,"currency":"USD","updated_at":"2026-03-01T09:49:14Z","created_at":"2026-03-01T09:49:14Z"}}}"#;

#[test]
fn a_recorded_event_is_judged_again_and_a_processed_one_is_not() {
    let home = Home::new();
    let _server = home.serve();
    home.send("checkout-paid", "1");
    home.send("checkout-unpaid", "1");
    let unpaid = "evt_1SkQm8B7WZ01zgkWk2c9lrRf";
    assert_eq!(home.json(&["retry", unpaid])["status"], "recorded");
    assert_eq!(home.run(&["retry", EVENT]).code(), 1);
    assert!(home.json(&["inspect", EVENT])["advice"].as_str().unwrap().contains("nothing to do"));
}

#[test]
fn a_damaged_file_is_seen_by_check_and_mended_by_reconcile() {
    let home = Home::new();
    let _server = home.serve();
    home.send("checkout-paid", "1");
    let file = home.delivery("html");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..100]).unwrap();
    assert_eq!(home.run(&["check"]).code(), 3);
    assert_eq!(home.json(&["reconcile"])["rebuilt"], 1);
    assert_eq!(std::fs::read(&file).unwrap(), whole);
    assert_eq!(home.json(&["check"])["problems"], 0);
}

#[test]
fn nothing_is_held_when_every_announcement_went_out() {
    let home = Home::new();
    let _server = home.serve();
    home.send("checkout-paid", "1");
    let gone = || home.json(&["announcements", "list", "--status", "delivered"])["announcements"].clone();
    assert!((0..500).any(|_| gone().as_array().unwrap().len() == 1), "{}", gone());
    assert_eq!(home.json(&["announcements", "list"])["announcements"], serde_json::json!([]));
    assert_eq!(home.run(&["announcements", "redrive", "1"]).code(), 1);
    assert_eq!(home.run(&["announcements", "settle", "99", "dead"]).code(), 6);
}
