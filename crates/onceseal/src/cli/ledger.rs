//! `onceseal ledger`: whether the supply side's money adds up.

use clap::{Args, Subcommand};
use serde_json::Value as Json;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out, text};
use super::progress;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal ledger verify
  onceseal ledger verify --json

Derives every balance from its entries again, and compares journals, settlements and earnings with each other.
Changes nothing; the server does the same every hour. Exit code 3: something does not add up, and each line
says what")]
pub struct Ledger {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Derive every balance again and list what does not add up
    Verify,
}

impl Ledger {
    /// Runs it.
    ///
    /// # Errors
    /// The supply side is off, or the store can't be read to its end.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let What::Verify = self.what;
        let api = Api::open(globals, Folder::Expected).await?;
        let found = progress::during("adding up", api.call(Order::get("/ledger"))).await?;
        let violations =
            found.get("violations").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        if out.json {
            out.value(&found);
        } else if violations.is_empty() {
            out.line("everything adds up");
        } else {
            violations.iter().for_each(|one| out.line(text(one, "text")));
        }
        Ok(if violations.is_empty() { Exit::Fine } else { Exit::Problems })
    }
}
