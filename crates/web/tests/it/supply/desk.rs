//! A supplier with money and packages, what the tables say at one moment, and faults that are put into them.

use std::time::Duration;

use axum::http::Method;
use kernel::money::{Currency, Money};
use ledger::ids::Supplier;
use ledger::posting::Beneficiary;
use onceseal_http::Profile;
use serde_json::{Value as Json, json};
use supply::Policy;
use supply::earnings::Compensate;

use super::api::Api;
use crate::house::Got;

pub(crate) const SCOPES: [&str; 7] = [
    "supply:account:read",
    "supply:account:write",
    "supply:package:read",
    "supply:package:write",
    "supply:package:publish",
    "supply:package:offline",
    "supply:settlement:withdraw",
];
pub(crate) const ACCOUNTS: &str = "/api/v1/supply/accounts";
pub(crate) const BATCH: &str = "/api/v1/supply/packages/batch-price";
pub(crate) const WITHDRAW: &str = "/api/v1/supply/settlements/withdraw";

/// What a business row stands in; those with a version come first.
const VERSIONED: [&str; 5] =
    ["supply_accounts", "supply_packages", "supply_earnings", "supply_settlements", "billing_accounts"];
const COUNTED: [&str; 7] = [
    "supply_settlement_items",
    "supply_batch_items",
    "billing_journals",
    "billing_ledger_entries",
    "outbox",
    "outbox_deliveries",
    "audit_events",
];

pub(crate) struct Desk {
    pub(crate) api: Api,
    pub(crate) tenant: i64,
    pub(crate) operator: i64,
    pub(crate) user: i64,
    pub(crate) token: String,
}

/// What the tables say, but for idempotency records.
pub(crate) type Seen = Vec<String>;

pub(crate) fn mount(letter: &str) -> String {
    let secret = testkit::canary::credential(letter);
    json!({ "provider": "openai", "account_type": "api_key", "credential_input": secret, "risk_ack": true })
        .to_string()
}

