//! What goes in comes out; what a write demands is checked.

use kernel::Time;
use store::{Error, Query, Raise, RaiseKind, Value, Write, values};

use crate::scene::{insert, scene};

fn raised(write: &'static str, kind: RaiseKind) -> Error {
    Error::Raised(Raise { write, kind })
}

#[tokio::test]
async fn values_of_every_kind_come_back_as_they_went_in() {
    let scene = scene().await;
    let sql = "insert into notes (name, body, version, at, flag, json, money, address) values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let json = "{ \"b\": 1.50,  \"a\":\"\\u00e9\" }";
    let at = Time::from_micros(1_772_358_554_123_456);
    let row = values![
        "ключ 幂等",
        vec![0_u8, 255],
        i64::MIN,
        at,
        true,
        json,
        Value::Money(-12_345_678_901),
        "2001:db8::1"
    ];
    scene.write(vec![Write::one("notes.insert", sql, row)]).await.unwrap();
    let read = "select name, body, version, at, flag, json, money, address, null from notes";
    let row = scene.store.query(Query::new("notes.read", read, vec![])).await.unwrap().remove(0);
    assert_eq!(row.text(0), Ok("ключ 幂等"));
    assert_eq!(row.bytes(1), Ok(&[0, 255][..]));
    assert_eq!(row.int(2), Ok(i64::MIN));
    assert_eq!(row.time(3), Ok(at));
    assert_eq!(row.flag(4), Ok(true));
    assert_eq!(row.text(5), Ok(json));
    assert_eq!(row.int(6), Ok(-12_345_678_901));
    assert_eq!(row.text(7), Ok("2001:db8::1"));
    assert_eq!(row.text_or_null(8), Ok(None));
}

#[tokio::test]
async fn sums_of_numbers_and_of_money_are_exact() {
    let scene = scene().await;
    let sql = "insert into notes (name, version, money) values ($1, $2, $3)";
    for (name, money) in [("a", 1_i64), ("b", 9_007_199_254_740_993), ("c", -3)] {
        let row = values![name, 9_007_199_254_740_993_i64, Value::Money(money)];
        scene.write(vec![Write::one("notes.insert", sql, row)]).await.unwrap();
    }
    let read = "select sum(version), sum(money) from notes";
    let row = scene.store.query(Query::new("notes.read", read, vec![])).await.unwrap().remove(0);
    assert_eq!((row.int(0), row.int(1)), (Ok(27_021_597_764_222_979), Ok(9_007_199_254_740_991)));
}

#[tokio::test]
async fn sums_of_any_size_are_exact_and_equal_ones_are_equal_texts() {
    let (most, half) = (i64::MAX, 1 << 32);
    let sets: [(&[i64], &[i64]); 6] = [
        (&[], &[]),
        (&[0], &[-1, 1]),
        (&[most, most, most], &[most, most, most - 5, 5]),
        (&[i64::MIN, i64::MIN], &[i64::MIN, i64::MIN + 9, -9]),
        (&[half], &[half - 1, 1]),
        (&[-half - 1], &[-1, -half]),
    ];
    let sql = "insert into notes (name, money) values ($1, $2)";
    let part = |side| format!("{{sum case when name like '{side}%' then money else 0 end}}");
    let (left, right) = (part("l"), part("r"));
    let read = format!("select {left}, {right}, case when {left} = {right} then 1 else 0 end from notes");
    for (left, right) in sets {
        let scene = scene().await;
        for (side, amounts) in [("l", left), ("r", right)] {
            for (n, amount) in amounts.iter().enumerate() {
                let row = values![format!("{side}{n}"), Value::Money(*amount)];
                scene.write(vec![Write::one("notes.insert", sql, row)]).await.unwrap();
            }
        }
        let rows = scene.store.query(Query::new("notes.read", read.clone(), vec![])).await.unwrap();
        let sum: i128 = left.iter().copied().map(i128::from).sum();
        assert_eq!(
            (rows[0].sum(0), rows[0].sum(1), rows[0].flag(2)),
            (Ok(sum), Ok(sum), Ok(true)),
            "{left:?}"
        );
    }
}

#[tokio::test]
async fn a_text_that_is_no_sum_is_not_taken_for_one() {
    let scene = scene().await;
    scene.write(vec![insert("12 x")]).await.unwrap();
    let rows = scene.store.query(Query::new("notes.read", "select name from notes", vec![])).await.unwrap();
    assert!(rows[0].sum(0).is_err());
}

#[tokio::test]
async fn a_parameter_may_come_again_after_its_first_place() {
    let scene = scene().await;
    scene.write(vec![insert("a"), insert("b")]).await.unwrap();
    let sql = "select name from notes where (name = $1 or name = $2) and name <> $1";
    let rows = scene.store.query(Query::new("notes.read", sql, values!["a", "b"])).await.unwrap();
    assert_eq!(rows[0].text(0), Ok("b"));
}

#[tokio::test]
async fn a_wrong_number_of_values_is_refused() {
    let sql = "select name from notes where name = $1 and version = $2";
    let read = scene().await.store.query(Query::new("notes.read", sql, values!["a"])).await;
    assert!(matches!(read, Err(Error::Statement { name: "notes.read", .. })), "{read:?}");
}

#[tokio::test]
async fn statements_run_in_their_order_and_see_each_other() {
    let scene = scene().await;
    let rename = Write::one("notes.rename", "update notes set name = $1 where name = $2", values!["b", "a"]);
    scene.write(vec![insert("a"), rename, insert("a")]).await.unwrap();
    assert_eq!(scene.names().await, ["b", "a"]);
}

#[tokio::test]
async fn a_write_that_misses_its_row_raises_and_undoes_the_submission() {
    let scene = scene().await;
    let lost = Write::one("notes.bump", "update notes set version = 2 where version = $1", values![9_i64]);
    let end = scene.write(vec![insert("a"), lost]).await;
    assert_eq!(end, Err(raised("notes.bump", RaiseKind::Rows { hit: 0 })));
    assert!(scene.names().await.is_empty());
}

#[tokio::test]
async fn a_write_that_hits_two_rows_raises_with_and_without_returning() {
    for sql in ["update notes set version = 2", "update notes set version = 2 returning id"] {
        let scene = scene().await;
        scene.write(vec![insert("a"), insert("b")]).await.unwrap();
        let end = scene.write(vec![Write::one("notes.bump", sql, vec![])]).await;
        assert_eq!(end, Err(raised("notes.bump", RaiseKind::Rows { hit: 2 })), "{sql}");
        scene.write(vec![Write::any("notes.bump", sql, vec![])]).await.unwrap();
    }
}

#[tokio::test]
async fn a_taken_value_raises_and_names_the_write() {
    let scene = scene().await;
    scene.write(vec![insert("a")]).await.unwrap();
    assert_eq!(scene.write(vec![insert("a")]).await, Err(raised("notes.insert", RaiseKind::Unique)));
}

#[tokio::test]
async fn a_broken_rule_of_a_table_raises_and_names_the_write() {
    let scene = scene().await;
    let orphan = Write::one("growth.insert", "insert into growth (note) values ($1)", values![99_i64]);
    assert_eq!(scene.write(vec![orphan]).await, Err(raised("growth.insert", RaiseKind::Rule)));
    let empty = Write::one("notes.insert", "insert into notes (name) values ($1)", vec![Value::Null]);
    assert_eq!(scene.write(vec![empty]).await, Err(raised("notes.insert", RaiseKind::Rule)));
}

#[tokio::test]
async fn what_a_write_returns_is_found_by_its_name() {
    let scene = scene().await;
    let mut first = insert("a");
    first.sql = format!("{} returning id, name", first.sql).into();
    let written = scene.write(vec![first]).await.unwrap();
    assert_eq!(written.row("notes.insert").unwrap().text(1), Ok("a"));
    assert!(written.row("other").is_none());
    assert!(written.rows("other").is_empty());
}

#[tokio::test]
async fn a_value_of_another_kind_is_named_and_not_guessed() {
    let scene = scene().await;
    let read = |sql: &'static str| scene.store.query(Query::new("notes.read", sql, vec![]));
    let corrupt = |column: &str| Error::Corrupt { table: "notes.read", column: column.into() };
    assert_eq!(read("select 1, 'text'").await.unwrap()[0].int(1), Err(corrupt("1")));
    assert_eq!(read("select 1").await.unwrap()[0].text(3), Err(corrupt("3")));
    assert_eq!(read("select 1, 0.5").await, Err(corrupt("1")));
}

#[tokio::test]
async fn a_wrong_statement_is_our_fault_and_nothing_is_kept() {
    let scene = scene().await;
    let wrong = Write::any("notes.wrong", "insert into nothing values (1)", vec![]);
    let end = scene.write(vec![insert("a"), wrong]).await;
    assert!(matches!(end, Err(Error::Statement { name: "notes.wrong", .. })), "{end:?}");
    assert!(scene.names().await.is_empty());
}
