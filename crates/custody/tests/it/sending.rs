//! SMS senders: the request of the HTTP one, what its ends mean, and where the development one writes.

use std::time::Duration;

use custody::sms::{
    DevelopmentSms, HttpSms, HttpSmsSettings, Mode, Phone, Repeats, Sent, Sms, SmsSender, TARGET,
};
use secrecy::SecretString;
use serde_json::json;

use crate::stub::{Captured, Reply, Stub};

pub(crate) const TOKEN: &str = "CANARY_SMS-0123456789";

pub(crate) fn sms() -> Sms {
    Sms {
        event_id: "0198c0de-0000-7000-8000-000000000001".into(),
        to: Phone::parse("+8613800138000").unwrap(),
        code: SecretString::from("246813"),
        holds: Duration::from_secs(300),
    }
}

pub(crate) fn sender(address: &str, repeats: Repeats) -> HttpSms {
    let mut settings =
        HttpSmsSettings::new(format!("{address}/send"), SecretString::from(TOKEN), "withdraw_code");
    settings.repeats = repeats;
    settings.connect_within = Duration::from_secs(10);
    settings.within = Duration::from_secs(30);
    HttpSms::new(settings).unwrap()
}

#[tokio::test]
async fn a_message_is_one_post_with_the_event_as_its_key() {
    let stub = Stub::always(Reply::json(202, &json!({ "id": "msg-77" }))).await;
    let sent = sender(&stub.address, Repeats::Shown).send(&sms()).await;
    assert_eq!(sent, Sent::Accepted { receipt: Some("msg-77".into()) });
    let seen = stub.seen().pop().unwrap();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/send"));
    assert_eq!(seen.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(seen.header("idempotency-key"), sms().event_id);
    let expected = json!({
        "to": "+8613800138000", "template": "withdraw_code", "reference": sms().event_id,
        "params": { "code": "246813", "minutes": "5" },
    });
    assert_eq!(seen.json(), expected);
}

#[tokio::test]
async fn a_receipt_never_repeats_code_number_or_strange_text() {
    for id in
        ["x246813x", "m-13800138000", "m-8613800138000", "CANARY_SMS-01", "two words", "", &"x".repeat(65)]
    {
        let stub = Stub::always(Reply::json(200, &json!({ "message_id": id }))).await;
        let sent = sender(&stub.address, Repeats::Shown).send(&sms()).await;
        assert_eq!(sent, Sent::Accepted { receipt: None }, "{id}");
    }
}

#[tokio::test]
async fn what_may_have_been_sent_is_uncertain_unless_repeats_are_removed() {
    let word = |sent: &Sent| match sent {
        Sent::Accepted { .. } => "accepted",
        Sent::Refused { .. } => "refused",
        Sent::Retry { .. } => "retry",
        Sent::Uncertain { .. } => "uncertain",
    };
    let cases = [
        (400, "refused", "refused"),
        (401, "refused", "refused"),
        (302, "refused", "refused"),
        (409, "refused", "retry"),
        (429, "retry", "retry"),
        (503, "retry", "retry"),
        (500, "uncertain", "retry"),
        (504, "uncertain", "retry"),
    ];
    for (status, shown, removed) in cases {
        let location = ("location", "http://127.0.0.1:1/".to_owned());
        let stub = Stub::always(Reply::Says(status, location, "{}".into())).await;
        let ends = [Repeats::Shown, Repeats::Removed].map(|repeats| sender(&stub.address, repeats));
        let ends = [ends[0].send(&sms()).await, ends[1].send(&sms()).await];
        assert_eq!(ends.each_ref().map(word), [shown, removed], "{status}");
    }
    let none = sender("http://127.0.0.1:1", Repeats::Shown).send(&sms()).await;
    assert_eq!(word(&none), "retry");
    let stub = Stub::always(Reply::Says(429, ("retry-after", "30".into()), String::new())).await;
    let later = sender(&stub.address, Repeats::Shown).send(&sms()).await;
    assert!(matches!(later, Sent::Retry { after: Some(after), .. } if after.as_secs() == 30), "{later:?}");
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_uncertain() {
    let stub = Stub::always(Reply::Hangs).await;
    let mut settings = HttpSmsSettings::new(&stub.address, SecretString::from(TOKEN), "withdraw_code");
    settings.within = Duration::from_millis(150);
    let sent = HttpSms::new(settings).unwrap().send(&sms()).await;
    assert!(matches!(sent, Sent::Uncertain { .. }), "{sent:?}");
}

#[tokio::test]
async fn the_development_sender_writes_to_its_target_and_not_in_production() {
    assert!(DevelopmentSms::new(Mode::Production).is_err());
    let (captured, _guard) = Captured::start();
    let sent = DevelopmentSms::new(Mode::Development).unwrap().send(&sms()).await;
    assert_eq!(sent, Sent::Accepted { receipt: None });
    let text = captured.text();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("246813")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(lines[0].contains(TARGET) && lines[0].contains("138****8000") && !text.contains("13800138000"));
}
