//! What an arrival meets and gets.

use bytes::Bytes;
use certify::policy::{Policy, Rule, SecondReport, Target};
use certify::shelf::Form;
use seal::verify::{Trust, Verdict, verify};
use serde_json::json;
use source::samples;

use crate::house::{House, NOW, context, json, payment, signed};

#[tokio::test]
async fn a_first_delivery_gets_one_signed_certificate() {
    let house = House::new().await;
    let reply = house.deliver(samples::CHECKOUT_PAID).await;
    let answer = json(&reply);
    assert_eq!((reply.status, &answer["status"], &answer["arrivals"]), (200, &json!("processed"), &json!(1)));
    assert_eq!(answer["ref"], "av_evt_1SkQl3B7WZ01zgkWh3b8kqQe");
    let trust = Trust::from(&house.visa.keys().jwks().expect("keys"));
    let files = house.files();
    assert_eq!(files.len(), 3);
    for file in files {
        let report = verify(&std::fs::read(&file).expect("a file"), &trust);
        assert!(matches!(report.verdict, Verdict::Valid), "{}: {}", file.display(), report.verdict);
    }
    assert_eq!(house.count("outbox_deliveries").await, 1);
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn every_repeat_gets_the_first_ones_links_and_is_recorded() {
    let house = House::new().await;
    let first = json(&house.deliver(samples::CHECKOUT_PAID).await);
    for arrivals in 2..=4 {
        let reply = house.deliver(samples::CHECKOUT_PAID).await;
        let again = json(&reply);
        assert!(reply.replayed);
        assert_eq!((&again["status"], &again["arrivals"]), (&json!("duplicate_reused"), &json!(arrivals)));
        assert_eq!(again["message"], "Duplicate event detected. Existing AuditVisa reused.");
        for name in ["html_url", "zip_url", "json_url", "run_hash", "signature", "ref"] {
            assert_eq!(first[name], again[name], "{name}");
        }
    }
    assert_eq!(house.count("certify_arrivals").await, 4);
    assert_eq!(house.count("outbox").await, 1);
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn sixteen_twins_at_once_make_one_certificate() {
    let house = House::new().await;
    let all = futures::future::join_all((0..16).map(|_| house.deliver(samples::CHECKOUT_PAID))).await;
    assert!(all.iter().all(|reply| reply.status == 200));
    assert_eq!(all.iter().filter(|reply| json(reply)["status"] == "processed").count(), 1);
    assert_eq!(house.count("certify_certificates").await, 1);
    assert_eq!(house.count("certify_arrivals").await, 16);
    assert_eq!(house.files().len(), 3);
}

#[tokio::test]
async fn another_rendering_of_one_event_is_a_repeat_and_no_mismatch() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let again = json(&house.deliver(samples::CHECKOUT_PAID_RENDERED_AGAIN).await);
    assert_eq!((&again["status"], again.get("payload_differs")), (&json!("duplicate_reused"), None));
    assert_eq!(house.shown("evt_1SkQl3B7WZ01zgkWh3b8kqQe").await["arrival_list"][1]["differs"], "rendering");
}

#[tokio::test]
async fn a_true_difference_under_a_known_id_is_audited_and_changes_nothing() {
    let house = House::new().await;
    let first = json(&house.deliver(samples::CHECKOUT_PAID).await);
    let altered = samples::CHECKOUT_PAID.replace("\"amount_total\": 2000", "\"amount_total\": 9000");
    assert_ne!(altered, samples::CHECKOUT_PAID);
    let again = json(&house.deliver(&altered).await);
    assert_eq!((&again["payload_differs"], &again["run_hash"]), (&json!(true), &first["run_hash"]));
    let shown = house.shown("evt_1SkQl3B7WZ01zgkWh3b8kqQe").await;
    assert_eq!(shown["arrival_list"][1]["differs"], "payload");
    assert_eq!(house.count("certify_certificates").await, 1);
}

#[tokio::test]
async fn one_change_under_two_ids_has_one_certificate() {
    let house = House::new().await;
    let bodies = [samples::CHECKOUT_PAID, samples::CHECKOUT_PAID_SECOND_ID];
    let replies = futures::future::join_all((0..8).map(|n| house.deliver(bodies[n % 2]))).await;
    let answers: Vec<_> = replies.iter().map(json).collect();
    assert!(answers.iter().all(|answer| answer["html_url"] == answers[0]["html_url"]));
    assert!(answers.iter().all(|answer| answer["run_hash"] == answers[0]["run_hash"]));
    assert_eq!(house.count("certify_certificates").await, 1);
    assert_eq!(house.count("outbox").await, 1);
    assert_eq!(house.files().len(), 3, "the loser's files are gone");
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn a_policy_may_ask_for_a_certificate_for_each_report() {
    let house = House::with(Policy { second_report: SecondReport::Certify, ..Policy::default() }).await;
    house.deliver(samples::CHECKOUT_PAID).await;
    house.deliver(samples::CHECKOUT_PAID_SECOND_ID).await;
    assert_eq!(house.count("certify_certificates").await, 2);
}

#[tokio::test]
async fn what_is_not_certified_is_recorded_with_its_reason() {
    let house = House::new().await;
    for (body, reason) in [
        (samples::CHECKOUT_UNPAID, "status is \"unpaid\"; certified is paid"),
        (samples::REFUND_PARTIAL, "type \"charge.refunded\" is not certified"),
    ] {
        for _ in 0..2 {
            let reply = house.deliver(body).await;
            let answer = json(&reply);
            assert_eq!(
                (reply.status, &answer["status"], &answer["reason"]),
                (200, &json!("recorded"), &json!(reason))
            );
        }
    }
    assert_eq!(house.count("certify_certificates").await, 0);
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn content_that_breaks_a_rule_fails_for_good_and_repeats_get_the_verdict() {
    let house =
        House::with(Policy { target: Target { required: true, ..Target::default() }, ..Policy::default() })
            .await;
    for replayed in [false, true] {
        let reply = house.deliver(samples::CHECKOUT_PAID).await;
        let answer = json(&reply);
        assert_eq!((reply.status, reply.replayed, &answer["status"]), (200, replayed, &json!("failed")));
        assert_eq!(answer["reason"], "metadata \"target\" is missing");
    }
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn a_wrong_signature_leaves_nothing_behind() {
    let house = House::new().await;
    let endpoint = house.visa.endpoint("stripe").expect("an endpoint");
    let headers = signed(samples::CHECKOUT_UNPAID, NOW);
    let headers: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    let body = Bytes::from_static(samples::CHECKOUT_PAID.as_bytes());
    let rejection = house.visa.receive(&endpoint, &headers, body, context()).await.expect_err("a rejection");
    assert_eq!(rejection.code, "SIG_MISMATCH");
    assert_eq!(
        house.count("certify_events").await + house.count("audit_events").await,
        1,
        "the key's row alone"
    );
}

#[tokio::test]
async fn two_endpoints_of_one_account_share_their_ids() {
    let house = House::new().await;
    house.deliver_at("stripe", samples::CHECKOUT_PAID).await;
    let reply = house.deliver_at("stripe-two", samples::CHECKOUT_PAID).await;
    assert_eq!(json(&reply)["status"], "duplicate_reused");
}

#[tokio::test]
async fn a_failed_write_of_files_is_told_and_the_next_delivery_takes_over() {
    let house = House::new().await;
    let deliveries = house.folder.path().join("deliveries");
    std::fs::rename(&deliveries, house.folder.path().join("away")).expect("moved");
    std::fs::write(&deliveries, "a file where a folder should be").expect("in the way");
    let reply = house.deliver(samples::CHECKOUT_PAID).await;
    assert_eq!((reply.status, &json(&reply)["code"]), (503, &json!("STORE_UNAVAILABLE")));
    assert_eq!(house.shown("evt_1SkQl3B7WZ01zgkWh3b8kqQe").await["status"], "failed");
    std::fs::remove_file(&deliveries).expect("out of the way");
    std::fs::rename(house.folder.path().join("away"), &deliveries).expect("back");
    let reply = house.deliver(samples::CHECKOUT_PAID).await;
    let answer = json(&reply);
    assert_eq!((reply.status, &answer["status"], &answer["arrivals"]), (200, &json!("processed"), &json!(2)));
    let shown = house.shown("evt_1SkQl3B7WZ01zgkWh3b8kqQe").await;
    let states: Vec<_> =
        shown["transitions"].as_array().expect("a list").iter().map(|t| t["status"].clone()).collect();
    assert_eq!(states, ["received", "processing", "failed", "received", "processing", "processed"]);
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn a_damaged_or_missing_file_is_rebuilt_before_it_is_given_out() {
    let house = House::new().await;
    house.deliver(samples::CHECKOUT_PAID).await;
    house.visa.rotate_keys("tester").await.expect("a rotation");
    for file in house.files() {
        let good = std::fs::read(&file).expect("a file");
        let slug = file.file_stem().expect("a stem").to_string_lossy().into_owned();
        let form = Form::from_extension(&file.extension().expect("one").to_string_lossy()).expect("a form");
        for damage in [Some(good[..good.len() / 2].to_vec()), Some(vec![]), None] {
            match damage {
                Some(bytes) => std::fs::write(&file, bytes).expect("damaged"),
                None => std::fs::remove_file(&file).expect("removed"),
            }
            let served = house.visa.delivered(&slug, form).await.expect("a file");
            assert_eq!(served.bytes, good);
            assert_eq!(std::fs::read(&file).expect("mended"), good);
        }
    }
}

#[tokio::test]
async fn searching_finds_by_session_payment_and_mail() {
    let house = House::new().await;
    for number in 1..=3 {
        house.deliver(&payment(number)).await;
    }
    let find = |filter| {
        let house = &house;
        async move {
            let filter: certify::audit::Filter = serde_json::from_value(filter).expect("a filter");
            house.visa.list(&filter).await.expect("a list")["events"].as_array().expect("a list").len()
        }
    };
    assert_eq!(find(json!({ "session": "cs_test_2" })).await, 1);
    assert_eq!(find(json!({ "payment": "pi_3" })).await, 1);
    assert_eq!(find(json!({ "mail": "Buyer@Example.com" })).await, 3);
    assert_eq!(find(json!({ "mail": "nobody@example.com" })).await, 0);
    assert_eq!(find(json!({ "status": "processed", "until": "2026-01-02T00:00:01Z", "limit": 2 })).await, 2);
}

#[tokio::test]
async fn a_refund_annotates_and_does_not_touch_the_certificate() {
    let house = House::new().await;
    house.deliver(samples::REFUND_PARTIAL).await;
    house.deliver(samples::CHECKOUT_PAID).await;
    let shown = house.shown("evt_1SkQl3B7WZ01zgkWh3b8kqQe").await;
    assert_eq!(shown["related"][0]["type"], "charge.refunded");
    assert_eq!(house.count("certify_certificates").await, 1);
}

#[tokio::test]
async fn no_full_mail_address_is_kept_in_a_certificate() {
    let rule =
        Rule { source: None, kind: None, types: vec!["checkout.session.completed".into()], status: vec![] };
    let house = House::with(Policy { certify: vec![rule], ..Policy::default() }).await;
    house.deliver(samples::CHECKOUT_PAID).await;
    for file in house.files() {
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("a file")).into_owned();
        assert!(!text.contains("buyer@example.com"), "{}", file.display());
    }
}

#[tokio::test]
async fn buffered_arrivals_are_all_on_record_after_a_stop() {
    let house = House::new().await;
    let flusher = house.visa.buffer_arrivals();
    let first = json(&house.deliver(samples::CHECKOUT_PAID).await);
    for arrivals in 2..=50 {
        let again = json(&house.deliver(samples::CHECKOUT_PAID).await);
        assert_eq!((&again["arrivals"], &again["html_url"]), (&json!(arrivals), &first["html_url"]));
    }
    flusher.stop().await;
    assert_eq!(house.count("certify_arrivals").await, 50);
    assert_eq!(json(&house.deliver(samples::CHECKOUT_PAID).await)["arrivals"], 51);
    assert_eq!(house.problems().await, json!([]));
}

#[tokio::test]
async fn a_buffer_never_answers_what_has_a_wrong_signature() {
    let house = House::new().await;
    let _flusher = house.visa.buffer_arrivals();
    house.deliver(samples::CHECKOUT_PAID).await;
    let endpoint = house.visa.endpoint("stripe").expect("an endpoint");
    let body = Bytes::from_static(samples::CHECKOUT_PAID.as_bytes());
    let headers: [(&str, &[u8]); 1] = [("Stripe-Signature", b"t=1,v1=00")];
    assert!(house.visa.receive(&endpoint, &headers, body, context()).await.is_err());
}
