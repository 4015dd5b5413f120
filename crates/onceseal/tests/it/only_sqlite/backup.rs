//! Backups are worth what their restore is.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::home::{EVENT, Home, Running, text};
use crate::supply::{done, in_market};

/// All rows of events, without what belongs to a running server.
fn state(home: &Home) -> String {
    home.run(&["export"]).out()
}

#[test]
fn a_backup_under_load_holds_everything_answered_before_it() {
    let home = Home::new();
    let server = home.serve();
    let ids: Vec<String> = (0..20).map(|n| format!("evt_before{n}")).collect();
    for id in &ids {
        assert_eq!(home.run(&["send", "sample:refund-full", "--id", id]).code(), 0);
    }
    let mut load =
        home.command(&["send", "sample:checkout-paid", "--times", "2000", "--parallel", "8", "--json"]);
    let mut load = load.stdout(std::process::Stdio::null()).spawn().unwrap();
    home.json(&["backup", "saved.db"]);
    load.wait().unwrap();
    home.json(&["keys", "backup", "saved-keys"]);
    server.stop();
    let other = Home::new();
    other.write("secrets/stripe", &std::fs::read_to_string(home.path("secrets/stripe")).unwrap());
    other.json(&["keys", "restore", text(&home.path("saved-keys"))]);
    other.json(&["restore", text(&home.path("saved.db"))]);
    // The backup may hold the load's certificate; its files are no part of it.
    other.json(&["reconcile"]);
    assert_eq!(other.json(&["check"])["problems"], 0);
    let _server = other.serve();
    for id in &ids {
        assert_eq!(other.json(&["show", id])["arrivals"], 1, "{id}");
    }
}

#[test]
fn a_restored_installation_answers_repeats_with_the_old_result() {
    let home = Home::new();
    let server = home.serve();
    let first = home.send("checkout-paid", "1")[0]["answer"]["run_hash"].clone();
    home.json(&["backup", "saved.db"]);
    home.send("checkout-paid-jpy", "1");
    let refused = home.run(&["restore", "saved.db"]);
    assert_eq!(refused.code(), 7, "{}", refused.all());
    server.stop();
    home.json(&["restore", "saved.db"]);
    assert_eq!(state(&home).lines().count(), 1);
    let _server = home.serve();
    let again = home.send("checkout-paid", "1")[0]["answer"].clone();
    assert_eq!((&again["status"], &again["run_hash"]), (&"duplicate_reused".into(), &first));
}

#[test]
fn plain_references_stay_with_their_account_after_a_restore_on_an_empty_machine() {
    let home = Home::new();
    let server = home.serve();
    home.send("checkout-paid", "1");
    home.json(&["backup", "saved.db"]);
    home.json(&["keys", "backup", "saved-keys"]);
    server.stop();
    let other = Home::new();
    other.json(&["keys", "restore", text(&home.path("saved-keys"))]);
    other.json(&["restore", text(&home.path("saved.db"))]);
    let ran =
        other.run(&["serve", "--listen", "127.0.0.1:0", "--set", "sources.stripe.account=\"elsewhere\""]);
    assert_eq!(ran.code(), 1, "{}", ran.all());
    assert!(ran.error().contains("\"stripe\"") && ran.error().contains("plain_refs"), "{}", ran.error());
    other.serve().stop();
}

#[test]
fn on_a_new_machine_keys_and_database_come_back_in_either_order_and_stay_private() {
    let home = Home::new();
    let server = home.serve();
    home.json(&["backup", "saved.db"]);
    home.json(&["keys", "backup", "kept"]);
    server.stop();
    let (database, keys) = (["restore", "saved.db"], ["keys", "restore", "kept"]);
    for order in [[&database[..], &keys], [&keys, &database]] {
        std::fs::remove_dir_all(home.path("data")).unwrap();
        order.iter().for_each(|step| drop(home.json(step)));
        let mode = |name| std::fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode("data"), mode("data/keys")], [0o750, 0o700], "{order:?}");
        assert_eq!(home.serve().stop(), 0);
    }
}

