use std::sync::Arc;

use relay::{Channel, Outcome, Reach, State, Telegram, telegram::Wrong};
use secrecy::SecretString;
use serde_json::{Value as Json, json};

use crate::stub::{Reply, Stub, settings, telegram};
use crate::world::{World, issued, world};

/// One message to a Telegram that answers so, and the ways it ended in `rounds` rounds a minute apart.
async fn told(replies: &[Reply], rounds: usize) -> (World, Arc<Stub>) {
    let world = world().await;
    let stub = Stub::start(replies).await;
    world.tell("o", issued("av_evt_1"), &["telegram"]).await;
    let relay = world.relay(vec![Arc::new(stub.hasty())]);
    for _ in 0..rounds {
        relay.turn().await.unwrap();
        world.later(60);
    }
    (world, stub)
}

#[tokio::test]
async fn a_message_arrives_as_html_and_its_receipt_is_kept() {
    let (world, stub) = told(&[Reply::Strict], 2).await;
    let got = stub.got.lock().unwrap().clone();
    assert_eq!((got.len(), &got[0]["chat_id"], &got[0]["parse_mode"]), (1, &json!(4242), &json!("HTML")));
    assert!(got[0]["text"].as_str().unwrap().starts_with("<b>处理成功 / processed</b>\n"));
    let row = world.only().await;
    assert_eq!((row.state, row.outcome.as_deref()), (State::Delivered, Some("message 42")));
}

#[tokio::test]
async fn a_lost_answer_is_held_and_a_refused_connection_is_tried_again() {
    // [OUT-10]
    for reply in [Reply::Slow, Reply::Drop, Reply::Half, Reply::Status(502, "", "<html>".into())] {
        let (world, stub) = told(std::slice::from_ref(&reply), 3).await;
        let row = world.only().await;
        assert_eq!((row.state, row.attempt, stub.count()), (State::Uncertain, 1, 1), "{reply:?}");
        assert!(row.error.unwrap().contains("may have arrived"), "{reply:?}");
    }
    let world = world().await;
    world.tell("o", issued("o"), &["telegram"]).await;
    let relay = world.relay(vec![Arc::new(telegram("http://127.0.0.1:1"))]);
    assert_eq!(relay.turn().await.unwrap().retried, 1);
    assert!(world.only().await.error.unwrap().starts_with("no connection: "));
    let stub = Stub::start(&[Reply::Ok]).await;
    world.later(60);
    assert_eq!(world.relay(vec![Arc::new(stub.telegram())]).turn().await.unwrap().delivered, 1);
}

#[tokio::test]
async fn hostile_values_are_sent_escaped_and_short_enough() {
    // [OUT-11]
    let world = world().await;
    let stub = Stub::start(&[Reply::Strict]).await;
    let hostile =
        ["A_B*[x](y)~`>#+-=|{}.!\\", "ends in \\", "_", "🎉🎉", "\u{200F}سلام", "   ", "<b>&amp;</i>"];
    let long = "<&>".repeat(5_000);
    for (number, value) in hostile.iter().copied().chain([long.as_str()]).enumerate() {
        let mut payload = issued(value);
        payload["amount"] = json!(value);
        world.tell(&number.to_string(), payload, &["telegram"]).await;
    }
    let relay = world.relay(vec![Arc::new(stub.telegram())]);
    world.run_until(&relay, kernel::Time::from_micros(i64::MAX)).await;
    assert_eq!(world.list(&[State::Delivered]).await.len(), 8);
    let markup = |body: &Json| body["parse_mode"] == "HTML";
    assert!(stub.got.lock().unwrap().iter().all(markup) && stub.count() == 8);
    assert!(stub.texts().iter().all(|text| text.contains("HTML: https://d.example/x.html\n")));
}

#[tokio::test]
async fn markup_that_is_refused_all_the_same_is_sent_plain_once() {
    // [OUT-11]
    let refusal = Reply::error(400, "Bad Request: can't parse entities: Unsupported start tag", &json!({}));
    let (world, stub) = told(&[refusal.clone(), Reply::Ok], 1).await;
    assert_eq!(world.only().await.outcome.as_deref(), Some("message 42; sent as plain text"));
    let got = stub.got.lock().unwrap().clone();
    assert_eq!((got[1].get("parse_mode"), got.len()), (None, 2));
    assert!(!got[1]["text"].as_str().unwrap().contains("<b>"));
    let (world, stub) = told(&[refusal], 3).await;
    assert_eq!((world.only().await.state, stub.count()), (State::Refused, 2));
}

