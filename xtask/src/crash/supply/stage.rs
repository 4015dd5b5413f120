//! What all trials begin with: a market in which each of the five writes has what it needs, stopped in order; copies
//! of it; and the five requests. Not here: running a copy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use play::{Call, Client, Market, Supplier};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use super::portrait::{self, Portrait};
use crate::crash::{Bug, Engine};
use crate::lab::house::Database;
use crate::lab::market::{self, Outside};
use crate::lab::{House, Server, Setup, wire};
use crate::services::postgres::{Durability, Options, Postgres, USER};
use crate::services::psql::Psql;
use crate::trace;

/// How long an earning may take to be available.
const RELEASED_WITHIN: Duration = Duration::from_secs(30);
/// Two items a slice; a dead claim is over soon; the code holds longer than all trials take.
const SUPPLY: &str = "batch_shard = 2\nidempotency_lease_seconds = 5\nsms_ttl_seconds = 3600\n";
/// A settlement stays pending, so that it can be cancelled.
const WAITING: &str = "supply.withdraw_review_seconds=86400";
/// In a trial nothing comes due by itself.
const IDLE: &str = "supply.scheduler_interval=10m";
/// Few connections: many trials share one database server.
const SETTINGS: &str = "connections = 4\n";
/// Packages of the batch: three slices, the last one with room.
pub(super) const ITEMS: usize = 5;

/// The five critical writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(in crate::crash) enum Critical {
    /// A credential is mounted, verified at its provider
    Mount,
    /// A draft is published
    Publish,
    /// Five packages get other prices, in three slices
    BatchPrice,
    /// A withdrawal with its code
    Withdraw,
    /// It is taken back
    Cancel,
}

impl Critical {
    pub(super) const ALL: [Self; 5] =
        [Self::Mount, Self::Publish, Self::BatchPrice, Self::Withdraw, Self::Cancel];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Publish => "publish",
            Self::BatchPrice => "batch-price",
            Self::Withdraw => "withdraw",
            Self::Cancel => "cancel",
        }
    }

    /// Its idempotency key.
    pub(super) fn key(self) -> String {
        format!("crash-key-of-{}", self.name())
    }
}

/// Objects that the writes are about.
struct Objects {
    owner: Supplier,
    draft: i64,
    packages: Vec<i64>,
    code: String,
    /// Another supplier, whose withdrawal waits.
    other: Supplier,
    settlement: i64,
}

/// The common ground of all trials.
pub(super) struct Stage {
    root: PathBuf,
    base: House,
    setup: Setup,
    program: PathBuf,
    bug: Option<Bug>,
    objects: Objects,
    /// Of the base.
    pub(super) before: Portrait,
    pub(super) outside: Outside,
    /// With PostgreSQL: the server of all databases.
    postgres: Option<Mutex<Postgres>>,
    pub(super) runtime: Runtime,
}

impl Stage {
    /// Prepares the market in a folder.
    ///
    /// # Errors
    /// A server doesn't start, or the market can't be made.
    pub(super) fn make(root: &Path, program: PathBuf, (engine, bug): (Engine, Option<Bug>)) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let outside = runtime.block_on(Outside::open())?;
        let unsynced = Options { durability: Durability::Unsynced, ..Options::default() };
        let postgres = (engine == Engine::Postgres).then(|| Postgres::launch(&unsynced)).transpose()?;
        let url = postgres.as_ref().map(|server| server.url(USER));
        let database = url.as_deref().map(|url| Database::at(url, SETTINGS)).transpose()?;
        let setup = Setup { database, ..outside.setup(SUPPLY) };
        let base = House::make(root.join("base"), &setup)?;
        market::keys(&base, &program)?;
        let mut command = base.command(&program, &["serve"]);
        command.args(["--set", WAITING]);
        let server = base.start_with(command)?;
        let client = Client::new(format!("http://{}", server.address)).map_err(|cause| anyhow!(cause))?;
        let market = Market::new(client, market::admin(&base, &program)?);
        let objects =
            runtime.block_on(objects(&market, &outside)).map_err(|cause| anyhow!("the market: {cause}"))?;
        server.stop()?;
        let before = match &url {
            None => portrait::of_file(&base)?,
            Some(url) => portrait::of_database(&Psql::at(url)?)?,
        };
        let (root, postgres) = (root.to_owned(), postgres.map(Mutex::new));
        Ok(Self { root, base, setup, program, bug, objects, before, outside, postgres, runtime })
    }

    /// The bytes of a write's request, with a request id of its own.
    pub(super) fn request(&self, write: Critical, attempt: u32) -> Vec<u8> {
        let call = self.objects.call(write);
        let (bearer, id) =
            (format!("Bearer {}", call.token), format!("c0000000-0000-4000-8000-{attempt:012}"));
        let key = call.key.unwrap_or_default();
        let headers = [("authorization", &*bearer), ("x-request-id", &id), ("idempotency-key", &key)];
        let body = call.body.map(|body| body.to_string()).unwrap_or_default();
        let typed = (!body.is_empty()).then_some(("content-type", "application/json"));
        let headers: Vec<_> = headers.into_iter().chain(typed).collect();
        wire::request(call.method.as_str(), &call.path, &headers, body.as_bytes())
    }

    /// A house, and a database, of that name, as the market was left.
    ///
    /// # Errors
    /// A file can't be written, or the database not be copied.
    pub(super) fn house(&self, name: &str) -> Result<House> {
        let database = match &self.postgres {
            None => None,
            Some(server) => {
                let server = server.lock().unwrap_or_else(PoisonError::into_inner);
                server.execute(&format!(
                    "create database \"{name}\" template \"{USER}\" owner {USER} strategy file_copy"
                ))?;
                Some(Database::at(&server.url(name), SETTINGS)?)
            }
        };
        let house = House::make(self.root.join(name), &Setup { database, ..self.setup.clone() })?;
        trace::replay(&self.base.data(), &[], &house.data())?;
        Ok(house)
    }

    /// Removes what a trial left.
    ///
    /// # Errors
    /// It can't be removed.
    pub(super) fn clear(&self, name: &str) -> Result<()> {
        if let Some(server) = &self.postgres {
            let server = server.lock().unwrap_or_else(PoisonError::into_inner);
            server.execute(&format!("drop database if exists \"{name}\" with (force)"))?;
        }
        std::fs::remove_dir_all(self.root.join(name)).with_context(|| format!("clearing {name}"))
    }

    /// `onceseal serve` in a house.
    pub(super) fn command(&self, house: &House) -> Command {
        let mut command = house.command(&self.program, &["serve"]);
        command.args(["--set", WAITING, "--set", IDLE]);
        command
    }

    /// As [`Stage::command`], with the planted bug.
    pub(super) fn planted(&self, house: &House) -> Command {
        let mut command = self.command(house);
        if let Some(bug) = self.bug {
            command.env("ONCESEAL_PLANTED_BUG", bug.name());
        }
        command
    }

    /// Starts the server in a house.
    ///
    /// # Errors
    /// It ends early; the message has its last words.
    pub(super) fn start(&self, house: &House) -> Result<Server> {
        house.start_with(self.command(house))
    }

    /// What the ledger of a house says of itself.
    ///
    /// # Errors
    /// It can't be looked through.
    pub(super) fn ledger(&self, house: &House) -> Result<Vec<String>> {
        market::ledger(house, &self.program)
    }

    /// All that a trial's database has; on PostgreSQL once a dead server's sessions are over.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn portrait(&self, name: &str, house: &House) -> Result<Portrait> {
        let Some(server) = &self.postgres else { return portrait::of_file(house) };
        let url = server.lock().unwrap_or_else(PoisonError::into_inner).url(name);
        let psql = Psql::at(&url)?;
        portrait::deserted(&psql)?;
        portrait::of_database(&psql)
    }
}

