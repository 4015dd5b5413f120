//! Anchor keys on the command line: where they stand, a new one, and folders that don't fit the database.

use serde_json::json;

use crate::home::{Home, text};

#[test]
fn a_new_key_is_announced_and_activated_while_the_server_runs() {
    let home = Home::new();
    let _server = home.serve();
    let first = home.json(&["keys", "list"])["keys"][0]["kid"].clone();
    let announced = home.json(&["keys", "announce"]);
    let key = announced["announced"].as_str().unwrap();
    assert!(home.path(&format!("data/keys/anchor-{key}.pem")).is_file());
    let status = home.run(&["keys", "status"]).out();
    assert!(status.contains(key) && status.contains("next: onceseal keys activate"), "{status}");
    let refused = home.run(&["keys", "rotate"]);
    assert!(refused.code() == 1 && refused.error().contains("announced already"), "{}", refused.all());
    let done = home.json(&["keys", "activate"]);
    assert_eq!((&done["active"], &done["before"]), (&json!(key), &first));
    assert_eq!(home.send("checkout-paid", "1")[0]["answer"]["key_id"], key);
    let refused = home.run(&["keys", "withdraw"]);
    assert!(refused.code() == 1 && refused.error().contains("onceseal keys status"), "{}", refused.all());
}

#[test]
fn keys_may_stand_in_a_folder_of_their_own() {
    let home = Home::new();
    home.configure("[keys]\nfolder = \"mounted\"");
    let server = home.serve();
    home.send("checkout-paid", "1");
    assert_eq!(std::fs::read_dir(home.path("mounted")).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(home.path("data/keys")).unwrap().count(), 0);
    assert_eq!(home.json(&["keys", "backup", "saved"])["files"], 2);
    server.stop();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0", "--set", "keys.folder=empty"]);
    assert!(ran.code() == 1 && ran.error().contains("keys.folder: the active anchor key"), "{}", ran.all());
    assert!(ran.error().contains("onceseal keys restore"), "{}", ran.error());
    let ran = home.run(&["serve", "--set", "keys.folder="]);
    assert!(ran.code() == 2 && ran.error().contains("keys.folder is empty"), "{}", ran.all());
}

#[test]
fn the_wrong_folders_secret_stops_the_start_and_the_right_one_is_restored_beside_it() {
    let home = Home::new();
    home.serve().stop();
    home.json(&["keys", "backup", "saved"]);
    let secret = home.path("data/keys/slug.secret");
    std::fs::write(&secret, "0".repeat(64)).unwrap();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        ran.code() == 1 && ran.error().contains("slug.secret in the keys folder is another"),
        "{}",
        ran.all()
    );
    assert!(!ran.all().contains(text(&home.path("data"))), "no path: {}", ran.all());
    std::fs::remove_file(&secret).unwrap();
    assert_eq!(home.json(&["keys", "restore", "saved"]), json!({ "restored": 1, "there_already": 1 }));
    let _server = home.serve();
    assert_eq!(
        home.json(&["keys", "restore", "saved"])["restored"],
        0,
        "a running server is in nobody's way"
    );
}
