//! Starting, not starting, stopping, reloading.

use crate::home::{EVENT, Home};

#[test]
fn the_first_line_says_where_and_a_signal_stops_it_gracefully() {
    let home = Home::new();
    let server = home.serve();
    assert!(server.base.starts_with("http://127.0.0.1:"), "{}", server.base);
    assert!(home.path("data/run/server.json").exists());
    assert_eq!(server.stop(), 0);
    assert!(!home.path("data/run/server.json").exists());
    assert!(!home.path("data/state.db-wal").exists(), "one whole file");
}

#[test]
fn the_servers_own_token_is_readable_by_its_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let _server = home.serve();
    let mode = std::fs::metadata(home.path("data/run/server.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn no_core_dump_of_what_holds_keys_is_ever_written_nor_piped() {
    let home = Home::new();
    let server = home.serve();
    let limits = |id: u32| {
        let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        let words: Vec<String> = limit.split_whitespace().take(2).map(str::to_owned).collect();
        (words[0].clone(), words[1].clone())
    };
    // One and not zero, which does not keep a dump from a program (core(5)), unless a hard limit of zero stands here.
    let (_, hard) = limits(std::process::id());
    let none = if hard == "0" { "0" } else { "1" };
    assert_eq!(limits(server.id()), (none.to_owned(), none.to_owned()));
}

#[test]
fn a_second_server_on_the_folder_does_not_start() {
    let home = Home::new();
    let _server = home.serve();
    let second = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code(), 7);
    assert!(second.error().contains("storage.folder"), "{}", second.error());
}

#[test]
fn without_a_usable_secret_nothing_is_started_or_made() {
    let home = Home::new();
    let nowhere = home.path("elsewhere");
    for (setting, why) in [
        ("sources.stripe.secrets=[]", "it has no secret"),
        ("sources.stripe.secrets=[{env=\"NO_SUCH_VARIABLE\"}]", "the variable NO_SUCH_VARIABLE is not set"),
        ("sources.stripe.secrets=[{file=\"/no/such/file\"}]", "No such file"),
    ] {
        let ran = home.run(&["serve", "--set", setting, "--data", nowhere.to_str().unwrap()]);
        assert_eq!(ran.code(), 2, "{setting}");
        assert!(ran.error().contains("stripe") && ran.error().contains(why), "{}", ran.error());
    }
    let ran = home.run(&["serve", "--config", "/dev/null", "--data", nowhere.to_str().unwrap()]);
    assert!(ran.code() == 2 && ran.error().contains("no source is configured"), "{}", ran.error());
    assert!(!nowhere.exists());
}

#[test]
fn a_line_end_after_a_secret_is_dropped_and_a_space_is_refused() {
    let home = Home::new();
    for end in ["\n", "\r\n", ""] {
        home.write("secrets/stripe", &format!("whsec_0123456789abcdef{end}"));
        let server = home.serve();
        assert_eq!(home.send("checkout-paid", "1")[0]["http_status"], 200, "{end:?}");
        server.stop();
    }
    for text in
        [" whsec_0123456789abcdef", "whsec_0123456789abcdef \n", "v1,whsec_0123456789abcdef", " \n", ""]
    {
        home.write("secrets/stripe", text);
        let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(ran.code(), 2, "{text:?}");
        assert!(!ran.all().contains("0123456789abcdef"), "{}", ran.all());
    }
}

#[test]
fn a_file_in_a_folders_place_is_an_error_that_names_the_setting() {
    for place in ["data", "data/deliveries", "data/keys", "data/run"] {
        let home = Home::new();
        let _ = std::fs::remove_dir_all(home.path(place));
        home.write(place, "");
        let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(ran.code(), 1, "{place}");
        let named = ["storage.folder", "keys.folder"].iter().any(|setting| ran.error().contains(setting));
        assert!(named, "{place}: {}", ran.error());
    }
}

#[test]
fn a_taken_address_names_the_setting() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = home.run(&["serve", "--listen", &address]);
    assert_eq!(ran.code(), 1);
    assert!(ran.error().contains("server.listen"), "{}", ran.error());
}

#[test]
fn a_new_secret_works_after_a_hangup_and_the_old_one_no_longer() {
    let home = Home::new();
    let server = home.serve();
    let old = home.path("old");
    std::fs::copy(home.path("secrets/stripe"), &old).unwrap();
    home.write("secrets/stripe", "whsec_another0123456789\n");
    server.signal("HUP");
    // The signal is handled soon, not at once: ask until it is.
    let accepted =
        |extra: &[&str]| home.run(&[&["send", "sample:checkout-paid"], extra].concat()).code() == 0;
    assert!((0..500).any(|_| accepted(&[])), "the new secret is never accepted");
    let setting = format!("sources.stripe.secrets=[{{file={:?}}}]", old.display().to_string());
    assert!(!accepted(&["--set", &setting]));
}

