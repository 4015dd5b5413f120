//! Statements (section 8.4, operation 24), and FI-006: where files stand is down.

use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use kernel::Clock as _;
use relay::{Channel as _, Message, Outcome};
use serde_json::{Value as Json, json};

use super::desk::{Desk, WITHDRAW, cancelling, code, is};
use crate::house::Got;

const WAITING: &str =
    "select count(*) from outbox_deliveries where destination = 'statement' and status = 'pending'";
const UNTOUCHED: &str =
    "select count(*) from outbox_deliveries where destination = 'statement' and attempt = 0";
const DELIVERED: &str =
    "select count(*) from outbox_deliveries where destination = 'statement' and status = 'delivered'";
const DEAD: &str =
    "select count(*) from outbox_deliveries where destination = 'statement' and status = 'dead'";
const ALERTS: &str = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
    and cast(payload as text) like '%statement_held%'";

/// The desk with a reader's token.
struct Reader {
    desk: Desk,
    token: String,
}

impl Reader {
    async fn new() -> Self {
        let desk = Desk::funded(200).await;
        let token = desk.api.token((desk.tenant, desk.operator), &["billing:read"]).await;
        Self { desk, token }
    }

    async fn link(&self, settlement: i64) -> Got {
        self.desk.api.read(&format!("/api/v1/supply/settlements/{settlement}/statement"), &self.token).await
    }

    /// The file behind the link.
    async fn file(&self, settlement: i64) -> String {
        let link = self.link(settlement).await;
        assert_eq!(link.status, 200, "{}", link.text());
        let got = self.desk.api.house.get(&path(&link)).await;
        assert_eq!(got.status, 200, "{}", got.text());
        got.text()
    }

    /// A file stands where the folder was; nothing can be put or found there.
    fn broken(&self) -> PathBuf {
        let shelf = self.desk.api.shelf();
        let aside = shelf.with_extension("aside");
        std::fs::rename(&shelf, &aside).expect("the folder is put aside");
        std::fs::write(&shelf, "").expect("a file in its place");
        aside
    }

    fn mended(&self, aside: &PathBuf) {
        let shelf = self.desk.api.shelf();
        std::fs::remove_file(&shelf).expect("the file is gone");
        std::fs::rename(aside, &shelf).expect("the folder is back");
    }

    fn later(&self, seconds: u64) {
        self.desk.api.house.clock.advance(Duration::from_secs(seconds));
    }
}

/// The path of a link, without its host.
fn path(link: &Got) -> String {
    let url = link.json()["data"]["download_url"].as_str().expect("a link").to_owned();
    url.strip_prefix("https://onceseal.example").expect("our address").to_owned()
}

fn not_yet(got: &Got) {
    assert_eq!(code(got), is(503, "SUP_COM_5031"), "{}", got.text());
    assert!(!got.header("retry-after").is_empty());
}

#[tokio::test]
async fn fi_006_withdraw_and_cancel_do_not_wait_for_files_which_come_once_after_the_outage() {
    let reader = Reader::new().await;
    let (desk, relay) = (&reader.desk, reader.desk.api.relay(24));
    let aside = reader.broken();
    let settlement = desk.settlement("50").await;
    desk.done(&cancelling(settlement), "").await;
    // Both were answered before anybody looked at their events.
    assert_eq!((desk.api.count(UNTOUCHED).await, desk.api.count(WAITING).await), (2, 2));
    not_yet(&reader.link(settlement).await);
    for gap in [2, 3, 5] {
        let turn = relay.turn().await.expect("a round");
        assert_eq!((turn.claimed, turn.retried), (1, 1), "the first event of the settlement");
        not_yet(&reader.link(settlement).await);
        reader.later(gap);
    }
    reader.mended(&aside);
    while relay.turn().await.expect("a round").claimed > 0 {}
    assert_eq!((desk.api.count(DELIVERED).await, desk.api.count(WAITING).await), (2, 0));
    assert!(reader.file(settlement).await.contains("失败原因 Reason of failure,cancelled,"));
    assert_eq!(std::fs::read_dir(desk.api.shelf()).expect("the shelf").count(), 1);
    reader.later(3600);
    assert_eq!(relay.turn().await.expect("a round").claimed, 0, "once");
    desk.sound().await;
}

