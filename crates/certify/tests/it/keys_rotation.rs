//! A key hands over to the next one while nodes work.

use std::sync::Arc;
use std::time::Duration;

use certify::AuditVisa;
use certify::acts::Refused;
use certify::keyring::LIVE_FOR;
use seal::verify::{Trust, Verdict, verify};
use serde_json::{Value as Json, json};
use store::Query;

use crate::house::{NOW, json, payment};
use crate::nodes::{Site, active, deliver};

/// Two nodes with folders of their own that work together.
async fn pair(site: &Site) -> [Arc<AuditVisa>; 2] {
    let one = site.node(1, "keys-1").await.expect("a node");
    site.copy_keys("keys-1", "keys-2");
    let two = site.node(2, "keys-2").await.expect("a node");
    for node in [&one, &two] {
        node.tend_keys().await.expect("tended");
    }
    [one, two]
}

fn refusal(end: Result<Json, Refused>) -> (&'static str, String) {
    let refused = end.expect_err("a refusal");
    (refused.code(), refused.to_string())
}

fn status<'s>(standing: &'s Json, key: &str) -> &'s Json {
    let keys = standing["keys"].as_array().expect("a list");
    &keys.iter().find(|shown| shown["key_id"] == key).expect("the key")["status"]
}

/// Comes when the key is retired: other databases of the server may have long transactions, too.
async fn retired(node: &AuditVisa, key: &str) {
    let mut standing = node.keys_standing().await.expect("a look");
    for _ in 0..30 {
        if status(&standing, key) == "retired" {
            return;
        }
        node.tend_keys().await.expect("tended");
        standing = node.keys_standing().await.expect("a look");
    }
    assert_eq!(status(&standing, key), "retired");
}

async fn announced(node: &AuditVisa) -> String {
    node.announce_key("tester").await.expect("announced")["announced"].as_str().expect("a key").to_owned()
}

#[tokio::test]
async fn a_key_is_activated_once_every_node_that_is_alive_has_loaded_it() {
    let site = Site::new().await;
    let [one, two] = pair(&site).await;
    let first = active(&one);
    let old = json(&deliver(&two, &payment(1)).await);
    let next = announced(&one).await;
    two.tend_keys().await.expect("tended");
    let (code, text) = refusal(one.activate_key("tester").await);
    assert_eq!(code, "KEYS_STATE");
    assert!(
        text.contains("10.0.0.2:8080 (node-2)") && text.contains(&format!("anchor-{next}.pem")),
        "{text}"
    );
    let standing = one.keys_standing().await.expect("a look");
    assert_eq!(standing["not_loaded_by"], json!(["10.0.0.2:8080 (node-2)"]));
    assert_eq!(standing["nodes"][1]["trouble"], format!("anchor-{next}.pem is not in its keys folder"));
    site.copy_keys("keys-1", "keys-2");
    two.tend_keys().await.expect("tended");
    assert_eq!(one.keys_standing().await.expect("a look")["not_loaded_by"], json!([]));
    let done = one.activate_key("tester").await.expect("activated");
    assert_eq!((&done["active"], &done["before"]), (&json!(next), &json!(first)));
    retired(&one, &first).await;
    two.tend_keys().await.expect("tended");
    assert_eq!([active(&one), active(&two)], [next.clone(), next.clone()]);
    let standing = two.keys_standing().await.expect("a look");
    assert_eq!([status(&standing, &first), status(&standing, &next)], ["retired", "active"]);
    let again = json(&deliver(&one, &payment(1)).await);
    assert_eq!((&again["status"], &again["signature"]), (&json!("duplicate_reused"), &old["signature"]));
    assert_eq!(json(&deliver(&one, &payment(2)).await)["key_id"], next.as_str());
}

