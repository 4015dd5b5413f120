//! Secrets stay where they were put: each is a canary, and everything that is printed or written is searched.

use std::path::Path;

use crate::home::{EVENT, Home};

const WEBHOOK: &str = "whsec_CANARYWEBHOOK0123456789";
const BOT: &str = "123456:CANARYBOT";
const PASSPHRASE: &str = "CANARY-PASSPHRASE";
const MAIL: &str = "canary.mail@example.com";

/// Files below a folder in which `needle` stands.
fn holding(folder: &Path, needle: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding(&path, needle, found);
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
        {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
}

fn found(home: &Home, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    holding(&home.path(""), needle, &mut found);
    found.sort();
    found
}

fn with_canaries() -> Home {
    let home = Home::new();
    home.write("secrets/stripe", WEBHOOK);
    home.write("secrets/bot", BOT);
    let text = std::fs::read_to_string(home.path("onceseal.toml")).unwrap();
    let text = text.replace("channels = [\"log\"]", "channels = [\"log\", \"telegram\"]");
    home.write("onceseal.toml", &text);
    // Nobody listens there: every send fails, and failures are where secrets leak.
    home.configure(
        "[announce.telegram]\nbase_url = \"http://127.0.0.1:9\"\nchat_id = -1\ntoken = { file = \"secrets/bot\" }\n\
         [keys]\npassphrase = { env = \"PASSPHRASE\" }",
    );
    home
}

#[test]
fn no_secret_is_printed_logged_or_kept_at_the_highest_level() {
    let home = with_canaries();
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--set", "log.level=trace"]);
    command.env("PASSPHRASE", PASSPHRASE).env("RUST_LOG", "trace,hyper=trace,reqwest=trace,rustls=trace");
    let server = home.serve_with(command);
    let body = source_sample().replace("buyer@example.com", MAIL);
    assert!(body.contains(MAIL));
    home.write("event.json", &body);
    home.json(&["send", "event.json"]);
    let tried = || {
        let event = home.json(&["show", EVENT]);
        let sends = event["announcements"].as_array().unwrap().clone();
        sends.iter().any(|send| send["destination"] == "telegram" && send["attempts"] != 0)
    };
    assert!((0..300).any(|_| tried()), "no announcement was tried");
    home.run(&["send", "event.json", "--url", &format!("{}/webhooks/none?key=CANARYQUERY", server.base)]);
    home.write("event.json", "");
    let issued = home.run(&["token", "issue", "ann"]).out();
    let running = std::fs::read(home.path("data/run/server.json")).unwrap();
    let running: serde_json::Value = serde_json::from_slice(&running).unwrap();
    let keys = std::fs::read_to_string(home.path("data/keys/slug.secret")).unwrap();
    home.run(&["list", "--server", &server.base, "--token", issued.trim()]);
    home.run(&["show", EVENT]);
    server.stop();
    for (secret, places) in [
        (WEBHOOK, vec!["stripe"]),
        (BOT, vec!["bot"]),
        (PASSPHRASE, vec![]),
        ("CANARYQUERY", vec![]),
        (MAIL, vec![]),
    ] {
        assert_eq!(found(&home, secret), places, "{secret}");
    }
    let own = running["token"].as_str().unwrap();
    assert_eq!((found(&home, issued.trim()), found(&home, own)), (vec![], vec![]), "operator tokens");
    assert_eq!(found(&home, keys.trim()), ["slug.secret"]);
    assert_eq!(found(&home, "event_processed"), ["log"], "the search finds what is there");
}

fn source_sample() -> String {
    include_str!("../../../source/samples/checkout-paid.json").to_owned()
}

#[test]
fn no_command_prints_a_secret() {
    let home = with_canaries();
    let with = |arguments: &[&str]| {
        let ran = home
            .command(arguments)
            .env("PASSPHRASE", PASSPHRASE)
            .env("ONCESEAL_TOKEN", "ost_CANARYTOKEN")
            .output();
        let ran = ran.unwrap();
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    };
    let inline = format!("sources.stripe.secrets=[\"{WEBHOOK}\"]");
    let bare = format!("sources.stripe.secrets={WEBHOOK}");
    let phrase = format!("keys.passphrase={PASSPHRASE}");
    let key = format!("keys={PASSPHRASE}");
    let mut shown = String::new();
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "check"],
        &["config", "check", "--set", &inline],
        &["config", "check", "--set", &bare],
        &["config", "check", "--set", &phrase],
        &["config", "check", "--set", &key],
        &["--help"],
        &["list", "--help"],
        &["list", "--server", "http://127.0.0.1:9"],
        &["send", "sample:checkout-paid", "--url", "http://127.0.0.1:9/"],
    ] {
        shown += &with(arguments);
    }
    assert!(shown.contains("secret hidden") && shown.contains("announce.telegram.token"), "{shown}");
    for secret in ["CANARYWEBHOOK", "CANARYBOT", "CANARY-PASSPHRASE", "CANARYTOKEN"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[test]
fn a_secret_inside_a_broken_file_is_not_repeated() {
    let home = Home::new();
    for broken in [
        format!("x = = \"{WEBHOOK}\""),
        format!("[sources.stripe]\nkind = \"stripe\"\nsecrets = \"{WEBHOOK}\""),
        format!("[sources.stripe]\nkind = \"stripe\"\nsecrets = [\"{WEBHOOK}\"]"),
        format!("[sources.stripe]\nkind = \"stripe\"\nsecrets = [{{ env = [\"{WEBHOOK}\"] }}]"),
        format!("sources = \"{WEBHOOK}\""),
        format!("[keys]\npassphrase = {{ value = \"{WEBHOOK}\" }}"),
        format!("[announce.telegram]\ntoken = \"{WEBHOOK}\"\nchat_id = 1"),
        format!("[server]\nlisten = 1\nbody_limit = [\"{WEBHOOK}\"]"),
    ] {
        home.write("onceseal.toml", &broken);
        let ran = home.run(&["serve"]);
        assert_eq!(ran.code(), 2, "{broken}");
        assert!(!ran.all().contains("CANARY"), "{}", ran.all());
    }
}
