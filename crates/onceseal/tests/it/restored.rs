//! What a restored database forgot, and what stands outside of it remembers.

use serde_json::Value as Json;

use crate::home::{Home, Running};

/// A home in which each id of the sample gets a certificate and none is announced.
pub(crate) fn home() -> Home {
    let home = Home::new();
    let text = std::fs::read_to_string(home.path("onceseal.toml")).unwrap();
    let text = text.replace("channels = [\"log\"]", "channels = []");
    home.write("onceseal.toml", &format!("policy.second_report = \"certify\"\n{text}"));
    home
}

/// Sends the event; gives its run hash.
pub(crate) fn sent(home: &Home, id: &str) -> String {
    let sent = home.json(&["send", "sample:checkout-paid", "--id", id]);
    sent[0]["answer"]["run_hash"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned()
}

/// `reconcile --after-restore`: its exit code and report.
pub(crate) fn looked(home: &Home, more: &[&str]) -> (i32, Json) {
    let ran = home.run(&[&["reconcile", "--after-restore", "--json"], more].concat());
    let report = serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.all()));
    (ran.code(), report)
}

/// How many of each kind were found, without those of which there are none.
pub(crate) fn counts(report: &Json) -> Vec<(String, u64)> {
    let kinds = report.as_object().unwrap().iter();
    kinds
        .filter_map(|(kind, of)| Some((kind.clone(), of.get("count")?.as_u64().filter(|count| *count > 0)?)))
        .collect()
}

/// Everything that happens after the moment that is gone back to; gives the run hashes of what is certified.
pub(crate) fn live_on(home: &Home, server: Running) -> Vec<(&'static str, String)> {
    let mut hashes = vec![("evt_after", sent(home, "evt_after"))];
    home.json(&["keys", "rotate"]);
    hashes.push(("evt_other_key", sent(home, "evt_other_key")));
    sent(home, "evt_line_only");
    let shown = home.json(&["show", "evt_line_only"]);
    assert_eq!(server.stop(), 0);
    for path in shown["paths"].as_array().unwrap() {
        let name = path.as_str().unwrap().rsplit('/').next().unwrap();
        std::fs::remove_file(home.path("data/deliveries").join(name)).unwrap();
    }
    hashes
}

/// Looks, mends, looks again, and serves what the restore had forgotten.
pub(crate) fn brought_back(home: &Home, hashes: &[(&str, String)]) {
    let (code, report) = looked(home, &[]);
    let adopted = ("adopted".to_owned(), 2);
    assert_eq!(
        (code, counts(&report)),
        (3, vec![adopted, ("keys".into(), 1), ("lines_without_record".into(), 1)]),
        "{report}"
    );
    assert_eq!(report["lines_without_record"]["list"][0]["event_id"], "evt_line_only");
    let (code, report) = looked(home, &[]);
    assert_eq!((code, counts(&report)), (3, vec![("lines_without_record".into(), 1)]), "{report}");
    home.json(&["import", "data/processed.jsonl", "--source", "stripe"]);
    let (code, report) = looked(home, &[]);
    assert_eq!((code, report["found"].as_u64()), (0, Some(0)), "{report}");
    let _server = home.serve();
    for (id, hash) in hashes {
        let again = home.json(&["send", "sample:checkout-paid", "--id", id]);
        let answer = &again[0]["answer"];
        assert_eq!(
            (&answer["status"], answer["run_hash"].as_str()),
            (&"duplicate_reused".into(), Some(hash.as_str())),
            "{id}"
        );
    }
    let imported = home.json(&["send", "sample:checkout-paid", "--id", "evt_line_only"]);
    assert_eq!(imported[0]["answer"]["status"], "duplicate_reused");
    assert_eq!(home.json(&["check"])["problems"], 0);
    let keys = home.json(&["keys", "list"]);
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
}
