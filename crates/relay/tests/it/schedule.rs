use std::sync::atomic::Ordering;
use std::time::Duration;

use kernel::Clock;
use relay::{Outcome, Pace, Repeats, State, schedule};

use crate::world::{Scripted, delivered, issued, retry, world};

const PACE: Pace = Pace { parallel: 8, burst: 8, every: Duration::ZERO };

#[tokio::test]
async fn after_an_outage_the_backlog_goes_out_bounded_and_soon() {
    // [OUT-13]: five minutes down with 500 messages.
    let world = world().await;
    world.tell_many(500, "a").await;
    let channel = Scripted::paced("a", Repeats::Removed, &[retry()], PACE);
    let relay = world.relay(vec![channel.clone()]);
    let up = world.clock.now().plus(Duration::from_secs(300));
    world.run_until(&relay, up).await;
    let tries = channel.objects().len();
    assert!((10..60).contains(&tries), "{tries} tries during the outage");
    channel.then(&[delivered()]);
    let caught_up = world.clock.now().plus(schedule::CIRCUIT_MAX + Duration::from_secs(600));
    world.run_until(&relay, caught_up).await;
    assert_eq!(world.list(&[State::Delivered]).await.len(), 500);
    assert!(channel.open_max.load(Ordering::SeqCst) <= 8);
}

#[tokio::test]
async fn gaps_of_one_message_grow_and_differ_by_chance() {
    // [OUT-13]
    let world = world().await;
    for object in ["a", "b"] {
        world.tell(object, issued(object), &["a"]).await;
    }
    let relay = world.relay(vec![Scripted::paced("a", Repeats::Removed, &[retry()], PACE)]);
    relay.turn().await.unwrap();
    let first = world.list(&[State::Pending]).await;
    assert_ne!(first[0].next_attempt_at, first[1].next_attempt_at);
    let now = world.clock.now();
    for row in first {
        let gap = row.next_attempt_at.since(now);
        assert!((Duration::from_millis(750)..=Duration::from_millis(1_250)).contains(&gap), "{gap:?}");
    }
    world.later(3_600);
    relay.turn().await.unwrap();
    let second = &world.list(&[State::Pending]).await[0];
    assert!(second.next_attempt_at.since(world.clock.now()) >= Duration::from_millis(1_500));
}

#[tokio::test]
async fn a_told_wait_is_kept_by_the_whole_channel_and_by_no_other() {
    // [OUT-12]: 5 s, 3600 s, and far more than the cap.
    for (told, kept) in [(5, 5), (3_600, 3_600), (90_000, 3_600)] {
        let world = world().await;
        world.tell("a", issued("a"), &["a", "b"]).await;
        let wait = Outcome::Retry { cause: "429".into(), after: Some(Duration::from_secs(told)) };
        let told = Scripted::paced("a", Repeats::Shown, &[wait, delivered()], PACE);
        let relay = world.relay(vec![told.clone(), Scripted::new("b", Repeats::Shown, &[delivered()])]);
        assert_eq!(relay.turn().await.unwrap().delivered, 1);
        // Also after a restart, which forgets the pause of the channel.
        let row = world.list(&[State::Pending]).await.remove(0);
        assert!(row.next_attempt_at >= world.clock.now().plus(Duration::from_secs(kept)));
        world.tell("later", issued("later"), &["a", "b"]).await;
        world.later(kept - 1);
        assert_eq!(relay.turn().await.unwrap().delivered, 1, "the other channel goes on");
        world.later(3);
        assert_eq!(relay.turn().await.unwrap().delivered, 2);
        let mut objects = told.objects();
        objects.sort();
        assert_eq!(objects, ["a", "a", "later"]);
    }
}

#[tokio::test]
async fn a_rate_is_kept_after_a_burst() {
    let world = world().await;
    world.tell_many(6, "a").await;
    let pace = Pace { parallel: 1, burst: 2, every: Duration::from_secs(1) };
    let channel = Scripted::paced("a", Repeats::Shown, &[delivered()], pace);
    let relay = world.relay(vec![channel.clone()]);
    let start = world.clock.now();
    world.run_until(&relay, start).await;
    assert_eq!(channel.objects().len(), 2);
    world.run_until(&relay, start.plus(Duration::from_secs(60))).await;
    assert_eq!((channel.objects().len(), world.clock.now().since(start).as_secs()), (6, 5));
}

#[tokio::test]
async fn an_unclear_end_counts_as_a_failure_of_the_channel() {
    let world = world().await;
    world.tell_many(40, "a").await;
    let lost = Outcome::Uncertain { cause: "no answer".into() };
    let pace = Pace { parallel: 1, ..PACE };
    let relay = world.relay(vec![Scripted::paced("a", Repeats::Shown, &[lost], pace)]);
    world.run_until(&relay, world.clock.now()).await;
    let held = world.list(&[State::Uncertain]).await.len();
    assert_eq!(held, usize::try_from(schedule::CIRCUIT_AFTER).unwrap());
}
