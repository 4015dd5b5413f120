//! Work in slices: each in a transaction of its own under the fence, gone on with where it stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use door::{AuditRow, Failure, Slice, Steps};
use store::{Query, Write, values};

use crate::domain::{Add, add, broken};
use crate::scene::{Gate, done, scene};

/// Puts the `n`th of `names`, unless it stands there.
pub(crate) async fn put(steps: &Steps, n: usize) -> Result<bool, Failure> {
    let name = format!("slice {n}");
    let there = Query::new("there", "select name from test_names where name = $1", values![&name]);
    let plan = move |rows: &[Vec<store::Row>], _| {
        let new = rows[0].is_empty();
        let take = Write::one("names.take", "insert into test_names (name) values ($1)", values![&name]);
        let audit = AuditRow::system("test.slice.done", "effect", name.clone(), "req-1".into());
        let (writes, audit) = if new { (vec![take], vec![audit]) } else { (vec![], vec![]) };
        Ok(Slice { writes, audit, outbox: vec![], value: new })
    };
    steps.slice("slice", vec![there], plan).await
}

/// Three slices; the attempt with the number `dies` fails after its second.
fn three(dies: i64, put_there: &Arc<AtomicUsize>) -> Add {
    let put_there = Arc::clone(put_there);
    add("k", 5).bound(1).leased(30).preparing(move |steps| {
        let put_there = Arc::clone(&put_there);
        async move {
            for n in 0..3 {
                if n == 2 && steps.attempt() == dies {
                    return Err(broken());
                }
                put_there.fetch_add(usize::from(put(&steps, n).await?), Ordering::SeqCst);
            }
            Ok(())
        }
    })
}

#[tokio::test]
async fn what_was_put_in_slices_is_not_put_again_after_a_failure() {
    let scene = scene().await;
    let count = Arc::new(AtomicUsize::new(0));
    assert!(scene.door.submit(three(1, &count).now()).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 2);
    done(scene.door.submit(three(1, &count).now()).await);
    assert_eq!(count.load(Ordering::SeqCst), 3);
    let audited = "select count(*) from audit_events where event_name = 'test.slice.done'";
    assert_eq!(scene.count(audited).await, 3);
}

#[tokio::test]
async fn a_slice_gives_the_lease_its_whole_length_again() {
    let scene = scene().await;
    let clock = Arc::clone(&scene.clock);
    let slow = add("k", 5).bound(1).leased(30).preparing(move |steps| {
        let clock = Arc::clone(&clock);
        async move {
            for n in 0..3 {
                clock.advance(Duration::from_secs(20));
                put(&steps, n).await?;
            }
            Ok(())
        }
    });
    assert!(!done(scene.door.submit(slow.now()).await).replayed);
    assert_eq!(scene.effects("k").await, 1);
}

#[tokio::test]
async fn a_slice_behind_the_fence_writes_nothing() {
    let scene = scene().await;
    let gate = Gate::new();
    let waiting = gate.clone();
    let slow = add("k", 5).bound(1).leased(30).preparing(move |steps| {
        let gate = waiting.clone();
        async move {
            if steps.attempt() > 1 {
                return Ok(());
            }
            gate.pass().await;
            match put(&steps, 0).await {
                Err(Failure::LeaseLost) => Err(Failure::LeaseLost),
                other => panic!("not refused: {other:?}"),
            }
        }
    });
    let first = scene.start(&scene.door, slow.clone());
    gate.reached().await;
    scene.clock.advance(Duration::from_secs(31));
    assert!(!done(scene.other.submit(slow.now()).await).replayed);
    gate.open();
    assert!(done(first.await.unwrap()).replayed);
    assert_eq!(scene.count("select count(*) from test_names").await, 0);
    assert_eq!(scene.effects("k").await, 1);
}
