//! The schema brought up while others work: turns, short waits, a clear end.

use std::sync::Arc;
use std::time::Duration;

use store::migration::{Chain, File, Older};
use store::{Error, Settings, Store};
use testkit::MovableClock;
use testkit::postgres::{self, Database};

use crate::scene::{Scene, insert, setup_text};

const BASE: File = File::new("base_v1", "create table notes (id {pk}, name text not null unique) {strict};");
const ALTERS: File = File {
    older: Older::MayServe,
    ..File::new("alters_v2", "alter table notes add column more text; create table aside (id {pk}) {strict};")
};
const OLD: Chain = Chain { name: "test", files: &[BASE] };
const NEW: Chain = Chain { name: "test", files: &[BASE, ALTERS] };

async fn open(database: &Database, chain: Chain, patience: Duration) -> Result<Store, Error> {
    let settings = Settings::Postgres(database.settings());
    Store::open_within(&settings, &[chain], Arc::new(MovableClock::at(1000)), patience).await
}

async fn scene(database: &Database, chain: Chain) -> Scene {
    let store = open(database, chain, Duration::from_secs(60)).await.unwrap();
    Scene { store, folder: tempfile::tempdir().unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_in_long_use_ends_the_try_and_the_schema_stays_as_it_was() {
    let database = postgres::required();
    let old = scene(&database, OLD).await;
    let (long, wire) = tokio_postgres::connect(&database.direct, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(wire);
    long.batch_execute("begin; select count(*) from notes").await.unwrap();
    let text = setup_text(open(&database, NEW, Duration::from_secs(2)).await);
    assert!(text.contains("within 2 s") && text.contains("long transaction"), "{text}");
    // Nobody queues behind a try that has ended.
    old.write(vec![insert("meanwhile")]).await.unwrap();
    let there = postgres::rows(&database.direct, "select name from schema_migrations order by name");
    assert_eq!(there, ["base_v1", "postgres_functions_v1"]);
    assert_eq!(postgres::rows(&database.direct, "select to_regclass('aside') is null"), ["t"]);
    long.batch_execute("commit").await.unwrap();
    open(&database, NEW, Duration::from_secs(60)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_older_node_works_on_through_a_change_that_it_may_serve_with() {
    let database = postgres::required();
    let old = Arc::new(scene(&database, OLD).await);
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let working = {
        let old = Arc::clone(&old);
        tokio::spawn(async move {
            let mut n = 0;
            while !*stopped.borrow_and_update() {
                old.write(vec![insert(&format!("old-{n}"))]).await.unwrap();
                n += 1;
            }
            n
        })
    };
    let new = scene(&database, NEW).await;
    new.write(vec![insert("new")]).await.unwrap();
    // Also one that starts now.
    scene(&database, OLD).await.write(vec![insert("old, started later")]).await.unwrap();
    old.write(vec![insert("old, after")]).await.unwrap();
    stop.send(true).unwrap();
    let written = working.await.unwrap();
    assert_eq!(new.names().await.len(), written + 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_start_together_bring_it_up_once_and_leave_no_lock() {
    let database = Arc::new(postgres::required());
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let database = Arc::clone(&database);
        nodes.spawn(async move { open(&database, NEW, Duration::from_secs(60)).await.map(drop) });
    }
    for end in nodes.join_all().await {
        end.unwrap();
    }
    let there = postgres::rows(&database.direct, "select name from schema_migrations order by applied_at");
    assert_eq!(there, ["postgres_functions_v1", "base_v1", "alters_v2"]);
    let locks = "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())";
    assert_eq!(postgres::rows(&database.direct, locks), ["0"]);
}
