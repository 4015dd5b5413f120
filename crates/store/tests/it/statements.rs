//! What goes in comes out; what a write demands is checked.

use store::error::RaiseKind;
use store::{Error, Query, Raise, Value, Write, values};

use crate::scene::{insert, scene};

fn raised(write: &'static str, kind: RaiseKind) -> Error {
    Error::Raised(Raise { write, kind })
}

#[tokio::test]
async fn values_of_every_kind_come_back_as_they_went_in() {
    let sql = "select $1, $2, $3, $4, $5";
    let put = values![i64::MIN, "ключ\u{0}幂等", vec![0_u8, 255], None::<i64>, i64::MAX];
    let row = scene().store.query(Query::new("echo", sql, put)).await.unwrap().remove(0);
    assert_eq!(row.int(0), Ok(i64::MIN));
    assert_eq!(row.text(1), Ok("ключ\u{0}幂等"));
    assert_eq!(row.bytes(2), Ok(&[0, 255][..]));
    assert_eq!(row.int_or_null(3), Ok(None));
    assert_eq!(row.int(4), Ok(i64::MAX));
}

#[tokio::test]
async fn a_parameter_may_come_again_after_its_first_place() {
    let row =
        scene().store.query(Query::new("echo", "select $1, $2, $1", values![1_i64, 2_i64])).await.unwrap();
    assert_eq!([row[0].int(0), row[0].int(1), row[0].int(2)], [Ok(1), Ok(2), Ok(1)]);
}

#[tokio::test]
async fn parameters_out_of_order_are_refused_in_reads_and_writes() {
    let scene = scene();
    let read = scene.store.query(Query::new("echo", "select $2, $1", values![1_i64, 2_i64])).await;
    assert!(matches!(read, Err(Error::Statement { name: "echo", .. })), "{read:?}");
    let write = Write::one("notes.odd", "insert into notes (id, name) values ($2, $1)", values!["a", 1_i64]);
    let wrote = scene.write(vec![write]).await;
    assert!(matches!(wrote, Err(Error::Statement { name: "notes.odd", .. })), "{wrote:?}");
}

#[tokio::test]
async fn a_wrong_number_of_values_is_refused() {
    let read = scene().store.query(Query::new("echo", "select $1, $2", values![1_i64])).await;
    assert!(matches!(read, Err(Error::Statement { name: "echo", .. })), "{read:?}");
}

#[tokio::test]
async fn statements_run_in_their_order_and_see_each_other() {
    let scene = scene();
    let rename = Write::one("notes.rename", "update notes set name = $1 where name = $2", values!["b", "a"]);
    scene.write(vec![insert("a"), rename, insert("a")]).await.unwrap();
    assert_eq!(scene.names().await, ["b", "a"]);
}

#[tokio::test]
async fn a_write_that_misses_its_row_raises_and_undoes_the_submission() {
    let scene = scene();
    let lost = Write::one("notes.bump", "update notes set version = 2 where version = $1", values![9_i64]);
    let end = scene.write(vec![insert("a"), lost]).await;
    assert_eq!(end, Err(raised("notes.bump", RaiseKind::Rows { hit: 0 })));
    assert!(scene.names().await.is_empty());
}

#[tokio::test]
async fn a_write_that_hits_two_rows_raises_with_and_without_returning() {
    for sql in ["update notes set version = 2", "update notes set version = 2 returning id"] {
        let scene = scene();
        scene.write(vec![insert("a"), insert("b")]).await.unwrap();
        let end = scene.write(vec![Write::one("notes.bump", sql, vec![])]).await;
        assert_eq!(end, Err(raised("notes.bump", RaiseKind::Rows { hit: 2 })), "{sql}");
        scene.write(vec![Write::any("notes.bump", sql, vec![])]).await.unwrap();
    }
}

#[tokio::test]
async fn a_taken_value_raises_and_names_the_write() {
    let scene = scene();
    scene.write(vec![insert("a")]).await.unwrap();
    assert_eq!(scene.write(vec![insert("a")]).await, Err(raised("notes.insert", RaiseKind::Unique)));
}

#[tokio::test]
async fn a_broken_rule_of_a_table_raises_and_names_the_write() {
    let scene = scene();
    let orphan = Write::one("growth.insert", "insert into growth (note) values ($1)", values![99_i64]);
    assert_eq!(scene.write(vec![orphan]).await, Err(raised("growth.insert", RaiseKind::Rule)));
    let empty = Write::one("notes.insert", "insert into notes (name) values ($1)", vec![Value::Null]);
    assert_eq!(scene.write(vec![empty]).await, Err(raised("notes.insert", RaiseKind::Rule)));
}

#[tokio::test]
async fn what_a_write_returns_is_found_by_its_name() {
    let scene = scene();
    let mut first = insert("a");
    first.sql = format!("{} returning id, name", first.sql).into();
    let written = scene.write(vec![first]).await.unwrap();
    assert_eq!(written.row("notes.insert").unwrap().text(1), Ok("a"));
    assert!(written.row("other").is_none());
    assert!(written.rows("other").is_empty());
}

#[tokio::test]
async fn a_value_of_another_kind_is_named_and_not_guessed() {
    let scene = scene();
    let read = |sql: &'static str| scene.store.query(Query::new("notes.read", sql, vec![]));
    let corrupt = |column: &str| Error::Corrupt { table: "notes.read", column: column.into() };
    assert_eq!(read("select 1, 'text'").await.unwrap()[0].int(1), Err(corrupt("1")));
    assert_eq!(read("select 1").await.unwrap()[0].text(3), Err(corrupt("3")));
    assert_eq!(read("select x'00'").await.unwrap()[0].digest(0), Err(corrupt("0")));
    assert_eq!(read("select 1, 0.5").await, Err(corrupt("1")));
    assert_eq!(read("select cast(x'ff' as text)").await, Err(corrupt("0")));
}

#[tokio::test]
async fn a_wrong_statement_is_our_fault_and_nothing_is_kept() {
    let scene = scene();
    let wrong = Write::any("notes.wrong", "insert into nothing values (1)", vec![]);
    let end = scene.write(vec![insert("a"), wrong]).await;
    assert!(matches!(end, Err(Error::Statement { name: "notes.wrong", .. })), "{end:?}");
    assert!(scene.names().await.is_empty());
}
