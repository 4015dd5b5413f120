//! Reads: on one committed state, the newest.

use store::Query;

use crate::scene::{insert, insert_bytes, scene};

#[tokio::test]
async fn a_read_after_an_answer_sees_what_was_answered() {
    let scene = scene().await;
    for n in 1..50 {
        scene.write(vec![insert(&n.to_string())]).await.unwrap();
        assert_eq!(scene.names().await.len(), n);
    }
}

#[tokio::test]
async fn several_reads_see_one_state_while_writes_go_on() {
    let scene = scene().await;
    let writes: Vec<_> = (0..200).map(|n| scene.enqueue(vec![insert_bytes(&n.to_string(), 100)])).collect();
    for _ in 0..50 {
        let count = Query::new("notes.count", "select count(*) from notes", vec![]);
        let rows = scene.store.queries(vec![count.clone(), count.clone(), count]).await.unwrap();
        let seen: Vec<i64> = rows.iter().map(|rows| rows[0].int(0).unwrap()).collect();
        assert!(seen.iter().all(|n| *n == seen[0]), "{seen:?}");
    }
    for end in writes {
        end.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_read_cannot_write() {
    let scene = scene().await;
    let sneaking = Query::new("sneak", "insert into notes (name) values ('x') returning id", vec![]);
    assert!(scene.store.query(sneaking).await.is_err());
    assert!(scene.names().await.is_empty());
}
