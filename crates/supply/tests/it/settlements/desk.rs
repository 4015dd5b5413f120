//! The desk at which the supplier's operator asks for money: codes, withdrawals, the platform's answers.

use std::time::Duration;

use secrecy::ExposeSecret;
use store::{Query, Value, values};
use supply::settlements::step::Step;
use supply::settlements::{SendCode, Withdraw};
use supply::{Caller, Capacity, Policy};

use crate::market::{ADMIN, Market, SUPPLIER_TENANT, Told, market_with};

pub(super) const PHONE: &str = "13800000000";

/// No pauses: for tests of what follows.
pub(super) fn swift() -> Policy {
    Policy {
        withdraw_enabled: true,
        withdraw_cooldown: Duration::ZERO,
        withdraw_review: Duration::ZERO,
        sms_pause: Duration::ZERO,
        sms_per_day: 1_000_000,
        ..Policy::default()
    }
}

/// A market without pauses, whose supplier may withdraw this much.
pub(super) async fn funded(major: i64) -> Market {
    let market = market_with(swift()).await;
    market.fund(1, major).await;
    market
}

/// A withdrawal to a telephone number.
pub(super) fn asks(amount: &str, code: &str) -> Withdraw {
    Withdraw { amount: amount.into(), method: "alipay".into(), account: PHONE.into(), code: code.into() }
}

impl Market {
    /// The newest code, as the telephone shows it.
    pub(super) async fn newest_code(&self) -> String {
        let sql =
            "select code_ref, key_version from supply_sms_codes order by created_at desc, id desc limit 1";
        let rows = self.door.store().query(Query::new("code", sql, vec![])).await.unwrap();
        let version = u32::try_from(rows[0].int(1).unwrap()).unwrap();
        let codes = self.house.keys.sms.as_ref().unwrap();
        codes.code(version, rows[0].text(0).unwrap()).unwrap().expose_secret().to_owned()
    }

    pub(super) async fn code(&self) -> String {
        let sent = self.run("", SendCode).await;
        assert_eq!(sent.code, 200, "{sent:?}");
        self.newest_code().await
    }

    /// Asks for an amount with a new code.
    pub(super) async fn withdraw(&self, key: &str, amount: &str) -> Told {
        let code = self.code().await;
        self.run(key, asks(amount, &code)).await
    }

    /// The id of a withdrawal that was granted.
    pub(super) async fn granted(&self, key: &str, amount: &str) -> i64 {
        let told = self.withdraw(key, amount).await;
        assert_eq!(told.code, 201, "{told:?}");
        told.body["data"]["settlement_id"].as_i64().unwrap()
    }

    pub(super) fn admin(&self, key: &str) -> Caller {
        let caller = self.caller(SUPPLIER_TENANT, ADMIN, key);
        Caller { capacity: Capacity::Admin, role: "admin", ..caller }
    }

    /// A step of the platform's, without a key.
    pub(super) async fn step<S: Step>(&self, step: S) -> Told {
        self.run_as(self.admin(""), step).await
    }

    /// Status and version of a settlement.
    pub(super) async fn settlement(&self, id: i64) -> (String, i64) {
        let sql = "select status, version from supply_settlements where id = $1";
        let rows = self.door.store().query(Query::new("settlement", sql, values![id])).await.unwrap();
        (rows[0].text(0).unwrap().to_owned(), rows[0].int(1).unwrap())
    }

    /// Available, frozen, owed; in minor units.
    pub(super) async fn purse(&self) -> [String; 3] {
        [
            self.balance("supplier_available").await,
            self.balance("supplier_frozen").await,
            self.balance("supplier_receivable").await,
        ]
    }

    /// Nothing is off, by section 11.5.
    pub(super) async fn reconciled(&self) {
        assert_eq!(supply::settlements::reconcile(self.door.store()).await.unwrap(), []);
    }

    pub(super) async fn rows(&self, table: &str) -> i64 {
        self.count(&format!("select count(*) from {table}"), Vec::<Value>::new()).await
    }
}

pub(super) fn purse(available: &str, frozen: &str) -> [String; 3] {
    [available.into(), frozen.into(), "0".into()]
}