#[tokio::test]
async fn fi_006_when_all_tries_are_used_up_people_hear_of_it_and_can_have_it_made() {
    let reader = Reader::new().await;
    let (desk, relay) = (&reader.desk, reader.desk.api.relay(5));
    let aside = reader.broken();
    let settlement = desk.settlement("50").await;
    let mut tries = 0;
    while desk.api.count(DEAD).await == 0 {
        tries += relay.turn().await.expect("a round").claimed;
        reader.later(30);
    }
    assert_eq!((tries, desk.api.count(ALERTS).await), (5, 1));
    not_yet(&reader.link(settlement).await);
    reader.mended(&aside);
    not_yet(&reader.link(settlement).await);
    let held = relay::held::list(&desk.api.door, &relay::State::HELD, 9).await.expect("the held ones");
    assert!(
        held[0].error.as_deref().is_some_and(|cause| cause.contains("gave up after 5 attempts")),
        "{held:?}"
    );
    let operator =
        relay::held::Operator { id: 7, kind: "admin", role: "operations", request_id: "req_op".into() };
    let redriven = relay::held::redrive(&desk.api.door, held[0].id, &operator, &["statement".into()]).await;
    redriven.expect("sent anew");
    assert_eq!(relay.turn().await.expect("a round").delivered, 1);
    assert!(reader.file(settlement).await.contains("状态 Status,pending,"));
    // It is cancelled as if nothing had been.
    desk.done(&cancelling(settlement), "").await;
}

#[tokio::test]
async fn a_statement_says_what_the_settlement_is_made_of_and_shows_no_account() {
    let reader = Reader::new().await;
    let desk = &reader.desk;
    let settlement = desk.settlement("50").await;
    desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/start"), "").await;
    let paid = json!({ "payment_transaction_id": "bank-1" }).to_string();
    desk.api.admin(&format!("/api/v1/platform/settlements/{settlement}/complete"), &paid).await;
    desk.api.statements_made().await;
    let text = reader.file(settlement).await;
    assert!(text.starts_with("\u{feff}结算单号 Settlement,STL"), "{text}");
    for line in [
        "状态 Status,completed,,,,",
        "提现金额 Total,50,,,,",
        "手续费 Fee,0.5,,,,",
        "实付金额 Paid out,49.5,,,,",
        "收款账户 Account,138****0000,,,,",
        "支付流水号 Payment,bank-1,,,,",
        "合计 Total,,,,,50",
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
    }
    assert!(text.contains(",bonus,,an outage,") && !text.contains("13800000000"), "{text}");
    assert_eq!(desk.audited("supply.settlement.statement.export", "OK").await, 1);
}

#[tokio::test]
async fn an_event_that_comes_twice_makes_the_same_file() {
    let reader = Reader::new().await;
    let desk = &reader.desk;
    let settlement = desk.settlement("50").await;
    desk.api.statements_made().await;
    let first = reader.file(settlement).await;
    let message = Message {
        delivery_id: 1,
        event_id: uuid::Uuid::nil(),
        event_name: "supply.settlement.withdraw.succeeded".into(),
        object_type: "supply_settlement".into(),
        object_id: settlement.to_string(),
        request_id: "req".into(),
        payload: json!({ "tenant_id": desk.tenant }),
        occurred_at: desk.api.house.clock.now(),
        attempt: 1,
    };
    reader.later(60);
    assert!(matches!(desk.api.statements.send(&message).await, Outcome::Delivered { .. }));
    assert_eq!(reader.file(settlement).await, first);
    assert_eq!(std::fs::read_dir(desk.api.shelf()).expect("the shelf").count(), 1);
}

#[tokio::test]
async fn a_file_that_was_lost_or_damaged_is_made_again() {
    let reader = Reader::new().await;
    let settlement = reader.desk.settlement("50").await;
    reader.desk.api.statements_made().await;
    let first = reader.file(settlement).await;
    let kept =
        std::fs::read_dir(reader.desk.api.shelf()).expect("the shelf").next().expect("one").expect("a file");
    std::fs::write(kept.path(), "half").expect("damaged");
    assert_eq!(reader.file(settlement).await, first);
    std::fs::remove_file(kept.path()).expect("lost");
    assert_eq!(reader.file(settlement).await, first);
}

