//! What a check says of a credential, through rotation, review and compromise, with a provider on loopback.

use custody::AccountType;
use secrecy::SecretString;
use serde_json::{Value as Json, json};
use store::values;
use supply::accounts::{
    Activate, Create, Credential, Delete, Disable, Kind, Review, Rotate, Suspend, Verdict, view,
};
use supply::{Caller, Capacity, Policy};

use crate::market::{ADMIN, Market, SUPPLIER_TENANT, Told, market_of};
use crate::provider::Provider;

const KIND: Kind = Kind { provider: custody::Provider::Baidu, account_type: AccountType::ApiKey };

/// A key that the provider can be asked about.
fn passing(letter: &str) -> SecretString {
    format!("bce-v3/ALTAK-{}/{}", letter.repeat(21), "0a".repeat(20)).into()
}

/// A pair that it can't.
fn uncheckable(letter: &str) -> SecretString {
    format!("{}:{}", letter.repeat(24), letter.repeat(40)).into()
}

struct Mounted {
    market: Market,
    _provider: Provider,
    id: i64,
}

impl Mounted {
    async fn with(secret: SecretString) -> Self {
        let provider = Provider::answering(200).await;
        let market = market_of(Policy::default(), provider.settings()).await;
        let create = Create { kind: KIND, secret, alias: None, min_quota_threshold: None, risk_ack: true };
        let told = market.run("key-0000000000001", create).await;
        assert_eq!(told.code, 201, "{told:?}");
        let id = told.body["data"]["account_id"].as_i64().unwrap();
        Self { market, _provider: provider, id }
    }

    async fn rotate(&self, key: &str, secret: SecretString) -> Told {
        let store = self.market.door.store();
        let target = view::kind_of(store, SUPPLIER_TENANT, self.id).await.unwrap();
        self.market.run(key, Rotate { account_id: self.id, target, secret }).await
    }

    async fn activate(&self, key: &str) -> Told {
        self.market.run(key, Activate { account_id: self.id }).await
    }

    fn admin(&self, key: &str) -> Caller {
        Caller { capacity: Capacity::Admin, role: "admin", ..self.market.caller(SUPPLIER_TENANT, ADMIN, key) }
    }

    async fn review(&self, key: &str, verdict: Verdict) -> Told {
        let review = Review { account_id: self.id, verdict, reason: "looked at".into() };
        self.market.run_as(self.admin(key), review).await
    }

    async fn disable(&self, key: &str, credential: Credential) -> Told {
        let disable = Disable { account_id: self.id, reason: "it leaked".into(), credential };
        self.market.run_as(self.admin(key), disable).await
    }

    async fn seen(&self) -> Json {
        let found = view::get(self.market.door.store(), SUPPLIER_TENANT, self.id).await.unwrap().unwrap();
        let all = serde_json::to_value(found).unwrap();
        let names = [
            "status",
            "is_verified",
            "tos_compliant",
            "risk_level",
            "risk_score",
            "available_quota",
            "total_quota",
        ];
        names.iter().map(|name| all[*name].clone()).collect()
    }
}

/// What mounting says of such a key.
const PASSED: (bool, &str, i64, i64) = (true, "normal", 20, 10_000_000);
const UNCHECKED: (bool, &str, i64, i64) = (false, "normal", 45, 0);

fn is(status: &str, (verified, level, score, quota): (bool, &str, i64, i64)) -> Json {
    json!([status, verified, true, level, score, quota, quota])
}

#[tokio::test]
async fn an_active_account_takes_no_credential_that_could_not_be_activated() {
    let mounted = Mounted::with(passing("a")).await;
    assert_eq!(mounted.activate("key-0000000000002").await.code, 200);
    let told = mounted.rotate("key-0000000000003", uncheckable("b")).await;
    assert_eq!((told.code, told.error()), (409, "SUP_ACC_4096"), "{told:?}");
    assert_eq!(told.body["error"]["details"]["unmet"], json!(["verified"]));
    assert_eq!(mounted.seen().await, is("active", PASSED));
    assert_eq!(mounted.rotate("key-0000000000004", passing("c")).await.code, 200);
    assert_eq!(mounted.seen().await, is("active", PASSED));
}

#[tokio::test]
async fn a_rotation_leaves_what_mounting_the_credential_would() {
    let mounted = Mounted::with(passing("a")).await;
    assert_eq!(mounted.rotate("key-0000000000002", uncheckable("b")).await.code, 200);
    assert_eq!(mounted.seen().await, is("pending", UNCHECKED));
    let refused = mounted.activate("key-0000000000003").await;
    assert_eq!((refused.code, refused.error()), (409, "SUP_ACC_4096"));
    assert_eq!(mounted.rotate("key-0000000000004", passing("c")).await.code, 200);
    assert_eq!(mounted.seen().await, is("pending", PASSED));
    assert_eq!(mounted.activate("key-0000000000005").await.code, 200);
}

