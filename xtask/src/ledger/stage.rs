//! The market that commands are sent to: the product's own door and commands, in this process, on a private store
//! with the settings of a server. Suppliers, buyers and floors come by the product's commands; mounted accounts,
//! which would need a provider, as rows.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use custody::provider::{Settings as Providers, policy::Policy as Verdicts};
use custody::sms::SmsCodes;
use custody::{Custody, Fingerprints, LocalKeyring, Material, Verifier};
use door::{Answer, Door, Submission};
use guard::{Guard, Scanner};
use kernel::money::{Currency, Price, Quota, QuotaUnit};
use kernel::{Clock as _, Digest, Time};
use serde_json::Value as Json;
use store::migration::{CORE, SUPPLY};
use store::{Query, Row, Settings, Store, Value, Write, values};
use supply::platform::{ApiKey, Basis, CreateBuyer, CreateSupplier, ProtectPrice, SealedPhone, seed};
use supply::record::{self, Payload};
use supply::{Action, Caller, Capacity, Commanded, Context, House, Keys, Policy};
use tempfile::TempDir;
use testkit::{CountingRandom, MovableClock, Seeded};

use super::board::{Client, Seller};
use super::command::{self, By, Command, Told};
use super::model::{Buyer, Model, life};

/// How long a twin waits for the other.
const PATIENT: Duration = Duration::from_secs(30);
/// How often a running twin is asked again.
const ASKED: usize = 10_000;
/// Quota of an account: as good as endless, and soon at its end.
const QUOTAS: [i64; 2] = [90_000_000_000, 40_000_000];
/// The platform's own user.
pub(super) const PLATFORM: i64 = 1;

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// The market.
pub(super) struct Market {
    pub(super) engine: Engine,
    pub(super) door: Door,
    pub(super) house: Arc<House>,
    pub(super) clock: Arc<MovableClock>,
    /// Sendings and answers so far.
    sequence: AtomicU64,
    requests: AtomicU64,
    /// The store's folder.
    _folder: TempDir,
}

fn material(name: &str, seed: u64) -> Result<Material> {
    let mut seeded = Seeded::new(seed);
    let bytes: Vec<u8> = (0..4).flat_map(|_| seeded.bits().to_be_bytes()).collect();
    Ok(Material::from_bytes(name, &bytes)?)
}

fn keys(clock: &Arc<MovableClock>, random: &Arc<CountingRandom>) -> Result<Keys> {
    let ring = LocalKeyring::new("local", 1, vec![(1, material("kek", 1)?)], Arc::clone(random) as _)?;
    let verdicts = Verdicts::standard(Quota::whole(10_000_000, QuotaUnit::Token)?);
    let verifier =
        Verifier::new(Providers::default(), verdicts, Arc::clone(clock) as _, Arc::clone(random) as _)?;
    Ok(Keys {
        custody: Custody::new(Arc::new(ring), Arc::clone(random) as _),
        fingerprints: Arc::new(Fingerprints::new(&material("pepper", 2)?, None)?),
        sms: Some(Arc::new(SmsCodes::new((1, &material("sms", 3)?), None)?)),
        verifier: Arc::new(verifier),
    })
}

/// A folder in memory, where the machine has one: syncs cost nothing there.
fn folder() -> Result<TempDir> {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("onceseal-ledger-").tempdir_in(base).context("making a folder")
}

