//! Mounting and rotating credentials through the door, with a provider on loopback.

use std::time::Duration;

use custody::{AccountType, Place};
use secrecy::{ExposeSecret, SecretString};
use store::{Query, values};
use supply::accounts::{
    Activate, Create, Credential, Delete, Disable, Kind, Remind, Rotate, Verify, to_remind,
};
use supply::platform::Due;
use supply::{Caller, Capacity, Policy};

use crate::market::{ADMIN, Market, OTHER_SUPPLIER, OTHER_TENANT, SUPPLIER_TENANT, market_of, told};
use crate::provider::Provider;

const KIND: Kind = Kind { provider: custody::Provider::Openai, account_type: AccountType::ApiKey };

/// Of the right shape, and nobody's.
fn canary(letter: &str) -> String {
    testkit::canary::credential(letter)
}

fn create(letter: &str) -> Create {
    let secret = SecretString::from(canary(letter));
    Create { kind: KIND, secret, alias: Some("spare-1".into()), min_quota_threshold: None, risk_ack: true }
}

async fn with(status: u16) -> (Market, Provider) {
    let provider = Provider::answering(status).await;
    (market_of(Policy::default(), provider.settings()).await, provider)
}

async fn accounts(market: &Market) -> i64 {
    market.count("select count(*) from supply_accounts where deleted_at is null", vec![]).await
}

/// The credential of an account, opened as the upstream caller would.
async fn opened(market: &Market, id: i64) -> String {
    let sql =
        "select key_id, credential_kms_key_alias, encrypted_credentials from supply_accounts where id = $1";
    let rows = market.door.store().query(Query::new("envelope", sql, values![id])).await.unwrap();
    let place = Place {
        tenant_id: SUPPLIER_TENANT,
        table: "supply_accounts",
        row: rows[0].text(0).unwrap(),
        platform: "openai",
    };
    let custody = &market.house.keys.custody;
    custody
        .open(&place, rows[0].text(1).unwrap(), rows[0].text(2).unwrap())
        .await
        .unwrap()
        .expose_secret()
        .to_owned()
}

#[tokio::test]
async fn a_credential_is_mounted_once_and_a_repeat_asks_nobody() {
    let (market, provider) = with(200).await;
    let first = market.run("key-0000000000001", create("a")).await;
    assert_eq!((first.code, first.replayed), (201, false), "{first:?}");
    let repeat = market.run("key-0000000000001", create("a")).await;
    assert_eq!((repeat.code, repeat.replayed, &repeat.body), (201, true, &first.body));
    assert_eq!((accounts(&market).await, provider.asked()), (1, 1));
    let id = first.body["data"]["account_id"].as_i64().unwrap();
    assert_eq!(opened(&market, id).await, canary("a"));
    assert_eq!(market.audited("supply.account.create", "OK").await, 1);
    assert_eq!(market.announced("supply.account.create.succeeded").await, 1);
    assert_eq!(market.run("key-0000000000002", Activate { account_id: id }).await.code, 200);
}

#[tokio::test]
async fn twenty_twins_mount_one_account() {
    let (market, _provider) = with(200).await;
    let submissions = (0..20).map(|n| {
        let submission =
            market.submission(market.operator("key-0000000000001"), create("a"), Duration::from_secs(10));
        let door = if n % 2 == 0 { market.door.clone() } else { market.other.clone() };
        tokio::spawn(async move { door.submit(submission).await })
    });
    let submissions: Vec<_> = submissions.collect();
    for submission in submissions {
        assert_eq!(told(submission.await.unwrap()).code, 201);
    }
    assert_eq!(accounts(&market).await, 1);
}

#[tokio::test]
async fn a_credential_that_is_mounted_or_blocked_is_refused_in_every_tenant_alike() {
    let (market, _provider) = with(200).await;
    let first = market.run("key-0000000000001", create("a")).await;
    let id = first.body["data"]["account_id"].as_i64().unwrap();
    let stranger = |key| market.caller(OTHER_TENANT, OTHER_SUPPLIER, key);
    let own = market.run("key-0000000000002", create("a")).await;
    let other = market.run_as(stranger("key-0000000000003"), create("a")).await;
    assert_eq!((own.code, own.error(), &own.body), (409, "SUP_ACC_4094", &other.body));
    let admin =
        Caller { capacity: Capacity::Admin, ..market.caller(SUPPLIER_TENANT, ADMIN, "key-0000000000004") };
    market
        .run_as(admin, Disable { account_id: id, reason: "leaked".into(), credential: Credential::Kept })
        .await;
    assert_eq!(market.run("key-0000000000005", Delete { account_id: id }).await.code, 204);
    let again = market.run("key-0000000000006", create("a")).await;
    assert_eq!((again.code, again.error()), (409, "SUP_ACC_4094"), "a blocked credential stays blocked");
    assert_eq!(accounts(&market).await, 0);
}

#[tokio::test]
async fn what_the_provider_refuses_is_not_mounted_and_stays_refused_under_its_key() {
    let (market, provider) = with(401).await;
    for replayed in [false, true] {
        let told = market.run("key-0000000000001", create("a")).await;
        assert_eq!((told.code, told.error(), told.replayed), (400, "SUP_ACC_4002", replayed));
    }
    assert_eq!((accounts(&market).await, provider.asked()), (0, 1));
}