#[tokio::test]
async fn what_packages_hold_stays_theirs_when_the_credential_is_another() {
    let mounted = Mounted::with(passing("a")).await;
    let sql = "update supply_accounts set available_quota = $1, frozen_quota = $2 where id = $3";
    let row = [3_000_000_000_000, 5_000_000_000_000].map(store::Value::Money);
    let row = [row.to_vec(), values![mounted.id]].concat();
    mounted.market.force(vec![store::Write::one("held", sql, row)]).await;
    assert_eq!(mounted.rotate("key-0000000000002", passing("b")).await.code, 200);
    let seen = mounted.seen().await;
    assert_eq!((&seen[5], &seen[6]), (&json!(5_000_000), &json!(12_000_000)), "2,000,000 were consumed");
    assert_eq!(mounted.rotate("key-0000000000003", uncheckable("c")).await.code, 200);
    let seen = mounted.seen().await;
    assert_eq!((&seen[5], &seen[6]), (&json!(0), &json!(7_000_000)));
}

#[tokio::test]
async fn what_a_person_accepted_is_activated_until_its_credential_is_another() {
    let mounted = Mounted::with(uncheckable("a")).await;
    assert_eq!(mounted.seen().await, is("pending", UNCHECKED));
    assert_eq!(mounted.activate("key-0000000000002").await.error(), "SUP_ACC_4096");
    let half = mounted.review("key-0000000000003", Verdict::Accept { quota: Some(1) }).await;
    assert_eq!((half.code, half.error()), (400, "SUP_COM_4001"), "a token is whole");
    let accept = || Verdict::Accept { quota: Some(700_000_000) };
    let told = mounted.review("key-0000000000004", accept()).await;
    assert_eq!((told.code, &told.body["data"]["status"]), (200, &"pending".into()), "{told:?}");
    assert_eq!(mounted.seen().await, is("pending", (true, "normal", 45, 700)));
    let twice = mounted.review("key-0000000000005", accept()).await;
    assert_eq!((twice.code, twice.error()), (409, "SUP_ACC_4091"));
    assert_eq!(mounted.activate("key-0000000000006").await.code, 200);
    let active = mounted.review("key-0000000000007", Verdict::Reject).await;
    assert_eq!((active.code, active.error()), (409, "SUP_ACC_4091"));
    assert_eq!(mounted.market.run("key-0000000000008", Suspend { account_id: mounted.id }).await.code, 200);
    assert_eq!(mounted.rotate("key-0000000000009", uncheckable("b")).await.code, 200);
    assert_eq!(mounted.activate("key-0000000000010").await.error(), "SUP_ACC_4096");
    assert_eq!(mounted.market.audited("supply.account.review", "OK").await, 1);
    assert_eq!(mounted.market.announced("supply.account.review.succeeded").await, 1);
}

#[tokio::test]
async fn what_a_person_rejected_is_disabled_with_its_credential() {
    let mounted = Mounted::with(uncheckable("a")).await;
    let told = mounted.review("key-0000000000002", Verdict::Reject).await;
    assert_eq!((told.code, &told.body["data"]["status"]), (200, &"disabled".into()), "{told:?}");
    assert_eq!(mounted.activate("key-0000000000003").await.error(), "SUP_ACC_4031");
    // That it got out may be known only later.
    assert_eq!(mounted.disable("key-0000000000005", Credential::Kept).await.error(), "SUP_ACC_4091");
    assert_eq!(mounted.disable("key-0000000000006", Credential::Compromised).await.code, 200);
    assert_eq!(mounted.disable("key-0000000000007", Credential::Compromised).await.error(), "SUP_ACC_4091");
    let emptied =
        "select count(*) from supply_accounts where encrypted_credentials = '' and status = 'disabled'";
    assert_eq!(mounted.market.count(emptied, vec![]).await, 1);
    let secret = uncheckable("a");
    let create = Create { kind: KIND, secret, alias: None, min_quota_threshold: None, risk_ack: true };
    assert_eq!(mounted.market.run("key-0000000000004", create).await.error(), "SUP_ACC_4094");
}

#[tokio::test]
async fn of_a_credential_that_got_out_nothing_is_left_to_open_or_restore() {
    for (credential, revoked, restored) in [(Credential::Kept, 0, 200), (Credential::Compromised, 1, 409)] {
        let mounted = Mounted::with(passing("a")).await;
        let market = &mounted.market;
        assert_eq!(mounted.activate("key-0000000000002").await.code, 200);
        assert_eq!(mounted.disable("key-0000000000003", credential).await.code, 200);
        let sql = "select count(*) from supply_accounts where encrypted_credentials = ''";
        assert_eq!(market.count(sql, vec![]).await, revoked);
        assert_eq!(market.audited("CRED-REVOKE", "OK").await, revoked);
        assert_eq!(market.audited("supply.account.disable", "OK").await, 1);
        let activate = Activate { account_id: mounted.id };
        let told = market.run_as(mounted.admin("key-0000000000004"), activate).await;
        assert_eq!(told.code, restored, "{told:?}");
        if credential == Credential::Compromised {
            assert_eq!(told.error(), "SUP_ACC_4096");
            assert_eq!(market.run("key-0000000000005", Delete { account_id: mounted.id }).await.code, 204);
            let secret = passing("a");
            let create =
                Create { kind: KIND, secret, alias: None, min_quota_threshold: None, risk_ack: true };
            assert_eq!(market.run("key-0000000000006", create).await.error(), "SUP_ACC_4094");
        }
    }
}
