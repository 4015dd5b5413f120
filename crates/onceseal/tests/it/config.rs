//! Which settings are in effect, and which stop the start.

use crate::home::Home;

fn shown(home: &Home, arguments: &[&str], setting: &str) -> (String, String) {
    let lines = home.json(&[&["config", "show"], arguments].concat());
    let line = lines.as_array().unwrap().iter().find(|line| line["setting"] == setting).unwrap().clone();
    (line["value"].to_string(), line["from"].as_str().unwrap().to_owned())
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let home = Home::new();
    home.write("onceseal.toml", "[server]\nwait = \"1s\"\n");
    assert_eq!(shown(&home, &[], "server.wait"), ("\"1s\"".into(), "file".into()));
    let mut command = home.command(&["config", "show", "--json"]);
    let out = command.env("ONCESEAL_SERVER__WAIT", "1500ms").output().unwrap().stdout;
    assert!(String::from_utf8(out).unwrap().contains("environment ONCESEAL_SERVER__WAIT"));
    let flagged = shown(&home, &["--set", "server.wait=3s"], "server.wait");
    assert_eq!(flagged, ("\"3s\"".into(), "flag --set".into()));
    assert_eq!(shown(&home, &[], "server.body_limit"), ("\"256KiB\"".into(), "default".into()));
}

#[test]
fn an_unknown_setting_stops_the_start_and_the_nearest_is_named() {
    let home = Home::new();
    for (setting, near) in [
        ("server.lisen=x", "did you mean \"listen\""),
        ("servr.listen=x", "did you mean \"server\""),
        ("policy.modess=[]", "did you mean \"modes\""),
        ("sources.stripe.secret=x", "did you mean \"secrets\""),
        ("sources.stripe.kind=strip", "expected one of `stripe`"),
        ("log.colour=red", "known here: format, level"),
    ] {
        let ran = home.run(&["serve", "--set", setting]);
        assert_eq!(ran.code(), 2, "{setting}");
        assert!(ran.error().contains(near), "{setting}: {}", ran.error());
    }
}

#[test]
fn an_unknown_variable_stops_the_start() {
    let home = Home::new();
    let ran = home.command(&["config", "check"]).env("ONCESEAL_SERVER__WAITS", "2s").output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8(ran.stderr).unwrap().contains("did you mean \"wait\""));
}

#[test]
fn limits_of_nothing_less_and_too_much_are_refused_by_name() {
    let home = Home::new();
    for (setting, values) in [
        ("server.wait", vec!["0s", "-1s", "", "1h", "2", "99999999999999999999s"]),
        ("server.body_limit", vec!["0B", "-1B", "1GiB", "300", "64 KiB"]),
        ("server.max_connections", vec!["0", "-1", "1000000", "\"many\""]),
        ("storage.cache", vec!["0MiB", "1B", "100GiB"]),
        ("storage.readers", vec!["0", "-1", "65"]),
        ("policy.keep_payload_days", vec!["-1", "401"]),
        ("sources.stripe.tolerance", vec!["0s", "-1s", "", "1ms", "1500ms", "300", "2d"]),
    ] {
        for value in values {
            let ran = home.run(&["serve", "--set", &format!("{setting}={value}")]);
            assert_eq!(ran.code(), 2, "{setting}={value}: {}", ran.all());
            assert!(ran.error().contains(setting), "{setting}={value}: {}", ran.error());
        }
    }
}

#[test]
fn a_missing_unit_is_answered_with_an_example() {
    let home = Home::new();
    let error = home.run(&["serve", "--set", "server.wait=300"]).error();
    assert!(error.contains("has no unit") && error.contains("\"300s\""), "{error}");
}

#[test]
fn two_kinds_of_source_cannot_share_an_account() {
    let home = Home::new();
    home.configure("[sources.hub]\nkind = \"github\"\naccount = \"stripe\"\nsecrets = [{ env = \"HOME\" }]");
    let ran = home.run(&["config", "check"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.error().contains("share the account \"stripe\""), "{}", ran.error());
}

#[test]
fn plain_references_go_to_the_first_stripe_source_of_the_file() {
    let home = Home::new();
    let source =
        |name: &str| format!("[sources.{name}]\nkind = \"stripe\"\nsecrets = [{{ env = \"SECRET\" }}]\n");
    home.write("onceseal.toml", &(source("zebra") + &source("ant")));
    let out = home.command(&["config", "check", "--json"]).env("SECRET", "whsec_0123456789abcdef").output();
    let checked: serde_json::Value = serde_json::from_slice(&out.unwrap().stdout).unwrap();
    assert_eq!(checked["plain_refs"], "zebra", "{checked}");
    assert_eq!(checked["sources"], serde_json::json!(["zebra", "ant"]));
}

#[test]
fn every_setting_is_documented() {
    let page = include_str!("../../../../docs/configuration.md");
    let home = Home::new();
    let lines = home.json(&["config", "show"]);
    for line in lines.as_array().unwrap() {
        let setting = line["setting"].as_str().unwrap().replace("sources.stripe.", "sources.NAME.");
        assert!(page.contains(&format!("`{setting}`")), "{setting} is missing in docs/configuration.md");
    }
}

#[test]
fn every_command_has_examples_and_a_place_in_the_manual() {
    let page = include_str!("../../../../docs/command-line.md");
    let home = Home::new();
    let help = home.run(&["--help"]).out();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<&str> = commands.map_while(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{help}");
    for name in names.iter().filter(|name| **name != "help") {
        assert!(home.run(&[name, "--help"]).out().contains("Examples:"), "{name}");
        assert!(page.contains(&format!("## {name}")), "{name} is missing in docs/command-line.md");
    }
}

/// Every `onceseal` that a text for users shows, with its words.
fn shown_commands() -> Vec<Vec<String>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = ["README.md", "README.zh-CN.md"].map(|name| root.join(name)).into_iter();
    let texts = pages.chain(docs.filter(|path| path.is_file()));
    let text =
        texts.map(|page| std::fs::read_to_string(page).unwrap()).collect::<String>().replace("\\\n", "");
    let starts = ["\nonceseal ", "\n$ onceseal ", "`onceseal "].map(|start| text.match_indices(start));
    let lines = starts.into_iter().flatten().map(|(at, start)| &text[at + start.len()..]);
    let words = |line: &str| {
        let command = line.split(['`', '#', '\n', '|', '>', '&', ';']).next().unwrap_or_default();
        command.split_whitespace().map(str::to_owned).collect()
    };
    lines.map(words).collect()
}

#[test]
fn every_command_and_flag_that_the_texts_show_is_there() {
    let home = Home::new();
    let mut shown = shown_commands();
    shown.sort();
    shown.dedup();
    assert!(shown.len() > 40, "{shown:?}");
    for words in shown {
        let plain = |word: &&String| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let names: Vec<&str> = words.iter().take_while(plain).map(String::as_str).collect();
        let names = names.into_iter().take_while(|name| !name.starts_with('-'));
        let ran = home.run(&names.chain(["--help"]).collect::<Vec<_>>());
        assert_eq!(ran.code(), 0, "{words:?}: {}", ran.all());
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(ran.out().contains(flag.as_str()), "{words:?}: {flag} is not in its help");
        }
    }
}
