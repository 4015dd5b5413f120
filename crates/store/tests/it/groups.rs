//! One commit for many: what one submission does to itself does nothing to its neighbours.

use std::sync::Arc;

use kernel::Time;
use store::{Error, Query, Row, Work, Write, Written, values};
use tokio::sync::oneshot;

use crate::scene::{insert, scene};

#[tokio::test]
async fn a_failing_submission_takes_no_neighbour_with_it() {
    let scene = scene();
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
async fn a_panic_inside_a_submission_is_answered_and_the_writer_lives() {
    let scene = scene();
    let hold = scene.hold();
    let before = scene.enqueue(vec![insert("before")]);
    let panicking = scene.plan(vec![], |_, _| panic!("on purpose"));
    let after = scene.enqueue(vec![insert("after")]);
    drop(hold);
    before.await.unwrap().unwrap();
    let end = panicking.await.unwrap();
    assert!(matches!(end, Err(Error::Statement { name: "submission", .. })), "{end:?}");
    after.await.unwrap().unwrap();
    scene.write(vec![insert("later")]).await.unwrap();
    assert_eq!(scene.names().await, ["before", "after", "later"]);
}

struct PanicsAtTheEnd;

impl Work for PanicsAtTheEnd {
    fn reads(&mut self) -> Vec<Query> {
        Vec::new()
    }
    fn writes(&mut self, _: Vec<Vec<Row>>, _: Time) -> Result<Vec<Write>, Error> {
        Ok(vec![insert("kept")])
    }
    fn settled(self: Box<Self>, _: Result<Written, Error>) {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_panic_when_told_the_end_does_not_stop_the_writer() {
    let scene = scene();
    let hold = scene.hold();
    scene.store.enqueue(Box::new(PanicsAtTheEnd));
    let neighbour = scene.enqueue(vec![insert("neighbour")]);
    drop(hold);
    neighbour.await.unwrap().unwrap();
    scene.write(vec![insert("later")]).await.unwrap();
    assert_eq!(scene.names().await, ["kept", "neighbour", "later"]);
}

#[tokio::test]
async fn a_work_that_refuses_to_go_on_writes_nothing() {
    let scene = scene();
    let refusal = Error::Corrupt { table: "notes", column: "0".into() };
    let said = refusal.clone();
    let end = scene.plan(vec![], move |_, _| Err(said)).await.unwrap();
    assert_eq!(end, Err(refusal));
}

#[tokio::test]
async fn a_submission_reads_what_its_group_wrote_before_it() {
    let scene = scene();
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
    let scene = scene();
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
    let scene = scene();
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
    let again = crate::scene::open(folder.path(), &[crate::scene::NOTES]).unwrap();
    let rows = again.query(Query::new("notes.count", "select count(*) from notes", vec![])).await.unwrap();
    assert_eq!(rows[0].int(0), Ok(100));
}

#[tokio::test]
async fn the_queue_has_an_end_and_says_so() {
    let scene = scene();
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
async fn a_submission_may_be_the_last_owner_of_the_store() {
    let scene = scene();
    let hold = scene.hold();
    let (answer, answered) = oneshot::channel::<()>();
    let owner = Arc::clone(&scene.store);
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
