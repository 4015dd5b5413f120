//! What becomes of each sender's body: id, time, subject, fingerprint, change.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use source::{Event, Kind, Mode, ReplyStyle, samples};

use crate::support::{NOW, VECTORS, base64, code, open, signer, source};

macro_rules! stripe {
    ($name:literal) => {
        open(Kind::Stripe, include_str!(concat!("../vectors/stripe-events/", $name, ".json"))).unwrap()
    };
}

fn case(sender: &str, id: &str) -> Vec<u8> {
    let cases = VECTORS[sender]["cases"].as_array().unwrap();
    base64(&cases.iter().find(|case| case["id"] == id).unwrap()["body_b64"])
}

#[test]
fn a_paid_checkout_has_all_that_a_certificate_needs() {
    let event = stripe!("checkout.session.completed.paid");
    assert_eq!(event.id, "evt_1SkQl3B7WZ01zgkWh3b8kqQe");
    assert_eq!((event.kind.as_str(), event.mode), ("checkout.session.completed", Mode::Test));
    assert_eq!((event.occurred_at, event.account.as_deref()), (Some(1_767_225_033), None));
    let subject = &event.subject;
    assert_eq!(subject.object_kind.as_deref(), Some("checkout.session"));
    assert_eq!(subject.session_id, subject.object_id);
    assert_eq!(subject.payment_id.as_deref(), Some("pi_3SkQl0B7WZ01zgkW0Zc3hJ7Q"));
    assert_eq!((subject.amount_minor, subject.currency.as_deref()), (Some(2000), Some("eur")));
    assert_eq!(subject.status.as_deref(), Some("paid"));
    assert_eq!(subject.email.as_deref(), Some("buyer@example.com"));
    assert_eq!(subject.reference.as_deref(), Some("order-1001"));
    assert_eq!(subject.metadata["order_id"], "1001");
    assert_eq!(
        serde_json::to_value(&event.stable).unwrap(),
        json!({
            "type": "checkout.session.completed", "created": 1_767_225_033, "livemode": false,
            "object_kind": "checkout.session", "object_id": subject.object_id, "amount_total": 2000,
            "currency": "eur", "status": "complete", "payment_status": "paid",
        })
    );
    assert!(!format!("{event:?}").contains("buyer@"));
}

#[test]
fn another_rendering_of_an_event_has_the_same_fingerprint_input() {
    let first = open(Kind::Stripe, samples::CHECKOUT_PAID).unwrap();
    assert_eq!(first, open(Kind::Stripe, samples::CHECKOUT_PAID_RENDERED_AGAIN).unwrap());
    let mut body: Value = serde_json::from_str(samples::CHECKOUT_PAID).unwrap();
    body["api_version"] = json!("2024-06-20");
    body["request"] = json!({ "id": "req_1", "idempotency_key": "k" });
    body["data"]["object"]["wallet_options"] = json!({});
    assert_eq!(first.stable, open(Kind::Stripe, body.to_string()).unwrap().stable);
    body["data"]["object"]["amount_total"] = json!(2001);
    assert_ne!(first.stable, open(Kind::Stripe, body.to_string()).unwrap().stable);
}

#[test]
fn one_change_under_two_event_ids_has_one_change_key() {
    let first = open(Kind::Stripe, samples::CHECKOUT_PAID).unwrap();
    let second = open(Kind::Stripe, samples::CHECKOUT_PAID_SECOND_ID).unwrap();
    assert_ne!(first.id, second.id);
    assert!(first.change.is_some());
    assert_eq!(first.change, second.change);
}

#[test]
fn two_true_changes_never_share_a_change_key() {
    let events = [
        stripe!("checkout.session.completed.paid"),
        stripe!("checkout.session.completed.unpaid"),
        stripe!("checkout.session.async_payment_succeeded"),
        stripe!("checkout.session.async_payment_failed"),
        stripe!("charge.refunded.partial"),
        stripe!("charge.refunded"),
        stripe!("charge.dispute.created"),
        stripe!("invoice.paid"),
        stripe!("payment_intent.succeeded"),
        stripe!("connect-live.payment_intent.succeeded"),
        stripe!("customer.subscription.deleted"),
    ];
    let keys: BTreeSet<String> = events.iter().map(|event| event.change.clone().unwrap()).collect();
    assert_eq!(keys.len(), events.len());
    assert!(keys.iter().any(|key| key.ends_with("|amount_refunded|500")));
    let unknown = r#"{"id":"e","type":"customer.subscription.updated","data":{"object":{"id":"sub_1"}}}"#;
    assert_eq!(open(Kind::Stripe, unknown).unwrap().change, None);
}

