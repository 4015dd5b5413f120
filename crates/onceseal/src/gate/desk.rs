//! One supplier's desk in a check: the five writes, ready to be sent; what the tables say at one moment. Not here: what
//! must come of them.

use play::{Answer, Call, Client, Supplier};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::check::Check;
use super::stage::Stage;

/// Mounting.
pub const ACCOUNTS: &str = "/api/v1/supply/accounts";
/// Batch price.
pub const BATCH: &str = "/api/v1/supply/packages/batch-price";
/// Withdrawing.
pub const WITHDRAW: &str = "/api/v1/supply/settlements/withdraw";

/// What a business row stands in; those with a version.
const VERSIONED: [&str; 5] =
    ["supply_accounts", "supply_packages", "supply_earnings", "supply_settlements", "billing_accounts"];
const COUNTED: [&str; 6] = [
    "supply_settlement_items",
    "supply_batch_items",
    "billing_journals",
    "billing_ledger_entries",
    "outbox",
    "outbox_deliveries",
];
/// Rows of the audit that a caller causes: servers keep their own counts there, too.
const AUDITED: &str = "select count(*) from audit_events where operator_type <> 'system'";

/// A supplier's desk.
pub struct Desk<'s> {
    /// Where.
    pub stage: &'s Stage,
    /// Whose.
    pub owner: Supplier,
}

/// What the tables say, a line a fact; idempotency records are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen(Vec<String>);

/// What a critical write is sent to, and its body.
#[derive(Clone, Debug)]
pub struct Write {
    /// Its path.
    pub path: String,
    /// Its body; null for none.
    pub body: Json,
}

impl Write {
    /// With another value at this place of the body (RFC 6901).
    #[must_use]
    pub fn with(mut self, pointer: &str, value: impl Into<Json>) -> Self {
        if let Some(place) = self.body.pointer_mut(pointer) {
            *place = value.into();
        }
        self
    }
}

impl Seen {
    /// Without the lines that begin so.
    #[must_use]
    pub fn without(self, start: &str) -> Self {
        Self(self.0.into_iter().filter(|line| !line.starts_with(start)).collect())
    }

    /// Nothing must have changed since.
    pub fn unchanged(&self, check: &mut Check, what: &str, now: &Self) {
        let changed = |from: &Self, to: &Self| -> Vec<String> {
            from.0.iter().filter(|line| !to.0.contains(line)).cloned().collect()
        };
        let nothing: (Vec<String>, Vec<String>) = Default::default();
        check.equal(what, &nothing, &(changed(self, now), changed(now, self)));
    }
}

/// A package's path.
#[must_use]
pub fn moving(package: i64, verb: &str) -> String {
    format!("/api/v1/supply/packages/{package}/{verb}")
}

/// A settlement's cancellation.
#[must_use]
pub fn cancelling(settlement: i64) -> String {
    format!("/api/v1/supply/settlements/{settlement}/cancel")
}

/// An item of a batch.
#[must_use]
pub fn prices(package: i64, input: &str, output: &str) -> Json {
    json!({ "package_id": package, "price_per_1m_input": input, "price_per_1m_output": output })
}

/// A withdrawal's body.
#[must_use]
pub fn asks(amount: &str, code: &str) -> Json {
    json!({ "withdraw_amount": amount, "payment_method": "alipay", "payment_account": "13800000000",
        "sms_code": code })
}

/// Status and `error.code`.
#[must_use]
pub fn code(answer: &Answer) -> (u16, String) {
    (answer.code(), answer.error())
}

/// As [`code`] gives it.
#[must_use]
pub fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn id(made: &Json, name: &str) -> Result<i64, String> {
    made.get(name).and_then(Json::as_i64).ok_or_else(|| format!("no {name} in {made}"))
}

