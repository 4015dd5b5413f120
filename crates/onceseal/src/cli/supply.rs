//! `onceseal supply`: the platform's first administrator. Everybody else is made over the supply API.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out, text};
use super::token::seconds;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal supply admin ann                 prints a token, once; it is good for 3 days
  onceseal supply admin ann --for 8h        another token for the same person

The token opens everything of /api/v1/platform, /api/v1/supply and /api/v1/audit: suppliers, buyers, tokens of
their users")]
pub struct Supply {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Add an administrator of the platform and print a token; one who is there gets another token
    Admin {
        /// Who it is; stands in the audit
        name: String,
        /// How long the token is good, 1m to 3d
        #[arg(long = "for", value_name = "DURATION", default_value = "3d")]
        lasts: String,
    },
}

impl Supply {
    /// Runs it.
    ///
    /// # Errors
    /// The supply side is off, the name can't be used, or the store can't be written.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let What::Admin { name, lasts } = self.what;
        let ttl = seconds(&lasts)?;
        let order = Order::post("/platform-admins").json(&json!({ "name": name, "ttl_s": ttl }));
        let answer = Api::open(globals, Folder::Made).await?.call(order).await?;
        // Alone on its line, so that it can be piped into a file.
        if out.json {
            out.value(&answer);
        } else {
            out.line(text(&answer, "access_token"));
        }
        Ok(Exit::Fine)
    }
}
