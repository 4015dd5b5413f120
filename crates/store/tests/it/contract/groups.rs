//! Many submissions at once: what one does to itself does nothing to its neighbours.

use kernel::Time;
use store::{Error, Query, Row, Work, Write, Written};

use crate::scene::{insert, scene};

#[tokio::test]
async fn a_submission_that_fails_takes_no_other_with_it() {
    let scene = scene().await;
    scene.write(vec![insert("a")]).await.unwrap();
    let ends: Vec<_> = [("1", "b"), ("2", "a"), ("3", "c")]
        .into_iter()
        .map(|(first, second)| scene.enqueue(vec![insert(first), insert(second)]))
        .collect();
    let mut kept = Vec::new();
    for end in ends {
        kept.push(end.await.unwrap().is_ok());
    }
    assert_eq!(kept, [true, false, true]);
    let mut names = scene.names().await;
    names.sort();
    assert_eq!(names, ["1", "3", "a", "b", "c"]);
}

#[tokio::test]
async fn a_panic_inside_a_submission_is_answered_and_the_engine_lives() {
    let scene = scene().await;
    let panicking = scene.plan(vec![], |_, _| panic!("on purpose"));
    let end = panicking.await.unwrap();
    assert!(matches!(end, Err(Error::Statement { name: "submission", .. })), "{end:?}");
    for n in 0..40 {
        scene.write(vec![insert(&n.to_string())]).await.unwrap();
    }
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
async fn a_panic_when_told_the_end_keeps_what_was_written() {
    let scene = scene().await;
    scene.store.enqueue(Box::new(PanicsAtTheEnd));
    for n in 0..40 {
        scene.write(vec![insert(&n.to_string())]).await.unwrap();
    }
    assert!(scene.names().await.contains(&"kept".to_owned()));
}

#[tokio::test]
async fn a_work_that_refuses_to_go_on_writes_nothing() {
    let scene = scene().await;
    let refusal = Error::Corrupt { table: "notes", column: "0".into() };
    let said = refusal.clone();
    let end = scene.plan(vec![], move |_, _| Err(said)).await.unwrap();
    assert_eq!(end, Err(refusal));
}

#[tokio::test]
async fn two_hundred_at_once_are_all_kept_and_all_answered() {
    let scene = scene().await;
    let ends: Vec<_> = (0..200).map(|n| scene.enqueue(vec![insert(&n.to_string())])).collect();
    for end in ends {
        end.await.unwrap().unwrap();
    }
    assert_eq!(scene.names().await.len(), 200);
    assert_eq!(scene.store.waiting(), 0);
}

#[tokio::test]
async fn of_many_that_want_the_same_name_one_gets_it() {
    let scene = scene().await;
    let ends: Vec<_> = (0..32).map(|_| scene.enqueue(vec![insert("one")])).collect();
    let mut kept = 0;
    for end in ends {
        match end.await.unwrap() {
            Ok(_) => kept += 1,
            end => assert!(matches!(end, Err(Error::Raised(_))), "{end:?}"),
        }
    }
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn whoever_enqueues_may_go_before_the_end() {
    let scene = scene().await;
    for n in 0..50 {
        drop(scene.enqueue(vec![insert(&n.to_string())]));
    }
    while scene.names().await.len() < 50 {
        tokio::task::yield_now().await;
    }
}