impl Stage {
    /// A desk of a supplier who has nothing.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn desk(&self) -> Result<Desk<'_>, String> {
        Ok(Desk { stage: self, owner: self.supplier().await? })
    }

    /// A desk of a supplier who has earned.
    ///
    /// # Errors
    /// All were taken.
    pub fn funded(&self) -> Result<Desk<'_>, String> {
        Ok(Desk { stage: self, owner: self.earner()? })
    }

    /// What the tables say.
    ///
    /// # Errors
    /// They can't be read.
    pub async fn seen(&self) -> Result<Seen, String> {
        let mut seen = Vec::new();
        for table in VERSIONED {
            let sql = format!("select cast(id as text) || ' version ' || cast(version as text) from {table}");
            seen.extend(self.database.texts(&sql).await?.into_iter().map(|row| format!("{table} {row}")));
        }
        for table in COUNTED {
            let rows = self.database.count(&format!("select count(*) from {table}")).await?;
            seen.push(format!("{table}: {rows} rows"));
        }
        seen.push(format!("audit_events: {} rows", self.database.count(AUDITED).await?));
        let more = [
            (
                "balance",
                "select cast(id as text) || ' ' || coalesce(cast(balance as text), '') from billing_accounts",
            ),
            ("settlement", "select cast(id as text) || ' ' || status from supply_settlements"),
            (
                "package",
                "select cast(id as text) || ' ' || status || ' ' || cast(available_quota as text) from supply_packages",
            ),
            (
                "account",
                "select cast(id as text) || ' ' || status || ' ' || cast(available_quota as text) from supply_accounts",
            ),
            (
                "earning",
                "select cast(id as text) || ' ' || cast(available_amount as text) || ' ' || cast(frozen_amount as text) from supply_earnings",
            ),
            ("unused code", "select cast(id as text) from supply_sms_codes where consumed_at is null"),
        ];
        for (what, sql) in more {
            seen.extend(self.database.texts(sql).await?.into_iter().map(|row| format!("{what} {row}")));
        }
        Ok(Seen(seen))
    }

    /// What the tables say but for the audit.
    ///
    /// # Errors
    /// They can't be read.
    pub async fn business(&self) -> Result<Seen, String> {
        Ok(self.seen().await?.without("audit_events"))
    }

    /// Rows of the audit of this event with this code.
    ///
    /// # Errors
    /// They can't be counted.
    pub async fn audited(&self, event: &str, code: &str) -> Result<i64, String> {
        let sql = format!(
            "select count(*) from audit_events where event_name = '{event}' and result_code = '{code}'"
        );
        self.database.count(&sql).await
    }
}