#[test]
fn old_and_new_shapes_of_an_invoice_give_the_same_subject_fields() {
    for event in [stripe!("invoice.paid"), stripe!("api-2024-06-20.invoice.paid")] {
        let subject = event.subject;
        assert!(subject.reference.unwrap().starts_with("sub_"));
        assert!(subject.price_id.unwrap().starts_with("price_"));
        assert!(subject.product_id.unwrap().starts_with("prod_"));
        assert_eq!((subject.amount_minor, subject.status.as_deref()), (Some(2000), Some("paid")));
    }
    for event in
        [stripe!("customer.subscription.deleted"), stripe!("api-2024-06-20.customer.subscription.deleted")]
    {
        assert!(event.subject.price_id.unwrap().starts_with("price_"));
        assert_eq!(event.subject.status.as_deref(), Some("canceled"));
    }
}

#[test]
fn connected_accounts_and_live_mode_are_read() {
    let event = stripe!("connect-live.payment_intent.succeeded");
    assert_eq!(event.mode, Mode::Live);
    assert!(event.account.unwrap().starts_with("acct_"));
    let unstated = open(Kind::Stripe, r#"{"id":"e"}"#).unwrap();
    assert_eq!((unstated.mode, unstated.kind.as_str()), (Mode::Unstated, "unstated"));
}

#[test]
fn thin_events_are_events_without_a_subject_of_their_own() {
    let event = stripe!("v2.thin.with-context-and-reason");
    assert_eq!((event.kind.as_str(), event.occurred_at), ("v2.core.account.updated", Some(1_767_225_612)));
    assert_eq!(event.account.as_deref(), Some("acct_1SkPxYzAbCd12EfG"));
    assert_eq!(event.subject.object_kind.as_deref(), Some("v2.core.account"));
    assert_eq!((event.change, event.subject.amount_minor), (None, None));
    assert_eq!(stripe!("v2.thin.event_destination_ping").kind, "v2.core.event_destination.ping");
    assert_eq!(stripe!("v2.thin.meter_error_report_triggered").occurred_at, Some(1_726_554_052));
}

#[test]
fn amounts_stay_in_the_smallest_unit_and_codes_in_lower_case() {
    for (written, read) in [("jpy", "jpy"), ("kwd", "kwd"), ("USD", "usd"), ("xxx", "xxx"), ("clf", "clf")] {
        let body = json!({ "id": "e", "data": { "object":
            { "object": "checkout.session", "amount_total": 1500, "currency": written } } });
        let subject = open(Kind::Stripe, body.to_string()).unwrap().subject;
        assert_eq!((subject.amount_minor, subject.currency.as_deref()), (Some(1500), Some(read)));
    }
}

#[test]
fn emoji_and_han_characters_stay_intact() {
    let body =
        r#"{"id":"e","data":{"object":{"object":"checkout.session","metadata":{"name":"李雷 😀 \u00e9"}}}}"#;
    assert_eq!(open(Kind::Stripe, body).unwrap().subject.metadata["name"], "李雷 😀 é");
}

#[test]
fn two_github_deliveries_of_one_body_are_two_events() {
    let body = br#"{"action":"created","repository":{"full_name":"a/b"}}"#;
    let event = |guid: &str| {
        let headers = signer(Kind::Github).with_type("sponsorship").sign(body, NOW, guid);
        let lines: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        source(Kind::Github).open(&source::Delivery { headers: &lines, body, now: NOW }).unwrap()
    };
    assert_ne!(event("a").id, event("b").id);
    assert_eq!(event("a"), event("a"));
    assert_eq!(event("a").kind, "sponsorship.created");
    assert_eq!(code(Kind::Github, &[], b"x"), "SIG_MISSING");
}

#[test]
fn a_form_encoded_github_delivery_is_read_like_json() {
    let event = open(Kind::Github, case("github", "ok-form")).unwrap();
    let plain = open(Kind::Github, case("github", "ok-json")).unwrap();
    assert_eq!(event, plain);
    assert_eq!(open(Kind::Github, "other=1").unwrap_err().code, "BODY_NOT_JSON");
    assert_eq!(open(Kind::Github, "payload={}&payload={}").unwrap_err().code, "BODY_DUPLICATE_NAME");
}

#[test]
fn paddle_dedupes_on_the_event_and_reads_text_amounts() {
    let body = r#"{"event_id":"evt_01","event_type":"transaction.completed","occurred_at":"2025-12-31T23:59:58.697145Z",
        "notification_id":"ntf_01","data":{"id":"txn_01","status":"completed","currency_code":"USD",
        "details":{"totals":{"total":"1999","grand_total":"2000"}},"items":[{"price":{"id":"pri_01","product_id":"pro_01"}}],
        "subscription_id":"sub_01","custom_data":{"order":"7"}}}"#;
    let event = open(Kind::Paddle, body).unwrap();
    assert_eq!((event.id.as_str(), event.occurred_at), ("evt_01", Some(1_767_225_598)));
    assert_eq!(event.subject.amount_minor, Some(2000));
    assert_eq!(event.subject.currency.as_deref(), Some("usd"));
    assert_eq!(event.subject.price_id.as_deref(), Some("pri_01"));
    let other = open(Kind::Paddle, body.replace("ntf_01", "ntf_02")).unwrap();
    assert_eq!(event, other);
    assert_eq!(open(Kind::Paddle, body.replace("\"2000\"", "\"20.00\"")).unwrap_err().code, "FIELD_INVALID");
}

