//! What only a person may do, and the file of processed events.

use certify::delivery::Missing;
use certify::ledgerfile::ProcessedFile;
use certify::policy::{Policy, Target};
use certify::shelf::Form;
use serde_json::{Value as Json, json};
use source::samples;
use store::Query;

use crate::house::{House, json, payment};

const EVENT: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";

#[tokio::test]
async fn a_refused_event_can_be_judged_again_under_another_policy() {
    let strict = Policy { target: Target { required: true, ..Target::default() }, ..Policy::default() };
    let house = House::with(strict).await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let house = house.reopened().await;
    let answer = house.visa.retry(EVENT, "eva").await.expect("a retry");
    assert_eq!((&answer["status"], &answer["arrivals"]), (&json!("processed"), &json!(1)));
    let shown = house.shown(EVENT).await;
    assert_eq!((&shown["status"], &shown["arrivals"]), (&json!("processed"), &json!(1)));
    assert_eq!(house.visa.retry(EVENT, "eva").await.expect_err("done already").code(), "EVENT_STATE");
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn erasing_takes_the_content_and_leaves_the_proof_that_it_was() {
    let house = House::new().await;
    let answer = json(&house.deliver(samples::CHECKOUT_PAID).await);
    house.deliver(samples::CHECKOUT_PAID_SECOND_ID).await;
    house.visa.erase(EVENT, "eva").await.expect("erased");
    assert!(house.files().is_empty());
    let query = Query::new("test.told", "select payload from outbox", vec![]);
    let told = house.visa.door().store().query(query).await.expect("a row");
    let told: Json = serde_json::from_str(told[0].text(0).expect("text")).expect("JSON");
    assert_eq!(told, json!({ "kind": "erased" }));
    let slug =
        answer["html_url"].as_str().expect("a link").rsplit('/').next().expect("a name").replace(".html", "");
    assert!(matches!(house.visa.delivered(&slug, Form::Html).await, Err(Missing::Erased)));
    let again = json(&house.deliver(samples::CHECKOUT_PAID).await);
    assert_eq!((&again["status"], &again["run_hash"]), (&json!("duplicate_reused"), &answer["run_hash"]));
    assert_eq!((&again["sid"], again.get("summary")), (&Json::Null, None));
    for event in [EVENT, "evt_1SkQl4B7WZ01zgkWj4c9lrRg"] {
        let shown = house.shown(event).await;
        assert_eq!((&shown["mark"], &shown["sid"]), (&json!("erased"), &Json::Null), "{event}");
    }
    assert_eq!(house.visa.reconcile("eva").await.expect("a sweep")["rebuilt"], 0);
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn inspecting_names_each_file_and_what_to_do() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let whole = house.visa.inspect(EVENT).await.expect("a look");
    assert_eq!(whole["advice"], "record and files agree; nothing to do");
    std::fs::write(&house.files()[0], "x").expect("damaged");
    let damaged = house.visa.inspect(EVENT).await.expect("a look");
    assert_eq!(damaged["files"][0]["hash_equal"], false);
    assert_eq!(house.visa.inspect("evt_unknown").await.expect_err("unknown").code(), "EVENT_UNKNOWN");
}

#[tokio::test]
async fn the_seven_questions_are_answered_in_one_call() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let questions = house.shown(EVENT).await["questions"].clone();
    assert_eq!(questions["1_arrived"], true);
    assert_eq!(questions["2_how_often"], 2);
    assert_eq!(questions["3_first_processing"], "2026-01-02T00:00:00Z");
    assert_eq!((&questions["4_repeated"], &questions["5_reused"]), (&json!(true), &json!(true)));
    assert!(questions["6_formal_result"]["html_url"].is_string());
    assert_eq!(questions["7_inconsistent_side_effects"], json!([]));
}

fn lines(house: &House) -> Vec<Json> {
    let text = std::fs::read_to_string(house.folder.path().join("processed.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
}

#[tokio::test]
async fn the_export_grows_by_each_processed_event_once_and_survives_rotation() {
    let house = House::new().await;
    let path = house.folder.path().join("processed.jsonl");
    let file = ProcessedFile::at(path.clone());
    house.deliver(&payment(1)).await;
    house.deliver(&payment(1)).await;
    house.deliver(samples::CHECKOUT_UNPAID).await;
    assert_eq!(house.visa.append_export(&file).await.expect("written"), 1);
    assert_eq!(house.visa.append_export(&file).await.expect("nothing new"), 0);
    assert_eq!(lines(&house)[0]["event_id"], "evt_1");
    std::fs::File::options().write(true).open(&path).and_then(|f| f.set_len(0)).expect("cut");
    house.deliver(&payment(2)).await;
    house.visa.append_export(&file).await.expect("written");
    assert_eq!(lines(&house).len(), 1, "it grows from nothing, without a hole");
    assert_eq!(json(&house.deliver(&payment(1)).await)["status"], "duplicate_reused");
    assert_eq!(house.visa.rebuild_export(&file).await.expect("rebuilt"), 2);
    assert_eq!(lines(&house).len(), 2);
}

#[tokio::test]
async fn a_torn_tail_is_kept_aside_and_nothing_is_written_twice() {
    let house = House::new().await;
    let path = house.folder.path().join("processed.jsonl");
    let file = ProcessedFile::at(path.clone());
    house.deliver(&payment(1)).await;
    house.visa.append_export(&file).await.expect("written");
    let mut torn = std::fs::read(&path).expect("a file");
    torn.extend_from_slice(b"{\"event_id\":\"evt_2\",\"re");
    std::fs::write(&path, torn).expect("torn");
    house.visa.mend_export(&file).await.expect("mended");
    house.deliver(&payment(2)).await;
    house.visa.append_export(&file).await.expect("written");
    assert_eq!(lines(&house).len(), 2);
    let aside = std::fs::read_dir(house.folder.path()).expect("the folder").filter_map(Result::ok);
    assert_eq!(aside.filter(|entry| entry.file_name().to_string_lossy().contains(".tail-")).count(), 1);
}

#[tokio::test]
async fn imported_events_are_not_certified_again() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let (lines, _) = house.visa.export_page(0, 10).await.expect("lines");
    let other = House::new().await;
    let report = other.visa.import("stripe", lines.clone(), "eva").await.expect("imported");
    assert_eq!(report, json!({ "lines": 1, "imported": 1, "already_known": 0 }));
    let answer = json(&other.deliver(samples::CHECKOUT_PAID).await);
    assert_eq!((&answer["status"], answer.get("payload_differs")), (&json!("duplicate_reused"), None));
    assert_eq!(other.count("certify_certificates").await, 0);
    let again = other.visa.import("stripe", lines, "eva").await.expect("imported");
    assert_eq!(again["imported"], 0);
    assert_eq!(other.problems().await, json!([]));
}

#[tokio::test]
async fn half_a_file_is_refused_as_a_whole() {
    let house = House::new().await;
    house.deliver(&payment(1)).await;
    house.deliver(&payment(2)).await;
    let (mut lines, _) = house.visa.export_page(0, 10).await.expect("lines");
    let last = lines.last_mut().expect("two lines");
    last.truncate(last.len() / 2);
    let other = House::new().await;
    let refused = other.visa.import("stripe", lines, "eva").await.expect_err("refused");
    assert!(refused.to_string().starts_with("line 2: "), "{refused}");
    assert_eq!(other.count("certify_events").await, 0);
}
