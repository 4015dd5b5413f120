//! The supply chain's schema: its four files in their order, what the engine made of them, and every rule
//! tried on the running engine.
//!
//! `look` sees the engine behind the store's back, `rows` has a row that each table takes, `rules` has what
//! each rule refuses, `matrix` compares the catalogue with the field matrix of the domain specification,
//! `order` has the order of the files. Not here: what commands write (crate `supply`).

mod look;
mod matrix;
mod order;
mod rows;
mod rules;
mod through;

use store::dialect::Dialect;
use store::migration::{CORE, File, SUPPLY};

use crate::scene::{dump, open};

/// The four files in their order.
fn files() -> Vec<File> {
    [CORE, SUPPLY].iter().flat_map(|chain| chain.files).copied().collect()
}

/// What PostgreSQL gets is kept beside the files, for whoever administers it.
#[test]
fn the_rendered_files_are_the_ones_that_were_reviewed() {
    let mut beside = insta::Settings::clone_current();
    beside.set_snapshot_path("../../../sql/postgresql");
    beside.set_prepend_module_to_snapshot(false);
    beside.set_omit_expression(true);
    for file in files() {
        let text = Dialect::Postgres.render(file.sql);
        assert!(!text.contains('{'), "{}", file.name);
        beside.bind(|| insta::assert_snapshot!(file.name, text));
    }
    for file in SUPPLY.files {
        let text = Dialect::Sqlite.render(file.sql);
        assert!(!text.contains('{'), "{}", file.name);
        insta::assert_snapshot!(format!("sqlite_{}", file.name), text);
    }
}

/// Every column, index, rule and trigger that the chain adds to the ground it stands on.
#[tokio::test]
async fn the_catalogue_is_the_one_that_was_reviewed() {
    let ground = tempfile::tempdir().unwrap();
    open(ground.path(), &[CORE]).await.unwrap();
    let ground = dump(ground.path());
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[CORE, SUPPLY]).await.unwrap();
    let registered = |line: &String| files().iter().any(|file| line.starts_with(file.name));
    let functions = |line: &String| line.starts_with("postgres_functions_v1");
    let mut lines = dump(folder.path());
    lines.retain(|line| !ground.contains(line) && !registered(line) && !functions(line));
    let engine = testkit::postgres::beside(folder.path()).map_or("sqlite", |_| "postgres");
    insta::assert_snapshot!(format!("{engine}_catalogue"), lines.join("\n"));
}