pub(crate) fn code(got: &Got) -> (u16, String) {
    (got.status, got.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

pub(crate) fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

impl Desk {
    pub(crate) async fn new() -> Self {
        Self::in_profile(Profile::Seed).await
    }

    pub(crate) async fn in_profile(profile: Profile) -> Self {
        let policy = Policy {
            withdraw_enabled: true,
            earnings_hold: Duration::ZERO,
            withdraw_review: Duration::ZERO,
            withdraw_cooldown: Duration::ZERO,
            sms_pause: Duration::ZERO,
            sms_per_day: 1000,
            ..Policy::default()
        };
        let api = Api::in_profile(policy, profile).await;
        let body = json!({ "code": "one", "name": "one", "supplier_type": "company", "operator": "first",
            "phone": "+8613800000000" });
        let made = api.admin("/api/v1/platform/suppliers", &body.to_string()).await;
        let id = |name: &str| made[name].as_i64().expect(name);
        let (tenant, operator, user) = (id("tenant_id"), id("operator_id"), id("user_id"));
        let token = api.token((tenant, operator), &SCOPES).await;
        let floors = json!({ "provider": "openai", "model": "gpt-x", "floor_input": 8, "floor_output": 32 });
        let put = (Method::PUT, "/api/v1/platform/price-protection");
        let put = api.write(put, api.admin_token(), &api.key(), &floors.to_string()).await;
        assert_eq!(put.status, 200, "{}", put.text());
        Self { api, tenant, operator, user, token }
    }

    /// With so much to withdraw.
    pub(crate) async fn funded(major: i64) -> Self {
        let desk = Self::new().await;
        desk.fund(major).await;
        desk
    }

    pub(crate) async fn fund(&self, major: i64) {
        let to = Beneficiary::Supplier(Supplier(self.user));
        let amount = Money::from_count(major * 100 * 1_000_000, Currency::CNY);
        self.api.run(self.tenant, Compensate { to, amount, description: "an outage".into() }).await;
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &str) -> Got {
        self.api.write((Method::POST, path), &self.token, key, body).await
    }

    /// Under a key of its own.
    pub(crate) async fn ask(&self, path: &str, body: &str) -> Got {
        self.post(path, &self.api.key(), body).await
    }

    pub(crate) async fn done(&self, path: &str, body: &str) -> Json {
        self.api.done(path, &self.token, body).await
    }

    /// An active account.
    pub(crate) async fn account(&self, letter: &str) -> i64 {
        let account = self.done(ACCOUNTS, &mount(letter)).await["account_id"].as_i64().expect("an account");
        self.done(&format!("{ACCOUNTS}/{account}/activate"), "").await;
        account
    }

    /// A draft at these prices.
    pub(crate) async fn draft(&self, account: i64, (input, output): (&str, &str), days: u32) -> i64 {
        let body = json!({ "supply_account_id": account, "model": "gpt-x", "total_quota": 1000,
            "price_per_1m_input": input, "price_per_1m_output": output, "valid_days": days });
        self.done("/api/v1/supply/packages/draft", &body.to_string()).await["package_id"]
            .as_i64()
            .expect("a package")
    }

    pub(crate) async fn active(&self, account: i64) -> i64 {
        let package = self.draft(account, ("8", "32"), 30).await;
        self.done(&moving(package, "publish"), "").await;
        package
    }

    /// A withdrawal's body, with a code that was just sent.
    pub(crate) async fn asks(&self, amount: &str) -> String {
        self.done("/api/v1/supply/settlements/withdraw/sms-code", "").await;
        asks(amount, &self.api.sms_code().await)
    }

    /// A pending settlement.
    pub(crate) async fn settlement(&self, amount: &str) -> i64 {
        let body = self.asks(amount).await;
        self.done(WITHDRAW, &body).await["settlement_id"].as_i64().expect("a settlement")
    }

    pub(crate) async fn seen(&self) -> Seen {
        let mut seen = Vec::new();
        for table in VERSIONED {
            let sql =
                format!("select cast(id as text) || ' ' || cast(version as text) from {table} order by id");
            seen.push(format!("{table} {:?}", self.api.texts(&sql).await));
        }
        for table in COUNTED {
            seen.push(format!("{table} {}", self.api.count(&format!("select count(*) from {table}")).await));
        }
        let balances = "select cast(id as text) || ' ' || coalesce(cast(balance as text), '') from billing_accounts order by id";
        seen.extend(self.api.texts(balances).await);
        let states = "select cast(id as text) || status from supply_settlements union all
            select cast(id as text) || status from supply_packages union all
            select cast(id as text) || status from supply_accounts order by 1";
        seen.extend(self.api.texts(states).await);
        let codes = "select cast(id as text) from supply_sms_codes where consumed_at is null order by id";
        seen.extend(self.api.texts(codes).await);
        seen
    }

    /// What the tables say but for the audit.
    pub(crate) async fn business(&self) -> Seen {
        self.seen().await.into_iter().filter(|line| !line.starts_with("audit_events")).collect()
    }

    /// From now on a row that is put into this table raises, in the middle of its transaction.
    pub(crate) async fn breaks(&self, (verb, table): (&str, &str)) {
        if self.api.on_postgres() {
            self.function("raise exception ''injected''").await;
            self.trigger(verb, table).await;
        } else {
            // An error of the statement, not of a value: the smallest integer has no absolute one.
            let body = "select abs(-9223372036854775807 - 1)";
            self.api.force(&format!("create trigger fault before {verb} on {table} begin {body}; end")).await;
        }
    }

    /// From now on each row for this table breaks a check.
    pub(crate) async fn rejects(&self, (verb, table): (&str, &str)) {
        if self.api.on_postgres() {
            self.function("raise exception ''injected'' using errcode = ''check_violation''").await;
            self.trigger(verb, table).await;
        } else {
            let body = "select raise(abort, 'injected')";
            self.api.force(&format!("create trigger fault before {verb} on {table} begin {body}; end")).await;
        }
    }

    /// From now on each row of this table looks as if another writer had been faster: no change hits it.
    pub(crate) async fn outruns(&self, (verb, table): (&str, &str)) {
        if self.api.on_postgres() {
            self.function("return null").await;
            self.trigger(verb, table).await;
        } else {
            let body = "select raise(ignore)";
            self.api.force(&format!("create trigger fault before {verb} on {table} begin {body}; end")).await;
        }
    }

    /// PostgreSQL: the statement goes on for longer than the server lets it.
    pub(crate) async fn hangs(&self, (verb, table): (&str, &str)) {
        self.function("perform pg_sleep(60); return new").await;
        self.trigger(verb, table).await;
    }

    async fn function(&self, body: &str) {
        let sql = "create or replace function fault() returns trigger language plpgsql as";
        self.api.force(&format!("{sql} 'begin {body}; end'")).await;
    }

    async fn trigger(&self, verb: &str, table: &str) {
        let sql =
            format!("create trigger fault before {verb} on {table} for each row execute function fault()");
        self.api.force(&sql).await;
    }

    pub(crate) async fn heals(&self, (_, table): (&str, &str)) {
        let of = if self.api.on_postgres() { format!(" on {table}") } else { String::new() };
        self.api.force(&format!("drop trigger fault{of}")).await;
    }

    /// Nothing that counts twice, nothing without its audit and its event.
    pub(crate) async fn sound(&self) {
        let zero = [
            "select count(*) from (select journal_id from billing_ledger_entries group by journal_id
               having sum(case direction when 'dr' then amount else -amount end) <> 0) x",
            "select count(*) from (select object_type, object_id, aggregate_version from outbox
               where event_name <> 'supply.alert.raise.succeeded'
                 and object_type in ('supply_account', 'supply_package', 'supply_settlement')
               group by object_type, object_id, aggregate_version having count(*) > 1) x",
            "select count(*) from supply_packages p where p.version + 1 <> (select count(*) from outbox o
               where o.object_type = 'supply_package' and o.object_id = cast(p.id as text)
               and o.event_name <> 'supply.alert.raise.succeeded')",
            "select count(*) from supply_settlements s where s.version + 1 <> (select count(*) from outbox o
               where o.object_type = 'supply_settlement' and o.object_id = cast(s.id as text)
               and o.event_name <> 'supply.alert.raise.succeeded')",
            "select count(*) from billing_accounts where balance < 0",
        ];
        for sql in zero {
            assert_eq!(self.api.count(sql).await, 0, "{sql}");
        }
        let done = "select count(*) from supply_idempotency_record where status = 'succeeded'";
        let told = "select count(distinct idempotency_key) from audit_events where result_code = 'OK'
            and idempotency_key like 'key-%' and event_name not like 'idempotency.%'";
        assert_eq!(self.api.count(done).await, self.api.count(told).await, "successes and their audit");
    }

    /// Audit rows of an event with a code.
    pub(crate) async fn audited(&self, event: &str, code: &str) -> i64 {
        let sql = format!(
            "select count(*) from audit_events where event_name = '{event}' and result_code = '{code}'"
        );
        self.api.count(&sql).await
    }
}

pub(crate) fn asks(amount: &str, code: &str) -> String {
    json!({ "withdraw_amount": amount, "payment_method": "alipay", "payment_account": "13800000000", "sms_code": code })
        .to_string()
}

/// A package's path.
pub(crate) fn moving(package: i64, verb: &str) -> String {
    format!("/api/v1/supply/packages/{package}/{verb}")
}

/// A settlement's cancellation.
pub(crate) fn cancelling(settlement: i64) -> String {
    format!("/api/v1/supply/settlements/{settlement}/cancel")
}

pub(crate) fn prices(package: i64, input: &str, output: &str) -> Json {
    json!({ "package_id": package, "price_per_1m_input": input, "price_per_1m_output": output })
}
