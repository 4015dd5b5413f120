//! The installation under the hammer, and its market: one supplier with a few hundred small earnings that are
//! available, and a buyer whose calls go on.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use play::{Buyer, Client, Market, Supplier};

use super::Bug;
use crate::lab::house::Database;
use crate::lab::market::{self, Outside};
use crate::lab::nodes::Nodes;
use crate::services::postgres::{Options, Postgres, USER};
use crate::services::psql::Psql;

/// Calls that the supplier has earned from before the first withdrawal.
const CALLS: usize = 300;
/// Tokens that a call writes: 64 CNY, of which 54.40 are the supplier's.
const TOKENS: u64 = 2_000_000;
/// Calls that the order bears.
const CALLS_MAX: u64 = 2_000;
/// CNY that it costs.
const PRICE: u64 = CALLS_MAX * 64;
/// How long the scheduler may take to release what was earned.
const RELEASED_WITHIN: Duration = Duration::from_secs(60);

/// An installation with a market.
pub(super) struct Ground {
    pub(super) nodes: Nodes,
    pub(super) outside: Outside,
    /// Of the database.
    pub(super) url: String,
    pub(super) market: Market,
    pub(super) supplier: Supplier,
    /// Who calls, and by which order.
    pub(super) buyer: Buyer,
    pub(super) order: i64,
    _server: Postgres,
}

/// What a market says went wrong.
pub(super) fn told(cause: String) -> anyhow::Error {
    anyhow!(cause)
}

impl Ground {
    /// Starts everything in a folder.
    ///
    /// # Errors
    /// A server doesn't start, or the market can't be made.
    pub(super) async fn make(folder: &Path, program: &Path, (nodes, bug): (u8, Option<Bug>)) -> Result<Self> {
        // The history is read in the order of commits.
        let settings = vec![("track_commit_timestamp", "on".to_owned())];
        let server = Postgres::launch(&Options { settings, ..Options::default() })?;
        let url = server.url(USER);
        let outside = Outside::open().await?;
        let databases = vec![Database::at(&url, "")?; usize::from(nodes)];
        let nodes = Nodes::start_with(program, folder, &outside.setup(""), databases, |command| {
            if let Some(bug) = bug {
                command.env("ONCESEAL_PLANTED_BUG", bug.name());
            }
        })?;
        let house = &nodes.node(0).house;
        let client = Client::new(base(&nodes, 0)).map_err(told)?;
        let market = Market::new(client, market::admin(house, program)?);
        let (supplier, buyer, order) = sold(&market).await.map_err(told)?;
        let psql = Psql::at(&url)?;
        released(&psql).await?;
        if let Some(sql) = bug.and_then(Bug::sql) {
            psql.ask(sql)?;
        }
        Ok(Self { nodes, outside, url, market, supplier, buyer, order, _server: server })
    }

    /// One more call that the supplier earns from.
    ///
    /// # Errors
    /// The server does not take it.
    pub(super) async fn earn(&self) -> Result<()> {
        let usage = self.market.usage((self.order, &self.buyer), (0, TOKENS), &market::now()).await;
        usage.map(drop).map_err(told)
    }
}

/// The base address of a node.
pub(super) fn base(nodes: &Nodes, number: usize) -> String {
    format!("http://{}", nodes.node(number).address())
}

async fn sold(market: &Market) -> Result<(Supplier, Buyer, i64), String> {
    market.floors().await?;
    let supplier = market.supplier("hammered").await?;
    let account = market.account(&supplier, &format!("sk-{}", "h".repeat(40))).await?;
    let quota = CALLS_MAX * TOKENS;
    let package = market.package(&supplier, account, quota).await?;
    let buyer = market.buyer(PRICE).await?;
    let order = market.order(&buyer, package, quota).await?;
    for _ in 0..CALLS {
        market.usage((order, &buyer), (0, TOKENS), &market::now()).await?;
    }
    Ok((supplier, buyer, order))
}

/// Waits until no earning is held any more.
async fn released(psql: &Psql) -> Result<()> {
    let since = Instant::now();
    loop {
        let left = psql.ask("select count(*) from supply_earnings where status = 'pending'")?;
        if left.parse::<usize>().context("a count of earnings")? == 0 {
            return Ok(());
        }
        ensure!(since.elapsed() < RELEASED_WITHIN, "{left} earnings are not released in {RELEASED_WITHIN:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
