//! Payouts by a service on loopback (section 12, row 14): it pays once, whatever is lost on the way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use custody::pay::{HttpPayout, HttpPayoutSettings};
use relay::{Relay, Settings, Turn};
use secrecy::SecretString;
use serde_json::{Value as Json, json};
use supply::consumers::Payouts;
use tokio::sync::RwLock;

use super::desk::Desk;

/// How the bank behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Pays,
    /// It pays, and its answer is an error.
    Loses,
    Refuses,
    Ponders,
    Down,
}

struct Bank {
    mood: Mutex<Mood>,
    /// References that were paid, each as often as money left.
    paid: Mutex<Vec<String>>,
    told: AtomicUsize,
    asked: AtomicUsize,
    /// Whoever holds it for writing keeps the bank from answering.
    gate: Arc<RwLock<()>>,
    bodies: Mutex<Vec<Json>>,
}

impl Bank {
    async fn open() -> (Arc<Self>, String) {
        let (mood, gate) = (Mutex::new(Mood::Pays), Arc::default());
        let (told, asked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let bank =
            Arc::new(Self { mood, paid: Mutex::default(), told, asked, gate, bodies: Mutex::default() });
        let router = Router::new().route("/pay", post(told_to)).route("/pay/{reference}", get(asked_for));
        let router = router.with_state(Arc::clone(&bank));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}/pay", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (bank, address)
    }

    fn be(&self, mood: Mood) {
        *self.mood.lock().expect("the mood") = mood;
    }

    fn is(&self) -> Mood {
        *self.mood.lock().expect("the mood")
    }

    fn payments(&self) -> usize {
        self.paid.lock().expect("payments").len()
    }

    fn calls(&self) -> (usize, usize) {
        (self.told.load(Ordering::SeqCst), self.asked.load(Ordering::SeqCst))
    }
}

fn ok(body: &Json) -> (StatusCode, String) {
    (StatusCode::OK, body.to_string())
}

async fn told_to(State(bank): State<Arc<Bank>>, headers: HeaderMap, body: String) -> (StatusCode, String) {
    bank.told.fetch_add(1, Ordering::SeqCst);
    let body: Json = serde_json::from_str(&body).expect("JSON");
    let key = headers["idempotency-key"].to_str().expect("a key").to_owned();
    assert_eq!(body["reference"], key.as_str());
    bank.bodies.lock().expect("bodies").push(body);
    let mood = bank.is();
    if matches!(mood, Mood::Pays | Mood::Loses) {
        let mut paid = bank.paid.lock().expect("payments");
        if !paid.contains(&key) {
            paid.push(key.clone());
        }
    }
    drop(bank.gate.read().await);
    match mood {
        Mood::Pays => ok(&json!({ "status": "paid", "transaction_id": format!("T-{key}") })),
        Mood::Refuses => {
            (StatusCode::UNPROCESSABLE_ENTITY, json!({ "status": "failed", "code": "CLOSED" }).to_string())
        }
        Mood::Ponders => ok(&json!({ "status": "pending" })),
        Mood::Loses | Mood::Down => (StatusCode::BAD_GATEWAY, "{}".to_owned()),
    }
}

async fn asked_for(State(bank): State<Arc<Bank>>, Path(reference): Path<String>) -> (StatusCode, String) {
    bank.asked.fetch_add(1, Ordering::SeqCst);
    if bank.is() == Mood::Down {
        return (StatusCode::BAD_GATEWAY, "{}".to_owned());
    }
    if bank.is() == Mood::Ponders {
        return ok(&json!({ "status": "pending" }));
    }
    if bank.paid.lock().expect("payments").contains(&reference) {
        return ok(&json!({ "status": "paid", "transaction_id": format!("T-{reference}") }));
    }
    (StatusCode::NOT_FOUND, "{}".to_owned())
}

struct Office {
    desk: Desk,
    bank: Arc<Bank>,
    address: String,
}

impl Office {
    async fn new() -> Self {
        let (desk, (bank, address)) = (Desk::funded(200).await, Bank::open().await);
        Self { desk, bank, address }
    }

