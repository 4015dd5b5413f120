//! Parameters by position, and what its types alone would let through.

use store::{Error, Query, Write, values};

use crate::scene::scene;

#[tokio::test]
async fn parameters_out_of_order_are_refused_in_reads_and_writes() {
    let scene = scene().await;
    let read = scene.store.query(Query::new("echo", "select $2, $1", values![1_i64, 2_i64])).await;
    assert!(matches!(read, Err(Error::Statement { name: "echo", .. })), "{read:?}");
    let write = Write::one("notes.odd", "insert into notes (id, name) values ($2, $1)", values!["a", 1_i64]);
    let wrote = scene.write(vec![write]).await;
    assert!(matches!(wrote, Err(Error::Statement { name: "notes.odd", .. })), "{wrote:?}");
}

#[tokio::test]
async fn text_that_is_none_and_digests_of_another_length_are_named() {
    let scene = scene().await;
    let read = |sql: &'static str| scene.store.query(Query::new("notes.read", sql, vec![]));
    let corrupt = |column: &str| Error::Corrupt { table: "notes.read", column: column.into() };
    assert_eq!(read("select x'00'").await.unwrap()[0].digest(0), Err(corrupt("0")));
    assert_eq!(read("select cast(x'ff' as text)").await, Err(corrupt("0")));
}
