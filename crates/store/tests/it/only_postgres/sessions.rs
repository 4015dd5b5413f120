//! Sessions: none is kept that is of no use, none is left inside a transaction.

use std::sync::atomic::Ordering;
use std::time::Duration;

use store::{Error, Query, Write, values};
use testkit::postgres;
use testkit::proxy::Fault;

use super::stage::{SHORT, ask, open, stage};
use crate::scene::{Scene, insert};

const OTHERS: &str = "select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_the_server_ended_are_replaced_without_anybody_noticing() {
    let stage = stage(|_| {}).await;
    for round in 0..5 {
        stage.scene.write(vec![insert(&format!("before-{round}"))]).await.unwrap();
        postgres::execute(&stage.database.direct, OTHERS);
        assert_eq!(stage.scene.names().await.len(), round * 2 + 1);
        stage.scene.write(vec![insert(&format!("after-{round}"))]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_the_network_cut_are_replaced_without_anybody_noticing() {
    let stage = stage(|_| {}).await;
    for round in 0..5 {
        stage.scene.write(vec![insert(&format!("before-{round}"))]).await.unwrap();
        stage.proxy.drop_all();
        stage.scene.write(vec![insert(&format!("after-{round}"))]).await.unwrap();
    }
    assert_eq!(stage.kept().len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_swallows_everything_is_given_up_in_bounded_time() {
    let stage = stage(|settings| settings.timeouts.answer = SHORT).await;
    stage.scene.write(vec![insert("before")]).await.unwrap();
    stage.proxy.set(Fault::BlackHole);
    let end = tokio::time::timeout(Duration::from_secs(30), stage.scene.write(vec![insert("lost")])).await;
    assert!(matches!(end, Ok(Err(Error::Unavailable { .. } | Error::Indeterminate { .. }))), "{end:?}");
    stage.proxy.clear();
    stage.scene.write(vec![insert("after")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_writes_is_left_until_it_does() {
    let stage = stage(|_| {}).await;
    stage.scene.write(vec![insert("before")]).await.unwrap();
    let name = postgres::rows(&stage.database.direct, "select current_database()::text").remove(0);
    let admin = |words: &str| {
        postgres::execute(&stage.database.direct, &format!("alter database {name} {words}"));
        postgres::execute(&stage.database.direct, OTHERS);
    };
    admin("set default_transaction_read_only = on");
    let end = stage.scene.write(vec![insert("refused")]).await;
    assert!(matches!(end, Err(Error::Unavailable { .. })), "{end:?}");
    // The one who lifts it must be able to write.
    let lifting =
        format!("begin read write; alter database {name} reset default_transaction_read_only; commit");
    postgres::execute(&stage.database.direct, &lifting);
    // A pooler keeps sessions that were made meanwhile.
    postgres::execute(&stage.database.direct, OTHERS);
    stage.scene.write(vec![insert("after")]).await.unwrap();
    assert_eq!(stage.kept(), ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_wait_for_each_other_both_end_and_both_are_kept() {
    let stage = stage(|_| {}).await;
    stage.scene.write(vec![insert("a"), insert("b")]).await.unwrap();
    let bump = |name: &str| {
        // Slow enough for the other to take its first row meanwhile.
        let sql = "update notes set version = version + 1 where name = $1 and pg_sleep(0.05) is not null";
        Write::one("notes.bump", sql, values![name])
    };
    let mut asked = 0;
    for _ in 0..10 {
        let (one, first) = ask(&stage.scene.store, vec![bump("a"), bump("b")]);
        let (two, second) = ask(&stage.scene.store, vec![bump("b"), bump("a")]);
        one.await.unwrap().unwrap();
        two.await.unwrap().unwrap();
        asked += first.load(Ordering::SeqCst) + second.load(Ordering::SeqCst);
    }
    let versions = postgres::rows(&stage.database.direct, "select version::text from notes order by name");
    assert_eq!(versions, ["21", "21"]);
    assert!(asked > 20, "no deadlock came about");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_counted_on_from_what_stands_there_are_never_doubled_and_never_missed() {
    let stage = stage(|settings| settings.connections = 8).await;
    let next =
        Write::one("notes.next", "insert into notes (name) select 'n' || (count(*) + 1) from notes", vec![]);
    let ends: Vec<_> = (0..8).map(|_| ask(&stage.scene.store, vec![next.clone().numbered()]).0).collect();
    let mut kept = 0;
    for end in ends {
        kept += usize::from(end.await.unwrap().is_ok());
    }
    let mut names = stage.kept();
    names.sort();
    assert_eq!(names, (1..=kept).map(|n| format!("n{n}")).collect::<Vec<_>>());
    assert!(kept >= 4, "{kept}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_too_long_is_ended_and_the_session_goes_on() {
    let stage = stage(|settings| settings.timeouts.statement = SHORT).await;
    let slow = Write::any("slow", "select pg_sleep(60)", vec![]);
    let end = stage.scene.write(vec![insert("a"), slow]).await;
    assert!(matches!(end, Err(Error::Unavailable { .. })), "{end:?}");
    assert!(stage.kept().is_empty() && stage.open_transactions().is_empty());
    stage.scene.write(vec![insert("b")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_survey_may_take_longer_than_any_other_read_and_the_session_is_bounded_again_behind_it() {
    let stage = stage(|settings| {
        settings.connections = 1;
        (settings.timeouts.statement, settings.timeouts.answer) = (SHORT, SHORT * 4);
    })
    .await;
    let slow = || vec![Query::new("slow", "select 1 from pg_sleep(0.5)", vec![]); 2];
    let store = &stage.scene.store;
    let refused = store.queries(slow()).await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    let surveyed = store.survey(slow()).await.unwrap();
    assert_eq!(surveyed.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    let again = store.queries(slow()).await;
    assert!(matches!(again, Err(Error::Unavailable { .. })), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_used_up_says_so_in_bounded_time() {
    let stage = stage(|settings| {
        settings.connections = 1;
        settings.timeouts.free = SHORT;
    })
    .await;
    let hold = stage.scene.hold();
    let end = stage.scene.write(vec![insert("late")]).await;
    assert!(matches!(&end, Err(Error::Unavailable { cause }) if cause.contains("became free")), "{end:?}");
    drop(hold);
    stage.scene.write(vec![insert("after")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_schema_costs_no_more_than_another_try() {
    let stage = stage(|_| {}).await;
    stage.scene.write(vec![insert("a")]).await.unwrap();
    assert_eq!(stage.scene.names().await, ["a"]);
    for change in [
        "alter table notes add column more text",
        "alter table notes alter column name type varchar(300)",
        "alter table notes alter column version type int",
    ] {
        postgres::execute(&stage.database.direct, change);
        let sql = "select name, version from notes order by id";
        let rows = stage.scene.store.query(Query::new("notes.read", sql, vec![])).await.unwrap();
        assert_eq!(rows[0].text(0), Ok("a"), "{change}");
        assert_eq!(stage.scene.names().await[0], "a", "{change}");
        stage.scene.write(vec![insert(change)]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_nodes_that_start_at_once_make_the_schema_once() {
    let database = postgres::required();
    let starts = (0..8).map(|_| {
        let settings = database.settings();
        tokio::spawn(async move { open(&settings).await })
    });
    for (n, start) in starts.collect::<Vec<_>>().into_iter().enumerate() {
        let scene = Scene { store: start.await.unwrap(), folder: tempfile::tempdir().unwrap() };
        scene.write(vec![insert(&n.to_string())]).await.unwrap();
    }
    let files = postgres::rows(&database.direct, "select count(*) from schema_migrations");
    assert_eq!(files, ["2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_databases_clock_is_known_to_the_node() {
    let stage = stage(|_| {}).await;
    stage.scene.write(vec![insert("a")]).await.unwrap();
    // The test's clock wins over both, so they are one.
    assert_eq!(stage.scene.store.ahead(), 0);
}
