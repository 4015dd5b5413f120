//! `onceseal announcements`: those that wait for a person, because nobody knows whether they arrived or
//! because they were given up.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as Json, json};

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, text};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal announcements list                    the held ones
  onceseal announcements list --status pending
  onceseal announcements redrive 17              send it anew
  onceseal announcements settle 17 delivered     somebody looked: it has arrived")]
pub struct Announcements {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List them; without --status those that are held
    List {
        /// pending, sending, delivered, refused, uncertain or dead
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: u32,
    },
    /// Send a held one anew
    Redrive {
        /// Its number
        id: u64,
    },
    /// Say how a held one ended; nothing is sent
    Settle {
        /// Its number
        id: u64,
        /// How it ended
        end: End,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    /// It has arrived
    Delivered,
    /// It shall not be sent any more
    Dead,
}

impl Announcements {
    /// Runs it.
    ///
    /// # Errors
    /// There is no such announcement, or it is not in a state for this.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let order = match &self.what {
            What::List { status, limit } => {
                let mut query = vec![("limit", limit.to_string())];
                query.extend(status.iter().map(|status| ("status", status.clone())));
                Order::get(path(&["announcements"], &query))
            }
            What::Redrive { id } => Order::post(path(&["announcements", &id.to_string(), "redrive"], &[])),
            What::Settle { id, end } => {
                let end = match end {
                    End::Delivered => "delivered",
                    End::Dead => "dead",
                };
                Order::post(path(&["announcements", &id.to_string(), "settle"], &[]))
                    .json(&json!({ "as": end }))
            }
        };
        let answer = Api::open(globals, Folder::Expected).await?.call(order).await?;
        match answer.get("announcements").and_then(Json::as_array) {
            Some(list) if !out.json => {
                let columns = ["id", "destination", "status", "attempts", "object", "updated_at", "error"];
                let row = |one: &Json| columns.iter().map(|column| text(one, column)).collect();
                out.table(&columns, &list.iter().map(row).collect::<Vec<_>>());
            }
            _ => out.answer(&answer),
        }
        Ok(Exit::Fine)
    }
}
