//! The schema: applied once, in order, unchanged; what is append-only stays so.

use rusqlite::Connection;
use store::error::RaiseKind;
use store::migration::{CERTIFY, CORE, Chain, File};
use store::{Error, FILE, Raise, Write, values};
use tempfile::TempDir;

use crate::scene::{NOTES, insert, open, scene, setup_text};

const A: File = File { name: "a_v1", sql: "create table a (id {pk}) {strict};" };
const A_CHANGED: File = File { name: "a_v1", sql: "create table a (id {pk}, more text) {strict};" };
const B: File = File { name: "b_v2", sql: "create table b (id {pk}) {strict};" };
const C: File = File { name: "c_v3", sql: "create table c (id {pk}) {strict};" };
const BROKEN: File = File { name: "broken_v2", sql: "create table half (id {pk}) {strict}; create tabel x;" };

fn chain(files: &'static [File]) -> Chain {
    Chain { name: "test", files }
}

fn applied(files: &'static [File]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[chain(files)]).unwrap();
    folder
}

/// The whole schema and its registry.
fn dump(folder: &TempDir) -> Vec<String> {
    let connection = Connection::open(folder.path().join(FILE)).unwrap();
    let sql = "select coalesce(sql, name) from sqlite_schema union all select name || checksum || applied_at from schema_migrations";
    let mut statement = connection.prepare(sql).unwrap();
    let lines = statement.query_map([], |row| row.get(0)).unwrap();
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn applying_the_schema_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[CORE, CERTIFY]).unwrap();
    let first = dump(&folder);
    for _ in 0..2 {
        open(folder.path(), &[CORE, CERTIFY]).unwrap();
        assert_eq!(dump(&folder), first);
    }
}

#[test]
fn a_later_file_is_added_to_what_stands() {
    let folder = applied(&[A]);
    open(folder.path(), &[chain(&[A, B])]).unwrap();
    assert!(dump(&folder).iter().any(|line| line.starts_with("CREATE TABLE b")));
}

#[test]
fn a_file_that_was_changed_after_its_release_is_refused() {
    let folder = applied(&[A]);
    let before = dump(&folder);
    assert!(setup_text(open(folder.path(), &[chain(&[A_CHANGED, B])])).contains("a_v1"));
    assert_eq!(dump(&folder), before);
}

#[test]
fn a_newer_database_is_refused_and_stays_as_it_is() {
    let folder = applied(&[A, B]);
    let before = dump(&folder);
    let text = setup_text(open(folder.path(), &[chain(&[A]), NOTES]));
    assert!(text.contains("newer than this program") && text.contains("b_v2"), "{text}");
    assert_eq!(dump(&folder), before);
}

#[test]
fn files_out_of_order_are_refused_and_none_is_applied() {
    let folder = applied(&[A, C]);
    let before = dump(&folder);
    let text = setup_text(open(folder.path(), &[chain(&[A, B, C])]));
    assert!(text.contains("c_v3") && text.contains("b_v2"), "{text}");
    assert_eq!(dump(&folder), before);
}

#[test]
fn a_file_that_fails_leaves_nothing_of_itself() {
    let folder = applied(&[A]);
    let before = dump(&folder);
    assert!(setup_text(open(folder.path(), &[chain(&[A, BROKEN])])).contains("broken_v2"));
    assert_eq!(dump(&folder), before);
    open(folder.path(), &[chain(&[A, B])]).unwrap();
}

#[tokio::test]
async fn rows_that_only_grow_can_neither_be_changed_nor_deleted_nor_replaced() {
    let scene = scene();
    let grow =
        Write::one("growth.insert", "insert into growth (id, note) values ($1, $2)", values![1_i64, 1_i64]);
    scene.write(vec![insert("a"), grow]).await.unwrap();
    for sql in [
        "update growth set note = note",
        "delete from growth",
        "insert or replace into growth (id, note) values (1, 1)",
        "insert into growth (id, note) values (1, 1) on conflict (id) do update set note = 1",
    ] {
        let end = scene.write(vec![Write::any("growth.touch", sql, vec![])]).await;
        let rule = Error::Raised(Raise { write: "growth.touch", kind: RaiseKind::Rule });
        assert_eq!(end, Err(rule), "{sql}");
    }
}

#[test]
fn audit_and_ledger_rows_are_guarded_by_the_schema_itself() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[CORE]).unwrap();
    let schema = dump(&folder).join("\n");
    for table in ["audit_events", "billing_ledger_entries"] {
        for verb in ["update", "delete"] {
            assert!(
                schema.contains(&format!("{table}_no_{verb} before {verb} on {table}")),
                "{table} {verb}"
            );
        }
    }
}

#[test]
fn the_rendered_schema_is_the_one_that_was_reviewed() {
    for chain in [CORE, CERTIFY] {
        for file in chain.files {
            let text = store::migration::render(file.sql);
            assert!(!text.contains("{pk}") && !text.contains("{strict"), "{}", file.name);
            insta::assert_snapshot!(file.name, text);
        }
    }
}
