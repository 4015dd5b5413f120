//! `processed.jsonl` beyond its growing: made anew, taken over from elsewhere; and whose references are plain.

use std::path::PathBuf;

use certify::ledgerfile::ProcessedFile;
use certify::plain::Kept;
use door::AuditRow;
use serde_json::{Value as Json, json};
use source::samples;
use store::{Query, Write};

use crate::house::{House, json, payment};

fn list(house: &House) -> (PathBuf, ProcessedFile) {
    let path = house.folder.path().join("processed.jsonl");
    (path.clone(), ProcessedFile::at(path))
}

async fn mark(house: &House, name: &str) -> i64 {
    let query = Query::new("test.mark", "select value from certify_marks where name = $1", vec![name.into()]);
    house.visa.door().store().query(query).await.expect("a look")[0].int(0).expect("a number")
}

fn line(event: &str, html: &str, payload_hash: &Json) -> String {
    json!({
        "event_id": event, "ref": format!("av_{event}"), "sid": null, "status": "processed",
        "created_at": "2026-03-01T09:49:14Z", "updated_at": "2026-03-01T09:49:20Z",
        "html_url": html, "zip_url": "https://old.example.com/d/x.zip", "run_hash": "xxx", "payload_hash": payload_hash,
    })
    .to_string()
}

#[tokio::test]
async fn audit_rows_without_a_line_are_not_read_again_for_ever() {
    let house = House::new().await;
    let (_, file) = list(&house);
    let random = house.visa.door().random();
    let rows = move |_, now| {
        let row =
            |n| AuditRow::system("certify.event.received", "certify_event", format!("x{n}"), "r".into());
        Ok(((0..1001).map(|n| row(n).write(now, &*random)).collect(), ()))
    };
    house.visa.door().maintain("test.audit", Vec::new(), rows).await.expect("written");
    assert_eq!(house.visa.append_export(&file).await.expect("nothing to write"), 0);
    assert!(mark(&house, "export.audit").await > 1000);
    house.deliver(&payment(1)).await;
    assert_eq!(house.visa.append_export(&file).await.expect("written"), 1);
}

#[tokio::test]
async fn a_rebuilt_list_has_every_event_once_and_keeps_what_others_wrote_aside() {
    let house = House::new().await;
    let (path, file) = list(&house);
    house.deliver(&payment(1)).await;
    house.visa.append_export(&file).await.expect("written");
    std::fs::write(&path, std::fs::read_to_string(&path).expect("a list") + "mine\n").expect("appended");
    house.deliver(&payment(2)).await;
    assert_eq!(house.visa.rebuild_export(&file).await.expect("rebuilt"), 2);
    house.deliver(&payment(3)).await;
    assert_eq!(house.visa.append_export(&file).await.expect("written"), 1);
    let text = std::fs::read_to_string(&path).expect("a list");
    let events: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let ids: Vec<_> = events.iter().map(|event| event["event_id"].as_str().expect("an id")).collect();
    assert_eq!(ids, ["evt_1", "evt_2", "evt_3"]);
    assert!(!path.with_extension("jsonl.new").exists());
}

#[tokio::test]
async fn a_crash_while_the_list_is_replaced_cuts_nothing_off() {
    let house = House::new().await;
    let (path, file) = list(&house);
    house.deliver(&payment(1)).await;
    house.visa.append_export(&file).await.expect("written");
    let sql = "update certify_marks set value = $1 where name = 'export.bytes'";
    let uncertain = vec![Write::one("test.mark", sql, vec![i64::MAX.into()])];
    let crashed =
        house.visa.door().maintain("test.mark", Vec::new(), move |_, _| Ok((uncertain.clone(), ()))).await;
    crashed.expect("marked");
    let whole = std::fs::read(&path).expect("a list");
    house.visa.mend_export(&file).await.expect("mended");
    assert_eq!(std::fs::read(&path).expect("a list"), whole);
    std::fs::write(&path, [&whole, &b"{\"torn"[..]].concat()).expect("torn");
    house.visa.mend_export(&file).await.expect("mended");
    assert_eq!(std::fs::read(&path).expect("a list"), whole, "the length is known again");
}

#[tokio::test]
async fn of_several_lines_about_one_event_the_first_counts() {
    let house = House::new().await;
    let mut lines: Vec<_> = (0..450).map(|n| line(&format!("evt_{n}"), "first", &Json::Null)).collect();
    lines.insert(1, line("evt_0", "second", &Json::Null));
    lines.push(line("evt_3", "second", &Json::Null));
    let report = house.visa.import("stripe", lines, "eva").await.expect("imported");
    assert_eq!(report, json!({ "lines": 452, "imported": 450, "already_known": 2 }));
    let (page, _) = house.visa.export_page(0, 500).await.expect("lines");
    let page: Vec<Json> = page.iter().map(|line| serde_json::from_str(line).expect("a line")).collect();
    for (number, line) in page.iter().enumerate() {
        assert_eq!(
            (&line["event_id"], &line["html_url"]),
            (&json!(format!("evt_{number}")), &json!("first"))
        );
    }
}

#[tokio::test]
async fn a_payload_hash_that_is_none_is_unknown_everywhere() {
    let house = House::new().await;
    let lines: Vec<_> = [json!("xxx"), json!(""), Json::Null, json!("ab")]
        .iter()
        .enumerate()
        .map(|(n, hash)| line(&format!("evt_{n}"), "https://old.example.com/d/x.html", hash))
        .collect();
    house.visa.import("stripe", lines, "eva").await.expect("imported");
    let (page, _) = house.visa.export_page(0, 10).await.expect("lines");
    assert_eq!(page.len(), 4);
    for line in &page {
        assert_eq!(serde_json::from_str::<Json>(line).expect("a line")["payload_hash"], Json::Null, "{line}");
    }
    let other = House::new().await;
    let report = other.visa.import("stripe", page, "eva").await.expect("our own lines are taken");
    assert_eq!(report["imported"], 4);
    let answer = json(&house.deliver(&payment(1)).await);
    assert_eq!((&answer["status"], &answer["payload_hash"]), (&json!("duplicate_reused"), &Json::Null));
}

#[tokio::test]
async fn plain_references_stay_with_the_account_whose_events_have_them() {
    let house = House::new().await;
    let keep = async |account| house.visa.keep_plain(account).await.expect("compared");
    assert_eq!(keep(None).await, Kept::AsWanted);
    assert_eq!(keep(Some("other")).await, Kept::AsWanted, "no event speaks against it");
    assert_eq!(keep(Some("other")).await, Kept::AsWanted);
    assert_eq!(keep(Some("stripe")).await, Kept::Elsewhere(Some("other".into())));
    assert_eq!(keep(None).await, Kept::Elsewhere(Some("other".into())));
}

#[tokio::test]
async fn events_from_before_the_first_start_say_whose_references_are_plain() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    assert_eq!(
        house.visa.keep_plain(Some("other")).await.expect("compared"),
        Kept::Elsewhere(Some("stripe".into()))
    );
    assert_eq!(house.visa.keep_plain(Some("stripe")).await.expect("compared"), Kept::AsWanted);
}