#[tokio::test]
async fn the_published_set_has_a_key_before_its_first_signature_and_after_its_last() {
    let site = Site::new().await;
    let [one, two] = pair(&site).await;
    deliver(&one, &payment(1)).await;
    let first = active(&one);
    let verdicts = |node: &AuditVisa| {
        let trust = Trust::from(&node.keys().jwks().expect("a set"));
        let listed = std::fs::read_dir(site.root.path().join("deliveries")).expect("the shelf");
        let files = listed.map(|entry| std::fs::read(entry.expect("a file").path()).expect("bytes"));
        files.map(|bytes| verify(&bytes, &trust).verdict).collect::<Vec<_>>()
    };
    announced(&one).await;
    site.copy_keys("keys-1", "keys-2");
    two.tend_keys().await.expect("tended");
    one.activate_key("tester").await.expect("activated");
    retired(&one, &first).await;
    assert_eq!(
        verdicts(&one),
        [Verdict::ValidDateClaimed, Verdict::ValidDateClaimed, Verdict::ValidDateClaimed]
    );
    deliver(&one, &payment(2)).await;
    let early = verdicts(&two);
    assert!(early.iter().all(|verdict| *verdict == Verdict::Valid), "not told of the switch yet: {early:?}");
}

#[tokio::test]
async fn a_node_that_missed_the_switch_signs_again_with_the_new_key() {
    let site = Site::new().await;
    let [one, two] = pair(&site).await;
    let next = announced(&one).await;
    site.copy_keys("keys-1", "keys-2");
    two.tend_keys().await.expect("tended");
    let first = active(&two);
    one.activate_key("tester").await.expect("activated");
    assert_eq!(active(&two), first, "it has not looked since");
    let answer = json(&deliver(&two, &payment(7)).await);
    assert_eq!(
        (&answer["status"], &answer["key_id"], &answer["arrivals"]),
        (&json!("processed"), &json!(next), &json!(1))
    );
    assert_eq!(active(&two), next);
    let shown = two.show("evt_7", None).await.expect("a look").pop().expect("an event");
    let verdicts: Vec<_> =
        shown["arrival_list"].as_array().expect("a list").iter().map(|a| &a["verdict"]).collect();
    assert_eq!(verdicts, ["processed"], "one arrival, and what it was answered");
    let states: Vec<_> =
        shown["transitions"].as_array().expect("a list").iter().map(|t| &t["status"]).collect();
    assert_eq!(states, ["received", "processing", "failed", "received", "processing", "processed"]);
    assert_eq!((&shown["attempts"], &shown["cause"]), (&json!(2), &json!(null)));
    assert_eq!(
        site.number(format!("select count(*) from certify_certificates where key_id = '{first}'")).await,
        0
    );
    assert_eq!(site.number("select count(*) from outbox".into()).await, 1);
    assert_eq!(two.check().await.expect("a check")["list"], json!([]));
}

#[tokio::test]
async fn a_node_that_cannot_load_the_active_key_answers_repeats_and_signs_nothing() {
    let site = Site::new().await;
    let [one, two] = pair(&site).await;
    let old = json(&deliver(&two, &payment(1)).await);
    let next = announced(&one).await;
    site.clock.advance(LIVE_FOR + Duration::from_secs(1));
    one.activate_key("tester").await.expect("nobody waits for a node that is gone");
    let refused = deliver(&two, &payment(2)).await;
    assert_eq!((refused.status, &json(&refused)["code"]), (503, &json!("KEYS_UNUSABLE")));
    assert!(refused.retry_after.is_some());
    let cause = two.keys().active().expect_err("no key").to_string();
    assert!(cause.contains(&next) && cause.contains("no private key file"), "{cause}");
    let again = json(&deliver(&two, &payment(1)).await);
    assert_eq!((&again["status"], &again["html_url"]), (&json!("duplicate_reused"), &old["html_url"]));
    let attempts = "select attempt_no from certify_events where ref = 'av_evt_2'";
    let before = site.number(attempts.into()).await;
    site.clock.advance(Duration::from_secs(3600));
    two.reconcile("tester").await.expect("a sweep");
    assert_eq!(site.number(attempts.into()).await, before, "its own recovery uses no attempt up");
    site.clock.set(NOW + 60);
    assert_eq!(json(&deliver(&one, &payment(2)).await)["status"], "processed", "another node takes it");
    site.copy_keys("keys-1", "keys-2");
    two.tend_keys().await.expect("tended");
    assert_eq!(json(&deliver(&two, &payment(3)).await)["key_id"], next.as_str());
    assert_eq!(two.check().await.expect("a check")["list"], json!([]));
}

