//! A small market on a real store: a platform, a supplier with an operator, a buyer, floors, money. All ids differ
//! (section 3.1), so that taking one for the other is seen.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use custody::provider::Settings;
use custody::provider::policy::Policy as Verdicts;
use custody::sms::SmsCodes;
use custody::{Custody, Fingerprints, LocalKeyring, Material, Verifier};
use door::{Answer, Door, Submission};
use guard::{Guard, Scanner};
use kernel::money::{Currency, Money, Quota, QuotaUnit};
use kernel::{Clock, Digest, Time};
use ledger::ids::{Earning, Supplier};
use ledger::{Account, posting};
use serde_json::{Value as Json, json};
use store::migration::{CORE, SUPPLY};
use store::{Query, Store, Value, Write, values};
use supply::books::{self, Books};
use supply::record::{self, Payload};
use supply::{Action, Caller, Capacity, Commanded, Context, House, Keys, Policy};
use testkit::canary::Folder;
use testkit::{CountingRandom, MovableClock};

/// Tenants: the platform is 1, then these.
pub(crate) const SUPPLIER_TENANT: i64 = 12;
pub(crate) const BUYER_TENANT: i64 = 13;
pub(crate) const OTHER_TENANT: i64 = 14;
/// Users: the system is 1, then these.
pub(crate) const SUPPLIER: i64 = 21;
pub(crate) const OPERATOR: i64 = 22;
pub(crate) const BUYER: i64 = 23;
pub(crate) const OTHER_SUPPLIER: i64 = 24;
pub(crate) const ADMIN: i64 = 25;

const PATIENT: Duration = Duration::from_secs(20);

pub(crate) struct Market {
    pub(crate) door: Door,
    /// Knows nothing of the first one's locks, as another node's.
    pub(crate) other: Door,
    pub(crate) house: Arc<House>,
    pub(crate) clock: Arc<MovableClock>,
    folder: Folder,
}

/// What a call is told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: u16,
    pub(crate) body: Json,
    pub(crate) replayed: bool,
    pub(crate) same: bool,
}