impl Objects {
    fn call(&self, write: Critical) -> Call {
        let key = write.key();
        let post =
            |path: String, token: &str, body| Call::post(format!("/api/v1/supply/{path}"), token, &key, body);
        match write {
            Critical::Mount => {
                let body = json!({ "provider": "openai", "account_type": "api_key", "account_alias": "crashed",
                    "credential_input": format!("sk-{}", "c".repeat(40)), "risk_ack": true });
                post("accounts".into(), &self.owner.token, body)
            }
            Critical::Publish => {
                post(format!("packages/{}/publish", self.draft), &self.owner.token, Json::Null)
            }
            Critical::BatchPrice => {
                let item = |id: &i64| json!({ "package_id": id, "price_per_1m_input": 9, "price_per_1m_output": 33 });
                let items: Vec<Json> = self.packages.iter().map(item).collect();
                post("packages/batch-price".into(), &self.owner.token, json!({ "items": items }))
            }
            Critical::Withdraw => {
                post("settlements/withdraw".into(), &self.owner.token, withdrawal(&self.code))
            }
            Critical::Cancel => {
                post(format!("settlements/{}/cancel", self.settlement), &self.other.token, Json::Null)
            }
        }
    }
}

fn withdrawal(code: &str) -> Json {
    json!({ "withdraw_amount": 50, "payment_method": "alipay", "payment_account": "13800001234", "sms_code": code })
}

async fn objects(market: &Market, outside: &Outside) -> Result<Objects, String> {
    market.floors().await?;
    let owner = market.supplier("one").await?;
    let account = market.account(&owner, &format!("sk-{}", "a".repeat(40))).await?;
    let draft = market.draft(&owner, account, 1_000_000).await?;
    let mut packages = Vec::new();
    for _ in 0..ITEMS {
        packages.push(market.package(&owner, account, 1_000_000).await?);
    }
    let code = earned(market, outside, (&owner, "b")).await?;
    let other = market.supplier("two").await?;
    let its_code = earned(market, outside, (&other, "d")).await?;
    let path = "/api/v1/supply/settlements/withdraw";
    let asked = market.client.make(path, &other.token, withdrawal(&its_code)).await?;
    let settlement = asked.get("settlement_id").and_then(Json::as_i64).ok_or("no settlement_id")?;
    Ok(Objects { owner, draft, packages, code, other, settlement })
}

/// Lets a supplier earn, waits until it may withdraw, and gives the code for it.
async fn earned(
    market: &Market,
    outside: &Outside,
    (supplier, letter): (&Supplier, &str),
) -> Result<String, String> {
    market.earn(supplier, &format!("sk-{}", letter.repeat(40)), 100, &market::now()).await?;
    let since = Instant::now();
    loop {
        let billing = market.client.read("/api/v1/supply/billing", &supplier.token).await?;
        let available = billing.pointer("/balance/available_amount").and_then(Json::as_f64);
        if available.is_some_and(|amount| amount >= 100.0) {
            break;
        }
        if since.elapsed() > RELEASED_WITHIN {
            return Err(format!("the earning is not available: {billing}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let before = outside.phone.count(&supplier.phone);
    market.client.make("/api/v1/supply/settlements/withdraw/sms-code", &supplier.token, Json::Null).await?;
    outside.phone.code(&supplier.phone, before).await
}
