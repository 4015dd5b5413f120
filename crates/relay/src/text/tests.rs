use kernel::Time;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::*;

fn message(payload: Json) -> Message {
    Message {
        delivery_id: 1,
        event_id: Uuid::nil(),
        event_name: "certify.certificate.issue.succeeded".into(),
        object_type: "certify_event".into(),
        object_id: "av_evt_1".into(),
        request_id: "r".into(),
        payload,
        occurred_at: Time::from_seconds(0),
        attempt: 1,
    }
}

fn certificate(kind: &str, mode: &str) -> Message {
    message(json!({
        "kind": kind, "event_id": "evt_1", "ref": "av_evt_1", "sid": "cs_live_1", "mode": mode,
        "amount": "9.90 EUR", "html_url": "https://d.example/x.html", "zip_url": "https://d.example/x.zip",
        "json_url": null, "before_state": {}, "after_state": {"status": "processed"},
    }))
}

#[test]
fn the_first_notice_has_all_that_section_9_1_asks_for() {
    let text = Announcement::of(&certificate("issued", "live")).plain(4096);
    assert_eq!(
        text,
        "处理成功 / processed\n首次处理已完成，正式结果已生成。\n\
         First processing is complete; this is the formal result.\nEvent ID: evt_1\nRef: av_evt_1\n\
         SID: cs_live_1\n金额 / Amount: 9.90 EUR\nHTML: https://d.example/x.html\n\
         ZIP: https://d.example/x.zip"
    );
}

#[test]
fn a_test_event_is_marked_and_an_absent_sid_has_no_line() {
    let mut message = certificate("issued", "test");
    message.payload["sid"] = Json::Null;
    let text = Announcement::of(&message).plain(4096);
    assert!(text.starts_with("【测试 TEST】处理成功"), "{text}");
    assert!(!text.contains("SID"), "{text}");
}

#[test]
fn a_repeat_is_told_as_reuse_and_never_as_a_fault() {
    for kind in ["duplicate", "digest"] {
        let text = Announcement::of(&certificate(kind, "live")).plain(4096);
        assert!(text.contains("未重新出证") && text.contains("既有正式结果"), "{text}");
        for word in ["fail", "error", "warning", "alert", "失败", "错误", "故障", "异常", "警告"] {
            assert!(!text.to_lowercase().contains(word), "{kind}: {word}");
        }
    }
    let text = Announcement::of(&certificate("duplicate", "live")).plain(4096);
    assert!(text.contains("already processed (duplicate reused)") && text.contains("x.zip"), "{text}");
}

#[test]
fn a_digest_counts_the_repeats_of_its_period() {
    let events: Vec<Json> = (0..50).map(|n| json!(format!("evt_{n}"))).collect();
    let text = Announcement::of(&message(json!({
        "kind": "digest", "from": "2026-03-01T00:00:00Z", "until": "2026-03-02T00:00:00Z", "count": 50,
        "events": events,
    })))
    .plain(4096);
    assert!(text.contains("50 / duplicates reused: 50"), "{text}");
    assert!(text.contains("2026-03-01T00:00:00Z – 2026-03-02T00:00:00Z"), "{text}");
    assert!(text.contains("evt_19") && !text.contains("evt_20"), "{text}");
}

#[test]
fn a_kind_without_words_is_told_by_its_name() {
    let mut order = message(json!({ "before_state": {"status": "open"}, "after_state": {"status": "paid"} }));
    order.event_name = "supply.order.pay.succeeded".into();
    let text = Announcement::of(&order).plain(4096);
    assert!(text.contains("supply.order.pay.succeeded") && text.contains(r#"{"status":"paid"}"#), "{text}");
}

#[test]
fn values_are_escaped_and_stay_on_their_line() {
    let mut message = certificate("issued", "live");
    message.payload["ref"] = json!("a < b && c > d\nHTML: https://evil.example \u{202E}x");
    let html = Announcement::of(&message).html(4096);
    assert!(html.starts_with("<b>处理成功 / processed</b>\n"), "{html}");
    assert!(html.contains("Ref: a &lt; b &amp;&amp; c &gt; d HTML: https://evil.example x\n"), "{html}");
}

#[test]
fn hostile_values_leave_a_text_within_the_limit_with_whole_links() {
    let link = format!("https://d.example/{}", "x".repeat(1_500));
    for value in ["<", "&", "🎉", "\u{200F}م", "A_B*[x](y)~`>#+-=|{}.!\\", " ", "_"] {
        let mut message = certificate("issued", "live");
        for field in ["event_id", "ref", "sid", "amount"] {
            message.payload[field] = json!(value.repeat(5_000));
        }
        message.payload["html_url"] = json!(link);
        message.payload["zip_url"] = json!(link);
        for limit in [1, 50, 2_000, 3_500, 4_096] {
            let plain = Announcement::of(&message).plain(limit);
            assert!(plain.chars().count() <= limit, "{limit}");
            assert!(plain.lines().all(|line| !line.starts_with("HTML") || line.ends_with(&link)));
        }
        assert_eq!(Announcement::of(&message).html(4_096).matches(&link).count(), 2);
    }
}

#[test]
fn a_link_that_can_not_fit_is_left_out() {
    let mut message = certificate("issued", "live");
    message.payload["html_url"] = json!("x".repeat(5_000));
    let plain = Announcement::of(&message).plain(4_096);
    assert!(!plain.contains("HTML") && plain.contains("ZIP: https://d.example/x.zip"), "{plain}");
}

#[test]
fn the_log_has_it_on_one_line() {
    let line = Announcement::of(&certificate("duplicate", "live")).one_line();
    assert!(!line.contains('\n') && line.contains(" | Ref: av_evt_1 | "), "{line}");
}
