//! After `onceseal restore`: what the backup forgot comes back where it verifies.

use std::time::{Duration, SystemTime};

use crate::home::Home;
use crate::restored::{brought_back, counts, home, live_on, looked, sent};

#[test]
fn certificates_and_keys_younger_than_the_backup_come_back() {
    let home = home();
    let server = home.serve();
    sent(&home, "evt_before");
    home.json(&["backup", "saved.db"]);
    let hashes = live_on(&home, server);
    home.json(&["restore", "saved.db"]);
    brought_back(&home, &hashes);
}

/// A backup, then another certificate under another key, then back to the backup.
fn went_back() -> Home {
    let home = home();
    let server = home.serve();
    sent(&home, "evt_before");
    home.json(&["backup", "saved.db"]);
    home.json(&["keys", "rotate"]);
    sent(&home, "evt_after");
    server.stop();
    home.json(&["restore", "saved.db"]);
    home
}

fn deliveries(home: &Home) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(home.path("data/deliveries")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_server_that_is_started_too_early_removes_nothing_that_only_a_forgotten_key_vouches_for() {
    let home = went_back();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for file in deliveries(&home) {
        std::fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    let server = home.serve();
    let log = || std::fs::read_to_string(home.path("log")).unwrap();
    while !log().contains("delivery_signed_with_forgotten_key") {
        std::thread::yield_now();
    }
    let running = home.run(&["reconcile", "--after-restore"]);
    assert_eq!(running.code(), 7, "{}", running.all());
    server.stop();
    assert_eq!(deliveries(&home).len(), 6);
    let (_, report) = looked(&home, &[]);
    assert_eq!(report["adopted"]["count"], 1, "{report}");
}

#[test]
fn a_file_that_does_not_verify_is_told_and_stays() {
    let home = went_back();
    let json = deliveries(&home).into_iter().filter(|path| path.extension().is_some_and(|end| end == "json"));
    for path in json {
        let text = std::fs::read_to_string(&path).unwrap().replace("evt_after", "evt_other");
        std::fs::write(path, text).unwrap();
    }
    let (code, report) = looked(&home, &[]);
    let found = [("files_without_record", 1), ("keys", 1), ("lines_without_record", 1)];
    assert_eq!(
        (code, counts(&report)),
        (3, found.map(|(kind, count)| (kind.to_owned(), count)).to_vec()),
        "{report}"
    );
    assert_eq!(deliveries(&home).len(), 6);
    let ran = home.run(&["reconcile", "--after-restore"]);
    assert!(ran.out().contains("was changed or is damaged"), "{}", ran.all());
}

#[test]
fn announcements_that_may_have_gone_out_are_told_and_held_when_asked() {
    let home = home();
    let telegram = "announce.telegram={ token = { file = \"secrets/stripe\" }, chat_id = 1, base_url = \"http://127.0.0.1:9\" }";
    let announce = ["--set", "announce.channels=[\"telegram\"]", "--set", telegram];
    let server =
        home.serve_with(home.command(&[&["serve", "--listen", "127.0.0.1:0"][..], &announce].concat()));
    sent(&home, "evt_before");
    home.json(&["backup", "saved.db"]);
    server.stop();
    home.json(&["restore", "saved.db"]);
    let (code, report) = looked(&home, &[]);
    assert_eq!((code, counts(&report)), (3, vec![("announcements".into(), 1)]), "{report}");
    let (_, held) = looked(&home, &["--hold"]);
    assert_eq!(held["announcements"]["list"][0]["held"], true);
    assert_eq!(looked(&home, &[]).0, 0);
    let waiting = home.json(&["announcements", "list"]);
    assert!(waiting.to_string().contains("uncertain"), "{waiting}");
}

#[test]
fn a_list_that_lacks_records_is_told() {
    let home = home();
    let server = home.serve();
    sent(&home, "evt_one");
    sent(&home, "evt_two");
    server.stop();
    assert_eq!(looked(&home, &[]).0, 0);
    let list = std::fs::read_to_string(home.path("data/processed.jsonl")).unwrap();
    let first = list.lines().next().unwrap();
    home.write(
        "data/processed.jsonl",
        &format!("{}\n", first.replace("\"run_hash\":\"", "\"run_hash\":\"0")),
    );
    let (_, report) = looked(&home, &[]);
    let found = vec![("lines_that_differ".into(), 1), ("records_without_line".into(), 1)];
    assert_eq!(counts(&report), found, "{report}");
    home.json(&["export", "--rebuild"]);
    let (code, report) = looked(&home, &[]);
    assert_eq!(code, 0, "{report}");
}