#[tokio::test]
async fn a_moved_group_gets_it_once_more_at_its_new_id_and_keeps_it() {
    // [OUT-12]
    let words = "Bad Request: group chat was upgraded to a supergroup chat";
    let moved = Reply::error(400, words, &json!({ "migrate_to_chat_id": -1_001_234_567_890_i64 }));
    let world = world().await;
    let stub = Stub::start(&[moved.clone(), Reply::Ok]).await;
    for object in ["a", "b"] {
        world.tell(object, issued(object), &["telegram"]).await;
    }
    let relay = world.relay(vec![Arc::new(stub.telegram())]);
    relay.turn().await.unwrap();
    relay.turn().await.unwrap();
    let chats: Vec<Json> = stub.got.lock().unwrap().iter().map(|body| body["chat_id"].clone()).collect();
    assert_eq!(chats, [json!(4242), json!(-1_001_234_567_890_i64), json!(-1_001_234_567_890_i64)]);
    let outcome = world.list(&[State::Delivered]).await[0].outcome.clone().unwrap();
    assert!(outcome.contains("moved to -1001234567890"), "{outcome}");
    let (world, stub) = told(&[moved], 3).await;
    assert_eq!((world.only().await.state, stub.count()), (State::Refused, 2));
}

#[tokio::test]
async fn permanent_answers_end_in_a_visible_state_after_one_request() {
    // [OUT-12]
    for (status, words) in [
        (400, "Bad Request: chat not found"),
        (401, "Unauthorized"),
        (403, "Forbidden: bot was blocked by the user"),
        (404, "Not Found"),
    ] {
        let (world, stub) = told(&[Reply::error(status, words, &Json::Null)], 3).await;
        let row = world.only().await;
        assert_eq!((row.state, stub.count()), (State::Refused, 1));
        assert!(row.error.unwrap().starts_with(&format!("HTTP {status}: {words}")));
    }
}

#[tokio::test]
async fn too_many_requests_waits_as_told_or_half_a_minute() {
    // [OUT-12]
    for (parameter, seconds) in [(json!(5), 5), (json!(3600), 3_600), (json!("abc"), 30), (Json::Null, 30)] {
        let world = world().await;
        let reply = Reply::error(429, "Too Many Requests", &json!({ "retry_after": parameter }));
        let stub = Stub::start(&[reply, Reply::Ok]).await;
        world.tell("o", issued("o"), &["telegram"]).await;
        let relay = world.relay(vec![Arc::new(stub.telegram())]);
        relay.turn().await.unwrap();
        world.later(seconds - 1);
        assert_eq!((relay.turn().await.unwrap().claimed, stub.count()), (0, 1));
        world.later(1);
        assert_eq!(relay.turn().await.unwrap().delivered, 1);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (world, stub) = told(&[Reply::Status(302, "location: /elsewhere\r\n", String::new())], 1).await;
    assert_eq!((world.only().await.state, stub.count()), (State::Refused, 1));
}

#[tokio::test]
async fn https_speaks_tls_and_a_server_that_does_not_is_no_connection() {
    let stub = Stub::start(&[Reply::Ok]).await;
    let channel = telegram(&stub.address.replace("http:", "https:"));
    let world = world().await;
    world.tell("o", issued("o"), &["telegram"]).await;
    assert_eq!(world.relay(vec![Arc::new(channel)]).turn().await.unwrap().retried, 1);
    assert_eq!(stub.count(), 0);
}

#[tokio::test]
async fn unusable_settings_are_refused_by_name() {
    let with = |change: &dyn Fn(&mut relay::telegram::Settings)| {
        let mut settings = settings("http://127.0.0.1:1/");
        change(&mut settings);
        Telegram::new(settings).map(|_| ()).map_err(|wrong| std::mem::discriminant(&wrong))
    };
    let is = |wrong: Wrong| Err(std::mem::discriminant(&wrong));
    for token in ["", "a b", "a/../b", "é"] {
        assert_eq!(with(&|s| s.token = SecretString::from(token)), is(Wrong::Token), "{token}");
    }
    for chat in ["", "0", "@", "@a b", "somebody"] {
        assert_eq!(with(&|s| s.chat_id = chat.into()), is(Wrong::Chat(String::new())), "{chat}");
    }
    for base in ["", "http://api.telegram.org", "ftp://x", "http://u:p@x", "http://x?y", "x"] {
        assert_eq!(with(&|s| s.base_url = base.into()), is(Wrong::Base), "{base}");
    }
    assert_eq!(with(&|s| s.connect_within = s.answer_within), is(Wrong::Times));
    assert_eq!(with(&|s| s.chat_id = "@channel_1".into()), Ok(()));
}

#[tokio::test]
async fn the_address_is_the_base_the_bot_and_the_method() {
    let (_world, stub) = told(&[Reply::Ok], 1).await;
    assert_eq!(*stub.paths.lock().unwrap(), ["/bot123456:CANARY_TG-secret_half/sendMessage"]);
    let every = |chat: &str| {
        let mut settings = settings("http://127.0.0.1:1");
        settings.chat_id = chat.into();
        Telegram::new(settings).unwrap().pace().every.as_secs()
    };
    assert_eq!([every("5"), every("-5"), every("@news")], [1, 3, 3]);
    let channel = Outcome::Refused { cause: String::new(), reach: Reach::Channel };
    assert_eq!(channel.as_str(), "refused");
}
