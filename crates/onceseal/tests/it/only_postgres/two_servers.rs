//! Two servers in folders of their own on one database.

use std::process::Command;

use serde_json::{Value as Json, json};

use crate::home::{Home, text};

/// Asks until an answer is the right one; a server looks at its keys every three seconds.
fn until(asked: impl Fn() -> Json, right: impl Fn(&Json) -> bool) -> Json {
    let mut last = Json::Null;
    for _ in 0..500 {
        last = asked();
        if right(&last) {
            return last;
        }
    }
    panic!("still {last}");
}

/// A command of the second home, on the first one's database.
fn beside(first: &Home, second: &Home, arguments: &[&str]) -> Command {
    let mut command = second.command(arguments);
    for (name, value) in first.command(&[]).get_envs() {
        command.envs(value.map(|value| (name, value)));
    }
    command
}

#[test]
fn a_second_server_starts_with_the_first_ones_keys_and_a_new_key_reaches_both() {
    let (first, second) = (Home::new(), Home::new());
    let one = first.serve();
    let refused = beside(&first, &second, &["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && error.contains("onceseal keys restore"), "{error}");
    first.json(&["keys", "backup", "saved"]);
    let restored = beside(&first, &second, &["keys", "restore", text(&first.path("saved"))]).status();
    assert!(restored.unwrap().success());
    second.write("secrets/stripe", &std::fs::read_to_string(first.path("secrets/stripe")).unwrap());
    let two = second.serve_with(beside(&first, &second, &["serve", "--listen", "127.0.0.1:0"]));
    let alive = |status: &Json| status["nodes"].as_array().unwrap().len() == 2;
    until(|| first.json(&["keys", "status"]), alive);

    let rotate = first.run(&["keys", "rotate"]);
    assert!(rotate.code() == 1 && rotate.error().contains("onceseal keys announce"), "{}", rotate.all());
    let announced = first.json(&["keys", "announce"]);
    let (key, file) = (announced["announced"].as_str().unwrap(), announced["file"].as_str().unwrap());
    let refused = first.run(&["keys", "activate"]);
    assert!(refused.code() == 1 && refused.error().contains(file), "{}", refused.all());
    std::fs::copy(first.path("data/keys").join(file), second.path("data/keys").join(file)).unwrap();
    until(|| first.json(&["keys", "status"]), |status| status["not_loaded_by"] == json!([]));
    assert_eq!(first.json(&["keys", "activate"])["active"], key);
    // The second server may not have looked since: the database has it sign with the new key all the same.
    let sent =
        first.json(&["send", "sample:checkout-paid", "--url", &format!("{}/webhooks/stripe", two.base)]);
    assert_eq!(
        (&sent[0]["answer"]["status"], &sent[0]["answer"]["key_id"]),
        (&json!("processed"), &json!(key))
    );

    assert_eq!(two.stop(), 0);
    assert_eq!(first.json(&["keys", "status"])["nodes"].as_array().unwrap().len(), 1, "it took its leave");
    first.json(&["keys", "rotate"]);
    assert_eq!(one.stop(), 0);
}