impl Market {
    /// Opens a new store; `database` is the URL of an empty PostgreSQL database with
    /// `track_commit_timestamp = on`.
    pub(super) async fn open(database: Option<&str>) -> Result<Self> {
        let folder = folder()?;
        let clock = Arc::new(MovableClock::at(1_774_576_984));
        let (engine, settings) = match database {
            Some(url) => (Engine::Postgres, Settings::Postgres(store::Postgres::new(url))),
            None => (Engine::Sqlite, Settings::folder(folder.path())),
        };
        let store = Store::open(&settings, &[CORE, SUPPLY], Arc::clone(&clock) as _).await?;
        let random = Arc::new(CountingRandom::default());
        let house = House {
            policy: Policy { withdraw_enabled: true, ..Policy::default() },
            random: Arc::clone(&random) as _,
            clock: Arc::clone(&clock) as _,
            keys: keys(&clock, &random)?,
            routes: Vec::new(),
            guard: Some(Arc::new(Guard::new(Scanner::standard()?, vec![], &[5; 32]))),
        };
        let market = Self {
            engine,
            door: Door::new(store, random),
            house: Arc::new(house),
            clock,
            sequence: AtomicU64::new(1),
            requests: AtomicU64::new(1),
            _folder: folder,
        };
        seed(&market.door, Currency::CNY).await?;
        Ok(market)
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Reads plainly.
    pub(super) async fn rows(&self, sql: &str, by: Vec<Value>) -> Result<Vec<Row>> {
        Ok(self.door.store().query(Query::new("ledger.look", sql.to_owned(), by)).await?)
    }

    /// Writes past all rules.
    pub(super) async fn force(&self, writes: Vec<Write>) -> Result<()> {
        self.door.maintain("ledger.force", vec![], move |_, _| Ok((writes.clone(), ()))).await?;
        Ok(())
    }

    /// The next place in the sequence of sendings and answers.
    pub(super) fn step(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::SeqCst)
    }

    /// A request's id that nobody else has.
    pub(super) fn request(&self) -> String {
        format!("r{}", self.requests.fetch_add(1, Ordering::SeqCst))
    }

    /// Sends one action under the command's key, until there is an answer to it.
    pub(super) async fn act<A: Action + Clone>(
        &self,
        command: &Command,
        request: &str,
        action: A,
    ) -> Result<Told> {
        let Command { by, what, key } = command;
        let caller = caller(*by, request, by.keys().then_some(key));
        let hash = Digest::of(format!("{by:?} {what:?}").as_bytes());
        let life = Duration::from_micros(u64::try_from(life(what.kind()))?);
        for _ in 0..ASKED {
            let payload = Payload { fingerprint: hash, former: vec![], unkeyed: hash };
            let path = format!("/{}", what.kind().replace(' ', "-"));
            let key = record::key(&caller, by.tenant, &path, payload, life);
            let context = Context { caller: caller.clone(), house: Arc::clone(&self.house) };
            let command = Commanded { context, action: action.clone() };
            let answer = self.door.submit(Submission { key, command, wait: PATIENT }).await;
            match answer.with_context(|| format!("{what:?}"))? {
                Answer::Done(done) => {
                    let (code, body) = (done.outcome.code, done.outcome.body);
                    return Ok(Told { code, body, replayed: done.replayed, same: done.same, open: false });
                }
                Answer::Open { outcome: Some(outcome), .. } => {
                    let (code, body) = (outcome.code, outcome.body);
                    return Ok(Told { code, body, replayed: false, same: true, open: false });
                }
                Answer::InProgress { same: false, .. } => {
                    let body = String::new();
                    return Ok(Told { code: 409, body, replayed: true, same: false, open: true });
                }
                Answer::InProgress { .. } => tokio::time::sleep(Duration::from_millis(2)).await,
                other => anyhow::bail!("no answer to {what:?}: {other:?}"),
            }
        }
        anyhow::bail!("a twin of {what:?} never ends")
    }

    /// Carries an action of staff out and gives its data.
    async fn set_up<A: Action>(&self, action: A) -> Result<Json> {
        let by = By { tenant: PLATFORM, operator: PLATFORM, capacity: command::Capacity::Admin };
        let context = Context { caller: caller(by, &self.request(), None), house: Arc::clone(&self.house) };
        let command = Commanded { context, action };
        match self.door.submit(Submission { key: None, command, wait: PATIENT }).await? {
            Answer::Done(done) => {
                ensure!(done.outcome.code < 300, "{}", done.outcome.body);
                let body: Json = serde_json::from_str(&done.outcome.body)?;
                Ok(body.get("data").cloned().unwrap_or_default())
            }
            other => anyhow::bail!("setting up: {other:?}"),
        }
    }

    /// The floors of the one model, and who trades: so many suppliers and buyers, told to the model.
    pub(super) async fn people(
        &self,
        counts: (usize, usize),
        model: &mut Model,
    ) -> Result<(Vec<Seller>, Vec<Client>)> {
        let floor = |count| Price::from_count(count).map(Basis::Floor);
        let (input, output) = (floor(8_000_000)?, floor(32_000_000)?);
        let (provider, name) = ("openai".into(), "gpt-x".into());
        self.set_up(ProtectPrice { provider, model: name, input, output, effective_from: None }).await?;
        let (mut sellers, mut clients) = (Vec::new(), Vec::new());
        for n in 0..counts.0 {
            sellers.push(self.seller(n, model).await?);
        }
        for n in 0..counts.1 {
            clients.push(self.client(n, model).await?);
        }
        Ok((sellers, clients))
    }