impl Desk<'_> {
    /// A key that no call had before.
    pub fn key(&self) -> String {
        self.stage.market.client.key()
    }

    /// A call by the owner.
    #[must_use]
    pub fn call(&self, write: &Write, key: &str) -> Call {
        Call::post(write.path.clone(), &self.owner.token, key, write.body.clone())
    }

    /// A write under this key.
    ///
    /// # Errors
    /// No whole answer came.
    pub async fn post(&self, check: &mut Check, write: &Write, key: &str) -> Result<Answer, String> {
        self.stage.send(check, &self.call(write, key)).await
    }

    /// As [`Desk::post`], at a client of another server; noted by the caller.
    ///
    /// # Errors
    /// No whole answer came.
    pub async fn at(&self, client: &Client, write: &Write, key: &str) -> Result<Answer, String> {
        client.send(&self.call(write, key)).await
    }

    /// A write under a key of its own.
    ///
    /// # Errors
    /// No whole answer came.
    pub async fn ask(&self, check: &mut Check, write: &Write) -> Result<Answer, String> {
        self.post(check, write, &self.key()).await
    }

    /// A call by another method or token, under a key of its own.
    ///
    /// # Errors
    /// No whole answer came.
    pub async fn by(
        &self,
        check: &mut Check,
        method: Method,
        path: &str,
        token: &str,
    ) -> Result<Answer, String> {
        let call = Call::write((method, path.to_owned()), token, &self.key(), Json::Null);
        self.stage.send(check, &call).await
    }

    /// A write that must succeed; its `data`.
    ///
    /// # Errors
    /// No answer, or another.
    pub async fn done(&self, path: &str, body: Json) -> Result<Json, String> {
        self.stage.market.client.make(path, &self.owner.token, body).await
    }

    /// Mounting a credential that nobody has.
    #[must_use]
    pub fn mounting(&self) -> Write {
        self.mounting_of(&self.stage.credential())
    }

    /// Mounting this credential.
    #[must_use]
    pub fn mounting_of(&self, credential: &str) -> Write {
        let body = json!({ "provider": "openai", "account_type": "api_key", "credential_input": credential,
            "risk_ack": true });
        Write { path: ACCOUNTS.into(), body }
    }

    /// An active account.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn account(&self) -> Result<i64, String> {
        self.stage.market.account(&self.owner, &self.stage.credential()).await
    }

    /// A draft at these prices.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn draft_at(
        &self,
        account: i64,
        (input, output): (&str, &str),
        days: u32,
    ) -> Result<i64, String> {
        let body = json!({ "supply_account_id": account, "model": play::market::MODEL, "total_quota": 1000,
            "price_per_1m_input": input, "price_per_1m_output": output, "valid_days": days });
        id(&self.done("/api/v1/supply/packages/draft", body).await?, "package_id")
    }

    /// A draft at the protected prices.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn draft(&self, account: i64) -> Result<i64, String> {
        self.draft_at(account, ("8", "32"), 30).await
    }

    /// An active package.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn active(&self, account: i64) -> Result<i64, String> {
        let package = self.draft(account).await?;
        self.done(&moving(package, "publish"), Json::Null).await?;
        Ok(package)
    }

    /// Publishing it.
    #[must_use]
    pub fn publishing(&self, package: i64) -> Write {
        Write { path: moving(package, "publish"), body: Json::Null }
    }

    /// Changing the prices of one package.
    #[must_use]
    pub fn pricing(&self, package: i64, input: &str, output: &str) -> Write {
        Write { path: BATCH.into(), body: json!({ "items": [prices(package, input, output)] }) }
    }

    /// A code, as the person at the phone reads it.
    ///
    /// # Errors
    /// None came.
    pub async fn code(&self) -> Result<String, String> {
        let before = self.stage.phone.count(&self.owner.phone);
        self.done("/api/v1/supply/settlements/withdraw/sms-code", Json::Null).await?;
        self.stage.phone.code(&self.owner.phone, before).await
    }

    /// Withdrawing this amount, with a code that just came.
    ///
    /// # Errors
    /// No code came.
    pub async fn withdrawing(&self, amount: &str) -> Result<Write, String> {
        Ok(Write { path: WITHDRAW.into(), body: asks(amount, &self.code().await?) })
    }

    /// A pending settlement.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn settlement(&self, amount: &str) -> Result<i64, String> {
        let write = self.withdrawing(amount).await?;
        id(&self.done(WITHDRAW, write.body).await?, "settlement_id")
    }

    /// Cancelling it.
    #[must_use]
    pub fn cancelling(&self, settlement: i64) -> Write {
        Write { path: cancelling(settlement), body: Json::Null }
    }

    /// One of the five, ready to succeed.
    ///
    /// # Errors
    /// What it needs can't be made.
    pub async fn ready(&self, write: &str) -> Result<Write, String> {
        Ok(match write {
            "mount" => self.mounting(),
            "publish" => {
                let account = self.account().await?;
                self.publishing(self.draft(account).await?)
            }
            "batch_price" => {
                let account = self.account().await?;
                self.pricing(self.active(account).await?, "9", "33")
            }
            "withdraw" => self.withdrawing("50").await?,
            "cancel" => self.cancelling(self.settlement("50").await?),
            other => return Err(format!("{other} is none of the five writes")),
        })
    }

    /// One of the five, ready to be refused by a rule, and the code that it is refused with.
    ///
    /// # Errors
    /// What it needs can't be made.
    pub async fn refused(&self, write: &str) -> Result<(Write, u16, &'static str), String> {
        Ok(match write {
            "mount" => {
                let credential = self.stage.credential();
                self.stage.market.account(&self.owner, &credential).await?;
                (self.mounting_of(&credential), 409, "SUP_ACC_4094")
            }
            "publish" => {
                let account = self.account().await?;
                (self.publishing(self.active(account).await?), 409, "SUP_PKG_4091")
            }
            // A receipt is a success, whatever it says.
            "batch_price" => {
                let account = self.account().await?;
                (self.pricing(self.active(account).await?, "1", "33"), 200, "")
            }
            "withdraw" => (self.withdrawing("40000").await?, 400, "SUP_SET_4001"),
            "cancel" => {
                let settlement = self.settlement("50").await?;
                self.done(&cancelling(settlement), Json::Null).await?;
                (self.cancelling(settlement), 409, "SUP_SET_4094")
            }
            other => return Err(format!("{other} is none of the five writes")),
        })
    }

    /// Another payload of the same call, where its form has room for one.
    #[must_use]
    pub fn another(&self, write: &Write) -> Option<Write> {
        match write.path.as_str() {
            ACCOUNTS => Some(write.clone().with("/credential_input", self.stage.credential())),
            BATCH => Some(write.clone().with("/items/0/price_per_1m_input", "10")),
            WITHDRAW => Some(write.clone().with("/withdraw_amount", "51")),
            _ => None,
        }
    }
}
