//! Payout services: the requests, and what their ends mean.

use std::time::Duration;

use custody::pay::{HttpPayout, HttpPayoutSettings, Order, PayoutService, Said};
use custody::payout::Method;
use secrecy::SecretString;
use serde_json::{Value as Json, json};

use crate::stub::{Reply, Stub};

const TOKEN: &str = "CANARY_PAY-0123456789";
const NO: &str = "STL20260327ABCDEFGHJKMN";

fn order() -> Order {
    let (amount, amount_minor) = ("49.5".to_owned(), "4950".to_owned());
    let account = SecretString::from("6222021234561234");
    Order { reference: NO.into(), amount, amount_minor, currency: "CNY", method: Method::Bank, account }
}

fn service(address: &str) -> HttpPayout {
    let mut settings = HttpPayoutSettings::new(format!("{address}/payouts"), SecretString::from(TOKEN));
    settings.connect_within = Duration::from_secs(10);
    settings.within = Duration::from_secs(30);
    HttpPayout::new(settings).unwrap()
}

#[tokio::test]
async fn it_is_told_by_one_post_and_asked_by_the_reference() {
    let stub =
        Stub::always(Reply::json(200, &json!({ "status": "paid", "transaction_id": "2026-77" }))).await;
    let service = service(&stub.address);
    let paid = Said::Paid { transaction_id: "2026-77".into() };
    assert_eq!((service.pay(&order()).await, service.ask(NO).await), (paid.clone(), paid));
    let [told, asked] = stub.seen().try_into().unwrap();
    assert_eq!(
        (told.method.as_str(), told.target.as_str(), told.header("idempotency-key")),
        ("POST", "/payouts", NO)
    );
    assert_eq!((asked.method.as_str(), asked.target), ("GET", format!("/payouts/{NO}")));
    for seen in [&told.header("authorization"), &asked.headers["authorization"].to_str().unwrap()] {
        assert_eq!(**seen, format!("Bearer {TOKEN}"));
    }
    let expected = json!({ "reference": NO, "amount": "49.5", "amount_minor": "4950", "currency": "CNY",
        "method": "bank", "account": "6222021234561234" });
    assert_eq!(told.json(), expected);
}

#[tokio::test]
async fn only_what_is_certain_is_paid_or_failed() {
    let not_taken = |cause| Said::NotTaken { cause, after: None };
    let unknown = |cause| Said::Unknown { cause };
    let failed = |code: &str| Said::Failed { code: code.into() };
    let refusal = json!({ "status": "failed", "code": "ACCOUNT_CLOSED" });
    let cases: [(u16, Json, Said); 15] = [
        (200, refusal.clone(), failed("ACCOUNT_CLOSED")),
        (422, refusal.clone(), failed("ACCOUNT_CLOSED")),
        (422, json!({ "status": "failed", "code": "no 6222021234561234" }), failed("failed")),
        (500, refusal.clone(), unknown("out_of_order")),
        (404, refusal, unknown("unexpected")),
        (202, json!({ "status": "pending" }), Said::Pending),
        (409, json!({}), Said::Pending),
        (200, json!({ "status": "paid" }), unknown("transaction_id")),
        (200, json!({ "status": "paid", "transaction_id": "x6222021234561234" }), unknown("transaction_id")),
        (200, json!({ "status": "done" }), unknown("unexpected")),
        (200, json!("nonsense"), unknown("unexpected")),
        (400, json!({}), unknown("unexpected")),
        (302, json!({}), unknown("unexpected")),
        (401, json!({}), not_taken("token_refused")),
        (429, json!({}), not_taken("rate_limited")),
    ];
    for (status, body, expected) in cases {
        let stub = Stub::always(Reply::json(status, &body)).await;
        assert_eq!(service(&stub.address).pay(&order()).await, expected, "{status} {body}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_a_missing_connection_is_not_taken() {
    let stub = Stub::always(Reply::Hangs).await;
    let mut settings = HttpPayoutSettings::new(&*stub.address, SecretString::from(TOKEN));
    settings.within = Duration::from_millis(200);
    let service_that_waits = HttpPayout::new(settings).unwrap();
    assert_eq!(service_that_waits.pay(&order()).await, Said::Unknown { cause: "time" });
    assert_eq!(service_that_waits.ask(NO).await, Said::Unknown { cause: "time" });
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let gone = service(&address);
    assert_eq!(gone.pay(&order()).await, Said::NotTaken { cause: "connection", after: None });
    let stub = Stub::always(Reply::json(404, &json!({}))).await;
    assert_eq!(service(&stub.address).ask(NO).await, Said::Absent);
}

#[tokio::test]
async fn neither_token_nor_account_is_shown() {
    let shown = format!("{:?} {:?}", service("http://127.0.0.1:1"), order());
    assert!(!shown.contains("CANARY") && !shown.contains("6222"), "{shown}");
    for token in ["", "two words"] {
        let settings = HttpPayoutSettings::new("http://127.0.0.1:1", SecretString::from(token));
        assert!(HttpPayout::new(settings).is_err());
    }
    let settings = HttpPayoutSettings::new("http://a.example", SecretString::from(TOKEN));
    assert!(HttpPayout::new(settings).is_err(), "plain HTTP");
}
