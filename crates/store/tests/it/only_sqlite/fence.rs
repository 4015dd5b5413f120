//! The fence: what was answered stands, what comes later is told so, and no program opens the folder.

use std::sync::Arc;

use store::{Error, Query, Settings, Store};
use testkit::MovableClock;

use crate::scene::{NOTES, Scene, insert, setup_text};

async fn opened(folder: &std::path::Path) -> Result<Store, Error> {
    Store::open(&Settings::folder(folder), &[NOTES], Arc::new(MovableClock::at(1000))).await
}

async fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    Scene { store: opened(folder.path()).await.unwrap(), folder }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_submissions_that_race_the_fence_those_answered_stand_and_no_other() {
    let scene = Arc::new(scene().await);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let scene = Arc::clone(&scene);
        writers.spawn(async move {
            for n in 0.. {
                match scene.write(vec![insert(&format!("{writer}-{n}"))]).await {
                    Ok(_) => {}
                    Err(Error::Fenced) => return n,
                    Err(other) => panic!("{other}"),
                }
            }
            0
        });
    }
    while scene.names().await.len() < 200 {
        tokio::task::yield_now().await;
    }
    scene.store.fence().await.unwrap();
    let stood = scene.names().await.len();
    let answered: usize = writers.join_all().await.into_iter().sum();
    assert_eq!((scene.names().await.len(), answered), (stood, stood));
}

#[tokio::test]
async fn a_fenced_folder_is_read_but_not_opened_until_the_fence_is_lifted() {
    let Scene { store, folder } = scene().await;
    store.fence().await.unwrap();
    store.fence().await.unwrap();
    assert!(store.is_closed() && store::copy::is_fenced(&store).await.unwrap());
    drop(store);
    let text = setup_text(opened(folder.path()).await);
    assert!(text.contains("fenced") && text.contains("--unfence"), "{text}");
    let look = Store::look(&Settings::folder(folder.path())).await.unwrap();
    assert!(look.query(Query::new("notes", "select count(*) from notes", vec![])).await.is_ok());
    store::lift_fence(folder.path()).unwrap();
    store::lift_fence(folder.path()).unwrap();
    let scene = Scene { store: opened(folder.path()).await.unwrap(), folder };
    scene.write(vec![insert("again")]).await.unwrap();
}

#[tokio::test]
async fn the_fence_can_be_lifted_under_a_running_server() {
    let scene = scene().await;
    scene.store.close();
    scene.store.fence().await.unwrap();
    assert_eq!(scene.write(vec![insert("late")]).await, Err(Error::Fenced));
    assert!(setup_text(store::lift_fence(scene.folder.path())).contains("another server"));
    scene.store.lift_fence().await.unwrap();
    scene.write(vec![insert("again")]).await.unwrap();
    assert!(!scene.store.is_closed() && !store::copy::is_fenced(&scene.store).await.unwrap());
    assert_eq!(scene.names().await, ["again"]);
}

#[tokio::test]
async fn a_look_changes_nothing_and_needs_a_database() {
    let empty = tempfile::tempdir().unwrap();
    assert!(setup_text(Store::look(&Settings::folder(empty.path())).await).contains("no database"));
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
    let scene = scene().await;
    let look =
        Scene { store: Store::look(&Settings::folder(scene.folder.path())).await.unwrap(), folder: empty };
    assert!(matches!(look.write(vec![insert("no")]).await, Err(Error::Unavailable { .. })));
}
