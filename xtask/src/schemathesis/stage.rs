//! A server of the shipped build on SQLite, and a market on it: two suppliers, one of whom does what the run says and
//! the other owns what it must not see; accounts, packages, orders, calls, money and settlements in several states.

use std::path::Path;

use anyhow::anyhow;
use play::{Client, Market, Phone, Provider, Supplier};
use serde_json::Value as Json;

use super::desk;
use super::fill::{self, Known};
use crate::lab::market::{self, Outside};
use crate::lab::{House, Server};

/// Further lines of `[supply]`: the run is one caller, and as fast as it can be.
const MORE: &str = "calls_per_minute = 1000000";

/// A server with a market.
pub(super) struct Stage {
    /// The server.
    pub(super) server: Server,
    /// What it serves as its description.
    pub(super) document: Json,
    /// Tokens of an administrator, of one whose token is renewed again and again, and their ids.
    pub(super) staff: [(String, i64); 2],
    /// Tokens of the supplier that acts and of the one that must not be seen.
    pub(super) suppliers: [String; 2],
    /// Where SMS codes are.
    pub(super) desk: String,
    /// Values of parameters and fields that name something.
    pub(super) known: Known,
    _provider: Provider,
}

impl Stage {
    /// Starts it and fills it.
    ///
    /// # Errors
    /// The server does not start, or refuses what makes the market.
    pub(super) async fn set(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let outside = Outside::open().await?;
        let house = House::make(folder, &outside.setup(MORE))?;
        let server = house.start(program)?;
        let first = market::admin(&house, program)?;
        let Outside { provider, phone } = outside;
        let document = serde_json::from_slice(&server.get("/api/v1/openapi.json")?.body)?;
        let client = Client::new(format!("http://{}", server.address)).map_err(anyhow::Error::msg)?;
        let play = Market::new(client.clone(), first);
        let (staff, [owner, other], known) =
            filled(&play, &phone).await.map_err(|cause| anyhow!("making the market: {cause}"))?;
        let suppliers = [owner.token.clone(), other.token];
        let desk = desk::open(client, owner, phone).await?;
        Ok(Self { server, document, staff, suppliers, desk, known, _provider: provider })
    }
}

type Filled = ([(String, i64); 2], [Supplier; 2], Known);

async fn filled(market: &Market, phone: &Phone) -> Result<Filled, String> {
    market.floors().await?;
    let suppliers = [market.supplier("first").await?, market.supplier("second").await?];
    let known = fill::fill(market, [&suppliers[0], &suppliers[1]], phone).await?;
    let staff = [fill::administrator(market).await?, fill::administrator(market).await?];
    Ok((staff, suppliers, known))
}
