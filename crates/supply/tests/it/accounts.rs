//! Accounts through the door.

use std::time::Duration;

use store::values;
use supply::accounts::{Activate, Credential, Delete, Disable, Suspend};
use supply::{Caller, Capacity};

use crate::market::{ADMIN, Market, OTHER_SUPPLIER, OTHER_TENANT, SUPPLIER_TENANT, market, told};

/// Status, version and whether an envelope is left.
async fn account(market: &Market, id: i64) -> (String, i64, bool) {
    let sql = "select status, version, encrypted_credentials <> '' from supply_accounts where id = $1";
    let rows = market.door.store().query(store::Query::new("account", sql, values![id])).await.unwrap();
    (rows[0].text(0).unwrap().to_owned(), rows[0].int(1).unwrap(), rows[0].flag(2).unwrap())
}

fn admin(market: &Market, key: &str) -> Caller {
    Caller { capacity: Capacity::Admin, role: "admin", ..market.caller(SUPPLIER_TENANT, ADMIN, key) }
}

#[tokio::test]
async fn an_account_lives_from_activation_to_deletion() {
    let market = market().await;
    market.account(5, "pending").await;
    let activated = market.run("key-0000000000001", Activate { account_id: 5 }).await;
    assert_eq!((activated.code, &activated.body["data"]["status"]), (200, &"active".into()), "{activated:?}");
    let active = market.run("key-0000000000002", Delete { account_id: 5 }).await;
    assert_eq!((active.code, active.error()), (409, "SUP_ACC_4092"));
    assert_eq!(market.audited("invariant_violation", "SUP_ACC_4092").await, 1);
    assert_eq!(market.run("key-0000000000003", Suspend { account_id: 5 }).await.code, 200);
    let deleted = market.run("key-0000000000004", Delete { account_id: 5 }).await;
    assert_eq!((deleted.code, deleted.replayed), (204, false));
    assert_eq!(account(&market, 5).await, ("suspended".into(), 3, false));
    assert!(market.run("key-0000000000004", Delete { account_id: 5 }).await.replayed);
    let gone = market.run("key-0000000000005", Activate { account_id: 5 }).await;
    assert_eq!((gone.code, gone.error()), (404, "SUP_ACC_4041"));
}

#[tokio::test]
async fn what_the_platform_disabled_only_an_administrator_restores() {
    let market = market().await;
    market.account(5, "active").await;
    let disable = Disable { account_id: 5, reason: "leaked elsewhere".into(), credential: Credential::Kept };
    assert_eq!(market.run_as(admin(&market, "key-0000000000001"), disable).await.code, 200);
    let owner = market.run("key-0000000000002", Activate { account_id: 5 }).await;
    assert_eq!((owner.code, owner.error()), (403, "SUP_ACC_4031"));
    assert_eq!(market.audited("invariant_violation", "SUP_ACC_4031").await, 1);
    let restored = market.run_as(admin(&market, "key-0000000000003"), Activate { account_id: 5 }).await;
    assert_eq!(restored.code, 200);
    assert_eq!(account(&market, 5).await.0, "active");
    let by = "select count(*) from audit_events where tenant_id = $1 and operator_id = $2 and operator_type = 'admin'";
    assert_eq!(market.count(by, values![SUPPLIER_TENANT, ADMIN]).await, 2, "the object's tenant, the admin");
}

#[tokio::test]
async fn of_two_that_move_an_account_one_is_refused() {
    let market = market().await;
    market.account(5, "active").await;
    let wait = Duration::from_secs(10);
    let one = market.submission(market.operator("key-0000000000001"), Suspend { account_id: 5 }, wait);
    let disable = Disable { account_id: 5, reason: "risk".into(), credential: Credential::Kept };
    let two = market.submission(admin(&market, "key-0000000000002"), disable, wait);
    let (one, two) = tokio::join!(market.door.submit(one), market.other.submit(two));
    let codes = (told(one).code, told(two).code);
    // Suspended may still be disabled, unless its row was read before that; disabled may not be suspended.
    let (status, version, _) = account(&market, 5).await;
    let stood = (codes, status.as_str(), version);
    let may = [((200, 200), "disabled", 2), ((409, 200), "disabled", 1), ((200, 409), "suspended", 1)];
    assert!(may.contains(&stood), "{stood:?}");
}

#[tokio::test]
async fn an_account_of_another_tenant_is_missing_for_every_command() {
    let market = market().await;
    market.account(5, "suspended").await;
    let stranger = |key| market.caller(OTHER_TENANT, OTHER_SUPPLIER, key);
    let (activate, suspend, delete) =
        (Activate { account_id: 5 }, Suspend { account_id: 5 }, Delete { account_id: 5 });
    let answers = [
        market.run_as(stranger("key-0000000000001"), activate).await,
        market.run_as(stranger("key-0000000000002"), suspend).await,
        market.run_as(stranger("key-0000000000003"), delete).await,
    ];
    for told in answers {
        assert_eq!((told.code, told.error()), (404, "SUP_ACC_4041"));
    }
    assert_eq!(account(&market, 5).await, ("suspended".into(), 0, true));
}

#[tokio::test]
async fn a_live_package_keeps_its_account_from_being_deleted() {
    let market = market().await;
    market.account(5, "suspended").await;
    market.package(17, 5, "paused").await;
    let told = market.run("key-0000000000001", Delete { account_id: 5 }).await;
    assert_eq!((told.code, told.error()), (409, "SUP_ACC_4093"));
    assert_eq!(told.body["error"]["details"]["blocking"][0]["packages"], 1);
}
