//! Several arrivals under one key: one effect, one result for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use door::Answer;

use crate::domain::{Add, Twist, add};
use crate::scene::{Gate, PATIENT, done, in_progress, scene};

async fn sixty_four_at_once(command: Add) {
    let scene = scene().await;
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let (door, command) = (scene.door.clone(), command.clone());
            tokio::spawn(async move { (n, door.submit(command.waiting(PATIENT)).await) })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(done(task.await.unwrap().1));
    }
    assert_eq!(results.iter().filter(|done| !done.replayed).count(), 1);
    assert!(results.iter().all(|done| done.same && done.outcome == results[0].outcome));
    assert_eq!(scene.effects("k").await, 1);
    assert_eq!(scene.count("select count(*) from test_arrivals").await, 63);
    assert_eq!(scene.count("select count(*) from audit_events").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_twins_make_one_effect_and_get_one_result() {
    sixty_four_at_once(add("k", 5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_twins_without_preparation_make_one_effect() {
    sixty_four_at_once(add("k", 5).without_preparation()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_twins_of_leased_work_make_one_effect() {
    sixty_four_at_once(add("k", 5).leased(30)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twins_over_two_doors_make_one_effect() {
    let scene = scene().await;
    for round in 0..20 {
        let key = format!("k{round}");
        let doors = [&scene.door, &scene.other, &scene.door, &scene.other];
        let tasks = doors.map(|door| scene.start(door, add(&key, 1).leased(30)));
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(scene.effects(&key).await, 1, "{key}");
    }
}

#[tokio::test]
async fn a_repeat_gets_the_result_and_prepares_nothing() {
    let scene = scene().await;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let command = add("k", 5).preparing(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let first = scene.done(command.clone()).await;
    let repeat = scene.done(command).await;
    assert!(!first.replayed && repeat.replayed && repeat.same);
    assert_eq!(first.outcome, repeat.outcome);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_repeat_is_counted_once_in_every_form() {
    let forms: [fn(Add) -> Add; 4] = [
        |command| command,
        Add::without_preparation,
        |command| command.leased(30),
        |command| command.leased(30).without_preparation(),
    ];
    for form in forms {
        let scene = scene().await;
        for arrivals in 0..3 {
            assert_eq!(scene.done(form(add("k", 5))).await.replayed, arrivals > 0);
            assert_eq!(scene.count("select count(*) from test_arrivals").await, arrivals);
        }
    }
}

#[tokio::test]
async fn another_payload_under_a_finished_key_is_told_and_changes_nothing() {
    let scene = scene().await;
    let first = scene.done(add("k", 5)).await;
    let other = scene.done(add("k", 6)).await;
    assert!(other.replayed && !other.same);
    assert_eq!(other.outcome, first.outcome);
    assert_eq!(scene.effects("k").await, 1);
    assert_eq!(scene.count("select count(*) from test_arrivals where not same").await, 1);
}

#[tokio::test]
async fn a_twin_that_waits_in_vain_is_told_that_nothing_is_durable() {
    let scene = scene().await;
    let gate = Gate::new();
    let first = scene.start(&scene.door, gate.before(add("k", 5)));
    gate.reached().await;
    let brief = Duration::from_millis(20);
    assert_eq!(in_progress(scene.door.submit(add("k", 5).waiting(brief)).await), (true, false));
    assert_eq!(in_progress(scene.door.submit(add("k", 6).waiting(brief)).await), (false, false));
    gate.open();
    assert!(!done(first.await.unwrap()).replayed);
}

#[tokio::test]
async fn a_twin_of_leased_work_is_told_that_the_claim_is_durable() {
    for command in [add("k", 5).leased(30), add("k", 5).leased(30).without_preparation()] {
        let scene = scene().await;
        let gate = Gate::new();
        let first = scene.start(&scene.door, gate.before(command.clone()));
        gate.reached().await;
        for door in [&scene.door, &scene.other] {
            assert_eq!(in_progress(door.submit(command.clone().now()).await), (true, true));
            assert_eq!(in_progress(door.submit(add("k", 6).leased(30).now()).await), (false, true));
        }
        gate.open();
        done(first.await.unwrap());
    }
}

#[tokio::test]
async fn a_twin_that_waits_gets_the_first_result() {
    let scene = scene().await;
    let gate = Gate::new();
    let first = scene.start(&scene.door, gate.before(add("k", 5)));
    gate.reached().await;
    let twin = tokio::spawn({
        let door = scene.door.clone();
        async move { door.submit(add("k", 5).waiting(Duration::MAX)).await }
    });
    gate.open();
    let (first, twin) = (done(first.await.unwrap()), done(twin.await.unwrap()));
    assert!(twin.replayed);
    assert_eq!(first.outcome, twin.outcome);
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_cut_the_work() {
    let scene = scene().await;
    let gate = Gate::new();
    let client = scene.start(&scene.door, gate.before(add("k", 5)));
    gate.reached().await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    gate.open();
    assert!(scene.done(add("k", 5)).await.replayed);
    assert_eq!(scene.effects("k").await, 1);
}

#[tokio::test]
async fn a_command_without_a_key_runs_each_time_and_leaves_no_record() {
    let scene = scene().await;
    for _ in 0..2 {
        assert!(!done(scene.door.submit(add("k", 5).keyless()).await).replayed);
    }
    assert_eq!(scene.effects("k").await, 2);
    assert_eq!(scene.count("select count(*) from test_records").await, 0);
    assert_eq!(scene.count("select count(*) from audit_events").await, 2);
}

#[tokio::test]
async fn a_key_lives_to_the_last_instant_and_then_runs_again_as_new() {
    let scene = scene().await;
    let first = scene.done(add("k", 5).living(60)).await;
    scene.clock.advance(Duration::from_micros(59_999_999));
    assert!(scene.done(add("k", 5).living(60)).await.replayed);
    scene.clock.advance(Duration::from_micros(1));
    let again = scene.done(add("k", 6).living(60)).await;
    assert!(!again.replayed && again.same && again.outcome != first.outcome);
    assert_eq!(scene.record("k").await, Some(("processed".into(), 1)));
    assert_eq!(scene.effects("k").await, 2);
}

#[tokio::test]
async fn an_expired_key_runs_once_whoever_comes() {
    let scene = scene().await;
    scene.done(add("k", 5).living(60)).await;
    scene.clock.advance(Duration::from_secs(60));
    let tasks = [(); 16].map(|()| scene.start(&scene.door, add("k", 5).living(60)));
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(scene.effects("k").await, 2);
}

#[tokio::test]
async fn an_open_key_is_taken_up_by_the_next_arrival() {
    let scene = scene().await;
    let open = scene.door.submit(add("k", 5).twisted(Twist::LeaveOpen).now()).await;
    assert!(matches!(open, Ok(Answer::Open { .. })), "{open:?}");
    assert_eq!(scene.record("k").await, Some(("received".into(), 1)));
    assert!(!scene.done(add("k", 5)).await.replayed);
    assert_eq!(scene.record("k").await, Some(("processed".into(), 2)));
}

#[test]
fn a_runtime_that_is_shut_down_frees_the_key() {
    let base = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let scene = base.block_on(scene());
    let first = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let gate = Gate::new();
    first.block_on(async {
        let running = scene.start(&scene.door, gate.before(add("k", 5)));
        gate.reached().await;
        drop(running);
    });
    first.shutdown_timeout(PATIENT);
    let second = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(!second.block_on(scene.done(add("k", 5))).replayed);
}
