//! The acceptance gate, whole: every check passes, and its report verifies.

use serde_json::Value as Json;

use crate::home::{Home, text};

/// Holds the gate on this database and verifies what it leaves.
fn held(database: &str) {
    let home = Home::new();
    let out = home.path("gate");
    let ran = home.run(&["gate", "--database", database, "--out", text(&out)]);
    let closing = ran.out().lines().last().unwrap_or_default().to_owned();
    assert!(ran.code() == 0 && closing.ends_with(" checks, 0 failed"), "{}", ran.all());
    let report: Json = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    assert_eq!(closing, format!("{} checks, 0 failed", report["checks_total"]));
    assert!(std::fs::read_to_string(out.join("report.md")).unwrap().contains("签署"));
    for form in ["zip", "json", "html"] {
        let sealed = out.join(format!("gate-report.{form}"));
        let verified = home.run(&["verify", text(&sealed), "--keys", text(&out.join("keys.json"))]);
        assert_eq!(verified.code(), 0, "{}", verified.all());
    }
    let stranger = home.run(&["verify", text(&out.join("gate-report.zip"))]);
    assert_eq!(stranger.code(), 4, "without its keys nobody vouches for it: {}", stranger.all());
}

#[test]
fn only_sqlite_the_gate_passes_and_its_report_verifies() {
    held("sqlite");
}

#[test]
fn only_postgres_the_gate_passes_on_two_servers() {
    if let Ok(server) = std::env::var(testkit::postgres::SERVER) {
        held(&server);
    }
}

#[test]
fn an_address_that_is_none_is_refused_without_a_word_of_it() {
    let home = Home::new();
    let ran = home.run(&["gate", "--database", "postgres//user:word@nowhere"]);
    assert!(ran.code() == 2 && !ran.error().contains("word@"), "{}", ran.all());
}
