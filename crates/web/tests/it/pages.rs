//! The table of codes and its pages in `docs/errors` are one.

use std::collections::BTreeSet;
use std::path::Path;

use web::codes::ALL;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Texts in quotes that look like codes, in all sources below a folder.
fn codes_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            codes_in(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(entry).expect("a source");
            let quoted = text.split('"').filter(|text| {
                text.contains('_')
                    && text.starts_with(|c: char| c.is_ascii_uppercase())
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            });
            found.extend(quoted.map(ToOwned::to_owned));
        }
    }
}

#[test]
fn each_code_has_a_page_and_each_page_a_code() {
    let listed = std::fs::read_dir(root().join("docs/errors")).expect("docs/errors");
    let pages: BTreeSet<String> = listed
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".md").filter(|name| *name != "README").map(ToOwned::to_owned))
        .collect();
    let codes: BTreeSet<String> = ALL.iter().map(|code| code.name.to_owned()).collect();
    assert_eq!(pages, codes);
    assert_eq!(ALL.len(), codes.len(), "no code twice");
}

#[test]
fn a_page_says_status_title_and_both_languages() {
    for code in ALL {
        let page =
            std::fs::read_to_string(root().join(format!("docs/errors/{}.md", code.name))).expect("a page");
        assert!(page.starts_with(&format!("# {}\n", code.name)), "{}", code.name);
        for part in [
            &format!("Status {}", code.status),
            code.title,
            code.title_zh,
            "## What happened",
            "## What to do",
        ] {
            assert!(page.contains(part), "{} lacks {part:?}", code.name);
        }
    }
}

#[test]
fn every_code_that_a_lower_crate_names_is_in_the_table() {
    let mut named = BTreeSet::new();
    for folder in ["crates/source/src", "crates/certify/src"] {
        codes_in(&root().join(folder), &mut named);
    }
    let known: BTreeSet<&str> = ALL.iter().map(|code| code.name).collect();
    // Words of senders and of the audit that only look like codes.
    let words = ["TRADE_SUCCESS", "TRADE_FINISHED", "AEAD_AES_256_GCM", "PAYLOAD_DIFFERS"];
    let unknown: Vec<_> = named
        .iter()
        .filter(|name| !known.contains(name.as_str()) && !words.contains(&name.as_str()))
        // Variables of a cloud's machines.
        .filter(|name| !name.starts_with("AWS_"))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(named.len() > 15, "the search finds them: {named:?}");
}

#[test]
fn no_text_ends_in_a_full_stop_and_statuses_are_errors() {
    for code in ALL {
        assert!((400..600).contains(&code.status), "{code:?}");
        for text in [code.title, code.title_zh, code.next] {
            assert!(!text.is_empty() && !text.ends_with(['.', '。']), "{code:?}: {text}");
        }
    }
}

#[test]
fn the_list_of_pages_links_each_code() {
    let list = std::fs::read_to_string(root().join("docs/errors/README.md")).expect("a list");
    for code in ALL {
        let row =
            format!("| [{0}]({0}.md) | {1} | {2} | {3} |", code.name, code.status, code.title, code.title_zh);
        assert!(list.contains(&row), "{row}");
    }
}
