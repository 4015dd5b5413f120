//! Two nodes on one database, and a network between them and it that does harm: whatever becomes of a
//! COMMIT, a key has one effect, and whoever is answered hears of that one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use door::{Answer, Door, Failure};
use store::migration::CORE;
use store::{Settings, Store};
use testkit::postgres::{self, Database};
use testkit::proxy::{Fault, Moment, Proxy};
use testkit::{CountingRandom, MovableClock, Seeded};

use crate::domain::{Add, TEST, add};
use crate::scene::{PATIENT, done};
use crate::slices::put;

struct Nodes {
    one: Door,
    two: Door,
    /// Between the first node and the database.
    proxy: Proxy,
    database: Database,
}

async fn nodes() -> Nodes {
    let database = postgres::required();
    let (behind, proxy) = database.behind_proxy();
    let random = Arc::new(CountingRandom::default());
    let node = async |settings: store::Postgres| {
        let settings = Settings::Postgres(store::Postgres { connections: 8, ..settings });
        let clock = Arc::new(MovableClock::at(1_000_000));
        let store = Store::open(&settings, &[CORE, TEST], clock).await.unwrap();
        Door::new(store, Arc::clone(&random) as _)
    };
    Nodes { one: node(behind).await, two: node(database.settings()).await, proxy, database }
}

impl Nodes {
    fn count(&self, sql: &str) -> i64 {
        postgres::rows(&self.database.direct, sql)[0].parse().unwrap()
    }

    /// Every effect with its audit row and its announcements, and nothing left open.
    fn is_whole(&self, keys: i64) {
        assert_eq!(self.count("select count(*) from test_effects"), keys);
        assert_eq!(self.count("select count(distinct key) from test_effects"), keys);
        assert_eq!(self.count("select count(*) from test_records where status = 'processed'"), keys);
        assert_eq!(self.count("select count(*) from audit_events where event_name = 'test.add.done'"), keys);
        assert_eq!(self.count("select count(*) from outbox_deliveries"), 2 * keys);
    }
}