#[test]
fn lemon_squeezy_gets_a_composed_id_whose_parts_can_not_shift() {
    let body = |name: &str, id: &str, updated: &str| {
        json!({ "meta": { "event_name": name, "test_mode": true }, "data": { "type": "orders", "id": id,
            "attributes": { "status": "paid", "total": 999, "currency": "USD", "updated_at": updated } } })
        .to_string()
    };
    let id = |text: String| open(Kind::LemonSqueezy, text).unwrap().id;
    let first = id(body("order_created", "1", "2026-01-01T00:00:00.000000Z"));
    assert!(first.starts_with("ls_") && first.len() == 67);
    assert_eq!(first, id(body("order_created", "1", "2026-01-01T00:00:00.000000Z")));
    assert_ne!(first, id(body("order_refunded", "1", "2026-01-01T00:00:00.000000Z")));
    assert_ne!(first, id(body("order_created", "1", "2026-01-01T00:00:01.000000Z")));
    let event = open(Kind::LemonSqueezy, body("order_created", "1", "2026-01-01T00:00:00.000000Z")).unwrap();
    assert_eq!((event.mode, event.subject.amount_minor), (Mode::Test, Some(999)));
    let vector = open(Kind::LemonSqueezy, case("lemon_squeezy", "ok-order"));
    assert_eq!(vector.unwrap_err().code, "ID_MISSING");
}

#[test]
fn wechat_resources_are_opened_and_their_failure_is_a_refusal() {
    let paid = open(Kind::WechatPay, case("wechat_pay_v3", "ok-transaction")).unwrap();
    assert_eq!((paid.id.as_str(), paid.kind.as_str()), ("EV-2026010100000000001", "TRANSACTION.SUCCESS"));
    assert_eq!((paid.subject.amount_minor, paid.subject.currency.as_deref()), (Some(100), Some("cny")));
    assert_eq!((paid.subject.reference.as_deref(), paid.occurred_at), (Some("ORDER-1"), Some(NOW)));
    let refund = open(Kind::WechatPay, case("wechat_pay_v3", "ok-refund")).unwrap();
    assert_eq!(refund.subject.object_id.as_deref(), Some("50200000002026010100000000001"));
    assert_ne!(paid.change, refund.change);
    for (id, wanted) in [
        ("bad-gcm-tag", "RESOURCE_UNREADABLE"),
        ("bad-api-v3-key", "RESOURCE_UNREADABLE"),
        ("bad-algorithm", "FIELD_INVALID"),
    ] {
        assert_eq!(open(Kind::WechatPay, case("wechat_pay_v3", id)).unwrap_err().code, wanted);
    }
}

