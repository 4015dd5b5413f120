//! COMMIT on the wire: what is known when its answer does not come.

use std::time::Duration;

use store::{Error, RaiseKind, Write, values};
use testkit::proxy::{Fault, Moment};

use super::stage::{ask, stage};
use crate::scene::insert;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_counts_as_unknown() {
    let stage = stage(|_| {}).await;
    stage.scene.write(vec![insert("before")]).await.unwrap();
    let fault = stage.proxy.set(Fault::Commit(Moment::After).times(1));
    let end = stage.scene.write(vec![insert("lost")]).await;
    assert!(matches!(end, Err(Error::Indeterminate { .. })), "{end:?}");
    assert_eq!(fault.fired(), 1);
    assert_eq!(stage.kept(), ["before", "lost"], "it happened all the same");
    stage.scene.write(vec![insert("after")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_counts_as_unknown_and_did_not_happen() {
    let stage = stage(|_| {}).await;
    stage.scene.write(vec![insert("before")]).await.unwrap();
    let fault = stage.proxy.set(Fault::Commit(Moment::Before).times(1));
    let end = stage.scene.write(vec![insert("lost")]).await;
    assert!(matches!(end, Err(Error::Indeterminate { .. })), "{end:?}");
    assert_eq!(fault.fired(), 1);
    assert_eq!(stage.kept(), ["before"]);
    stage.scene.write(vec![insert("after")]).await.unwrap();
}

/// It is asked for its writes once: whether they happened is for the door to look up, never to guess.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_commit_is_never_tried_again_by_the_engine() {
    for moment in [Moment::Before, Moment::After, Moment::Late(Duration::from_millis(50))] {
        let stage = stage(|_| {}).await;
        stage.scene.write(vec![insert("before")]).await.unwrap();
        stage.proxy.set(Fault::Commit(moment).times(1));
        let (end, times) = ask(&stage.scene.store, vec![insert("once")]);
        let end = end.await.unwrap();
        assert!(matches!(end, Err(Error::Indeterminate { .. })), "{end:?}");
        assert_eq!(times.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
}

/// The commit is already on the wire when the check fails, and answers without an error.
#[tokio::test]
async fn a_write_that_missed_its_row_is_undone_though_its_commit_was_sent_with_it() {
    let stage = stage(|_| {}).await;
    for sql in [
        "update notes set version = 2 where name = 'nobody'",
        "update notes set version = 2 where name = 'nobody' returning id",
        "insert into growth (note) select id from notes where name = 'nobody'",
        "delete from notes where name = 'nobody'",
    ] {
        let missing = Write::one("notes.miss", sql, vec![]);
        for writes in [vec![insert("a"), missing.clone()], vec![missing, insert("a")]] {
            let end = stage.scene.write(writes).await;
            let raised =
                matches!(&end, Err(Error::Raised(raise)) if raise.kind == RaiseKind::Rows { hit: 0 });
            assert!(raised, "{sql}: {end:?}");
        }
    }
    assert!(stage.kept().is_empty());
    assert!(stage.open_transactions().is_empty());
}

#[tokio::test]
async fn an_error_in_the_middle_of_many_writes_names_its_write_and_undoes_them_all() {
    let stage = stage(|_| {}).await;
    stage.scene.write(vec![insert("taken")]).await.unwrap();
    let mut writes: Vec<Write> = (0..40).map(|n| insert(&n.to_string())).collect();
    let sql = "insert into notes (name) values ($1)";
    writes.insert(20, Write::one("notes.taken", sql, values!["taken"]));
    let end = stage.scene.write(writes).await;
    let named = matches!(&end, Err(Error::Raised(raise)) if raise.write == "notes.taken");
    assert!(named, "{end:?}");
    assert_eq!(stage.kept(), ["taken"]);
}

/// A rule that is only checked at the commit itself.
#[tokio::test]
async fn a_commit_that_the_server_refuses_did_not_happen() {
    let stage = stage(|_| {}).await;
    testkit::postgres::execute(
        &stage.database.direct,
        "create table late (id bigint primary key, other bigint references late (id) deferrable initially deferred)",
    );
    let orphan =
        Write::one("late.insert", "insert into late (id, other) values ($1, $2)", values![1_i64, 2_i64]);
    let end = stage.scene.write(vec![insert("a"), orphan]).await;
    assert!(matches!(end, Err(Error::Raised(_))), "{end:?}");
    assert!(stage.kept().is_empty());
    stage.scene.write(vec![insert("b")]).await.unwrap();
}