#[test]
fn a_write_ahead_file_left_by_a_kill_never_meets_the_restored_database() {
    let home = Home::new();
    let server = home.serve();
    home.send("checkout-paid", "1");
    home.json(&["backup", "saved.db"]);
    home.send("checkout-paid-jpy", "3");
    server.kill();
    assert!(home.path("data/state.db-wal").exists());
    let restored = home.json(&["restore", "saved.db"]);
    assert!(!home.path("data/state.db-wal").exists() && !home.path("data/state.db-shm").exists());
    let same =
        std::fs::read(home.path("saved.db")).unwrap() == std::fs::read(home.path("data/state.db")).unwrap();
    assert!(same, "byte for byte the backup");
    let kept = std::path::PathBuf::from(restored["replaced_kept_in"].as_str().unwrap());
    assert!(kept.join("state.db").exists() && kept.join("state.db-wal").exists());
    assert_eq!(home.json(&["list"])["events"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_no_whole_backup_is_refused_and_the_old_state_stands() {
    let home = Home::new();
    let server = home.serve();
    home.send("checkout-paid", "1");
    home.json(&["backup", "saved.db"]);
    server.stop();
    let good = std::fs::read(home.path("saved.db")).unwrap();
    std::fs::write(home.path("cut.db"), &good[..good.len() / 2]).unwrap();
    let mut damaged = good.clone();
    damaged[8192..12288].fill(0x5a);
    std::fs::write(home.path("damaged.db"), damaged).unwrap();
    std::fs::write(home.path("copied.db"), &good).unwrap();
    std::fs::write(home.path("copied.db-wal"), b"newest commits").unwrap();
    home.write("text.db", "not a database");
    for file in ["cut.db", "damaged.db", "copied.db", "text.db"] {
        let ran = home.run(&["restore", file]);
        assert_eq!(ran.code(), 3, "{file}: {}", ran.all());
    }
    assert_eq!(home.run(&["restore", "none.db"]).code(), 6);
    assert_eq!(home.json(&["show", EVENT])["arrivals"], 1);
}

#[test]
fn a_backup_never_overwrites() {
    let home = Home::new();
    let _server = home.serve();
    home.write("there.db", "mine");
    assert_ne!(home.run(&["backup", "there.db"]).code(), 0);
    assert_eq!(std::fs::read_to_string(home.path("there.db")).unwrap(), "mine");
}

#[test]
fn a_backup_may_be_named_by_any_path_of_an_existing_folder() {
    let home = Home::new();
    let _server = home.serve();
    home.json(&["backup", "data/../up.db"]);
    home.json(&["backup", "./data/../here.db"]);
    assert!(home.path("up.db").exists() && home.path("here.db").exists());
    assert_eq!(home.run(&["backup", "nowhere/x.db"]).code(), 2);
    assert_eq!(home.run(&["backup", ".."]).code(), 2);
}

#[test]
fn another_key_of_the_same_name_is_not_overwritten() {
    let home = Home::new();
    home.serve().stop();
    home.json(&["keys", "backup", "saved"]);
    home.write("saved/slug.secret", &"0".repeat(64));
    let ran = home.run(&["keys", "restore", "saved"]);
    assert_eq!(ran.code(), 3, "{}", ran.all());
    assert!(ran.error().contains("slug.secret"));
}

#[test]
fn a_market_comes_back_with_its_keys_its_money_and_its_repeats() {
    let home = Home::new();
    home.json(&["demo", "--supply", "--folder", "market"]);
    let here = |arguments: &[&str]| home.json(&in_market(arguments));
    let serve = || home.serve_with(home.command(&in_market(&["serve", "--listen", "127.0.0.1:0"])));
    let server = serve();
    let admin = home.run(&in_market(&["supply", "admin", "ann"])).out().trim().to_owned();
    let supplier = json!({ "code": "late", "name": "Late", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000099" });
    let make =
        |server: &Running| done(server, ("POST", "/api/v1/platform/suppliers"), (&admin, "1"), &supplier);
    let made = make(&server);
    here(&["backup", "saved.db"]);
    here(&["keys", "backup", "kept"]);
    server.kill();
    std::fs::remove_dir_all(home.path("market/data")).unwrap();
    here(&["keys", "restore", "kept"]);
    here(&["restore", "saved.db"]);
    assert_eq!(here(&["ledger", "verify"])["violations"], json!([]));
    let server = serve();
    assert_eq!(make(&server), made, "the old token, the old key: the old result");
    server.stop();
    // Each sealed row is opened to be wrapped anew.
    here(&["supply", "keys", "rotate"]);
    serve().stop();
    let round = here(&["supply", "keys", "rewrap"]);
    assert!(round["left"] == 0 && round["rewrapped"].as_u64() > Some(3), "{round}");
    let told = home.json(&["demo", "--supply", "--folder", "market"]);
    assert_eq!(told["ledger"]["violations"], json!([]), "{told}");
}
