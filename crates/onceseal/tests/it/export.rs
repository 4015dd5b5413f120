//! The server's own list of processed events, made anew, and nobody else's hand on it.

use crate::home::{Home, text};

/// Ids in the server's own list, sorted.
fn listed(home: &Home) -> Vec<String> {
    let list = std::fs::read_to_string(home.path("data/processed.jsonl")).unwrap();
    let id = |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["event_id"].as_str().unwrap().to_owned()
    };
    let mut ids: Vec<String> = list.lines().map(id).collect();
    ids.sort();
    ids
}

#[test]
fn a_rebuild_while_deliveries_go_on_gives_every_event_once() {
    let home = Home::new();
    let server = home.serve();
    let ids: Vec<String> = (10..40).map(|n| format!("evt_{n}")).collect();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            for id in &ids {
                assert_eq!(home.run(&["send", "sample:checkout-paid", "--id", id]).code(), 0);
            }
        });
        while !sending.is_finished() {
            assert!(home.json(&["export", "--rebuild"])["lines"].as_u64().unwrap() <= 30);
        }
    });
    std::fs::remove_file(home.path("data/processed.jsonl")).unwrap();
    assert_eq!(home.json(&["export", "--rebuild"])["lines"], 30, "all of them after a loss, too");
    server.stop();
    assert_eq!(listed(&home), ids);
    assert_eq!(home.json(&["export", "--rebuild"])["lines"], 30, "without a server");
    assert_eq!(listed(&home), ids);
}

#[test]
fn a_copy_is_not_put_into_the_live_lists_place() {
    let home = Home::new();
    let server = home.serve();
    home.send("checkout-paid", "1");
    std::os::unix::fs::symlink("data", home.path("linked")).unwrap();
    let whole = home.path("data/processed.jsonl");
    for place in ["data/processed.jsonl", "./data/../linked/processed.jsonl", text(&whole)] {
        let ran = home.run(&["export", "--to", place]);
        assert_eq!(ran.code(), 2, "{place}: {}", ran.all());
        assert!(ran.error().contains("--rebuild"), "{}", ran.error());
    }
    assert_eq!(home.run(&["export", "--to", "processed.jsonl"]).code(), 0, "a copy elsewhere");
    assert_eq!(home.run(&["export", "--rebuild", "--to", "copy.jsonl"]).code(), 2);
    server.stop();
}
