//! One writer, one commit for many.

use store::{Error, Query, Write, values};
use tokio::sync::oneshot;

use crate::scene::{insert, scene};

#[tokio::test]
async fn a_submission_reads_what_its_group_wrote_before_it() {
    let scene = scene().await;
    let hold = scene.hold();
    let first = scene.enqueue(vec![insert("a")]);
    let count = Query::new("notes.count", "select count(*) from notes", vec![]);
    let second = scene.plan(vec![count], |rows, _| {
        let seen = rows[0][0].int(0)?;
        Ok(vec![insert(&format!("after-{seen}"))])
    });
    drop(hold);
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(scene.names().await, ["a", "after-1"]);
}

/// A group whose transaction the engine drops by itself: the rest of it gets a transaction of its own.
#[tokio::test]
async fn a_transaction_that_the_engine_drops_leaves_those_behind_it_alone() {
    let scene = scene().await;
    let hold = scene.hold();
    let before = scene.enqueue(vec![insert("before")]);
    let dropping = Write::any("notes.drop", "insert or rollback into notes (id) values ($1)", values![1_i64]);
    let dropped = scene.enqueue(vec![dropping]);
    let after = scene.enqueue(vec![insert("after")]);
    drop(hold);
    assert!(matches!(before.await.unwrap(), Err(Error::Unavailable { .. })));
    assert!(matches!(dropped.await.unwrap(), Err(Error::Unavailable { .. })));
    after.await.unwrap().unwrap();
    assert_eq!(scene.names().await, ["after"]);
}

#[tokio::test]
async fn what_waits_when_the_store_is_closed_is_still_committed_and_answered() {
    let scene = scene().await;
    let hold = scene.hold();
    let ends: Vec<_> = (0..100).map(|n| scene.enqueue(vec![insert(&n.to_string())])).collect();
    assert_eq!(scene.store.waiting(), 100);
    let folder = scene.folder;
    let closing = std::thread::spawn(move || drop(scene.store));
    drop(hold);
    closing.join().unwrap();
    for end in ends {
        end.await.unwrap().unwrap();
    }
    let again = crate::scene::open(folder.path(), &[crate::scene::NOTES]).await.unwrap();
    let rows = again.query(Query::new("notes.count", "select count(*) from notes", vec![])).await.unwrap();
    assert_eq!(rows[0].int(0), Ok(100));
}

#[tokio::test]
async fn the_queue_has_an_end_and_says_so() {
    let scene = scene().await;
    let hold = scene.hold();
    let mut refused = None;
    let mut waiting = Vec::new();
    for _ in 0..20_000 {
        let mut end = scene.enqueue(vec![]);
        match end.try_recv() {
            Ok(end) => {
                refused = Some(end);
                break;
            }
            Err(_) => waiting.push(end),
        }
    }
    drop(hold);
    assert!(matches!(refused, Some(Err(Error::Unavailable { .. }))), "{refused:?}");
    for end in waiting {
        end.await.unwrap().unwrap();
    }
    scene.write(vec![insert("later")]).await.unwrap();
}

#[tokio::test]
async fn a_failing_submission_takes_no_neighbour_with_it() {
    let scene = scene().await;
    let hold = scene.hold();
    let ends: Vec<_> = [("1", "a"), ("2", "b"), ("3", "a"), ("4", "c")]
        .into_iter()
        .map(|(first, second)| scene.enqueue(vec![insert(first), insert(second)]))
        .collect();
    drop(hold);
    let mut kept = Vec::new();
    for end in ends {
        kept.push(end.await.unwrap().is_ok());
    }
    assert_eq!(kept, [true, true, false, true]);
    assert_eq!(scene.names().await, ["1", "a", "2", "b", "4", "c"]);
}

#[tokio::test]
async fn a_submission_may_be_the_last_owner_of_the_store() {
    let scene = scene().await;
    let hold = scene.hold();
    let (answer, answered) = oneshot::channel::<()>();
    let owner = scene.store.clone();
    let end = scene.plan(vec![], move |_, _| {
        drop((owner, answer));
        Ok(vec![])
    });
    let folder = scene.folder;
    let store = scene.store;
    drop(store);
    drop(hold);
    assert!(answered.await.is_err());
    end.await.unwrap().unwrap();
    drop(folder);
}
