//! `onceseal check`: the whole store against itself and the files.

use clap::Args;
use serde_json::Value as Json;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out};
use super::progress;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal check
  onceseal check --data /srv/restored --json

Changes nothing. For single files there is `onceseal verify`. Exit code 3: problems were found")]
pub struct Check {}

impl Check {
    /// Runs it.
    ///
    /// # Errors
    /// The store can't be read to its end.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let api = Api::open(globals, Folder::Expected).await?;
        let found = progress::during("checking", api.call(Order::post("/check"))).await?;
        out.answer(&found);
        let problems = found.get("problems").and_then(Json::as_u64).unwrap_or_default();
        Ok(if problems == 0 { Exit::Fine } else { Exit::Problems })
    }
}
