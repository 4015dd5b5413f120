//! Locks between processes, as two stores on one database take them.

use std::sync::Arc;
use std::time::Duration;

use store::{Error, Lock, Query, Settings, Store, values};
use testkit::MovableClock;
use testkit::postgres;

use crate::scene::{NOTES, Scene, insert};

const TRY: Lock = Lock::Try { pair: 7, key: 8 };

/// Two nodes of one installation.
async fn nodes() -> [Scene; 2] {
    let database = postgres::required();
    let node = async || {
        let settings = Settings::Postgres(database.settings());
        let store = Store::open(&settings, &[NOTES], Arc::new(MovableClock::at(1000))).await.unwrap();
        Scene { store, folder: tempfile::tempdir().unwrap() }
    };
    [node().await, node().await]
}

/// Holds a lock in a transaction of `scene` while `other` runs.
async fn while_held<T>(scene: &Scene, lock: Lock, other: impl Future<Output = T>) -> T {
    let (started, begun) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let end = scene.locked(lock, vec![], move |_, _| {
        started.send(()).unwrap();
        let _ = tokio::task::block_in_place(|| released.recv());
        Ok(vec![insert("held")])
    });
    begun.await.unwrap();
    let seen = other.await;
    drop(release);
    end.await.unwrap().unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_nodes_one_has_the_key_and_the_other_hears_who() {
    let [one, two] = nodes().await;
    while_held(&one, TRY, async {
        let twin = two.locked(TRY, vec![], |_, _| Ok(vec![insert("twin")])).await.unwrap();
        assert_eq!(twin, Err(Error::Busy { same: true }));
        let other = Lock::Try { pair: 9, key: 8 };
        let other = two.locked(other, vec![], |_, _| Ok(vec![insert("other")])).await.unwrap();
        assert_eq!(other, Err(Error::Busy { same: false }));
        let elsewhere = Lock::Try { pair: 10, key: 11 };
        two.locked(elsewhere, vec![], |_, _| Ok(vec![insert("elsewhere")])).await.unwrap().unwrap();
    })
    .await;
    two.locked(TRY, vec![], |_, _| Ok(vec![insert("after")])).await.unwrap().unwrap();
    let mut names = two.names().await;
    names.sort();
    assert_eq!(names, ["after", "elsewhere", "held"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_wait_for_a_key_ends_with_what_its_holder_committed() {
    let [one, two] = nodes().await;
    let count = Query::new("notes.count", "select count(*) from notes", vec![]);
    // The receiver is taken out unawaited: its end comes only once the key is free.
    let mut waiting = None;
    while_held(&one, TRY, async {
        waiting = Some(two.locked(Lock::Wait { pair: 12, key: 8 }, vec![count], |rows, _| {
            Ok(vec![insert(&format!("saw-{}", rows[0][0].int(0)?))])
        }));
        waiting_for_a_lock(&two).await;
    })
    .await;
    waiting.unwrap().await.unwrap().unwrap();
    assert_eq!(two.names().await, ["held", "saw-1"]);
}

/// Returns when a session of the database waits for an advisory lock.
async fn waiting_for_a_lock(scene: &Scene) {
    let sql = "select count(*) from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())";
    let look = || scene.store.query(Query::new("locks", sql, values![]));
    while look().await.unwrap()[0].int(0) == Ok(0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_wait_for_a_key_has_an_end() {
    let database = postgres::required();
    let mut settings = database.settings();
    settings.timeouts.lock = Duration::from_millis(50);
    let settings = Settings::Postgres(settings);
    let store = Store::open(&settings, &[NOTES], Arc::new(MovableClock::at(1000))).await.unwrap();
    let scene = Scene { store, folder: tempfile::tempdir().unwrap() };
    let end = while_held(&scene, TRY, async {
        scene.locked(Lock::Wait { pair: 12, key: 8 }, vec![], |_, _| Ok(vec![insert("late")])).await.unwrap()
    });
    assert!(matches!(end.await, Err(Error::Unavailable { .. })));
    assert_eq!(scene.names().await, ["held"]);
}
