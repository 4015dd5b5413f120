use std::time::Duration;

use kernel::Clock;
use metrics_exporter_prometheus::PrometheusBuilder;
use relay::run::Stopped;
use relay::{Relay, Repeats, Settings, State};

use crate::world::{Scripted, delivered, issued, refused, world};

#[tokio::test]
async fn a_nudge_wakes_the_relay_and_a_stop_waits_for_what_is_sent() {
    let world = world().await;
    let channel = Scripted::new("a", Repeats::Shown, &[delivered()]).shut();
    let handle =
        Relay::start(world.door.clone(), world.clock.clone(), vec![channel.clone()], Settings::default());
    world.tell("o", issued("o"), &["a"]).await;
    handle.nudger().nudge();
    channel.begun(1).await;
    let stopping = tokio::spawn(handle.stop());
    channel.gate.add_permits(1);
    assert_eq!(stopping.await.unwrap(), Stopped::Clean);
    assert_eq!(world.only().await.state, State::Delivered);
}

#[tokio::test]
async fn a_stop_has_its_bound() {
    let world = world().await;
    world.tell("o", issued("o"), &["a"]).await;
    let channel = Scripted::new("a", Repeats::Shown, &[delivered()]).shut();
    let settings = Settings { stop_within: Duration::from_millis(30), ..Settings::default() };
    let handle = Relay::start(world.door.clone(), world.clock.clone(), vec![channel.clone()], settings);
    channel.begun(1).await;
    assert_eq!(handle.stop().await, Stopped::Cut);
    assert_eq!(world.only().await.state, State::Sending);
}

#[tokio::test]
async fn a_channel_that_hangs_delays_no_other() {
    let world = world().await;
    let hanging = Scripted::new("a", Repeats::Shown, &[delivered()]).shut();
    let quick = Scripted::new("b", Repeats::Shown, &[delivered()]);
    let channels: Vec<std::sync::Arc<dyn relay::Channel>> = vec![hanging.clone(), quick.clone()];
    let handle = Relay::start(world.door.clone(), world.clock.clone(), channels, Settings::default());
    for object in 0..30 {
        world.tell(&object.to_string(), issued("o"), &["a", "b"]).await;
        handle.nudge();
    }
    quick.begun(30).await;
    assert!(hanging.objects().len() <= 8);
    drop(handle);
}

#[tokio::test]
async fn the_numbers_tell_what_waits_and_what_is_held() {
    let world = world().await;
    world.tell_many(3, "a").await;
    world.tamper("update outbox_deliveries set status = 'dead' where id = 1", vec![]).await;
    let relay = world.relay(vec![Scripted::new("a", Repeats::Shown, &[delivered()])]);
    let told_at = world.clock.now();
    world.later(90);
    let measure = relay.measure().await.unwrap();
    assert_eq!((measure.waiting["a"].count, measure.waiting["a"].oldest), (2, told_at));
    assert_eq!(measure.held[&("a".to_owned(), "dead".to_owned())], 1);
    assert_eq!(measure.unconfigured(&["b".to_owned()]), 2);
}

#[tokio::test]
async fn the_numbers_are_exported_under_their_names() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = world().await;
    world.tell_many(2, "a").await;
    world.tell("o", issued("o"), &["mail"]).await;
    let channel = Scripted::new("a", Repeats::Shown, &[delivered(), refused()]);
    world.later(30);
    world.relay(vec![channel]).turn().await.unwrap();
    let text = recorder.handle().render();
    for line in [
        r#"relay_deliveries_total{channel="a",outcome="delivered"} 1"#,
        r#"relay_deliveries_total{channel="a",outcome="refused"} 1"#,
        r#"relay_oldest_pending_seconds{channel="mail"} 30"#,
        r#"relay_waiting{channel="a"} 0"#,
        r#"relay_held{channel="a",state="refused"} 1"#,
        r#"relay_held{channel="a",state="dead"} 0"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
