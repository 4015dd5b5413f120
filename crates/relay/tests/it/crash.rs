use std::sync::Arc;
use std::sync::atomic::Ordering;

use relay::held::redrive;
use relay::{Log, Outcome, Repeats, Settings, State};

use crate::stub::{Reply, Stub};
use crate::world::{Scripted, delivered, die_after_send, issued, operator, retry, world};

#[tokio::test]
async fn killed_between_send_and_mark_telegram_is_held_and_never_repeated() {
    // [OUT-02]
    let world = world().await;
    let stub = Stub::start(&[Reply::Ok]).await;
    world.tell("o", issued("o"), &["telegram"]).await;
    die_after_send(&world, stub.telegram()).await;
    assert_eq!(world.only().await.state, State::Sending);
    let relay = world.relay(vec![Arc::new(stub.telegram())]);
    assert_eq!(relay.turn().await.unwrap().claimed, 0);
    world.later(61);
    assert_eq!(relay.turn().await.unwrap().uncertain, 1);
    world.later(86_400);
    assert_eq!((relay.turn().await.unwrap().claimed, stub.count()), (0, 1));
    let held = world.only().await;
    assert_eq!(held.state, State::Uncertain);
    assert!(held.error.unwrap().contains("may have arrived"));
}

#[tokio::test]
async fn killed_between_send_and_mark_a_channel_that_removes_repeats_sends_again() {
    // [OUT-02, OUT-03]
    let world = world().await;
    world.tell("o", issued("o"), &["log"]).await;
    die_after_send(&world, Log::default()).await;
    world.later(61);
    let turn = world.relay(vec![Arc::new(Log::default())]).turn().await.unwrap();
    let row = world.only().await;
    assert_eq!((turn.delivered, row.state, row.attempt), (1, State::Delivered, 2));
}

#[tokio::test]
async fn one_id_and_one_body_over_all_attempts_and_a_redrive() {
    // [OUT-03, OUT-04]: only the number of the attempt is new each time.
    let world = world().await;
    world.tell("o", issued("o"), &["a"]).await;
    let channel = Scripted::new("a", Repeats::Removed, &[retry()]);
    let settings = Settings { attempts_max: 5, ..Settings::default() };
    let relay = world.relay_with(vec![channel.clone()], settings);
    for _ in 0..5 {
        relay.turn().await.unwrap();
        world.later(100);
    }
    channel.then(&[delivered()]);
    redrive(&world.door, world.only().await.id, &operator(), &relay.destinations()).await.unwrap();
    relay.turn().await.unwrap();
    let got = channel.got.lock().unwrap().clone();
    assert_eq!(got.iter().map(|message| message.attempt).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 1]);
    let same = |m: &relay::Message| {
        (m.event_id, m.payload.clone(), m.occurred_at)
            == (got[0].event_id, got[0].payload.clone(), got[0].occurred_at)
    };
    assert!(got.iter().all(same));
}

#[tokio::test]
async fn used_up_attempts_end_as_dead_with_the_last_error() {
    // [OUT-06]
    let world = world().await;
    world.tell("o", issued("o"), &["a"]).await;
    let channel = Scripted::new("a", Repeats::Removed, &[retry(), retry(), delivered()]);
    let settings = Settings { attempts_max: 2, ..Settings::default() };
    let relay = world.relay_with(vec![channel.clone()], settings);
    assert_eq!(relay.turn().await.unwrap().retried, 1);
    world.later(10);
    assert_eq!(relay.turn().await.unwrap().dead, 1);
    let dead = world.list(&[State::Dead]).await.remove(0);
    assert_eq!(dead.error.as_deref(), Some("gave up after 2 attempts: no connection"));
    redrive(&world.door, dead.id, &operator(), &relay.destinations()).await.unwrap();
    world.later(100);
    assert_eq!(relay.turn().await.unwrap().delivered, 1);
    assert_eq!(channel.objects().len(), 3);
}

#[tokio::test]
async fn killed_in_the_last_attempt_a_row_dies_too() {
    // [OUT-06]
    let world = world().await;
    world.tell("o", issued("o"), &["log"]).await;
    die_after_send(&world, Log::default()).await;
    world.later(61);
    let settings = Settings { attempts_max: 1, ..Settings::default() };
    assert_eq!(world.relay_with(vec![Arc::new(Log::default())], settings).turn().await.unwrap().dead, 1);
    assert!(world.only().await.error.unwrap().contains("gave up after 1 attempts"));
}

#[tokio::test]
async fn a_failing_announcement_touches_neither_the_fact_nor_itself_twice() {
    // [CRASH-08]
    let world = world().await;
    let stub = Stub::start(&[Reply::Status(500, "", "oops".into())]).await;
    for object in ["a", "b"] {
        world.tell(object, issued(object), &["telegram"]).await;
    }
    let relay = world.relay(vec![Arc::new(stub.telegram())]);
    assert_eq!(relay.turn().await.unwrap().uncertain, 1);
    stub.then(&[Reply::error(400, "Bad Request: chat not found", &serde_json::json!({}))]);
    assert_eq!(relay.turn().await.unwrap().refused, 1);
    world.tell("c", issued("c"), &["telegram"]).await;
    let silent = world.relay(vec![Arc::new(crate::stub::telegram("http://127.0.0.1:1"))]);
    world.later(60);
    assert_eq!(silent.turn().await.unwrap().retried, 1);
    assert_eq!((world.count("select count(*) from outbox").await, stub.count()), (3, 2));
    for held in world.list(&State::HELD).await {
        redrive(&world.door, held.id, &operator(), &relay.destinations()).await.unwrap();
    }
    stub.then(&[Reply::Ok]);
    world.later(600);
    world.run_until(&relay, kernel::Time::from_micros(i64::MAX)).await;
    assert_eq!(world.list(&[State::Delivered]).await.len(), 3);
    assert!(stub.texts().iter().all(|text| text.contains("https://d.example/x.html")));
}

#[tokio::test]
async fn a_send_that_panics_or_never_ends_is_an_end_like_any_other() {
    let world = world().await;
    world.tell_many(2, "a").await;
    let channel = Scripted::new("a", Repeats::Shown, &[delivered()]).shut();
    let settings = Settings { send_within: std::time::Duration::from_millis(20), ..Settings::default() };
    assert_eq!(world.relay_with(vec![channel.clone()], settings).turn().await.unwrap().uncertain, 2);
    world.tell_many(1, "b").await;
    let closed = Scripted::new("b", Repeats::Shown, &[Outcome::Uncertain { cause: String::new() }]);
    closed.gate.close();
    assert_eq!(world.relay(vec![closed]).turn().await.unwrap().uncertain, 1);
    assert_eq!(channel.open_max.load(Ordering::SeqCst), 2);
}