#[test]
fn a_reload_that_cannot_be_used_changes_nothing() {
    let home = Home::new();
    let server = home.serve();
    home.configure("[nonsense]\nx = 1");
    server.signal("HUP");
    let told = || std::fs::read_to_string(home.path("log")).unwrap().contains("sources_not_reloaded");
    assert!(
        (0..500)
            .any(|_| home.path("log").exists() && home.run(&["completions", "bash"]).code() == 0 && told())
    );
    let url = format!("{}/webhooks/stripe", server.base);
    home.write("good.toml", "[sources.stripe]\nkind = \"stripe\"\nsecrets = [{ file = \"secrets/stripe\" }]");
    let sent = home.run(&["send", "sample:checkout-paid", "--url", &url, "--config", "good.toml"]);
    assert!(sent.code() == 0 && sent.out().contains(EVENT), "{}", sent.all());
}

#[test]
fn commands_reach_a_server_with_tls_and_strangers_check_its_certificate() {
    let home = Home::new();
    home.write("tls.pem", include_str!("keys/tls-one.pem"));
    home.write("tls.key", include_str!("keys/tls-one.key"));
    home.configure("[server.tls]\ncertificate = \"tls.pem\"\nkey = \"tls.key\"");
    let server = home.serve();
    assert!(server.base.starts_with("https://127.0.0.1:"), "{}", server.base);
    assert_eq!(home.run(&["status"]).code(), 0, "its own certificate is taken");
    let page = format!("{}/.well-known/onceseal/keys.json", server.base);
    let stranger = home.run(&["verify", &page]);
    assert_eq!(stranger.code(), 1, "{}", stranger.all());
    assert_eq!(home.run(&["list", "--server", &server.base, "--token", "ost_x"]).code(), 7);
}

#[test]
fn plain_references_do_not_move_to_another_account() {
    let home = Home::new();
    home.serve().stop();
    let other = "[sources.other]\nkind = \"stripe\"\nsecrets = [{ file = \"secrets/stripe\" }]";
    home.configure(&format!("{other}\nplain_refs = true"));
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0", "--set", "sources.stripe.plain_refs=false"]);
    assert_eq!(ran.code(), 1);
    let told = ran.error();
    assert!(
        told.contains("\"stripe\"") && told.contains("\"other\"") && told.contains("plain_refs"),
        "{told}"
    );
    let back = ["serve", "--listen", "127.0.0.1:0", "--set", "sources.other.plain_refs=false"];
    home.serve_with(home.command(&back)).stop();
}

#[test]
fn the_processed_list_may_be_cut_or_moved_while_serving() {
    let home = Home::new();
    let server = home.serve();
    let list = home.path("data/processed.jsonl");
    let lines = || std::fs::read_to_string(&list).unwrap_or_default().lines().count();
    let wait_for =
        |count: usize| assert!((0..500).any(|_| home.run(&["list"]).code() == 0 && lines() == count));
    home.send("checkout-paid", "1");
    wait_for(1);
    std::fs::File::create(&list).unwrap();
    home.send("checkout-paid-jpy", "1");
    wait_for(1);
    std::fs::rename(&list, home.path("moved.jsonl")).unwrap();
    home.send("checkout-async-succeeded", "1");
    wait_for(1);
    assert!(!std::fs::read(&list).unwrap().contains(&0), "a hole");
    assert_eq!(home.send("checkout-paid", "1")[0]["answer"]["status"], "duplicate_reused");
    assert_eq!(server.stop(), 0);
}

#[test]
fn the_system_layout_is_made_below_a_root_and_nothing_is_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.json(&["init", "--system", "--root", "root"]);
    let mode = |path: &str| std::fs::metadata(home.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("root/etc/onceseal/secrets"), 0o700);
    assert_eq!(mode("root/etc/onceseal/secrets/stripe"), 0o600);
    assert_eq!(mode("root/var/lib/auditvisa/keys"), 0o700);
    let config = home.path("root/etc/onceseal/onceseal.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("folder = \"/var/lib/auditvisa\"") && !text.contains("{{"), "{text}");
    home.write("root/etc/onceseal/onceseal.toml", "# mine");
    assert_eq!(home.json(&["init", "--system", "--root", "root"])["made"], serde_json::json!([]));
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "# mine");
}
