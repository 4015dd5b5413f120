//! Half-done states, found and finished.

use std::time::Duration;
use store::dialect::Dialect;

use serde_json::json;
use source::samples;
use store::Query;

use crate::house::{House, NOW, json, payment};

const EVENT: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";

/// Sets the last change of all files on the shelf an hour back.
fn age(house: &House) {
    for file in house.files() {
        let hour_ago =
            std::time::UNIX_EPOCH + Duration::from_secs(u64::try_from(NOW).expect("a time") - 3600);
        std::fs::File::options().write(true).open(file).and_then(|f| f.set_modified(hour_ago)).expect("aged");
    }
}

/// An installation whose files survived and whose database did not.
async fn without_record() -> (House, Vec<Vec<u8>>) {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let files = house.files().iter().map(|file| std::fs::read(file).expect("a file")).collect();
    let House { visa, folder, .. } = house;
    drop(visa);
    alter(folder.path(), FORGET);
    (House::open(folder, certify::policy::Policy::default(), &["log"]).await, files)
}

/// Alters the database behind the product's back. No server has it open but with its own connections.
fn alter(folder: &std::path::Path, sql: &str) {
    let data = folder.join("data");
    if let Some(database) = testkit::postgres::beside(&data) {
        return testkit::postgres::execute(&database.direct, &Dialect::Postgres.render(sql));
    }
    let sql = &*Dialect::Sqlite.render(sql);
    let database = rusqlite::Connection::open(data.join("state.db")).expect("the database");
    database.execute_batch(sql).expect("altered");
}

/// The database without its events, as if their commit had never been.
const FORGET: &str = "delete from certify_search; delete from certify_arrivals;
    delete from certify_transitions; delete from certify_certificates; delete from certify_events;
    delete from outbox_deliveries; delete from outbox;";

#[tokio::test]
async fn files_without_a_record_are_left_alone_while_their_event_may_be_on_its_way() {
    let (house, files) = without_record().await;
    house.clock.set(i64::try_from(std::time::UNIX_EPOCH.elapsed().expect("now").as_secs()).expect("a time"));
    assert_eq!(house.visa.reconcile("tester").await.expect("a sweep")["adopted"], 0);
    assert_eq!(house.files().len(), files.len());
}

