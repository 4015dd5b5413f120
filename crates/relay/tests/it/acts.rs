use relay::held::{Denied, Settlement, redrive, settle};
use relay::{Repeats, State};

use crate::world::{Scripted, World, delivered, issued, operator, refused, world};

async fn with_row_in(state: &str) -> World {
    let world = world().await;
    world.tell("o", issued("o"), &["a"]).await;
    let values = vec![store::Value::from(state)];
    world.tamper("update outbox_deliveries set status = $1, attempt = 3", values).await;
    world
}

#[tokio::test]
async fn only_held_rows_with_a_channel_are_redriven() {
    // [OUT-14]
    for (state, destination, fine) in [
        ("refused", "a", true),
        ("uncertain", "a", true),
        ("dead", "a", true),
        ("dead", "b", false),
        ("delivered", "a", false),
        ("pending", "a", false),
        ("sending", "a", false),
    ] {
        let world = with_row_in(state).await;
        let id = world.only().await.id;
        let done = redrive(&world.door, id, &operator(), &[destination.to_owned()]).await;
        assert_eq!(done.is_ok(), fine, "{state} {destination} {done:?}");
        let after = if fine { "pending" } else { state };
        assert_eq!(world.only().await.state.as_str(), after);
    }
}

#[tokio::test]
async fn refusals_say_why() {
    // [OUT-14]: also an event that names no target has no delivery to re-drive.
    let world = with_row_in("delivered").await;
    world.tell("p", issued("p"), &[]).await;
    let to = ["a".to_owned()];
    let words = |denied: Result<(), Denied>| denied.unwrap_err().to_string();
    let unknown = words(redrive(&world.door, 99, &operator(), &to).await);
    assert_eq!(unknown, "there is no delivery 99; list the held ones for their numbers");
    let again = words(redrive(&world.door, 1, &operator(), &to).await);
    assert_eq!(again, "delivery 1 is delivered; only refused, uncertain and dead ones can be re-driven");
    world.tamper("update outbox_deliveries set status = 'dead'", vec![]).await;
    let gone = words(redrive(&world.door, 1, &operator(), &[]).await);
    assert!(gone.contains(r#""a", which is not configured"#), "{gone}");
    assert_eq!(world.only().await.state, State::Dead);
}

#[tokio::test]
async fn a_redriven_row_goes_out_once_and_leaves_an_audit_row() {
    // [OUT-14]
    let world = world().await;
    world.tell("o", issued("o"), &["a"]).await;
    let channel = Scripted::new("a", Repeats::Shown, &[refused(), delivered()]);
    let relay = world.relay(vec![channel.clone()]);
    relay.turn().await.unwrap();
    let id = world.list(&[State::Refused]).await[0].id;
    redrive(&world.door, id, &operator(), &relay.destinations()).await.unwrap();
    redrive(&world.door, id, &operator(), &relay.destinations()).await.unwrap_err();
    relay.turn().await.unwrap();
    relay.turn().await.unwrap();
    assert_eq!(channel.objects().len(), 2);
    let audited = "select count(*) from audit_events where event_name = 'relay.delivery.redrive'
        and operator_id = 7 and object_id = '1' and cast(before_state as text) like '%refused%'";
    assert_eq!(world.count(audited).await, 1);
}

#[tokio::test]
async fn what_a_person_settles_stays_so() {
    for (state, as_, fine) in [
        ("uncertain", Settlement::Delivered, true),
        ("refused", Settlement::Delivered, true),
        ("dead", Settlement::Delivered, true),
        ("pending", Settlement::Delivered, false),
        ("uncertain", Settlement::Dead, true),
        ("pending", Settlement::Dead, true),
        ("sending", Settlement::Dead, false),
        ("delivered", Settlement::Dead, false),
        ("dead", Settlement::Dead, false),
    ] {
        let world = with_row_in(state).await;
        let done = settle(&world.door, 1, as_, &operator()).await;
        assert_eq!(done.is_ok(), fine, "{state} {as_:?} {done:?}");
        let audited = "select count(*) from audit_events where event_name = 'relay.delivery.settle'";
        assert_eq!(world.count(audited).await, i64::from(fine));
        let settled = world.only().await.outcome.is_some_and(|outcome| outcome.ends_with("by operator 7"));
        assert_eq!(settled, fine);
    }
}

#[tokio::test]
async fn a_list_has_the_asked_states_in_order_and_no_more_than_asked() {
    let world = world().await;
    world.tell_many(6, "a").await;
    world.tamper("update outbox_deliveries set status = 'dead' where id in (2, 4)", vec![]).await;
    world.tamper("update outbox_deliveries set status = 'refused' where id in (1, 3)", vec![]).await;
    let ids = |rows: Vec<relay::held::Delivery>| rows.iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(world.list(&State::HELD).await), [1, 2, 3, 4]);
    let two = relay::held::list(&world.door, &[State::Dead, State::Pending], 3).await.unwrap();
    assert_eq!(ids(two), [2, 4, 5]);
}

#[tokio::test]
async fn a_redrive_during_a_late_send_takes_its_claim_away() {
    let world = world().await;
    world.tell("o", issued("o"), &["a"]).await;
    let slow = Scripted::new("a", Repeats::Shown, &[delivered()]).shut();
    let (old, new) = (world.relay(vec![slow.clone()]), world.relay(vec![slow.clone()]));
    let late = async {
        slow.begun(1).await;
        world.later(61);
        assert_eq!(new.turn().await.unwrap().uncertain, 1);
        redrive(&world.door, 1, &operator(), &new.destinations()).await.unwrap();
        slow.gate.add_permits(1);
    };
    let (turn, ()) = tokio::join!(old.turn(), late);
    assert_eq!((turn.unwrap().lost, world.only().await.state), (1, State::Pending));
}