#[tokio::test]
async fn one_command_rotates_a_server_that_is_alone_and_no_other() {
    let site = Site::new().await;
    let [one, two] = pair(&site).await;
    let first = active(&one);
    let (code, text) = refusal(one.rotate_keys("tester").await);
    assert!(
        code == "KEYS_STATE" && text.contains("node-2") && text.contains("onceseal keys announce"),
        "{text}"
    );
    assert_eq!((active(&one), site.key_files("keys-1").len()), (first.clone(), 2), "no file is left behind");
    two.leave().await.expect("left");
    let done = one.rotate_keys("tester").await.expect("rotated");
    assert_eq!((&done["active"], &done["keys"]), (&json!(active(&one)), &json!(2)));
    retired(&one, &first).await;
    let standing = one.keys_standing().await.expect("a look");
    assert_eq!(standing["nodes"].as_array().expect("a list").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_announcements_at_once_one_stands() {
    let site = Site::new().await;
    let [one, two] = pair(&site).await;
    let all = [&one, &two, &one, &two].map(|node| node.announce_key("tester"));
    let ended = futures::future::join_all(all).await;
    assert_eq!(ended.iter().filter(|end| end.is_ok()).count(), 1);
    assert!(ended.iter().filter_map(|end| end.as_ref().err()).all(|refused| refused.code() == "KEYS_STATE"));
    assert_eq!(
        site.key_files("keys-1").len() + site.key_files("keys-2").len(),
        5,
        "the losers' files are gone"
    );
    assert_eq!(refusal(two.announce_key("tester").await).0, "KEYS_STATE");
    assert_eq!(refusal(two.rotate_keys("tester").await).0, "KEYS_STATE");
}

#[tokio::test]
async fn an_announcement_can_be_withdrawn_until_it_is_activated() {
    let site = Site::new().await;
    let [one, two] = pair(&site).await;
    let lost = announced(&one).await;
    assert_eq!(two.withdraw_key("tester").await.expect("withdrawn")["withdrawn"], lost.as_str());
    for end in [two.withdraw_key("tester").await, one.activate_key("tester").await] {
        assert_eq!(refusal(end).0, "KEYS_STATE");
    }
    assert!(one.keys().public(&lost).is_none(), "it is published no more");
    assert_ne!(announced(&two).await, lost);
    let acts =
        site.texts("select event_name from audit_events where object_type = 'anchor_key' order by id").await;
    assert_eq!(
        acts,
        ["certify.key.rotate", "certify.key.announce", "certify.key.withdraw", "certify.key.announce"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_activations_at_once_one_switches() {
    let site = Site::new().await;
    let (one, two) =
        (site.node(1, "keys").await.expect("a node"), site.node(2, "keys").await.expect("a node"));
    let next = announced(&one).await;
    two.tend_keys().await.expect("tended");
    let ended = futures::future::join_all([&one, &two, &one].map(|node| node.activate_key("tester"))).await;
    assert_eq!(ended.iter().filter(|end| end.is_ok()).count(), 1, "{ended:?}");
    let standing = two.keys_standing().await.expect("a look");
    assert_eq!(status(&standing, &next), "active");
    assert_eq!(site.number("select count(*) from certify_keys where status = 'active'".into()).await, 1);
}

/// A transaction that was begun before the switch and has its number keeps the old key closing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_is_retired_when_nothing_that_saw_it_active_can_commit_any_more() {
    let site = Site::new().await;
    let node = site.node(1, "keys").await.expect("a node");
    let first = active(&node);
    let store = node.door().store();
    if !store.is_shared() {
        node.rotate_keys("tester").await.expect("rotated");
        let standing = node.keys_standing().await.expect("a look");
        return assert_eq!(status(&standing, &first), "retired", "one writer: nothing is on its way");
    }
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (end, ends) = std::sync::mpsc::channel::<()>();
    let (begun, ends) = (std::sync::Mutex::new(Some(begun)), std::sync::Mutex::new(ends));
    let long = node.door().maintain(
        "test.long",
        vec![Query::new("test.number", "select pg_current_xact_id()::text", vec![])],
        move |_, _| {
            if let Some(begun) = begun.lock().expect("a lock").take() {
                begun.send(()).expect("somebody waits");
            }
            tokio::task::block_in_place(|| ends.lock().expect("a lock").recv()).expect("the end");
            Ok((Vec::new(), ()))
        },
    );
    let long = async { long.await.map(drop) };
    let switch = async {
        has_begun.await.expect("a transaction");
        node.rotate_keys("tester").await.expect("rotated");
        let closing = node.keys_standing().await.expect("a look");
        let published = node.keys().jwks().expect("a set");
        end.send(()).expect("it waits");
        (closing, published)
    };
    let (ended, (closing, published)) = tokio::join!(long, switch);
    ended.expect("committed");
    assert_eq!(status(&closing, &first), "closing");
    assert!(published.entries().iter().all(|entry| entry.status == seal::jwks::Status::Active));
    retired(&node, &first).await;
}

/// Deliveries at three nodes while the key changes hands: when the answer says that a key is retired, the last
/// certificate under it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_certificate_is_kept_under_a_key_after_its_retirement_and_none_is_lost() {
    const EVENTS: u32 = 240;
    const ROTATIONS: usize = 8;
    let site = Site::new().await;
    let mut nodes = Vec::new();
    for n in 1..=3 {
        nodes.push(site.node(n, "keys").await.expect("a node"));
    }
    let under = "select count(*) from certify_certificates where key_id = ";
    let rotate = async {
        let mut ends = Vec::new();
        for n in 0..ROTATIONS {
            let acting = &nodes[n % 3];
            announced(acting).await;
            for node in &nodes {
                node.tend_keys().await.expect("tended");
            }
            // The other two sign on with the old key until the store refuses it.
            let done = acting.activate_key("tester").await.expect("activated");
            let before = done["before"].as_str().expect("a key").to_owned();
            retired(acting, &before).await;
            ends.push((site.number(format!("{under}'{before}'")).await, before));
        }
        ends
    };
    let sent = async {
        let lanes = (0..12).map(|lane| {
            let node = &nodes[lane as usize % 3];
            async move {
                for n in (lane..EVENTS).step_by(12) {
                    while deliver(node, &payment(n)).await.status != 200 {}
                }
            }
        });
        futures::future::join_all(lanes).await
    };
    let (ends, _) = tokio::join!(rotate, sent);
    for (count, key) in &ends {
        assert_eq!(site.number(format!("{under}'{key}'")).await, *count, "{key} signed after its retirement");
    }
    let late = "select count(*) from certify_certificates c join certify_keys k on k.key_id = c.key_id where c.created_at > k.retired_at or c.created_at < k.active_from";
    assert_eq!(site.number(late.into()).await, 0);
    for count in ["select count(*) from certify_certificates", "select count(*) from outbox"] {
        assert_eq!(site.number(count.into()).await, i64::from(EVENTS), "{count}");
    }
    let check = nodes[0].check().await.expect("a check");
    assert_eq!((&check["certificates"], &check["list"]), (&json!(EVENTS), &json!([])));
}
