//! Keys of clients, as the supply side has them: hashed under a secret that rotates, with an end, counted, and
//! held by their payload through failures.

use std::time::Duration;

use door::{Answer, Failure};
use kernel::Clock;
use store::{Query, values};

use crate::domain::{Twist, add};
use crate::scene::{Scene, done, in_progress, scene};

/// Status, attempts and generation of a client's record.
async fn record(scene: &Scene, key: &str) -> (String, i64, i64) {
    let sql = "select status, attempt_no, generation from test_bound where key = $1";
    let rows = scene.door.store().query(Query::new("record", sql, values![key])).await.unwrap();
    let row = &rows[0];
    (row.text(0).unwrap().to_owned(), row.int(1).unwrap(), row.int(2).unwrap())
}

async fn audited(scene: &Scene, name: &str) -> i64 {
    scene.count(format!("select count(*) from audit_events where event_name = '{name}'")).await
}

#[tokio::test]
async fn a_repeat_under_the_next_secret_is_the_same() {
    let scene = scene().await;
    let first = scene.done(add("k", 5).bound(1)).await;
    let later = scene.done(add("k", 5).bound(2)).await;
    assert!(later.replayed && later.same);
    // Equal as a value: the engine may order the names anew.
    let value = |done: &door::Done| serde_json::from_str::<serde_json::Value>(&done.outcome.body).unwrap();
    assert_eq!((later.outcome.code, value(&later)), (200, value(&first)));
    assert_eq!((first.origin, later.origin.as_deref()), (None, Some("request 1")));
    assert_eq!(later.expires_at, Some(scene.clock.now().plus(Duration::from_secs(86_400))));
    assert_eq!(first.expires_at, later.expires_at);
    assert_eq!(scene.effects("k").await, 1);
    // Two rotations on nobody can tell any more whether it is the same.
    assert!(!scene.done(add("k", 5).bound(3)).await.same);
    assert_eq!(
        (audited(&scene, "test.add.replayed").await, audited(&scene, "test.add.mismatch").await),
        (1, 1)
    );
}

#[tokio::test]
async fn another_payload_is_told_apart_under_any_secret() {
    let scene = scene().await;
    scene.done(add("k", 5).bound(1)).await;
    for secret in [1, 2] {
        let other = scene.done(add("k", 6).bound(secret)).await;
        assert!(other.replayed && !other.same);
    }
    assert_eq!(scene.effects("k").await, 1);
}

#[tokio::test]
async fn a_failed_attempt_holds_its_key_for_its_payload() {
    let scene = scene().await;
    let failed = scene.door.submit(add("k", 5).bound(1).failing().now()).await;
    assert!(matches!(failed, Err(Failure::Step { .. })));
    assert_eq!(record(&scene, "k").await, ("failed".into(), 1, 1));
    let other = scene.door.submit(add("k", 6).bound(1).now()).await;
    assert!(!in_progress(other).0);
    assert_eq!(scene.effects("k").await, 0);
    scene.done(add("k", 5).bound(2)).await;
    assert_eq!((scene.effects("k").await, record(&scene, "k").await), (1, ("processed".into(), 2, 1)));
}

#[tokio::test]
async fn a_key_past_its_end_begins_a_new_generation() {
    let scene = scene().await;
    scene.done(add("k", 5).bound(1).living(60)).await;
    scene.clock.advance(Duration::from_secs(59));
    assert!(scene.done(add("k", 5).bound(1)).await.replayed);
    scene.clock.advance(Duration::from_secs(1));
    let anew = scene.done(add("k", 6).bound(1).living(60)).await;
    assert!(!anew.replayed);
    assert_eq!(record(&scene, "k").await, ("processed".into(), 1, 2));
    assert_eq!(scene.effects("k").await, 2);
}

#[tokio::test]
async fn a_failure_past_its_end_holds_nobodys_key_and_begins_a_new_generation() {
    for amount in [5, 6] {
        let scene = scene().await;
        scene.door.submit(add("k", 5).bound(1).living(60).failing().now()).await.expect_err("it fails");
        scene.clock.advance(Duration::from_secs(60));
        assert!(!scene.done(add("k", amount).bound(1).living(60)).await.replayed);
        assert_eq!(record(&scene, "k").await, ("processed".into(), 1, 2), "{amount}");
        assert_eq!(scene.effects("k").await, 1);
    }
}

#[tokio::test]
async fn whoever_is_told_to_come_later_runs_then() {
    let scene = scene().await;
    let early = scene.door.submit(add("k", 5).bound(1).twisted(Twist::ComeLater).now()).await;
    match early {
        Ok(Answer::Open { outcome: Some(outcome), .. }) => assert_eq!(outcome.code, 429),
        other => panic!("not open: {other:?}"),
    }
    assert_eq!(audited(&scene, "test.add.done").await, 1, "the refusal is audited");
    let other = scene.door.submit(add("k", 6).bound(1).now()).await;
    assert!(!in_progress(other).0, "the key is its payload's");
    assert!(!scene.done(add("k", 5).bound(1)).await.replayed);
    assert_eq!((scene.effects("k").await, record(&scene, "k").await.1), (1, 2));
}

#[tokio::test]
async fn a_durable_claim_tells_its_generation() {
    let scene = scene().await;
    let told = |wanted: (i64, i64)| {
        add("k", 5).bound(1).leased(30).living(60).preparing(move |steps| async move {
            assert_eq!(steps.record().map(|(_, generation)| generation), Some(wanted.1));
            assert_eq!(steps.attempt(), wanted.0);
            Ok(())
        })
    };
    done(scene.door.submit(told((1, 1)).now()).await);
    scene.clock.advance(Duration::from_secs(60));
    done(scene.door.submit(told((1, 2)).now()).await);
}