    async fn seller(&self, n: usize, model: &mut Model) -> Result<Seller> {
        let phone = SealedPhone {
            cipher: "v1.envelope".into(),
            cipher_algo: "AES-256-GCM".into(),
            key_alias: "alias".into(),
            key_version: 1,
            fingerprint: format!("{n:064}"),
            masked: "138****0000".into(),
        };
        let made = CreateSupplier {
            code: format!("supplier-{n}"),
            name: format!("Supplier {n}"),
            supplier_type: "company".into(),
            operator: "operator".into(),
            phone,
        };
        let data = self.set_up(made).await?;
        let (tenant, user) = (number(&data, "tenant_id")?, number(&data, "user_id")?);
        let operator = number(&data, "operator_id")?;
        model.supplier(tenant, user);
        let mut accounts = Vec::new();
        for (place, tokens) in (1..).zip(QUOTAS) {
            let id = i64::try_from(n)? * 10 + place;
            self.mounted(id, (tenant, user, operator), tokens * 1_000_000).await?;
            model.mounted(id, tenant, i128::from(tokens) * 1_000_000);
            accounts.push(id);
        }
        Ok(Seller { tenant, user, operator, accounts })
    }

    async fn mounted(&self, id: i64, (tenant, user, operator): (i64, i64, i64), quota: i64) -> Result<()> {
        let sql = "insert into supply_accounts (id, tenant_id, user_id, platform, account_type, encrypted_credentials, key_id, status, risk_score, total_quota, available_quota, is_verified, verified_at, tos_compliant, risk_ack_at, risk_ack_version, created_at, updated_at, created_by, updated_by, credential_kms_key_alias, credential_key_version, credential_fingerprint, request_id, audit_trace_id)
            values ($1, $2, $3, 'openai', 'api_key', 'v1.envelope', $4, 'active', 10, $5, $6, $7, $8, $9, $10, 'v1', $11, $12, $13, $14, 'alias', 1, $15, 'fixture', 'fixture')";
        let (at, key_id, fingerprint) = (self.now(), format!("ck_{id:022}"), format!("{id:064}"));
        let row = [
            values![id, tenant, user, key_id],
            vec![Value::Money(quota), Value::Money(quota)],
            values![true, at, true, at, at, at, operator, operator, fingerprint],
        ];
        self.force(vec![Write::one("ledger.account", sql, row.concat())]).await
    }

    async fn client(&self, n: usize, model: &mut Model) -> Result<Client> {
        let expires_at = self.now().plus(Duration::from_secs(10 * 366 * 86_400));
        let hmac = Digest::of(format!("key of buyer {n}").as_bytes());
        let key = ApiKey { name: "first".into(), prefix: format!("lgw_{n:08}"), hmac, expires_at };
        let made = CreateBuyer { code: format!("buyer-{n}"), name: format!("Buyer {n}"), key };
        let data = self.set_up(made).await?;
        let (tenant, user) = (number(&data, "tenant_id")?, number(&data, "buyer_id")?);
        let key = number(&data, "api_key_id")?;
        model.buyer(user, Buyer { tenant, key });
        Ok(Client { tenant, user, key })
    }
}

fn number(data: &Json, name: &'static str) -> Result<i64> {
    data.get(name).and_then(Json::as_i64).with_context(|| format!("no {name} in {data}"))
}

/// A caller as the product knows it.
pub(super) fn caller(by: By, request: &str, key: Option<&str>) -> Caller {
    let (capacity, role) = match by.capacity {
        command::Capacity::User => (Capacity::User, "owner"),
        command::Capacity::Admin => (Capacity::Admin, "admin"),
        command::Capacity::System => (Capacity::System, "system"),
    };
    Caller {
        tenant_id: by.tenant,
        operator_id: by.operator,
        capacity,
        role,
        request_id: request.to_owned(),
        trace_id: request.to_owned(),
        idempotency_key: key.map(ToOwned::to_owned),
        client_ip: Some("192.0.2.7".into()),
        user_agent: None,
    }
}
