use std::sync::Arc;
use std::sync::atomic::Ordering;

use kernel::Clock;
use relay::{Outcome, Reach, Repeats, State};
use serde_json::json;

use crate::world::{Scripted, delivered, issued, refused, retry, world};

#[tokio::test]
async fn two_relays_send_each_row_once() {
    // [OUT-01]
    let world = world().await;
    world.tell_many(20, "a").await;
    let channel = Scripted::new("a", Repeats::Shown, &[delivered()]);
    let (one, two) = (world.relay(vec![channel.clone()]), world.relay(vec![channel.clone()]));
    for _ in 0..4 {
        let (first, second) = tokio::join!(one.turn(), two.turn());
        assert_eq!((first.unwrap().lost, second.unwrap().lost), (0, 0));
    }
    let mut objects = channel.objects();
    objects.sort();
    objects.dedup();
    assert_eq!((objects.len(), channel.objects().len()), (20, 20));
    assert!(world.list(&[State::Delivered]).await.iter().all(|row| row.attempt == 1));
}

#[tokio::test]
async fn a_late_end_of_the_old_owner_changes_nothing() {
    // [OUT-01]
    let world = world().await;
    world.tell("o", issued("o"), &["a"]).await;
    let slow = Scripted::new("a", Repeats::Removed, &[refused()]).shut();
    let quick = Scripted::new("a", Repeats::Removed, &[delivered()]);
    let (old, new) = (world.relay(vec![slow.clone()]), world.relay(vec![quick.clone()]));
    let late = async {
        slow.begun(1).await;
        world.later(61);
        assert_eq!(new.turn().await.unwrap().delivered, 1);
        slow.gate.add_permits(1);
    };
    let (turn, ()) = tokio::join!(old.turn(), late);
    assert_eq!((turn.unwrap().lost, world.only().await.state), (1, State::Delivered));
    let ids = |channel: &Arc<Scripted>| channel.got.lock().unwrap()[0].event_id;
    assert_eq!((ids(&slow), world.only().await.attempt), (ids(&quick), 2));
}

#[tokio::test]
async fn a_target_that_refuses_everything_delays_no_other() {
    // [OUT-05]
    let world = world().await;
    world.tell_many(200, "bad").await;
    world.tell("good", issued("good"), &["good"]).await;
    let (bad, good) = (
        Scripted::new("bad", Repeats::Shown, &[refused()]),
        Scripted::new("good", Repeats::Shown, &[delivered()]),
    );
    let turn = world.relay(vec![bad, good.clone()]).turn().await.unwrap();
    assert_eq!((turn.delivered, good.objects()), (1, vec!["good".to_owned()]));
}

#[tokio::test]
async fn held_rows_let_the_rows_behind_them_pass() {
    // [OUT-05]
    let world = world().await;
    for number in 0..3 {
        world.tell("o", json!({ "n": number }), &["a"]).await;
    }
    let channel = Scripted::new("a", Repeats::Shown, &[refused(), delivered()]);
    let relay = world.relay(vec![channel]);
    world.run_until(&relay, world.clock.now()).await;
    assert_eq!(world.list(&[State::Refused]).await.len(), 1);
    assert_eq!(world.list(&[State::Delivered]).await.len(), 2);
}

#[tokio::test]
async fn rows_of_one_object_keep_their_order_through_failures() {
    // [OUT-09]
    let world = world().await;
    for number in 0..50 {
        world.tell("package", json!({ "n": number }), &["a"]).await;
    }
    let fifth: Vec<Outcome> =
        (0..200).map(|number| if number % 5 == 0 { retry() } else { delivered() }).collect();
    let channel = Scripted::new("a", Repeats::Removed, &fifth);
    let relay = world.relay(vec![channel.clone()]);
    let end = world.clock.now().plus(std::time::Duration::from_secs(3_600));
    world.run_until(&relay, end).await;
    let sent: Vec<i64> =
        channel.got.lock().unwrap().iter().map(|m| m.payload["n"].as_i64().unwrap()).collect();
    assert!(sent.is_sorted() && sent.len() > 50, "{sent:?}");
    assert_eq!(world.list(&[State::Delivered]).await.len(), 50);
    assert_eq!(channel.open_max.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_row_that_waits_for_its_retry_holds_back_its_object_only() {
    // [OUT-09]
    let world = world().await;
    world.tell("o", json!({ "n": 1 }), &["a"]).await;
    let channel = Scripted::new("a", Repeats::Removed, &[retry(), delivered()]);
    let relay = world.relay(vec![channel.clone()]);
    relay.turn().await.unwrap();
    world.tell("o", json!({ "n": 2 }), &["a"]).await;
    world.tell("p", json!({ "n": 3 }), &["a"]).await;
    relay.turn().await.unwrap();
    assert_eq!(channel.objects(), ["o", "p"]);
}

#[tokio::test]
async fn a_wrong_setting_refuses_one_message_and_keeps_the_others() {
    // [OUT-12]
    let world = world().await;
    world.tell_many(5, "a").await;
    let wrong = Outcome::Refused { cause: "HTTP 401".into(), reach: Reach::Channel };
    let pace = relay::Pace { parallel: 1, burst: 9, every: std::time::Duration::ZERO };
    let relay = world.relay(vec![Scripted::paced("a", Repeats::Shown, &[wrong], pace)]);
    let first = relay.turn().await.unwrap();
    assert_eq!((first.refused, relay.turn().await.unwrap().claimed), (1, 0));
    assert_eq!(world.list(&[State::Pending]).await.len(), 4);
}

#[tokio::test]
async fn a_destination_without_a_channel_waits_and_is_counted() {
    let world = world().await;
    world.tell("o", issued("o"), &["mail", "a"]).await;
    let relay = world.relay(vec![Scripted::new("a", Repeats::Shown, &[delivered()])]);
    let turn = relay.turn().await.unwrap();
    assert_eq!((turn.delivered, turn.unconfigured), (1, 1));
    assert_eq!(world.list(&[State::Pending]).await[0].destination, "mail");
}

#[tokio::test]
async fn a_damaged_row_dies_alone() {
    let world = world().await;
    world.tell_many(2, "a").await;
    world.tamper("update outbox set event_id = substr(event_id, 1, 3) where object_id = 'a_0'", vec![]).await;
    let turn = world.relay(vec![Scripted::new("a", Repeats::Shown, &[delivered()])]).turn().await.unwrap();
    assert_eq!((turn.dead, turn.delivered), (1, 1));
    let named = "select count(*) from outbox_deliveries where status = 'dead' and error like '%event_id%'";
    assert_eq!(world.count(named).await, 1);
}
