//! Failures: on record with their cause, never a result, never in the way of the next attempt.

use door::{Answer, Failure};
use store::Error;

use crate::domain::{Add, Twist, add};
use crate::scene::{Gate, PATIENT, Scene, done, scene};

async fn fails(scene: &Scene, command: Add) -> Failure {
    scene.door.submit(command.now()).await.expect_err("it must fail")
}

/// The failure is on record, nothing else is kept, and the next attempt does the work.
async fn is_retried(scene: &Scene) {
    assert_eq!(scene.record("k").await, Some(("failed".into(), 1)));
    assert_eq!(scene.count("select count(*) from test_failures").await, 1);
    for table in ["test_effects", "audit_events", "outbox", "outbox_deliveries"] {
        assert_eq!(scene.count(format!("select count(*) from {table}")).await, 0, "{table}");
    }
    assert!(!scene.done(add("k", 5)).await.replayed);
    assert_eq!(scene.record("k").await, Some(("processed".into(), 2)));
    assert_eq!(scene.effects("k").await, 1);
}

#[tokio::test]
async fn a_failed_preparation_is_on_record_and_the_next_attempt_takes_over() {
    let scene = scene().await;
    let failure = fails(&scene, add("k", 5).failing()).await;
    assert_eq!(failure.to_string(), "call: broken on purpose");
    is_retried(&scene).await;
}

#[tokio::test]
async fn a_preparation_that_panics_is_a_failure_like_any_other() {
    for leased in [false, true] {
        let scene = scene().await;
        let command = add("k", 5).preparing(|_| async { panic!("on purpose") });
        let failure = fails(&scene, if leased { command.leased(30) } else { command }).await;
        assert!(matches!(failure, Failure::Step { step: "prepare", .. }), "{failure}");
        is_retried(&scene).await;
    }
}

#[tokio::test]
async fn a_decision_that_panics_is_a_failure_like_any_other() {
    for twist in [Twist::Panic, Twist::PanicInLoad] {
        let scene = scene().await;
        let failure = fails(&scene, add("k", 5).twisted(twist)).await;
        assert!(matches!(failure, Failure::Store(Error::Statement { .. })), "{failure}");
        is_retried(&scene).await;
    }
}

#[tokio::test]
async fn every_engine_error_frees_the_key() {
    for twist in [Twist::WrongStatement, Twist::Damaged, Twist::DoubledDestination, Twist::AuditWithoutRole] {
        for leased in [false, true] {
            let scene = scene().await;
            let command = add("k", 5).twisted(twist);
            let failure = fails(&scene, if leased { command.leased(30) } else { command }).await;
            assert!(matches!(failure, Failure::Store(_)), "{twist:?}: {failure}");
            is_retried(&scene).await;
        }
    }
}

#[tokio::test]
async fn a_panic_without_a_key_is_a_failure_and_not_the_end_of_the_server() {
    let scene = scene().await;
    let command = add("k", 5).preparing(|_| async { panic!("on purpose") });
    let failure = scene.door.submit(command.keyless()).await.expect_err("it must fail");
    assert!(matches!(failure, Failure::Step { .. }), "{failure}");
    assert_eq!(scene.count("select count(*) from test_records").await, 0);
}

#[tokio::test]
async fn a_failure_never_overwrites_a_result() {
    let scene = scene().await;
    let gate = Gate::new();
    let waiting = gate.clone();
    let slow = scene.start(
        &scene.door,
        add("k", 5).preparing(move |_| {
            let gate = waiting.clone();
            async move {
                gate.pass().await;
                Err(crate::domain::broken())
            }
        }),
    );
    gate.reached().await;
    let winner = done(scene.other.submit(add("k", 5).now()).await);
    gate.open();
    let late = done(slow.await.unwrap());
    assert!(late.replayed);
    assert_eq!(late.outcome, winner.outcome);
    assert_eq!(scene.record("k").await, Some(("processed".into(), 1)));
    assert_eq!(scene.count("select count(*) from test_failures").await, 0);
    assert_eq!(scene.count("select count(*) from test_arrivals").await, 1, "one arrival is counted once");
}

#[tokio::test]
async fn a_twin_that_waits_for_a_failing_one_does_the_work_itself() {
    let scene = scene().await;
    let gate = Gate::new();
    let failing = gate.clone();
    let first = scene.start(
        &scene.door,
        add("k", 5).preparing(move |_| {
            let gate = failing.clone();
            async move {
                gate.pass().await;
                Err(crate::domain::broken())
            }
        }),
    );
    gate.reached().await;
    let door = scene.door.clone();
    let twin = tokio::spawn(async move { door.submit(add("k", 5).waiting(PATIENT)).await });
    gate.open();
    first.await.unwrap().expect_err("the first fails");
    assert!(!done(twin.await.unwrap()).replayed);
    assert_eq!(scene.effects("k").await, 1);
}

#[tokio::test]
async fn a_taken_name_becomes_the_refusal_it_stands_for_and_is_replayed() {
    let scene = scene().await;
    scene.done(add("first", 1).twisted(Twist::TakeName)).await;
    for command in [add("k", 5), add("l", 5).leased(30)] {
        let refusal = scene.done(command.clone().twisted(Twist::TakeName)).await;
        assert!(!refusal.replayed);
        assert_eq!(refusal.outcome.code, 409);
        let again = scene.done(command.twisted(Twist::TakeName)).await;
        assert!(again.replayed);
        assert_eq!(again.outcome, refusal.outcome);
    }
    assert_eq!(scene.effects("k").await + scene.effects("l").await, 0);
    assert_eq!(scene.count("select count(*) from test_failures").await, 0);
}

#[tokio::test]
async fn without_its_records_the_door_lets_nothing_through() {
    for command in [add("k", 5), add("k", 5).leased(30), add("k", 5).without_preparation()] {
        let scene = scene().await;
        scene.force("alter table test_records rename to elsewhere").await;
        fails(&scene, command).await;
        assert_eq!(scene.count("select count(*) from test_effects").await, 0);
        scene.force("alter table elsewhere rename to test_records").await;
        scene.done(add("k", 5)).await;
    }
}

#[tokio::test]
async fn a_damaged_record_is_named_and_never_run_over() {
    for damage in ["fingerprint = substr(fingerprint, 1, 1)", "response_code = 70000", "response_body = null"]
    {
        let scene = scene().await;
        scene.done(add("k", 5)).await;
        scene.force(format!("update test_records set {damage}")).await;
        let failure = fails(&scene, add("k", 5)).await;
        assert!(matches!(failure, Failure::Store(Error::Corrupt { .. })), "{damage}: {failure}");
        assert_eq!(scene.effects("k").await, 1);
    }
}

#[tokio::test]
async fn an_orphaned_record_waits_for_its_recovery() {
    for command in [add("k", 5), add("k", 5).leased(30), add("k", 5).without_preparation()] {
        let scene = scene().await;
        fails(&scene, command.clone().failing()).await;
        scene.force("update test_records set status = 'orphaned'").await;
        let answer = scene.door.submit(command.now()).await;
        assert!(matches!(answer, Ok(Answer::Orphaned)), "{answer:?}");
    }
}