#[test]
fn alipay_repeats_are_one_event_and_a_refund_is_no_payment() {
    let unsigned = |id: &str| {
        let body = String::from_utf8(case("alipay", id)).unwrap();
        let kept: Vec<&str> = body.split('&').filter(|pair| !pair.starts_with("sign")).collect();
        kept.join("&")
    };
    let paid = open(Kind::Alipay, unsigned("ok-payment")).unwrap();
    assert_eq!(paid, open(Kind::Alipay, unsigned("ok-retry")).unwrap());
    assert_eq!(
        (paid.id.as_str(), paid.subject.amount_minor),
        ("2026010100222080005016773037000000", Some(990))
    );
    assert_eq!(
        (paid.subject.status.as_deref(), paid.occurred_at),
        (Some("TRADE_SUCCESS"), Some(1_767_225_605))
    );
    let refund = open(Kind::Alipay, unsigned("ok-refund")).unwrap();
    assert_eq!((refund.kind.as_str(), refund.subject.amount_minor), ("trade_status_sync.refund", Some(990)));
    assert_ne!(paid.change, refund.change);
    let gbk = unsigned("ok-payment").replace("charset=utf-8", "charset=GBK");
    assert_eq!(open(Kind::Alipay, gbk).unwrap_err().code, "FIELD_INVALID");
    let float = unsigned("ok-payment").replace("total_amount=9.90", "total_amount=9.900");
    assert_eq!(open(Kind::Alipay, float).unwrap_err().code, "FIELD_INVALID");
}

#[test]
fn a_generic_sender_is_read_by_its_rule() {
    let body =
        r#"{"event":{"id":"o-1","type":"paid","at":"2026-01-01T00:00:00Z","amount":5,"currency":"EUR"}}"#;
    let event = open(Kind::GenericHmac, body).unwrap();
    assert_eq!((event.id.as_str(), event.kind.as_str(), event.occurred_at), ("o-1", "paid", Some(NOW)));
    assert_eq!((event.subject.amount_minor, event.subject.currency.as_deref()), (Some(5), Some("eur")));
    assert_eq!(open(Kind::GenericHmac, "{}").unwrap_err().code, "ID_MISSING");
    assert_eq!(open(Kind::GenericHmac, body.replace(":5", ":5.5")).unwrap_err().code, "FIELD_INVALID");
}

#[test]
fn an_internal_event_is_held_to_its_own_contract() {
    let body = json!({ "id": "task-1", "type": "review.done", "created": NOW, "object": "review", "object_id": "r1",
        "amount": 100, "currency": "cny", "change": "review r1", "metadata": { "by": "li" } });
    let event = open(Kind::Internal, body.to_string()).unwrap();
    assert_eq!(event.change.as_deref(), Some("internal|review r1"));
    assert_eq!((event.subject.amount_minor, event.subject.metadata["by"].as_str()), (Some(100), "li"));
    for (field, value) in [("type", Value::Null), ("metadata", json!({ "n": 1 })), ("amount", json!(1.5))] {
        let mut wrong = body.clone();
        wrong[field] = value;
        assert_eq!(open(Kind::Internal, wrong.to_string()).unwrap_err().code, "FIELD_INVALID", "{field}");
    }
}

#[test]
fn the_id_of_standard_webhooks_is_the_header_and_may_not_shift() {
    let event = open(
        Kind::StandardWebhooks,
        r#"{"type":"contact.created","timestamp":"2026-01-01T00:00:00Z","data":{"id":"c1"}}"#,
    );
    let event = event.unwrap();
    assert_eq!((event.id.as_str(), event.occurred_at), ("msg_1", Some(NOW)));
    let headers: [(&str, &[u8]); 3] =
        [("webhook-id", b"a.1"), ("webhook-timestamp", b"1767225600"), ("webhook-signature", b"v1,AA==")];
    assert_eq!(code(Kind::StandardWebhooks, &headers, b"{}"), "SIG_MALFORMED");
}

#[test]
fn every_sender_is_answered_in_its_own_way() {
    assert_eq!(source(Kind::Alipay).reply_style(), ReplyStyle::AlipaySuccess);
    assert_eq!(source(Kind::WechatPay).reply_style(), ReplyStyle::WechatPay);
    assert_eq!(source(Kind::Stripe).reply_style(), ReplyStyle::Json);
    assert_eq!(source(Kind::Stripe).account(), "stripe");
}

#[test]
fn every_sample_is_an_event_and_an_event_can_be_stored_and_read_back() {
    for (name, body) in samples::ALL {
        let event = open(Kind::Stripe, body).unwrap_or_else(|rejection| panic!("{name}: {rejection}"));
        let stored = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&stored).unwrap(), event);
    }
}