impl Told {
    /// Code of the error, if it is one.
    pub(crate) fn error(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

pub(crate) async fn market() -> Market {
    market_with(Policy { withdraw_enabled: true, ..Policy::default() }).await
}

pub(crate) async fn market_with(policy: Policy) -> Market {
    market_of(policy, Settings::default()).await
}

/// With providers where `providers` say.
pub(crate) async fn market_of(policy: Policy, providers: Settings) -> Market {
    let folder = Folder::new().unwrap();
    let clock = Arc::new(MovableClock::at(1_774_576_984));
    let settings = testkit::postgres::settings(folder.path());
    let store = Store::open(&settings, &[CORE, SUPPLY], Arc::clone(&clock) as _).await.unwrap();
    let random = Arc::new(CountingRandom::default());
    let keys = keys(providers, &clock, &random);
    let house = House {
        policy,
        random: Arc::clone(&random) as _,
        clock: Arc::clone(&clock) as _,
        keys,
        routes: vec![],
        guard: Some(Arc::new(Guard::new(Scanner::standard().unwrap(), vec![], &[5; 32]))),
    };
    let house = Arc::new(house);
    let (door, other) = (Door::new(store.clone(), Arc::clone(&random) as _), Door::new(store, random));
    let market = Market { door, other, house, clock, folder };
    market.people().await;
    market
}

pub(crate) fn material(name: &str, seed: u8) -> Material {
    let bytes: Vec<u8> = (0..32).map(|n: u8| n.wrapping_mul(37) ^ seed).collect();
    Material::from_bytes(name, &bytes).unwrap()
}

/// Keys of a house whose providers are where `settings` say.
fn keys(settings: Settings, clock: &Arc<MovableClock>, random: &Arc<CountingRandom>) -> Keys {
    let ring = LocalKeyring::new("local", 1, vec![(1, material("kek", 1))], Arc::clone(random) as _).unwrap();
    let verdicts = Verdicts::standard(Quota::whole(10_000_000, QuotaUnit::Token).unwrap());
    let verifier = Verifier::new(settings, verdicts, Arc::clone(clock) as _, Arc::clone(random) as _);
    Keys {
        custody: Custody::new(Arc::new(ring), Arc::clone(random) as _),
        fingerprints: Arc::new(Fingerprints::new(&material("pepper", 2), None).unwrap()),
        sms: Some(Arc::new(SmsCodes::new((1, &material("sms", 3)), None).unwrap())),
        verifier: Arc::new(verifier.unwrap()),
    }
}

impl Market {
    /// Where its store is, or what names its database.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// An operator of the supplier, under a request of its own.
    pub(crate) fn operator(&self, key: &str) -> Caller {
        self.caller(SUPPLIER_TENANT, OPERATOR, key)
    }

    pub(crate) fn caller(&self, tenant_id: i64, operator_id: i64, key: &str) -> Caller {
        Caller {
            tenant_id,
            operator_id,
            capacity: Capacity::User,
            role: "owner",
            request_id: format!("request of {key}"),
            trace_id: format!("trace of {key}"),
            idempotency_key: (!key.is_empty()).then(|| key.to_owned()),
            client_ip: Some("192.0.2.7".into()),
            user_agent: Some("test/1".into()),
        }
    }

    /// Runs an action of the supplier's operator under a key; an empty key is none.
    pub(crate) async fn run<A: Action + std::fmt::Debug>(&self, key: &str, action: A) -> Told {
        self.run_as(self.operator(key), action).await
    }

    pub(crate) async fn run_as<A: Action + std::fmt::Debug>(&self, caller: Caller, action: A) -> Told {
        told(self.door.submit(self.submission(caller, action, PATIENT)).await)
    }

    /// The submission of an action; its payload is what `Debug` prints of it.
    pub(crate) fn submission<A: Action + std::fmt::Debug>(
        &self,
        caller: Caller,
        action: A,
        wait: Duration,
    ) -> Submission<Commanded<A>> {
        let hash = Digest::of(format!("{action:?}").as_bytes());
        let payload = Payload { fingerprint: hash, former: vec![], unkeyed: hash };
        let path = format!("/{}", action.event());
        let life = Duration::from_secs(24 * 3600);
        let key = record::key(&caller, caller.tenant_id, &path, payload, life);
        let context = Context { caller, house: Arc::clone(&self.house) };
        Submission { key, command: Commanded { context, action }, wait }
    }

    /// The same fact found by both nodes at once, as their schedulers carry it out: without a key. Statuses, sorted.
    pub(crate) async fn found_by_both<A: Action + Copy>(&self, caller: Caller, action: A) -> [u16; 2] {
        let context = Context { caller, house: Arc::clone(&self.house) };
        let submission = || Submission {
            key: None,
            command: Commanded { context: context.clone(), action },
            wait: PATIENT,
        };
        let (one, two) = tokio::join!(self.door.submit(submission()), self.other.submit(submission()));
        let mut codes = [told(one).code, told(two).code];
        codes.sort_unstable();
        codes
    }

    /// Rows past all rules, for what no command makes yet.
    pub(crate) async fn force(&self, writes: Vec<Write>) {
        let made = self.door.maintain("force", vec![], move |_, _| Ok((writes.clone(), ()))).await;
        made.unwrap();
    }

    pub(crate) async fn count(&self, sql: &str, by: Vec<Value>) -> i64 {
        let rows = self.door.store().query(Query::new("count", sql.to_owned(), by)).await.unwrap();
        rows[0].int(0).unwrap()
    }

    /// Cached balance of one of the supplier's accounts, in minor units.
    pub(crate) async fn balance(&self, code: &str) -> String {
        let sql = "select balance from billing_accounts where owner_type = 'supplier' and owner_id = $1 and account_code = $2";
        let rows =
            self.door.store().query(Query::new("balance", sql, values![SUPPLIER, code])).await.unwrap();
        Money::from_count(rows[0].int(0).unwrap(), Currency::CNY).minor()
    }

    /// How many audit rows there are of an event with a result.
    pub(crate) async fn audited(&self, event: &str, result: &str) -> i64 {
        let sql = "select count(*) from audit_events where event_name = $1 and result_code = $2";
        self.count(sql, values![event, result]).await
    }

    /// How often the outbox tells of an event.
    pub(crate) async fn announced(&self, event: &str) -> i64 {
        self.count("select count(*) from outbox where event_name = $1", values![event]).await
    }

    async fn people(&self) {
        let at = self.now();
        let mut writes = Vec::new();
        for (id, code, kind) in [
            (SUPPLIER_TENANT, "supplier", "supplier"),
            (BUYER_TENANT, "buyer", "consumer"),
            (OTHER_TENANT, "other", "supplier"),
        ] {
            let sql = "insert into core_tenants (id, code, name, type, created_at, updated_at) values ($1, $2, $3, $4, $5, $6)";
            writes.push(Write::one("tenant", sql, values![id, code, code, kind, at, at]));
        }
        for (id, tenant, name) in [
            (SUPPLIER, SUPPLIER_TENANT, "principal"),
            (OPERATOR, SUPPLIER_TENANT, "operator"),
            (BUYER, BUYER_TENANT, "buyer"),
            (OTHER_SUPPLIER, OTHER_TENANT, "principal"),
            (ADMIN, 1, "admin"),
        ] {
            let sql = "insert into iam_users (id, tenant_id, name, created_at, updated_at) values ($1, $2, $3, $4, $5)";
            writes.push(Write::one("user", sql, values![id, tenant, name, at, at]));
        }
        for code in ledger::Code::ALL.into_iter().filter(|code| code.owner_type() == "platform") {
            let account = Account::from_row("platform", 0, code.as_str()).unwrap();
            writes.push(books::open(1, account, Currency::CNY, at));
        }
        for (user, tenant) in [(SUPPLIER, SUPPLIER_TENANT), (OTHER_SUPPLIER, OTHER_TENANT)] {
            let supplier = Supplier(user);
            for account in [
                Account::pending(supplier),
                Account::available(supplier),
                Account::frozen(supplier),
                Account::receivable(supplier),
            ] {
                writes.push(books::open(tenant, account, Currency::CNY, at));
            }
            writes.push(supplier_row(user, tenant, at));
        }
        writes.push(books::open(
            BUYER_TENANT,
            Account::prepaid(ledger::ids::Buyer(BUYER)),
            Currency::CNY,
            at,
        ));
        self.force(writes).await;
    }

    /// Protected prices of a model.
    pub(crate) async fn floor(&self, provider: &str, model: &str, input: i64, output: i64) {
        let at = self.now();
        let sql = "insert into supply_price_protection (provider, model, direction, floor_price, effective_from, request_id, created_at, created_by) values ($1, $2, $3, $4, $5, $6, $7, $8)";
        let row = |direction: &str, major: i64| {
            values![provider, model, direction, Value::Money(major * 1_000_000), at, "floors", at, ADMIN]
        };
        let writes = vec![
            Write::one("floor", sql, row("input", input)),
            Write::one("floor", sql, row("output", output)),
        ];
        self.force(writes).await;
    }

    /// A mounted account of the supplier in this state, with 10,000,000 tokens.
    pub(crate) async fn account(&self, id: i64, status: &str) -> i64 {
        let at = self.now();
        let sql = "insert into supply_accounts (id, tenant_id, user_id, platform, account_type, encrypted_credentials, key_id, status, risk_score, total_quota, available_quota, is_verified, verified_at, tos_compliant, risk_ack_at, risk_ack_version, created_at, updated_at, created_by, updated_by, credential_kms_key_alias, credential_key_version, credential_fingerprint, request_id, audit_trace_id)
            values ($1, $2, $3, 'openai', 'api_key', 'v1.envelope', $4, $5, 10, $6, $7, $8, $9, $10, $11, 'v1', $12, $13, $14, $15, 'alias', 1, $16, 'fixture', 'fixture')";
        let quota = Value::Money(10_000_000_000_000);
        let (key_id, fingerprint) = (format!("ck_{id:022}"), format!("{id:064}"));
        let row = [
            values![id, SUPPLIER_TENANT, SUPPLIER, key_id, status],
            vec![quota.clone(), quota],
            values![true, at, true, at, at, at, OPERATOR, OPERATOR, fingerprint],
        ]
        .concat();
        self.force(vec![Write::one("account", sql, row)]).await;
        id
    }

    /// A package of 5,000,000 tokens at 8 and 32, of the account, in this state.
    pub(crate) async fn package(&self, id: i64, account: i64, status: &str) -> i64 {
        let at = self.now();
        let sql = "insert into supply_packages (id, tenant_id, supply_account_id, user_id, platform, model, total_quota, available_quota, sold_quota, price_per_1m_input, price_per_1m_output, valid_days, start_at, end_at, status, close_reason, created_at, updated_at, request_id, audit_trace_id)
            values ($1, $2, $3, $4, 'openai', 'gpt-x', $5, $6, $7, $8, $9, 30, $10, $11, $12, $13, $14, $15, 'fixture', 'fixture')";
        let draft = status == "draft";
        let end = at.plus(Duration::from_secs(30 * 24 * 3600));
        let (left, sold) = if status == "sold_out" { (0, 5_000_000_000_000) } else { (5_000_000_000_000, 0) };
        let row = [
            values![id, SUPPLIER_TENANT, account, SUPPLIER],
            vec![Value::Money(5_000_000_000_000), Value::Money(left), Value::Money(sold)],
            vec![Value::Money(8_000_000), Value::Money(32_000_000)],
            values![(!draft).then_some(at), (!draft).then_some(end), status],
            values![(status == "expired").then_some("unlisted"), at, at],
        ]
        .concat();
        self.force(vec![Write::one("package", sql, row)]).await;
        id
    }

    /// A released bonus of the supplier, with its journals: `major` that may be withdrawn.
    pub(crate) async fn fund(&self, earning: i64, major: i64) {
        self.fund_exactly(earning, Money::from_count(major * 100_000_000, Currency::CNY)).await;
    }

    /// As [`Market::fund`], with fractions of a minor unit.
    pub(crate) async fn fund_exactly(&self, earning: i64, amount: Money) {
        let (at, house) = (self.now(), Arc::clone(&self.house));
        let context = Context { caller: Caller::system(SUPPLIER_TENANT, "fund"), house };
        let funded = self
            .door
            .maintain("fund", vec![books::of_supplier(SUPPLIER_TENANT)], move |rows, _| {
                let mut books = Books::read(&rows[0])?;
                let sql = "insert into supply_earnings (id, tenant_id, user_id, earnings_type, amount, available_amount, status, earned_at, available_at, source_request_id, created_at, updated_at, request_id, audit_trace_id) values ($1, $2, $3, 'bonus', $4, $5, 'available', $6, $7, 'fund', $8, $9, 'fixture', 'fixture')";
                let count = Value::Money(amount.count());
                let row = [values![earning, SUPPLIER_TENANT, SUPPLIER], vec![count.clone(), count], values![at, at, at, at]].concat();
                let mut writes = vec![Write::one("earning", sql, row)];
                let bonus = posting::bonus(Earning(earning), Supplier(SUPPLIER), amount).unwrap();
                let release = posting::release(Earning(earning), Supplier(SUPPLIER), amount).unwrap().unwrap();
                for journal in [bonus, release] {
                    writes.extend(books.post(&context, &journal, at).unwrap());
                }
                writes.extend(books.balances(at));
                Ok((writes, ()))
            })
            .await;
        funded.unwrap();
    }
}

fn supplier_row(user: i64, tenant: i64, at: Time) -> Write {
    let sql = "insert into supply_suppliers (tenant_id, user_id, available_account_id, supplier_type, phone_cipher, phone_kms_key_alias, phone_key_version, phone_fingerprint, phone_masked, request_id, audit_trace_id, created_at, updated_at)
        values ($1, $2, (select id from billing_accounts where owner_type = 'supplier' and owner_id = $3 and account_code = 'supplier_available'), 'company', 'v1.envelope', 'alias', 1, $4, '138****0000', 'fixture', 'fixture', $5, $6)";
    Write::one("supplier", sql, values![tenant, user, user, format!("{user:064}"), at, at])
}

/// What the door's answer says.
pub(crate) fn told(answer: Result<Answer, door::Failure>) -> Told {
    let (outcome, replayed, same) = match answer {
        Ok(Answer::Done(done)) => (done.outcome, done.replayed, done.same),
        Ok(Answer::Open { outcome: Some(outcome), .. }) => (outcome, false, true),
        other => panic!("no answer: {other:?}"),
    };
    Told {
        code: outcome.code,
        body: serde_json::from_str(&outcome.body).unwrap_or(json!({})),
        replayed,
        same,
    }
}
