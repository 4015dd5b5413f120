//! What the embedded engine's own dialect would allow beyond the contract.

use store::{Error, Raise, RaiseKind, Write, values};

use crate::scene::{insert, scene};

#[tokio::test]
async fn a_row_that_only_grows_cannot_be_replaced() {
    let scene = scene().await;
    let grow =
        Write::one("growth.insert", "insert into growth (id, note) values ($1, $2)", values![1_i64, 1_i64]);
    scene.write(vec![insert("a"), grow]).await.unwrap();
    let sql = "insert or replace into growth (id, note) values (1, 1)";
    let end = scene.write(vec![Write::any("growth.touch", sql, vec![])]).await;
    assert_eq!(end, Err(Error::Raised(Raise { write: "growth.touch", kind: RaiseKind::Rule })));
}
