//! A buyer's mail address: found by, but written nowhere in full.

use certify::audit::Filter;
use certify::policy::{Policy, Shown, Target};
use serde_json::json;
use source::samples;

use crate::house::{House, json};

const EVENT: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";
const MAIL: &[u8] = b"buyer@example.com";

/// Whether the database has the address in full: the file, its log included, or any row of any table.
fn kept_in_full(house: &House) -> bool {
    let data = house.folder.path().join("data");
    if let Some(database) = testkit::postgres::beside(&data) {
        let tables = "select tablename::text from pg_tables where schemaname = 'public'";
        return testkit::postgres::rows(&database.direct, tables).iter().any(|table| {
            // Byte strings are written as text where they are text.
            let rows = format!(
                "select replace(encode(convert_to(t::text, 'utf8'), 'escape'), '\\', '') from {table} t"
            );
            let bytes = testkit::postgres::rows(&database.direct, &rows).concat().into_bytes();
            let hex = hex::encode(MAIL).into_bytes();
            [MAIL, &hex].iter().any(|mail| bytes.windows(mail.len()).any(|window| window == *mail))
        });
    }
    let entries = std::fs::read_dir(data).expect("the store's folder");
    let mut files = entries.map(|entry| std::fs::read(entry.expect("a file").path()).expect("bytes"));
    files.any(|bytes| bytes.windows(MAIL.len()).any(|window| window == MAIL))
}

async fn found_by_mail(house: &House) -> usize {
    let filter = Filter { mail: Some("buyer@example.com".into()), ..Filter::default() };
    house.visa.list(&filter).await.expect("a list")["events"].as_array().expect("a list").len()
}

/// A policy under which the paid checkout is refused, so that its content is kept for a later attempt.
fn refusing(email: Shown) -> Policy {
    Policy { email, target: Target { required: true, ..Target::default() }, ..Policy::default() }
}

#[tokio::test]
async fn an_event_without_a_certificate_is_found_by_a_mail_that_is_not_kept_in_full() {
    let house = House::with(refusing(Shown::Masked)).await;
    for body in [samples::CHECKOUT_PAID, samples::CHECKOUT_UNPAID, samples::REFUND_PARTIAL] {
        house.deliver(body).await;
    }
    assert_eq!(found_by_mail(&house).await, 3);
    assert!(!kept_in_full(&house));
}

#[tokio::test]
async fn a_failed_attempt_is_found_by_a_mail_that_is_not_kept_in_full() {
    let house = House::new().await;
    let deliveries = house.folder.path().join("deliveries");
    std::fs::remove_dir(&deliveries).expect("removed");
    std::fs::write(&deliveries, "a file where a folder should be").expect("in the way");
    assert_eq!(house.deliver(samples::CHECKOUT_PAID).await.status, 503);
    assert_eq!(found_by_mail(&house).await, 1);
    assert!(!kept_in_full(&house));
}

#[tokio::test]
async fn a_later_attempt_from_the_record_gives_the_same_certificate() {
    let direct = json(&House::new().await.deliver(samples::CHECKOUT_PAID).await);
    let house = House::with(refusing(Shown::Masked)).await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let house = house.reopened().await;
    let later = house.visa.retry(EVENT, "eva").await.expect("a retry");
    assert_eq!(later["run_hash"], direct["run_hash"]);
    assert_eq!(found_by_mail(&house).await, 1);
    let masked = Filter { mail: Some("b***@example.com".into()), ..Filter::default() };
    assert_eq!(house.visa.list(&masked).await.expect("a list")["events"], json!([]));
}

#[tokio::test]
async fn a_policy_that_shows_addresses_keeps_them() {
    let house = House::with(refusing(Shown::Full)).await;
    house.deliver(samples::CHECKOUT_PAID).await;
    assert!(kept_in_full(&house));
}
