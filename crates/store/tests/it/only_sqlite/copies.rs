//! Copies while writes go on; what the engine finds wrong.

use std::sync::Arc;

use store::Query;

use crate::scene::{Scene, insert, insert_bytes, open, scene, setup_text};

#[tokio::test]
async fn a_copy_under_load_holds_everything_acknowledged_before_it_and_is_whole() {
    let scene = Arc::new(scene().await);
    let writing = {
        let scene = Arc::clone(&scene);
        tokio::spawn(async move {
            for n in 0..400 {
                scene.write(vec![insert_bytes(&format!("load-{n}"), 3000)]).await.unwrap();
            }
        })
    };
    for round in 0..5_usize {
        scene.write(vec![insert(&format!("before-{round}"))]).await.unwrap();
        let other = tempfile::tempdir().unwrap();
        scene.store.copy_to(other.path().join(store::FILE)).await.unwrap();
        let copy = open(other.path(), &[crate::scene::NOTES]).await.unwrap();
        let found =
            copy.query(Query::new("notes", "select count(*) from notes where name like 'before-%'", vec![]));
        assert_eq!(found.await.unwrap()[0].int(0), Ok(i64::try_from(round + 1).unwrap()));
        assert!(copy.integrity().await.unwrap().is_empty());
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn a_copy_never_replaces_a_file() {
    let scene = scene().await;
    let target = scene.folder.path().join("copy.db");
    std::fs::write(&target, "precious").unwrap();
    assert!(setup_text(scene.store.copy_to(target.clone()).await).contains("give a new name"));
    assert_eq!(std::fs::read_to_string(target).unwrap(), "precious");
}

#[tokio::test]
async fn a_copy_into_a_missing_folder_says_so_and_leaves_nothing() {
    let scene = scene().await;
    let target = scene.folder.path().join("missing").join("copy.db");
    setup_text(scene.store.copy_to(target.clone()).await);
    assert!(!target.exists());
}

#[tokio::test]
async fn a_whole_file_has_nothing_to_report() {
    let scene = scene().await;
    scene.write(vec![insert("a")]).await.unwrap();
    assert_eq!(scene.store.integrity().await, Ok(vec![]));
}

#[tokio::test]
async fn a_row_without_its_parent_is_reported_by_its_table() {
    let scene = scene().await;
    scene.write(vec![insert("a")]).await.unwrap();
    let Scene { store, folder } = scene;
    drop(store);
    let raw = rusqlite::Connection::open(folder.path().join(store::FILE)).unwrap();
    raw.execute_batch("pragma foreign_keys = off; insert into growth (note) values (77)").unwrap();
    drop(raw);
    let store = open(folder.path(), &[crate::scene::NOTES]).await.unwrap();
    assert_eq!(store.integrity().await, Ok(vec!["growth".to_owned()]));
}
