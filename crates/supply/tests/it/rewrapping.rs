//! A new version of the wrapping key: registered, and all rows moved to it without a secret being seen.

use std::sync::Arc;

use custody::{Custody, LocalKeyring, Place};
use secrecy::{ExposeSecret as _, SecretString};
use store::{Query, Write, values};
use supply::rewrap::{self, Round, Walk};
use supply::{House, Keys};
use testkit::CountingRandom;

use crate::market::{Market, SUPPLIER_TENANT, market, material};

const SECRET: &str = "sk-of-the-account-0123456789";
/// Phones of the market's two suppliers, which no key service of it opens.
const PHONES: usize = 2;

/// A house of the market whose key has so many versions, the last of which wraps.
fn house(market: &Market, versions: u8) -> Arc<House> {
    let random = Arc::new(CountingRandom::default());
    let keys = (1..=versions).map(|n| (u32::from(n), material("kek", if n == 1 { 1 } else { 100 + n })));
    let ring =
        LocalKeyring::new("local", u32::from(versions), keys.collect(), Arc::clone(&random) as _).unwrap();
    let custody = Custody::new(Arc::new(ring), random);
    let keys = Keys { custody, ..market.house.keys.clone() };
    Arc::new(House { keys, ..House::clone(&market.house) })
}

/// Accounts with a credential that is sealed under version 1.
async fn sealed(accounts: i64) -> Market {
    let market = market().await;
    for id in 1..=accounts {
        market.account(id, "active").await;
        let row = format!("ck_{id:022}");
        let place = place(&row);
        let sealed = market.house.keys.custody.seal(&place, &SecretString::from(SECRET)).await.unwrap();
        let sql = "update supply_accounts set encrypted_credentials = $1, credential_kms_key_alias = $2 where id = $3";
        market.force(vec![Write::one("seal", sql, values![sealed.envelope, sealed.kms_key_alias, id])]).await;
    }
    market
}

fn place(row: &str) -> Place<'_> {
    Place { tenant_id: SUPPLIER_TENANT, table: "supply_accounts", row, platform: "openai" }
}

async fn versions(market: &Market) -> Vec<(i64, String, i64, bool)> {
    let found = rewrap::versions(market.door.store(), "local").await.unwrap();
    found.into_iter().map(|one| (one.version, one.status, one.rows, one.removable)).collect()
}

#[tokio::test]
async fn rows_move_to_the_new_version_and_the_old_one_may_go_only_then() {
    let market = sealed(1).await;
    rewrap::register(&market.door, "local", &[1], 1).await.unwrap();
    assert_eq!(versions(&market).await, [(1, "active".into(), 1, false)]);
    assert_eq!(
        rewrap::round(&market.door, &house(&market, 1), Walk::default(), 10).await.unwrap().rewrapped,
        0
    );
    // The node that has the new version is started; it registers it twice without harm.
    let new = house(&market, 2);
    let told = market.count("select count(*) from outbox", vec![]).await;
    for _ in 0..2 {
        rewrap::register(&market.door, "local", &[1, 2], 2).await.unwrap();
    }
    assert_eq!(versions(&market).await, [(1, "retired".into(), 1, false), (2, "active".into(), 0, false)]);
    assert_eq!(
        rewrap::round(&market.door, &new, Walk::default(), 10).await.unwrap(),
        Round { rewrapped: 1, left: PHONES, next: None }
    );
    assert_eq!(versions(&market).await, [(1, "retired".into(), 0, true), (2, "active".into(), 1, false)]);
    let sql = "select encrypted_credentials, credential_key_version, version from supply_accounts where last_rotation_at is not null";
    let rows = market.door.store().query(Query::new("row", sql, vec![])).await.unwrap();
    assert_eq!((rows[0].int(1).unwrap(), rows[0].int(2).unwrap()), (2, 1));
    let opened =
        new.keys.custody.open(&place(&format!("ck_{:022}", 1)), "local", rows[0].text(0).unwrap()).await;
    assert_eq!(opened.unwrap().expose_secret(), SECRET);
    assert_eq!(market.audited("supply.credential.rewrap", "OK").await, 1);
    // Nothing changed that others know of (section 17).
    assert_eq!(market.count("select count(*) from outbox", vec![]).await, told);
    assert_eq!(market.audited("CRED-ROTATE", "OK").await, 2);
    // A node that still wraps under the old one does not turn it back.
    assert_eq!(
        rewrap::round(&market.door, &house(&market, 1), Walk::default(), 10).await.unwrap(),
        Round::default()
    );
}

#[tokio::test]
async fn rows_that_can_not_be_opened_hold_back_none_behind_them_and_are_tried_once_a_walk() {
    let market = sealed(12).await;
    let broken = "update supply_accounts set encrypted_credentials = 'v1.1.AAEC.nonce.text' where id <= 9";
    market.force(vec![Write::any("break", broken, vec![])]).await;
    let new = house(&market, 2);
    let mut walk = Walk::default();
    let mut rounds = Vec::new();
    loop {
        let round = rewrap::round(&market.door, &new, walk, 4).await.unwrap();
        rounds.push((round.rewrapped, round.left));
        let Some(next) = round.next else { break };
        // As it goes over the wire.
        walk = Walk::parse(&next.to_string()).unwrap();
    }
    assert_eq!(rounds, [(0, PHONES + 4), (0, 4), (3, 1), (0, 0)]);
    for text in ["", "1", "1.2", "1.2.3.4", "1.2.-3", "1.2.x", "1.2.99999999999999999999"] {
        assert_eq!(Walk::parse(text), None, "{text}");
    }
}

#[tokio::test]
async fn nodes_that_rewrap_at_once_move_each_row_once_and_what_can_not_be_opened_is_left() {
    let market = sealed(20).await;
    let broken = "update supply_accounts set encrypted_credentials = 'v1.1.AAEC.nonce.text' where id = 7";
    market.force(vec![Write::one("break", broken, vec![])]).await;
    let new = house(&market, 2);
    let (one, two) = tokio::join!(
        rewrap::round(&market.door, &new, Walk::default(), 50),
        rewrap::round(&market.other, &new, Walk::default(), 50)
    );
    assert_eq!(one.unwrap().rewrapped + two.unwrap().rewrapped, 19);
    let moved = "select count(*) from supply_accounts where credential_key_version = 2 and version = 1";
    assert_eq!(market.count(moved, vec![]).await, 19);
    assert_eq!(market.audited("supply.credential.rewrap", "OK").await, 19);
    assert_eq!(
        rewrap::round(&market.door, &new, Walk::default(), 50).await.unwrap(),
        Round { rewrapped: 0, left: PHONES + 1, next: None }
    );
}
