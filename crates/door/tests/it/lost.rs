//! Commits whose answers are lost, on either engine: a driver stands before the store and lies as told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use door::Door;
use kernel::Time;
use store::{Driver, Error, Lock, Query, Raise, RaiseKind, Row, Store, Work, Write, Written};
use testkit::CountingRandom;

use crate::domain::add;
use crate::scene::{Scene, done, scene};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// All is well.
    None,
    /// It is kept, and told as lost.
    Done,
    /// It is not kept, and told as lost.
    NotDone,
    /// The store can't be reached.
    Away,
    /// The old row that was to be taken has gone.
    Swept,
}

#[derive(Debug)]
struct Lying {
    store: Store,
    /// For the next works; afterwards all is well.
    script: Mutex<VecDeque<Lie>>,
}

impl Lying {
    /// A door before which the next works end as told.
    fn door(scene: &Scene, script: &[Lie]) -> Door {
        let script = Mutex::new(script.iter().copied().collect());
        let driver = Self { store: scene.door.store().clone(), script };
        Door::new(Store::over(Arc::new(driver)), Arc::new(CountingRandom::default()))
    }
}

#[async_trait]
impl Driver for Lying {
    fn enqueue(&self, work: Box<dyn Work>) {
        match self.script.lock().unwrap().pop_front().unwrap_or(Lie::None) {
            Lie::None => self.store.enqueue(work),
            Lie::Done => self.store.enqueue(Box::new(Lost(work))),
            Lie::NotDone => work.settled(Err(lost())),
            Lie::Away => work.settled(Err(Error::Unavailable { cause: "away".into() })),
            Lie::Swept => {
                let kind = RaiseKind::Rows { hit: 0 };
                work.settled(Err(Error::Raised(Raise { write: "record.replace", kind })));
            }
        }
    }

    async fn queries(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        self.store.queries(queries).await
    }

    fn waiting(&self) -> usize {
        0
    }
}

/// A work that is told that its commit's answer was lost, whatever became of it.
struct Lost(Box<dyn Work>);

impl Work for Lost {
    fn lock(&self) -> Lock {
        self.0.lock()
    }

    fn again(&self) -> bool {
        self.0.again()
    }

    fn reads(&mut self) -> Vec<Query> {
        self.0.reads()
    }

    fn writes(&mut self, rows: Vec<Vec<Row>>, now: Time) -> Result<Vec<Write>, Error> {
        self.0.writes(rows, now)
    }

    fn settled(self: Box<Self>, _: Result<Written, Error>) {
        self.0.settled(Err(lost()));
    }
}

fn lost() -> Error {
    Error::Indeterminate { cause: "on purpose".into() }
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_found_or_made_again() {
    for (lie, replayed) in [(Lie::Done, true), (Lie::NotDone, false)] {
        let scene = scene().await;
        let answer = Lying::door(&scene, &[lie]).submit(add("k", 5).now()).await;
        assert_eq!(done(answer).replayed, replayed, "{lie:?}");
        assert_eq!(scene.effects("k").await, 1);
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_found_or_made_again() {
    for lie in [Lie::Done, Lie::NotDone] {
        let scene = scene().await;
        let answer = Lying::door(&scene, &[lie]).submit(add("k", 5).leased(30).now()).await;
        assert!(!done(answer).replayed, "{lie:?}");
        assert_eq!(scene.record("k").await, Some(("processed".into(), 1)));
    }
}

#[tokio::test]
async fn a_claim_that_was_lost_before_the_store_went_away_does_not_hold_the_key() {
    for lie in [Lie::Done, Lie::NotDone] {
        let scene = scene().await;
        let door = Lying::door(&scene, &[lie, Lie::Away]);
        door.submit(add("k", 5).leased(30).now()).await.expect_err("the store is away");
        assert_eq!(scene.record("k").await, Some(("failed".into(), 1)), "{lie:?}");
        assert!(!scene.done(add("k", 5).leased(30)).await.replayed);
        assert_eq!(scene.record("k").await, Some(("processed".into(), 2)));
    }
}

#[tokio::test]
async fn a_row_that_was_swept_under_a_submission_is_looked_for_again() {
    for form in [add("k", 5).now(), add("k", 5).leased(30).now()] {
        let scene = scene().await;
        let answer = Lying::door(&scene, &[Lie::Swept]).submit(form).await;
        assert!(!done(answer).replayed);
        assert_eq!(scene.effects("k").await, 1);
    }
}
