//! The schema: applied once, in order, unchanged; what is append-only stays so.

use store::dialect::Dialect;
use store::migration::{CERTIFY, CORE, Chain, File, Older};
use store::{Error, Raise, RaiseKind, Write, values};
use tempfile::TempDir;

use crate::scene::{NOTES, dump, insert, open, scene, setup_text};

const A: File = File::new("a_v1", "create table a (id {pk}) {strict};");
const A_CHANGED: File = File::new("a_v1", "create table a (id {pk}, more text) {strict};");
const B: File = File::new("b_v2", "create table b (id {pk}) {strict};");
const C: File = File::new("c_v3", "create table c (id {pk}) {strict};");
const ADDS: File =
    File { older: Older::MayServe, ..File::new("adds_v2", "create table adds (id {pk}) {strict};") };
const BROKEN: File = File::new("broken_v2", "create table half (id {pk}) {strict}; create tabel x;");

fn chain(files: &'static [File]) -> Chain {
    Chain { name: "test", files }
}

async fn applied(files: &'static [File]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[chain(files)]).await.unwrap();
    folder
}

#[tokio::test]
async fn applying_the_schema_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[CORE, CERTIFY]).await.unwrap();
    let first = dump(folder.path());
    for _ in 0..2 {
        open(folder.path(), &[CORE, CERTIFY]).await.unwrap();
        assert_eq!(dump(folder.path()), first);
    }
}

#[tokio::test]
async fn a_later_file_is_added_to_what_stands() {
    let folder = applied(&[A]).await;
    open(folder.path(), &[chain(&[A, B])]).await.unwrap();
    assert!(dump(folder.path()).iter().any(|line| line.starts_with("b_v2")));
}

#[tokio::test]
async fn a_file_that_was_changed_after_its_release_is_refused() {
    let folder = applied(&[A]).await;
    let before = dump(folder.path());
    assert!(setup_text(open(folder.path(), &[chain(&[A_CHANGED, B])]).await).contains("a_v1"));
    assert_eq!(dump(folder.path()), before);
}

#[tokio::test]
async fn a_newer_database_is_refused_and_stays_as_it_is() {
    let folder = applied(&[A, B]).await;
    let before = dump(folder.path());
    let text = setup_text(open(folder.path(), &[chain(&[A]), NOTES]).await);
    assert!(text.contains("newer than this program") && text.contains("b_v2"), "{text}");
    assert_eq!(dump(folder.path()), before);
}

#[tokio::test]
async fn files_out_of_order_are_refused_and_none_is_applied() {
    let folder = applied(&[A, C]).await;
    let before = dump(folder.path());
    let text = setup_text(open(folder.path(), &[chain(&[A, B, C])]).await);
    assert!(text.contains("c_v3") && text.contains("b_v2"), "{text}");
    assert_eq!(dump(folder.path()), before);
}

#[tokio::test]
async fn a_file_that_fails_leaves_nothing_of_itself() {
    let folder = applied(&[A]).await;
    let before = dump(folder.path());
    assert!(setup_text(open(folder.path(), &[chain(&[A, BROKEN])]).await).contains("broken_v2"));
    assert_eq!(dump(folder.path()), before);
    open(folder.path(), &[chain(&[A, B])]).await.unwrap();
}

#[tokio::test]
async fn a_newer_file_that_only_adds_does_not_stop_an_older_program() {
    let folder = applied(&[A, ADDS]).await;
    let before = dump(folder.path());
    open(folder.path(), &[chain(&[A])]).await.unwrap();
    assert_eq!(dump(folder.path()), before);
}

#[tokio::test]
async fn rows_that_only_grow_can_neither_be_changed_nor_deleted() {
    let scene = scene().await;
    let grow =
        Write::one("growth.insert", "insert into growth (id, note) values ($1, $2)", values![1_i64, 1_i64]);
    scene.write(vec![insert("a"), grow]).await.unwrap();
    for sql in [
        "update growth set note = note",
        "delete from growth",
        "insert into growth (id, note) values (1, 1) on conflict (id) do update set note = 1",
    ] {
        let end = scene.write(vec![Write::any("growth.touch", sql, vec![])]).await;
        let rule = Error::Raised(Raise { write: "growth.touch", kind: RaiseKind::Rule });
        assert_eq!(end, Err(rule), "{sql}");
    }
}

#[tokio::test]
async fn audit_and_ledger_rows_are_guarded_by_the_schema_itself() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[CORE]).await.unwrap();
    let schema = dump(folder.path()).join("\n").to_lowercase();
    for table in ["audit_events", "billing_ledger_entries"] {
        for verb in ["update", "delete"] {
            let mut guards = schema.split("create trigger").filter(|guard| guard.contains(verb));
            assert!(guards.any(|guard| guard.contains(table)), "{table} {verb}");
        }
    }
}

#[test]
fn the_rendered_schema_is_the_one_that_was_reviewed() {
    for (dialect, engine) in [(Dialect::Sqlite, "sqlite"), (Dialect::Postgres, "postgres")] {
        for file in [CORE, CERTIFY].iter().flat_map(|chain| chain.files) {
            let text = dialect.render(file.sql);
            assert!(!text.contains('{'), "{}", file.name);
            insta::assert_snapshot!(format!("{engine}_{}", file.name), text);
        }
    }
}

/// What the engine made of it: every column, index, rule and trigger.
#[tokio::test]
async fn the_schema_read_back_is_the_one_that_was_reviewed() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[CORE, CERTIFY]).await.unwrap();
    let registered = |line: &String| {
        line.starts_with("platform_core_schema_v1")
            || line.starts_with("certify_schema_v1")
            || line.starts_with("postgres_functions_v1")
    };
    let lines: Vec<String> = dump(folder.path()).into_iter().filter(|line| !registered(line)).collect();
    let engine = testkit::postgres::beside(folder.path()).map_or("sqlite", |_| "postgres");
    insta::assert_snapshot!(format!("{engine}_catalogue"), lines.join("\n"));
}
