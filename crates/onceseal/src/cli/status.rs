//! `onceseal status`.

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal status
  onceseal status --server https://visa.example.com --token-file ~/.onceseal-token")]
pub struct Status {}

impl Status {
    /// Runs it.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let api = Api::open(globals, Folder::Expected).await?;
        let mut status = api.call(Order::get("/status")).await?;
        if let Some(members) = status.as_object_mut() {
            let server = match &api {
                Api::Remote { base, .. } => base.as_str(),
                Api::Local { .. } => "not running",
            };
            members.insert("server".into(), server.into());
        }
        out.answer(&status);
        Ok(Exit::Fine)
    }
}
