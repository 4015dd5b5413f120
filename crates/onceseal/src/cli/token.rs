//! `onceseal token`: who may use the operator API from elsewhere.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Stop, text};
use crate::config::unit::Span;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal token issue ann --for 90d        prints the token, once
  onceseal token list
  onceseal token revoke ann                 takes effect within 5 seconds

On the server's own machine no token is needed")]
pub struct Token {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token and print it; only its hash is kept
    Issue {
        /// Whose it is; stands in the audit of everything done with it
        name: String,
        /// How long it is good, such as 90d [default: until it is revoked]
        #[arg(long = "for", value_name = "DURATION")]
        lasts: Option<String>,
    },
    /// All tokens that ever were, without the tokens themselves
    List,
    /// End a token
    Revoke {
        /// Whose
        name: String,
    },
}

impl Token {
    /// Runs it.
    ///
    /// # Errors
    /// The name is taken or unknown, or the store can't be written.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let order = match &self.what {
            What::Issue { name, lasts } => {
                let ttl = lasts.as_deref().map(seconds).transpose()?;
                Order::post("/tokens").json(&json!({ "name": name, "ttl_s": ttl }))
            }
            What::List => Order::get("/tokens"),
            What::Revoke { name } => Order::post(path(&["tokens", name, "revoke"], &[])),
        };
        let answer = Api::open(globals, Folder::Made).await?.call(order).await?;
        match (&self.what, answer.get("tokens").and_then(Json::as_array)) {
            (What::List, Some(tokens)) if !out.json => {
                let columns = ["name", "state", "created_at", "expires_at"];
                let row = |one: &Json| columns.iter().map(|column| text(one, column)).collect();
                out.table(&columns, &tokens.iter().map(row).collect::<Vec<_>>());
            }
            // Alone on its line, so that it can be piped into a file.
            (What::Issue { .. }, _) if !out.json => out.line(text(&answer, "token")),
            _ => out.answer(&answer),
        }
        Ok(Exit::Fine)
    }
}

fn seconds(duration: &str) -> Result<u64, Stop> {
    let span: Span = serde_json::from_value(json!(duration))
        .map_err(|cause| Stop::new(Exit::Usage, format!("--for: {cause}")))?;
    match span.0.as_secs() {
        0 => Err(Stop::new(Exit::Usage, format!("--for is {span}; use 1s or more"))),
        seconds => Ok(seconds),
    }
}
