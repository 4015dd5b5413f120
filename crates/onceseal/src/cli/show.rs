//! `onceseal show`: everything about an event, with the seven questions of the specification (12.2).

use clap::Args;
use serde_json::Value as Json;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::list::tone;
use super::out::{Ended, Exit, Out, Tone, text};

/// The seven questions, by the name of their answer.
const QUESTIONS: [(&str, &str); 7] = [
    ("1_arrived", "Has it arrived?"),
    ("2_how_often", "How often?"),
    ("3_first_processing", "When was it first processed?"),
    ("4_repeated", "Was it repeated?"),
    ("5_reused", "Was the result reused?"),
    ("6_formal_result", "What is the formal result?"),
    ("7_inconsistent_side_effects", "Any inconsistent side effects?"),
];

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal show evt_1T5pdGGRtItDCjuJ7AJcYMdb
  onceseal show av_evt_1T5pdGGRtItDCjuJ7AJcYMdb --json
  onceseal show 42 --source shop

Exit code 6: no such event")]
pub struct Show {
    /// The sender's event id, or the reference
    #[arg(value_name = "EVENT")]
    event: String,
    /// Source, when several have this id
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

impl Show {
    /// Runs it.
    ///
    /// # Errors
    /// There is no such event, or several.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let query: Vec<_> = self.source.into_iter().map(|source| ("source", source)).collect();
        let order = Order::get(path(&["events", &self.event], &query));
        let event = Api::open(globals, Folder::Expected).await?.call(order).await?;
        if out.json {
            out.value(&event);
        } else {
            print(out, &event);
        }
        Ok(Exit::Fine)
    }
}

fn print(out: Out, event: &Json) {
    let status = text(event, "status");
    out.line(format_args!(
        "{}  {}",
        out.paint(Tone::Strong, &text(event, "ref")),
        out.paint(tone(&status), &status)
    ));
    for (title, name) in [
        ("event id", "event_id"),
        ("source", "source"),
        ("type", "type"),
        ("mode", "mode"),
        ("session", "sid"),
        ("happened", "occurred_at"),
        ("first seen", "created_at"),
        ("last change", "updated_at"),
        ("payload hash", "payload_hash"),
        ("run hash", "run_hash"),
        ("signature", "signature_status"),
        ("key", "key_id"),
        ("page", "html_url"),
        ("archive", "zip_url"),
        ("JSON", "json_url"),
        ("mark", "mark"),
        ("reason", "reason"),
        ("cause", "cause"),
    ] {
        if event.get(name).is_some_and(|value| !value.is_null()) {
            out.line(format_args!("  {title:<13}{}", text(event, name)));
        }
    }
    for path in event.get("paths").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str) {
        out.line(format_args!("  {:<13}{}", "file", super::out::clean(path)));
    }
    out.line("");
    if let Some(answers) = event.get("questions") {
        for (name, question) in QUESTIONS {
            out.line(format_args!("  {question:<32}{}", answer(answers.get(name))));
        }
    }
    section(
        out,
        event,
        "arrival_list",
        "arrivals",
        &["n", "received_at", "verdict", "differs", "source", "client_ip", "request_id"],
    );
    section(
        out,
        event,
        "announcements",
        "announcements",
        &["id", "destination", "event_name", "status", "attempts", "outcome", "error"],
    );
    section(out, event, "related", "related events", &["ref", "status", "type", "created_at"]);
}

fn answer(value: Option<&Json>) -> String {
    match value {
        None | Some(Json::Null) => "nothing".into(),
        Some(Json::Bool(true)) => "yes".into(),
        Some(Json::Bool(false)) => "no".into(),
        Some(Json::Array(list)) if list.is_empty() => "none".into(),
        Some(Json::Object(result)) => {
            let summary = result.get("summary").or_else(|| result.get("reason"));
            summary.and_then(Json::as_str).map_or_else(|| "see above".into(), super::out::clean)
        }
        Some(Json::String(text)) => super::out::clean(text),
        Some(other) => super::out::clean(&other.to_string()),
    }
}

fn section(out: Out, event: &Json, name: &str, title: &str, columns: &[&str]) {
    let Some(list) = event.get(name).and_then(Json::as_array).filter(|list| !list.is_empty()) else { return };
    let rows: Vec<Vec<String>> =
        list.iter().map(|one| columns.iter().map(|column| text(one, column)).collect()).collect();
    out.line(format_args!("\n{}", out.paint(Tone::Strong, title)));
    out.table(columns, &rows);
}
