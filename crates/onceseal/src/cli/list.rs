//! `onceseal list`.

use clap::Args;
use serde_json::Value as Json;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Tone, text};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal list
  onceseal list --status orphaned
  onceseal list --mail ann@example.com --since 2026-03-01T00:00:00Z
  onceseal list --session cs_live_a1b2 --json

Mail addresses are compared by a keyed digest; they are not stored. Exit code 6: nothing matches")]
pub struct List {
    /// received, processing, processed, failed or orphaned
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Checkout session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Payment
    #[arg(long, value_name = "ID")]
    payment: Option<String>,
    /// Mail address of the payer
    #[arg(long, value_name = "ADDRESS")]
    mail: Option<String>,
    /// Source name
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// First arrival not before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// First arrival before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Go on after the last page: the number it ended with
    #[arg(long, value_name = "NUMBER")]
    before: Option<i64>,
    /// Events on the page, at most 200
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
}

impl List {
    /// Runs it.
    ///
    /// # Errors
    /// A value can't be used, or the store can't be read.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let mut query = vec![("limit", self.limit.to_string())];
        let filters = [
            ("status", self.status),
            ("session", self.session),
            ("payment", self.payment),
            ("mail", self.mail),
            ("source", self.source),
            ("since", self.since),
            ("until", self.until),
            ("before", self.before.map(|number| number.to_string())),
        ];
        query.extend(filters.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let found =
            Api::open(globals, Folder::Expected).await?.call(Order::get(path(&["events"], &query))).await?;
        let events = found.get("events").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        if out.json {
            out.value(&found);
        } else if !events.is_empty() {
            let rows: Vec<Vec<String>> = events.iter().map(|event| row(out, event)).collect();
            out.table(&["ref", "status", "type", "mode", "first seen", "certificate"], &rows);
            if let Some(next) = found.get("next").and_then(Json::as_i64) {
                out.line(out.paint(Tone::Faint, &format!("more: --before {next}")));
            }
        }
        if events.is_empty() {
            eprintln!("onceseal: no event matches");
            return Ok(Exit::NothingFound);
        }
        Ok(Exit::Fine)
    }
}

fn row(out: Out, event: &Json) -> Vec<String> {
    let status = text(event, "status");
    let mark = text(event, "mark");
    let shown = if mark == "-" { status.clone() } else { format!("{status} ({mark})") };
    vec![
        text(event, "ref"),
        out.paint(tone(&status), &shown),
        text(event, "type"),
        text(event, "mode"),
        text(event, "created_at"),
        text(event, "run_hash").chars().take(12).collect(),
    ]
}

/// How an event's state is set off.
#[must_use]
pub fn tone(status: &str) -> Tone {
    match status {
        "processed" => Tone::Good,
        "failed" | "orphaned" => Tone::Bad,
        _ => Tone::Calm,
    }
}
