//! `onceseal reconcile`.

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out};
use super::progress;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal reconcile

Looks at all records and files, as the server does at its start and more: adopts files whose record is
missing, rebuilds files that are missing or damaged, and marks what only a person can mend (exit code 3)")]
pub struct Reconcile {}

impl Reconcile {
    /// Runs it.
    ///
    /// # Errors
    /// The store or the folder can't be read.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let api = Api::open(globals, Folder::Expected).await?;
        let done =
            progress::during("looking at records and files", api.call(Order::post("/reconcile"))).await?;
        out.answer(&done);
        let orphaned = done.get("orphaned").and_then(serde_json::Value::as_u64).unwrap_or_default();
        Ok(if orphaned == 0 { Exit::Fine } else { Exit::Problems })
    }
}