#[tokio::test]
async fn a_provider_out_of_reach_burns_no_key() {
    let (market, provider) = with(503).await;
    for _ in 0..2 {
        let told = market.run("key-0000000000001", create("a")).await;
        assert_eq!((told.code, told.error(), told.replayed), (503, "SUP_ACC_5031", false));
    }
    assert!(provider.asked() >= 2);
    assert_eq!(market.audited("supply.account.create", "SUP_ACC_5031").await, 2);
}

#[tokio::test]
async fn a_rotated_account_has_the_new_credential_only() {
    let (market, _provider) = with(200).await;
    let first = market.run("key-0000000000001", create("a")).await;
    let (id, key_id) =
        (first.body["data"]["account_id"].as_i64().unwrap(), first.body["data"]["key_id"].as_str().unwrap());
    let rotate = |letter: &str| Rotate {
        account_id: id,
        target: Some((KIND, key_id.to_owned())),
        secret: SecretString::from(canary(letter)),
    };
    let same = market.run("key-0000000000002", rotate("a")).await;
    assert_eq!((same.code, same.error()), (409, "SUP_ACC_4094"));
    let rotated = market.run("key-0000000000003", rotate("b")).await;
    assert_eq!((rotated.code, &rotated.body["data"]["version"]), (200, &1.into()), "{rotated:?}");
    assert_eq!(opened(&market, id).await, canary("b"));
    let missing = Rotate { account_id: 999, target: None, secret: SecretString::from(canary("c")) };
    assert_eq!(market.run("key-0000000000004", missing).await.error(), "SUP_ACC_4041");
}

impl Market {
    /// What the newest reminder says.
    async fn last_due_at(&self) -> String {
        let sql = "select cast(payload as text) from outbox where event_name = 'supply.credential.remind.succeeded' order by id desc limit 1";
        let rows = self.door.store().query(Query::new("reminder", sql, vec![])).await.unwrap();
        let payload: serde_json::Value = serde_json::from_str(rows[0].text(0).unwrap()).unwrap();
        payload["after_state"]["rotation_due_at"].as_str().unwrap().to_owned()
    }
}

/// The days of the next ones on which a reminder is due, and by when it says to replace it.
async fn reminded_within(market: &Market, days: u64) -> Vec<(u64, String)> {
    let mut reminded = Vec::new();
    for day in 1..=days {
        market.clock.advance(Duration::from_secs(86_400));
        let rows = market.door.store().query(to_remind(market.now(), 10)).await.unwrap();
        for due in rows.iter().map(|row| Due::read(row).unwrap()) {
            let remind = Remind { account_id: due.id };
            assert_eq!(market.found_by_both(due.caller("remind"), remind).await, [200, 409]);
            reminded.push((day, market.last_due_at().await));
        }
    }
    reminded
}

#[tokio::test]
async fn its_owner_is_reminded_of_an_old_credential_until_it_is_replaced() {
    let (market, _provider) = with(200).await;
    let first = market.run("key-0000000000001", create("a")).await;
    let id = first.body["data"]["account_id"].as_i64().unwrap();
    let by = |days: u64| market.now().plus(Duration::from_secs(days * 86_400)).to_rfc3339_millis();
    let due_at = by(60);
    assert_eq!(reminded_within(&market, 105).await, [(50, due_at.clone()), (100, due_at)]);
    let target = Some((KIND, first.body["data"]["key_id"].as_str().unwrap().to_owned()));
    let rotate = Rotate { account_id: id, target, secret: SecretString::from(canary("b")) };
    assert_eq!(market.run("key-0000000000002", rotate).await.code, 200);
    let due_at = by(60);
    assert_eq!(reminded_within(&market, 55).await, [(50, due_at)]);
    assert_eq!(market.announced("supply.credential.remind.succeeded").await, 3);
    let disable = Disable { account_id: id, reason: "gone".into(), credential: Credential::Kept };
    let admin = Caller {
        capacity: Capacity::Admin,
        role: "admin",
        ..market.caller(SUPPLIER_TENANT, ADMIN, "key-0000000000003")
    };
    assert_eq!(market.run_as(admin, disable).await.code, 200);
    assert_eq!(reminded_within(&market, 120).await, []);
}

#[tokio::test]
async fn verifying_keeps_nothing_but_its_audit() {
    let (market, _provider) = with(200).await;
    let verify = Verify { kind: KIND, secret: SecretString::from(canary("a")) };
    let told = market.run("", verify).await;
    assert_eq!((told.code, &told.body["data"]["verify_status"]), (200, &"pass".into()), "{told:?}");
    assert_eq!(told.body["data"]["check_items"].as_array().unwrap().len(), 5);
    assert_eq!((accounts(&market).await, market.audited("supply.account.verify", "OK").await), (0, 1));
    assert_eq!(market.count("select count(*) from supply_idempotency_record", vec![]).await, 0);
}

#[tokio::test]
async fn no_row_has_a_run_of_the_credential() {
    let (market, _provider) = with(200).await;
    market.run("key-0000000000001", create("q")).await;
    let mark = "%qqqqqqqq%";
    for (table, column) in [
        ("audit_events", "cast(metadata as text)"),
        ("audit_events", "cast(after_state as text)"),
        ("outbox", "cast(payload as text)"),
        ("supply_idempotency_record", "cast(response_body as text)"),
        ("supply_accounts", "encrypted_credentials"),
        ("supply_accounts", "key_id"),
    ] {
        let sql = format!("select count(*) from {table} where {column} like $1");
        assert_eq!(market.count(&sql, values![mark]).await, 0, "{table}.{column}");
    }
    assert!(canary("q").contains("qqqqqqqq"), "the net catches what is looked for");
}