#[tokio::test]
async fn a_link_opens_one_file_for_a_quarter_of_an_hour_and_needs_no_token() {
    let reader = Reader::new().await;
    let desk = &reader.desk;
    let settlement = desk.settlement("50").await;
    desk.api.statements_made().await;
    let link = reader.link(settlement).await;
    let (path, data) = (path(&link), link.json()["data"].clone());
    let got = desk.api.house.get(&path).await;
    let attachment = format!("attachment; filename=\"{}\"", data["file_name"].as_str().expect("a name"));
    assert_eq!((got.status, got.header("content-disposition")), (200, attachment.as_str()));
    assert_eq!(got.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!((got.header("cache-control"), got.header("x-content-type-options")), ("no-store", "nosniff"));
    // A later version is another link's; this one still opens what it was made for.
    desk.done(&cancelling(settlement), "").await;
    assert_eq!(desk.api.house.get(&path).await.text(), got.text());
    for forged in [
        path.replace(&format!(".{settlement}."), ".999."),
        path.replace(".csv", ".html"),
        path.replace("STL", "STM"),
    ] {
        assert_eq!(code(&desk.api.house.get(&forged).await), is(404, "SUP_SET_4041"), "{forged}");
    }
    let written = desk.api.house.call(Request::post(&path).body(Body::empty()).expect("a request")).await;
    assert_eq!(code(&written), is(405, "SUP_COM_4051"));
    reader.later(899);
    assert_eq!(desk.api.house.get(&path).await.status, 200);
    reader.later(1);
    assert_eq!(code(&desk.api.house.get(&path).await), is(410, "SUP_SET_4101"));
    assert_eq!(Json::String(desk.api.house.clock.now().to_rfc3339_millis()), data["expires_at"]);
}

#[tokio::test]
async fn only_its_owner_gets_a_link() {
    let reader = Reader::new().await;
    let desk = &reader.desk;
    let settlement = desk.settlement("50").await;
    desk.api.statements_made().await;
    let (_, _, stranger) = super::life::supplier(&desk.api, "two").await;
    let asked = format!("/api/v1/supply/settlements/{settlement}/statement");
    assert_eq!(code(&desk.api.read(&asked, &stranger).await), is(404, "SUP_SET_4041"));
    assert_eq!(code(&reader.link(settlement + 1).await), is(404, "SUP_SET_4041"));
    assert_eq!(code(&desk.api.read(&asked, &desk.token).await), is(403, "AUTH_SCOPE_DENIED"));
    let fault = ("insert", "audit_events");
    desk.breaks(fault).await;
    assert_eq!(code(&reader.link(settlement).await), is(503, "SUP_COM_5031"), "no link without its audit");
}

#[tokio::test]
async fn fi_008_a_statement_that_holds_a_credential_is_not_made() {
    let reader = Reader::new().await;
    let desk = &reader.desk;
    let canary = format!("sk-{}", "Q7".repeat(24));
    desk.api.force(&format!("update supply_earnings set description = '{canary}'")).await;
    let settlement = desk.settlement("50").await;
    let relay = desk.api.relay(24);
    assert_eq!(relay.turn().await.expect("a round").refused, 1);
    assert_eq!(std::fs::read_dir(desk.api.shelf()).expect("the shelf").count(), 0);
    not_yet(&reader.link(settlement).await);
    assert_eq!(desk.audited("CRED-EXPOSE-EXPORT", "SUP_COM_5002").await, 1);
    let p0 = "select count(*) from outbox where event_name = 'supply.alert.raise.succeeded'
        and cast(payload as text) like '%credential_exposure_blocked%'";
    assert_eq!((desk.api.count(p0).await, desk.api.count(ALERTS).await), (1, 1));
    // And one that got there past all rules does not leave.
    desk.api.force("update supply_earnings set description = 'mended'").await;
    desk.done(&cancelling(settlement), "").await;
    desk.api.statements_made().await;
    let path = path(&reader.link(settlement).await);
    for entry in std::fs::read_dir(desk.api.shelf()).expect("the shelf") {
        std::fs::write(entry.expect("a file").path(), format!("a,{canary}\r\n")).expect("planted");
    }
    let got = desk.api.house.get(&path).await;
    assert_eq!(code(&got), is(500, "SUP_COM_5002"));
    assert!(!got.text().contains("Q7Q7"));
    assert_eq!(desk.audited("CRED-EXPOSE-EXPORT", "SUP_COM_5002").await, 2);
}

#[tokio::test]
async fn a_withdrawal_on_one_server_has_its_statement_from_the_other() {
    let reader = Reader::new().await;
    let desk = &reader.desk;
    let second = desk.api.second().await;
    let body = desk.asks("50").await;
    let key = desk.api.key();
    let made = desk.api.write_at(&second, WITHDRAW, (&desk.token, &key), &body).await;
    let settlement = made.json()["data"]["settlement_id"].as_i64().expect("a settlement");
    desk.api.statements_made().await;
    let request = Request::builder()
        .method(Method::GET)
        .uri(path(&reader.link(settlement).await))
        .body(Body::empty())
        .expect("a request");
    assert_eq!(desk.api.call_at(&second, request).await.status, 200);
}
