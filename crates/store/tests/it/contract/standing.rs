//! How schema files stand in a database, asked without touching it.

use store::migration::{Chain, File, Older, State, steps};
use store::{Store, migration};
use testkit::postgres;

use crate::scene::{dump, open, setup_text};

const A: File = File::new("a_v1", "create table a (id {pk}) {strict};");
const A_CHANGED: File = File::new("a_v1", "create table a (id {pk}, more text) {strict};");
const ADDS: File =
    File { older: Older::MayServe, ..File::new("adds_v2", "create table adds (id {pk}) {strict};") };
const NEXT: File = File::new("next_v3", "create table next (id {pk}) {strict};");

const fn chain(files: &'static [File]) -> Chain {
    Chain { name: "test", files }
}

#[tokio::test]
async fn each_file_is_told_with_its_state_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[chain(&[A, ADDS])]).await.unwrap();
    let before = dump(folder.path());
    let look = Store::look(&postgres::settings(folder.path())).await.unwrap();
    let registered = look.registered().await.unwrap();
    let seen = steps(&[chain(&[A_CHANGED, NEXT])], registered.clone());
    let seen: Vec<_> = seen
        .iter()
        .filter(|step| !step.name.starts_with("postgres"))
        .map(|step| (step.name.as_str(), step.state))
        .collect();
    assert_eq!(seen, [("a_v1", State::Changed), ("next_v3", State::Missing), ("adds_v2", State::Unknown)]);
    assert!(registered.iter().all(|kept| kept.applied_at.micros() > 0));
    assert_eq!(dump(folder.path()), before);
    let text = setup_text(migration::missing(&look.chains(&[chain(&[A_CHANGED])]), registered));
    assert!(text.contains("a_v1"), "{text}");
}

#[tokio::test]
async fn a_database_with_nothing_in_it_has_no_files() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), &[]).await.unwrap());
    let look = Store::look(&postgres::settings(folder.path())).await.unwrap();
    let missing = migration::missing(&look.chains(&[chain(&[A])]), look.registered().await.unwrap());
    let names: Vec<_> = missing.unwrap().iter().map(|file| file.name).collect();
    assert_eq!(names, ["a_v1"]);
}

#[tokio::test]
async fn the_tables_are_read_back_as_their_files_made_them() {
    let folder = tempfile::tempdir().unwrap();
    let made = "create table owners (id {pk}, seen {time}) {strict};
      create table things (name text not null, owner {int} not null references owners (id), size {money}, primary key (owner, name)) {strict_by_key};
      create table log (id {pk}, thing {int} references log (id)) {strict}; {append_only log}";
    let file: &'static [File] = Box::leak(Box::new([File::new("made_v1", made)]));
    let store = open(folder.path(), &[chain(file)]).await.unwrap();
    let mut tables = store.layout().await.unwrap();
    tables.retain(|table| table.name != "schema_migrations");
    let told: Vec<_> = tables
        .iter()
        .map(|table| {
            let columns: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
            let parents: Vec<_> = table.parents.iter().map(|parent| parent.table.as_str()).collect();
            format!("{} {columns:?} {:?} {parents:?} {}", table.name, table.key, table.append_only)
        })
        .collect();
    assert_eq!(
        told,
        [
            r#"owners ["id", "seen"] ["id"] [] false"#,
            r#"things ["name", "owner", "size"] ["owner", "name"] ["owners"] false"#,
            r#"log ["id", "thing"] ["id"] ["log"] true"#,
        ]
    );
}
