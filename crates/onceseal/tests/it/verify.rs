//! Is a file genuine, and who says so.

use crate::home::{Home, Running, text};

/// A home with one certificate, its key set in `keys.json`.
fn certified() -> (Home, Running) {
    let home = Home::new();
    let server = home.serve();
    home.send("checkout-paid", "1");
    home.write("keys.json", &home.run(&["keys", "list", "--json"]).out());
    (home, server)
}

fn code(home: &Home, arguments: &[&str]) -> i32 {
    home.run(&[&["verify"], arguments].concat()).code()
}

#[test]
fn every_form_is_valid_with_the_published_keys_and_unknown_without() {
    let (home, server) = certified();
    for form in ["html", "zip", "json"] {
        let file = home.delivery(form);
        assert_eq!(code(&home, &[text(&file), "--keys", "keys.json"]), 0, "{form}");
        assert_eq!(code(&home, &[text(&file)]), 4, "{form}");
        let url = format!("{}/d/{}", server.base, file.file_name().unwrap().to_str().unwrap());
        assert_eq!(code(&home, &[&url]), 4, "a fetched file does not vouch for itself");
        let keys = format!("{}/.well-known/onceseal/keys.json", server.base);
        assert_eq!(code(&home, &[&url, "--keys", &keys]), 0, "{form}");
    }
}

#[test]
fn a_pinned_key_counts_and_another_one_does_not() {
    let (home, _server) = certified();
    let keys = home.json(&["keys", "list"]);
    let key = keys["keys"][0]["x"].as_str().unwrap();
    let file = home.delivery("zip");
    assert_eq!(code(&home, &[text(&file), "--keys", key]), 0);
    let (other, _other_server) = certified();
    let keys = text(&other.path("keys.json")).to_owned();
    assert_eq!(code(&home, &[text(&file), "--keys", &keys]), 4);
    assert_eq!(code(&home, &[text(&file), "--keys", "nonsense"]), 2);
}

#[test]
fn any_flipped_byte_makes_a_file_invalid() {
    let (home, _server) = certified();
    for form in ["html", "zip", "json"] {
        let bytes = std::fs::read(home.delivery(form)).unwrap();
        for at in [10, bytes.len() / 2, bytes.len() - 3] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            std::fs::write(home.path("changed"), changed).unwrap();
            assert_eq!(code(&home, &["changed", "--keys", "keys.json"]), 3, "{form} at {at}");
        }
    }
}

#[test]
fn an_amount_changed_in_one_form_is_seen() {
    let (home, _server) = certified();
    for (form, amount, more) in [("html", "20.00", "90.00"), ("json", "\"2000\"", "\"9000\"")] {
        let page = std::fs::read_to_string(home.delivery(form)).unwrap();
        assert!(page.contains(amount), "{form}");
        home.write("changed", &page.replace(amount, more));
        assert_eq!(code(&home, &["changed", "--keys", "keys.json"]), 3, "{form}");
    }
}

#[test]
fn a_retired_keys_certificate_is_valid_with_its_date_only_claimed() {
    let (home, server) = certified();
    home.json(&["keys", "rotate"]);
    home.json(&["keys", "rotate"]);
    home.send("checkout-paid-jpy", "1");
    home.write("keys.json", &home.run(&["keys", "list", "--json"]).out());
    let old = server.base.clone();
    let find = |event: &str| home.json(&["show", event])["zip_url"].as_str().unwrap().to_owned();
    let (first, second) = (find(crate::home::EVENT), find("evt_1SkQl3B7WZ01zgkWjpy00500"));
    assert!(first.starts_with(&old));
    assert_eq!(code(&home, &[&first, "--keys", "keys.json"]), 5);
    assert_eq!(code(&home, &[&second, "--keys", "keys.json"]), 0);
    assert_eq!(code(&home, &[&second, &first, "--keys", "keys.json"]), 5, "the worst counts");
    let report = home.run(&["verify", &first, "--keys", "keys.json"]).out();
    assert!(report.contains("retired") && report.contains("key "), "{report}");
}

#[test]
fn certificates_outlive_the_private_key_that_signed_them() {
    let (home, server) = certified();
    let retired = home.json(&["keys", "list"])["keys"][0]["kid"].as_str().unwrap().to_owned();
    home.json(&["keys", "rotate"]);
    server.stop();
    std::fs::remove_file(home.path(&format!("data/keys/anchor-{retired}.pem"))).unwrap();
    std::fs::remove_dir_all(home.path("data/deliveries")).unwrap();
    let _server = home.serve();
    home.write("keys.json", &home.run(&["keys", "list", "--json"]).out());
    home.json(&["reconcile"]);
    assert_eq!(code(&home, &[text(&home.delivery("zip")), "--keys", "keys.json"]), 5);
}

#[test]
fn what_was_never_a_certificate_is_refused_and_cannot_command_the_terminal() {
    let home = Home::new();
    for junk in ["", "PK\u{3}\u{4}", "{}", "<html>\u{1b}[2J</html>", "{\"manifest\":\"\u{1b}]0;x\u{7}\"}"] {
        home.write("junk", junk);
        let ran = home.run(&["verify", "junk"]);
        assert_eq!(ran.code(), 3, "{junk:?}");
        assert!(!ran.all().contains('\u{1b}'), "{junk:?}");
    }
}

#[test]
fn machines_get_the_verdict_by_name() {
    let (home, _server) = certified();
    let report = home.json(&["verify", text(&home.delivery("json")), "--keys", "keys.json"]);
    assert_eq!((report["verdict"].as_str(), report["mode"].as_str()), (Some("valid"), Some("test")));
    assert_eq!(report["checks"].as_array().unwrap().len(), 7);
}
