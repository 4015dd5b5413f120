//! Hostile input: no panic, and no text that costs much more than its length.

use std::time::{Duration, Instant};

use guard::query::{TARGET_MAX, judge};
use proptest::prelude::{any, prop, proptest};
use proptest::prop_assert;

use crate::made_up::{new_guard, scanner};

proptest! {
    #[test]
    fn any_bytes_can_be_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let guard = new_guard();
        let _ = scanner().find_all(&bytes);
        let _ = guard.body("POST /x", "body", &bytes);
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(scanner().find(scanner().redact(&text).as_ref()).is_none());
    }

    #[test]
    fn any_mix_of_escapes_can_be_redacted(text in "(?:\\\\u[0-9a-f]{4}|%[0-9a-f]{2}|&#[0-9]{1,4};|\\PC|sk-[a-z0-9]{20}|\n){0,60}") {
        let guard = new_guard();
        prop_assert!(scanner().find(guard.redact(&text).as_ref()).is_none());
    }
}

/// Texts of one kind of letters, which make a careless search read everything again and again.
fn floods(length: usize) -> Vec<(&'static str, String)> {
    let of = |unit: &str| unit.repeat(length / unit.len());
    vec![
        ("sk-", of("sk-")),
        ("eyJ", of("-eyJ")),
        (".eyJ", of(".eyJaaaaaaaa")),
        ("T3BlbkFJ", of("sk-T3BlbkFJ-")),
        ("colons", of("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:")),
        ("24.", of("24.")),
        ("api_key", of("api_key=\"")),
        ("bearer", of("authorization:bearer \n")),
        ("BEGIN", of("-----BEGIN A ")),
        ("backslashes", of("\\")),
        ("percent", of("%25")),
        ("entities", of("&#38;")),
        ("surrogates", of("\\ud83d\\ude00")),
        ("line breaks", of("a\n")),
        ("base64", of("QUJD")),
    ]
}

#[test]
fn a_flood_costs_time_by_its_length_only() {
    // Read once for every start in it, a text of this length would take minutes.
    for (name, text) in floods(128 * 1024) {
        let started = Instant::now();
        let _ = scanner().find(&text);
        let _ = scanner().find_all(&text);
        assert!(started.elapsed() < Duration::from_secs(20), "{name}: {:?}", started.elapsed());
    }
    for (name, text) in floods(TARGET_MAX) {
        let started = Instant::now();
        let _ = judge(format!("/x?{text}").as_bytes(), scanner());
        assert!(started.elapsed() < Duration::from_secs(20), "{name}: {:?}", started.elapsed());
    }
}
