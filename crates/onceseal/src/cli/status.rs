//! `onceseal status`.

use clap::Args;
use serde_json::Value as Json;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out, text};

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
        let server = match &api {
            Api::Remote { base, .. } => base.as_str(),
            Api::Local { .. } => "not running",
        };
        if out.json {
            if let Some(members) = status.as_object_mut() {
                members.insert("server".into(), server.into());
            }
            out.value(&status);
        } else {
            out.line(format_args!("server         {server}"));
            out.line(format_args!("open events    {}", counts(status.get("events"))));
            out.line(format_args!("announcements  {}", counts(status.get("announcements"))));
            out.line(format_args!("writes waiting {}", text(&status, "waiting_writes")));
        }
        Ok(Exit::Fine)
    }
}

/// `2 failed (the oldest 17 s)`, for each state that has any.
fn counts(group: Option<&Json>) -> String {
    let states = group.and_then(Json::as_object).into_iter().flatten();
    let words: Vec<String> = states
        .map(|(state, of)| {
            format!("{} {state} (the oldest {} s)", text(of, "count"), text(of, "oldest_age_s"))
        })
        .collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}