#[tokio::test]
async fn old_files_that_verify_become_a_record_and_repeats_reuse_it() {
    let (house, files) = without_record().await;
    age(&house);
    assert_eq!(house.visa.reconcile("tester").await.expect("a sweep")["adopted"], 1);
    let answer = json(&house.deliver(samples::CHECKOUT_PAID).await);
    assert_eq!((&answer["status"], answer.get("payload_differs")), (&json!("duplicate_reused"), None));
    let second = json(&house.deliver(samples::CHECKOUT_PAID_SECOND_ID).await);
    assert_eq!(second["html_url"], answer["html_url"]);
    let now: Vec<_> = house.files().iter().map(|file| std::fs::read(file).expect("a file")).collect();
    assert!(now == files, "the same bytes");
    assert_eq!(house.shown(EVENT).await["announcements"][0]["status"], "uncertain");
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn old_files_that_do_not_verify_are_removed() {
    let (house, _) = without_record().await;
    for file in house.files() {
        let mut bytes = std::fs::read(&file).expect("a file");
        bytes[40] ^= 1;
        std::fs::write(&file, bytes).expect("damaged");
    }
    age(&house);
    assert_eq!(house.visa.reconcile("tester").await.expect("a sweep")["removed"], 1);
    assert!(house.files().is_empty());
    assert_eq!(json(&house.deliver(samples::CHECKOUT_PAID).await)["status"], "processed");
}

#[tokio::test]
async fn a_redelivery_after_lost_records_gives_the_same_bytes() {
    let (house, files) = without_record().await;
    assert_eq!(json(&house.deliver(samples::CHECKOUT_PAID).await)["status"], "processed");
    let now: Vec<_> = house.files().iter().map(|file| std::fs::read(file).expect("a file")).collect();
    assert!(now == files, "the same bytes");
}

#[tokio::test]
async fn unsynced_files_that_a_crash_took_are_rebuilt_at_start() {
    let house = House::new().await;
    house.deliver(&payment(1)).await;
    while house.visa.sync_files(Duration::ZERO).await.expect("a sync") {}
    house.deliver(&payment(2)).await;
    let before: Vec<_> = house.files().iter().map(|file| std::fs::read(file).expect("a file")).collect();
    for file in house.files() {
        let json = std::fs::read_to_string(&file).map(|text| text.contains("evt_2")).unwrap_or(false);
        if json {
            std::fs::write(&file, b"").expect("torn");
        }
    }
    let house = house.reopened().await;
    assert!(house.visa.recover_at_start().await.expect("a start").rebuilt > 0);
    let after: Vec<_> = house.files().iter().map(|file| std::fs::read(file).expect("a file")).collect();
    assert!(before == after, "the same bytes");
}

#[tokio::test]
async fn files_that_vanish_around_their_commit_are_back_before_they_count_as_synced() {
    let house = House::new().await;
    house.deliver(&payment(1)).await;
    let before: Vec<_> = house.files().iter().map(|file| std::fs::read(file).expect("a file")).collect();
    std::fs::remove_file(&house.files()[0]).expect("removed");
    while house.visa.sync_files(Duration::ZERO).await.expect("a sync") {}
    let after: Vec<_> = house.files().iter().map(|file| std::fs::read(file).expect("a file")).collect();
    assert!(before == after, "the same bytes");
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn a_failed_event_is_tried_again_without_its_sender() {
    let house = House::new().await;
    let deliveries = house.folder.path().join("deliveries");
    std::fs::rename(&deliveries, house.folder.path().join("away")).expect("moved");
    std::fs::write(&deliveries, "in the way").expect("in the way");
    assert_eq!(house.deliver(samples::CHECKOUT_PAID).await.status, 503);
    std::fs::remove_file(&deliveries).expect("out of the way");
    std::fs::rename(house.folder.path().join("away"), &deliveries).expect("back");
    house.clock.advance(Duration::from_secs(120));
    assert_eq!(house.visa.reconcile("tester").await.expect("a sweep")["retried"], 1);
    let shown = house.shown(EVENT).await;
    assert_eq!((&shown["status"], &shown["arrivals"]), (&json!("processed"), &json!(1)));
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn a_record_that_cannot_give_its_files_again_is_orphaned_until_it_can() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    alter(
        house.folder.path(),
        "update certify_certificates set run = cast(replace(cast(run as text), '2000', '9000') as {json})",
    );
    for file in house.files() {
        std::fs::remove_file(file).expect("removed");
    }
    assert_eq!(house.visa.reconcile("tester").await.expect("a sweep")["orphaned"], 1);
    assert_eq!(house.deliver(samples::CHECKOUT_PAID).await.status, 503);
    assert_eq!(house.shown(EVENT).await["status"], "orphaned");
    alter(
        house.folder.path(),
        "update certify_certificates set run = cast(replace(cast(run as text), '9000', '2000') as {json})",
    );
    assert_eq!(
        json(&house.deliver(samples::CHECKOUT_PAID).await)["status"],
        "duplicate_reused",
        "mended first"
    );
    assert_eq!(house.files().len(), 3);
    assert_eq!(house.shown(EVENT).await["status"], "processed");
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn a_failed_event_whose_source_is_gone_makes_room_for_others() {
    let house = House::new().await;
    let deliveries = house.folder.path().join("deliveries");
    std::fs::rename(&deliveries, house.folder.path().join("away")).expect("moved");
    std::fs::write(&deliveries, "in the way").expect("in the way");
    assert_eq!(house.deliver(samples::CHECKOUT_PAID).await.status, 503);
    std::fs::remove_file(&deliveries).expect("out of the way");
    std::fs::create_dir(&deliveries).expect("a folder");
    house.visa.set_endpoints(Vec::new());
    for _ in 0..12 {
        house.clock.advance(Duration::from_secs(86_400));
        house.visa.reconcile("tester").await.expect("a sweep");
    }
    let open = Query::new("test.open", "select attempt_no from certify_events", vec![]);
    let rows = house.visa.door().store().query(open).await.expect("a row");
    assert_eq!(rows[0].int(0).expect("a number"), 10, "its attempts are used up");
}
