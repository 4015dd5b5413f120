//! The first thing that a newcomer runs.

use crate::home::Home;

#[test]
fn the_demo_certifies_each_change_once_and_verifies_what_came_out() {
    let home = Home::new();
    let told = home.json(&["demo"]);
    let scenes = told["scenes"].as_array().unwrap();
    assert!(scenes.iter().all(|scene| scene["run_hashes"].as_array().unwrap().len() <= 1), "{told}");
    let certificates = told["certificates"].as_array().unwrap();
    assert_eq!(certificates.len(), 3, "{told}");
    for certificate in certificates {
        for form in ["html", "zip", "json"] {
            assert_eq!(certificate["verdicts"][form], "valid", "{certificate}");
        }
    }
}

#[test]
fn the_demo_shows_who_was_refused_and_leaves_nothing_behind() {
    let home = Home::new();
    let shown = home.command(&["demo"]).env("TMPDIR", home.path("data")).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for word in ["SIG_MISMATCH", "SIG_STALE", "recorded", "18 deliveries, 3 certificates, 0 doubled"] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
    assert!(!shown.contains('\x1b'), "colour without a terminal");
    let left: Vec<_> =
        std::fs::read_dir(home.path("data")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn variables_of_a_server_do_not_reach_the_demo() {
    let home = Home::new();
    let mut command = home.command(&["demo", "--json"]);
    command.env("ONCESEAL_SERVER__LISTEN", "nowhere").env("ONCESEAL_POLICY__MODES", "[]");
    assert!(command.output().unwrap().status.success());
}

#[test]
fn told_again_in_the_same_folder_everything_is_a_repeat() {
    let home = Home::new();
    let first = home.json(&["demo", "--folder", "stage"]);
    let again = home.json(&["demo", "--folder", "stage"]);
    assert_eq!(first["scenes"][0]["run_hashes"], again["scenes"][0]["run_hashes"]);
    let answers = again["scenes"][0]["answers"].as_array().unwrap();
    assert_eq!((answers.len(), &answers[0]["result"]), (1, &"duplicate_reused".into()));
    assert_eq!(again["certificates"].as_array().unwrap().len(), 3, "{again}");
}

#[test]
fn the_demo_of_the_supply_side_pays_once_and_its_ledger_balances() {
    let home = Home::new();
    for _ in ["first", "again, in the same folder"] {
        let told = home.json(&["demo", "--supply", "--folder", "market"]);
        assert_eq!(told["ledger"]["violations"], serde_json::json!([]), "{told}");
        let scenes = told["scenes"].as_array().unwrap();
        let answers = |what: &str| {
            let scene =
                scenes.iter().find(|scene| scene["what"].as_str().unwrap().starts_with(what)).unwrap();
            let answers = scene["answers"].as_array().unwrap();
            answers
                .iter()
                .map(|one| (one["http_status"].as_u64().unwrap(), one["count"].as_u64().unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(answers("ten withdrawals at once"), [(201, 1), (409, 9)]);
        assert_eq!(answers("the same key with another amount"), [(409, 1)]);
        assert_eq!(answers("the bank says three times"), [(200, 1), (200, 2)]);
        assert_eq!(answers("more is asked for"), [(400, 1)]);
    }
}
