//! One commit: record, effect, audit and outbox together or not at all (fault cases FI-004 and FI-005).

use door::Failure;
use store::error::RaiseKind;
use store::{Error, Query, Raise, Write, values};

use crate::domain::{Twist, add};
use crate::scene::scene;

#[tokio::test]
async fn one_commit_holds_record_effect_audit_and_outbox() {
    let scene = scene().await;
    scene.done(add("k", 5)).await;
    for (sql, expected) in [
        ("select count(*) from test_records where status = 'processed' and amount = 5", 1),
        ("select count(*) from test_effects where amount = 5", 1),
        ("select count(*) from audit_events where object_id = 'k' and request_id = 'req-1'", 1),
        ("select count(*) from outbox where object_id = 'k' and payload = '{\"amount\":5}'", 1),
        ("select count(*) from outbox_deliveries where status = 'pending' and object_key = 'effect:k'", 2),
        ("select count(*) from test_records where claim_token is null and locked_until is null", 1),
    ] {
        assert_eq!(scene.count(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn without_its_audit_or_its_outbox_nothing_is_kept() {
    for twist in [Twist::AuditWithoutRole, Twist::DoubledDestination] {
        for submission in [add("k", 5).twisted(twist).now(), add("k", 5).twisted(twist).keyless()] {
            let scene = scene().await;
            scene.door.submit(submission).await.expect_err("its audit or outbox can't be written");
            for table in ["test_effects", "audit_events", "outbox", "outbox_deliveries"] {
                assert_eq!(
                    scene.count(format!("select count(*) from {table}")).await,
                    0,
                    "{twist:?} {table}"
                );
            }
            assert_eq!(
                scene.count("select count(*) from test_records where response_code is not null").await,
                0
            );
        }
    }
}

#[tokio::test]
async fn housekeeping_reads_writes_and_gives_its_value_back() {
    let scene = scene().await;
    scene.done(add("k", 5)).await;
    let read = Query::new("effects", "select amount from test_effects", vec![]);
    let (value, written) = scene
        .door
        .maintain("double", vec![read], |rows, now| {
            let doubled = rows[0][0].int(0)? * 2;
            let sql = "update test_effects set amount = $1 returning amount";
            Ok((vec![Write::one("effects.double", sql, values![doubled])], (doubled, now)))
        })
        .await
        .unwrap();
    assert_eq!(value.0, 10);
    assert_eq!(value.1.seconds(), 1_000_000);
    assert_eq!(written.row("effects.double").unwrap().int(0), Ok(10));
}

#[tokio::test]
async fn housekeeping_that_raises_keeps_nothing() {
    let scene = scene().await;
    let raised = scene
        .door
        .maintain("sweep", vec![], |_, _| {
            let name = Write::one("names.take", "insert into test_names (name) values ($1)", values!["x"]);
            let lost = Write::one("effects.lost", "update test_effects set amount = 1", vec![]);
            Ok((vec![name, lost], ()))
        })
        .await;
    let raise = Raise { write: "effects.lost", kind: RaiseKind::Rows { hit: 0 } };
    assert!(matches!(raised, Err(Failure::Store(Error::Raised(got))) if got == raise));
    assert_eq!(scene.count("select count(*) from test_names").await, 0);
}

#[tokio::test]
async fn housekeeping_that_panics_is_answered() {
    let scene = scene().await;
    let ended = scene
        .door
        .maintain("sweep", vec![], |_, _| -> Result<(Vec<Write>, ()), Error> { panic!("on purpose") });
    assert!(matches!(ended.await, Err(Failure::Store(Error::Statement { .. }))));
    scene.done(add("k", 5)).await;
}
