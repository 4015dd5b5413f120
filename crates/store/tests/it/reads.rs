//! Reads: beside the writer, on one state.

use std::time::Duration;

use store::Query;

use crate::scene::{insert, insert_bytes, scene};

#[tokio::test]
async fn reads_do_not_wait_for_the_writer() {
    let scene = scene();
    scene.write(vec![insert("a")]).await.unwrap();
    let _hold = scene.hold();
    let waits = scene.enqueue(vec![insert("b")]);
    for _ in 0..8 {
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), scene.names()).await.unwrap(), ["a"]);
    }
    drop(waits);
}

#[tokio::test]
async fn a_read_after_an_answer_sees_what_was_answered() {
    let scene = scene();
    for n in 1..50 {
        scene.write(vec![insert(&n.to_string())]).await.unwrap();
        assert_eq!(scene.names().await.len(), n);
    }
}

#[tokio::test]
async fn several_reads_see_one_state_while_writes_go_on() {
    let scene = scene();
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
    let scene = scene();
    let sneaking = Query::new("sneak", "insert into notes (name) values ('x') returning id", vec![]);
    assert!(scene.store.query(sneaking).await.is_err());
    assert!(scene.names().await.is_empty());
}

#[tokio::test]
async fn a_long_read_does_not_hold_up_the_others() {
    let scene = scene();
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000000) select max(i) from n";
    let long = scene.store.query(Query::new("long", endless, vec![]));
    let short = async {
        for _ in 0..20 {
            assert!(scene.names().await.is_empty());
        }
        "short"
    };
    tokio::select! {
        biased;
        _ = long => panic!("the short reads waited for the long one"),
        first = short => assert_eq!(first, "short"),
    }
}