    /// A relay of a node of its own that only pays out.
    fn relay(&self) -> Relay {
        let settings = HttpPayoutSettings::new(&self.address, SecretString::from("a-token-of-ours"));
        let payouts = Payouts {
            door: self.desk.api.door.clone(),
            house: Arc::clone(&self.desk.api.market),
            service: Arc::new(HttpPayout::new(settings).expect("a service")),
            key_life: Duration::from_secs(24 * 3600),
        };
        let (door, clock) = (self.desk.api.door.clone(), self.desk.api.house.clock.clone());
        Relay::new(door, clock, vec![Arc::new(payouts)], Settings::default())
    }

    /// A settlement whose payout has begun.
    async fn begun(&self) -> i64 {
        let settlement = self.desk.settlement("50").await;
        self.desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/start"), "").await;
        settlement
    }

    async fn turn(&self, relay: &Relay) -> Turn {
        relay.turn().await.expect("a round")
    }

    fn later(&self, seconds: u64) {
        self.desk.api.house.clock.advance(Duration::from_secs(seconds));
    }

    async fn state(&self) -> String {
        let sql = "select status || coalesce(' ' || fail_reason, '') || coalesce(' ' || payment_transaction_id, '') from supply_settlements";
        self.desk.api.texts(sql).await.join(", ")
    }

    async fn attempts(&self) -> Vec<String> {
        let sql = "select cast(attempt as text) || ' ' || result || coalesce(' ' || raw_code, '')
            from supply_payout_attempts order by attempt";
        self.desk.api.texts(sql).await
    }

    async fn paid_once(&self) {
        let no = self.bank.paid.lock().expect("payments")[0].clone();
        assert_eq!((self.bank.payments(), self.state().await), (1, format!("completed T-{no}")));
        let posted = "select count(*) from billing_journals where journal_type = 'J-PAYOUT-OK'";
        assert_eq!(self.desk.api.count(posted).await, 1);
        self.desk.sound().await;
    }

    async fn alerts(&self) -> i64 {
        let sql = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
            and cast(payload as text) like '%payout_held%'";
        self.desk.api.count(sql).await
    }
}

