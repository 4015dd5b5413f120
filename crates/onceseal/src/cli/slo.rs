//! `onceseal slo`: whether the supply side's promises are kept, and the files for those who watch it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::Value as Json;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Stop, text};
use super::progress;
use crate::slo;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal slo report
  onceseal slo report --since 2026-03-01T00:00:00Z --until 2026-04-01T00:00:00Z --json
  onceseal slo files deploy        Prometheus rules and a Grafana dashboard

Errors are answers with 5xx, twins that wait for more than 30 s, and races lost to another writer; refusals by rules
are none. Exit code 3: a promise is broken")]
pub struct Slo {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Requests, errors, budgets and times of each button, and the metrics of the gate
    Report {
        /// First instant (RFC 3339) [default: 30 days before the end]
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// First instant after it (RFC 3339) [default: now]
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
    },
    /// Write prometheus/onceseal-supply.rules.yml and grafana/onceseal-supply.json into a folder
    Files {
        /// The folder
        folder: PathBuf,
    },
}

impl Slo {
    /// Runs it.
    ///
    /// # Errors
    /// The supply side is off, a time can't be used, or the store or the folder can't be used.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        match self.what {
            What::Report { since, until } => report(globals, out, [("since", since), ("until", until)]).await,
            What::Files { folder } => write(&folder, out),
        }
    }
}

async fn report(globals: &Globals, out: Out, asked: [(&str, Option<String>); 2]) -> Ended {
    let query: Vec<_> = asked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let api = Api::open(globals, Folder::Expected).await?;
    let order = Order::get(path(&["slo"], &query));
    let report = progress::during("counting", api.call(order)).await?;
    if out.json {
        out.value(&report);
    } else {
        shown(&report, out);
    }
    let broken = report.get("broken").and_then(Json::as_bool).unwrap_or(true);
    Ok(if broken { Exit::Problems } else { Exit::Fine })
}

fn rows(report: &Json, name: &str, cells: impl Fn(&Json) -> Vec<String>) -> Vec<Vec<String>> {
    report.get(name).and_then(Json::as_array).into_iter().flatten().map(cells).collect()
}

fn shown(report: &Json, out: Out) {
    let period = report.get("period").unwrap_or(&Json::Null);
    out.line(format_args!("{} to {}", text(period, "start"), text(period, "end")));
    let buttons = rows(report, "buttons", |one| {
        let of = |name| text(one, name);
        vec![
            of("button"),
            of("name"),
            of("requests"),
            of("errors"),
            format!("{} / {}", of("success_pct"), of("objective_pct")),
            of("budget_left_pct"),
            format!("{} / {}", of("p95_ms"), of("p95_limit_ms")),
            format!("{} / {}", of("conflict_pct"), of("conflict_limit_pct")),
            format!("{} / {}", of("explained_pct"), of("explained_objective_pct")),
            of("status"),
        ]
    });
    let headings = [
        "button",
        "name",
        "requests",
        "errors",
        "success % / at least",
        "budget left %",
        "p95 ms / at most",
        "conflicts % / at most",
        "explained % / at least",
        "verdict",
    ];
    out.table(&headings, &buttons);
    let metrics = rows(report, "metrics", |one| {
        let of = |name| text(one, name);
        vec![
            of("metric"),
            of("name"),
            of("value"),
            of("target"),
            of("numerator"),
            of("denominator"),
            of("status"),
        ]
    });
    out.table(&["metric", "name", "value", "target", "counted", "of", "verdict"], &metrics);
}

fn write(folder: &Path, out: Out) -> Ended {
    for (name, text) in slo::files() {
        let file = folder.join(name);
        let fail = |cause: std::io::Error| Stop::failed(format!("{}: {cause}", file.display()));
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).map_err(fail)?;
        }
        std::fs::write(&file, text).map_err(fail)?;
        out.line(file.display());
    }
    Ok(Exit::Fine)
}
