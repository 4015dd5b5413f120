//! A small run on each engine; and what the model may know.

use super::{Engines, Ledger, Planted};

fn run(engine: Engines, planted: Option<Planted>) -> Ledger {
    Ledger { commands: 2_000, seed: 7, engine, writers: 8, batch: 500, database: None, planted }
}

#[test]
fn store_and_model_are_equal_after_two_thousand_commands_on_sqlite() {
    run(Engines::Sqlite, None).run().unwrap();
}

#[test]
fn store_and_model_are_equal_after_two_thousand_commands_on_postgres() {
    run(Engines::Postgres, None).run().unwrap();
}

#[test]
fn what_is_spoilt_is_found() {
    run(Engines::Sqlite, Some(Planted::CachedBalance)).run().unwrap();
}

#[test]
fn the_model_shares_no_code_with_what_it_judges() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ledger");
    let parts = std::fs::read_dir(folder.join("model")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = parts.chain([folder.join("model.rs"), folder.join("command.rs")]).collect();
    assert!(files.len() > 7);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in ["supply::", "ledger::posting", "use ledger", "kernel::", "store::", "door::"] {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
}