fn forms() -> [Add; 3] {
    [add("k", 5), add("k", 5).without_preparation(), add("k", 5).leased(30)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_answer_is_looked_up_and_the_result_that_stands_is_given() {
    for command in forms() {
        let nodes = nodes().await;
        let fault = nodes.proxy.set(Fault::Commit(Moment::After).times(1));
        let answered = done(nodes.one.submit(command.clone().waiting(PATIENT)).await);
        assert_eq!(fault.fired(), 1);
        let again = done(nodes.two.submit(command.waiting(PATIENT)).await);
        assert_eq!(again.outcome, answered.outcome);
        nodes.is_whole(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_never_arrived_is_made_again() {
    for command in forms() {
        let nodes = nodes().await;
        let fault = nodes.proxy.set(Fault::Commit(Moment::Before).times(1));
        let answered = done(nodes.one.submit(command.clone().waiting(PATIENT)).await);
        assert_eq!(fault.fired(), 1);
        let again = done(nodes.two.submit(command.waiting(PATIENT)).await);
        assert_eq!(again.outcome, answered.outcome);
        nodes.is_whole(1);
    }
}

/// The slice is run again: it must see what the late commit wrote, or all of it would be put twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slice_whose_commit_lands_after_its_loss_was_told_is_waited_for() {
    let nodes = Arc::new(nodes().await);
    let shared = Arc::clone(&nodes);
    let sliced = add("k", 5).leased(30).preparing(move |steps| {
        let nodes = Arc::clone(&shared);
        async move {
            let late = Fault::Commit(Moment::Late(Duration::from_millis(400)));
            let fault = nodes.proxy.set(late.times(1));
            let put_by_this_one = put(&steps, 0).await?;
            assert_eq!((fault.fired(), put_by_this_one), (1, false));
            Ok(())
        }
    });
    assert!(!done(nodes.one.submit(sliced.waiting(PATIENT)).await).replayed);
    nodes.is_whole(1);
    assert_eq!(nodes.count("select count(*) from test_names"), 1);
}

/// The session lives on for a moment, with the key's locks, and commits. Whoever looked without taking the
/// lock would see nothing and do the work again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_lands_after_its_loss_was_told_is_waited_for() {
    for command in forms() {
        let nodes = nodes().await;
        let late = Fault::Commit(Moment::Late(Duration::from_millis(400)));
        let fault = nodes.proxy.set(late.times(1));
        let answered = done(nodes.one.submit(command.clone().waiting(PATIENT)).await);
        assert_eq!(fault.fired(), 1);
        let again = done(nodes.two.submit(command.waiting(PATIENT)).await);
        assert_eq!(again.outcome, answered.outcome);
        nodes.is_whole(1);
    }
}

/// The other node must not start while the first one's commit is on its way either.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn another_node_waits_for_a_commit_on_its_way_too() {
    let nodes = nodes().await;
    let fault = nodes.proxy.set(Fault::Commit(Moment::Late(Duration::from_millis(400))).times(1));
    let (one, two) = (nodes.one.clone(), nodes.two.clone());
    let first = tokio::spawn(async move { one.submit(add("k", 5).waiting(PATIENT)).await });
    fault.reached(1).await;
    let second = done(two.submit(add("k", 5).waiting(PATIENT)).await);
    assert_eq!(done(first.await.unwrap()).outcome, second.outcome);
    nodes.is_whole(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thirty_two_at_once_over_two_nodes_have_one_effect() {
    for command in forms() {
        let nodes = nodes().await;
        let tasks: Vec<_> = (0..32)
            .map(|n| {
                let door = if n % 2 == 0 { &nodes.one } else { &nodes.two }.clone();
                let submission = command.clone().waiting(PATIENT);
                tokio::spawn(async move { door.submit(submission).await })
            })
            .collect();
        let mut results = Vec::new();
        for task in tasks {
            results.push(done(task.await.unwrap()));
        }
        assert_eq!(results.iter().filter(|result| !result.replayed).count(), 1);
        assert!(results.iter().all(|result| result.outcome == results[0].outcome));
        nodes.is_whole(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn another_payload_under_a_running_key_hears_that_it_is_another() {
    let nodes = nodes().await;
    let first = done(nodes.one.submit(add("k", 5).waiting(PATIENT)).await);
    let other = done(nodes.two.submit(add("k", 6).waiting(PATIENT)).await);
    assert!(other.replayed && !other.same);
    assert_eq!(other.outcome, first.outcome);
    nodes.is_whole(1);
}

fn harm(seeded: &mut Seeded) -> Fault {
    match seeded.below(4) {
        0 => Fault::Commit(Moment::Before),
        1 => Fault::Commit(Moment::After),
        2 => Fault::Commit(Moment::Late(Duration::from_millis(seeded.below(60)))),
        _ => Fault::CutAfter { way: testkit::proxy::Way::ToServer, bytes: seeded.below(4_000) },
    }
}

/// Storms over a few keys while the network does what it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_becomes_of_commits_a_key_has_one_effect_and_one_result() {
    let nodes = nodes().await;
    let mut seeded = Seeded::new(7);
    let mut formal: HashMap<String, String> = HashMap::new();
    for round in 0..30_i64 {
        let fault = nodes.proxy.set(harm(&mut seeded).times(2));
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let key = format!("{round}-{}", n % 3);
                let command = if n % 3 == 0 { add(&key, 5).leased(30) } else { add(&key, 5) };
                let door = if seeded.chance(70) { &nodes.one } else { &nodes.two }.clone();
                tokio::spawn(async move { (key, door.submit(command.waiting(PATIENT)).await) })
            })
            .collect();
        for task in tasks {
            let (key, answer) = task.await.unwrap();
            match answer {
                Ok(Answer::Done(done)) => {
                    let known = formal.entry(key).or_insert_with(|| done.outcome.body.clone());
                    assert_eq!(*known, done.outcome.body);
                }
                Ok(other) => assert!(matches!(other, Answer::InProgress { .. }), "{other:?}"),
                Err(failure) => assert!(matches!(failure, Failure::Store(_)), "{failure}"),
            }
        }
        fault.lift();
        for n in 0..3 {
            let key = format!("{round}-{n}");
            let command = if n == 0 { add(&key, 5).leased(30) } else { add(&key, 5) };
            let last = done(nodes.two.submit(command.waiting(PATIENT)).await);
            let known = formal.entry(key).or_insert_with(|| last.outcome.body.clone());
            assert_eq!(*known, last.outcome.body);
        }
    }
    nodes.is_whole(90);
    assert!(nodes.proxy.fired().values().sum::<u64>() > 10, "{:?}", nodes.proxy.fired());
}