#[tokio::test]
async fn a_payout_that_has_begun_is_paid_and_completed_as_the_platform() {
    let office = Office::new().await;
    office.begun().await;
    assert_eq!(office.turn(&office.relay()).await.delivered, 1);
    office.paid_once().await;
    assert_eq!((office.bank.calls(), office.attempts().await), ((1, 0), vec!["1 succeeded".to_owned()]));
    let body = office.bank.bodies.lock().expect("bodies")[0].clone();
    assert_eq!((&body["amount"], &body["account"]), (&json!("49.5"), &json!("13800000000")));
    let by = "select operator_type || ' ' || idempotency_key from audit_events where event_name = 'supply.settlement.payout.complete'";
    let no = body["reference"].as_str().expect("a reference");
    assert_eq!(office.desk.api.texts(by).await, [format!("system payout:{no}")]);
    for table in ["outbox", "audit_events"] {
        let column = if table == "outbox" { "payload" } else { "metadata" };
        let seen = format!("select count(*) from {table} where cast({column} as text) like '%13800000000%'");
        assert_eq!(office.desk.api.count(&seen).await, 0, "{table}");
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_and_nothing_is_paid_twice() {
    let office = Office::new().await;
    office.begun().await;
    office.bank.be(Mood::Loses);
    let relay = office.relay();
    assert_eq!(office.turn(&relay).await.retried, 1);
    assert_eq!(office.attempts().await, ["1 unknown out_of_order"]);
    assert_eq!(office.state().await, "processing");
    office.bank.be(Mood::Pays);
    office.later(60);
    assert_eq!(office.turn(&relay).await.delivered, 1);
    office.paid_once().await;
    assert_eq!((office.bank.calls(), office.attempts().await), ((1, 1), vec!["1 succeeded".to_owned()]));
}

#[tokio::test]
async fn a_service_that_is_down_gets_the_same_reference_again_when_it_is_back() {
    let office = Office::new().await;
    office.begun().await;
    office.bank.be(Mood::Down);
    let relay = office.relay();
    for _ in 0..3 {
        assert_eq!(office.turn(&relay).await.retried, 1);
        office.later(60);
    }
    assert_eq!(office.bank.calls(), (1, 2), "it may have been paid, so it is asked");
    office.bank.be(Mood::Pays);
    assert_eq!(office.turn(&relay).await.delivered, 1);
    office.paid_once().await;
    assert_eq!(office.attempts().await, ["1 unknown out_of_order", "2 succeeded"]);
    let bodies = office.bank.bodies.lock().expect("bodies").clone();
    assert_eq!((bodies.len(), &bodies[0]), (2, &bodies[1]));
}

#[tokio::test]
async fn a_definite_refusal_gives_the_money_back() {
    let office = Office::new().await;
    office.begun().await;
    office.bank.be(Mood::Refuses);
    assert_eq!(office.turn(&office.relay()).await.delivered, 1);
    assert_eq!((office.state().await.as_str(), office.bank.payments()), ("failed payout_failed", 0));
    assert_eq!(office.attempts().await, ["1 failed CLOSED"]);
    office.desk.sound().await;
    office.desk.settlement("200").await;
}

#[tokio::test]
async fn a_service_that_ponders_is_asked_until_it_has_paid() {
    let office = Office::new().await;
    office.begun().await;
    office.bank.be(Mood::Ponders);
    let relay = office.relay();
    for _ in 0..6 {
        assert_eq!(office.turn(&relay).await.retried, 1);
        office.later(120);
    }
    assert_eq!((office.bank.calls(), office.attempts().await), ((1, 5), vec!["1 pending".to_owned()]));
    office.bank.be(Mood::Pays);
    office.later(3600);
    assert_eq!(office.turn(&relay).await.delivered, 1);
    office.paid_once().await;
}

#[tokio::test]
async fn when_its_memory_has_ended_it_is_asked_and_never_told_again() {
    let office = Office::new().await;
    office.begun().await;
    office.bank.be(Mood::Down);
    let relay = office.relay();
    assert_eq!(office.turn(&relay).await.retried, 1);
    office.later(24 * 3600);
    // It lost it, or never had it: nobody can tell.
    office.bank.be(Mood::Pays);
    assert_eq!(office.turn(&relay).await.refused, 1);
    assert_eq!((office.bank.calls(), office.bank.payments()), ((1, 1), 0));
    assert_eq!((office.state().await.as_str(), office.alerts().await), ("processing", 1));
    // A late result is found all the same, when a person has looked.
    let no = office.desk.api.texts("select settlement_no from supply_settlements").await.remove(0);
    office.bank.paid.lock().expect("payments").push(no);
    let held = relay::held::list(&office.desk.api.door, &relay::State::HELD, 9).await.expect("the held one");
    let operator =
        relay::held::Operator { id: 7, kind: "admin", role: "operations", request_id: "req_op".into() };
    relay::held::redrive(&office.desk.api.door, held[0].id, &operator, &["payout".into()])
        .await
        .expect("anew");
    assert_eq!(office.turn(&relay).await.delivered, 1);
    office.paid_once().await;
}

#[tokio::test]
async fn two_nodes_pay_once_also_when_one_is_slower_than_its_lease() {
    let office = Office::new().await;
    office.begun().await;
    let (slow, quick) = (office.relay(), office.relay());
    let held = Arc::clone(&office.bank.gate).write_owned().await;
    let first = async {
        let turn = slow.turn().await.expect("a round");
        assert_eq!(turn.lost, 1, "another node had its claim by then");
    };
    let second = async {
        while office.bank.payments() == 0 {
            tokio::task::yield_now().await;
        }
        office.later(61);
        assert_eq!(office.turn(&quick).await.delivered, 1);
        drop(held);
    };
    tokio::join!(first, second);
    office.paid_once().await;
    assert_eq!(office.bank.calls(), (1, 1));
    assert_eq!(office.desk.audited("supply.settlement.payout.complete", "OK").await, 1);
}

#[tokio::test]
async fn what_was_ended_by_hand_is_not_told_and_a_contradiction_is() {
    let office = Office::new().await;
    let settlement = office.begun().await;
    let body = json!({ "failure_code": "by_hand" }).to_string();
    office.desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/fail"), &body).await;
    assert_eq!((office.turn(&office.relay()).await.delivered, office.bank.calls()), (1, (0, 0)));
    // The service pays while somebody says that it has failed.
    let settlement = office.begun().await;
    let held = Arc::clone(&office.bank.gate).write_owned().await;
    let relay = office.relay();
    let by_hand = async {
        while office.bank.payments() == 0 {
            tokio::task::yield_now().await;
        }
        office.desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/fail"), &body).await;
        drop(held);
    };
    let (turn, ()) = tokio::join!(relay.turn(), by_hand);
    assert_eq!((turn.expect("a round").refused, office.alerts().await), (1, 1));
}
