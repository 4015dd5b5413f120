//! `onceseal reconcile`: records and files brought together again; after a restore, the database compared with
//! what stands outside of it.

use certify::ledgerfile::ProcessedFile;
use certify::restored::Announcements;
use clap::Args;
use serde_json::Value as Json;

use super::Globals;
use super::api::{self, Api, Folder, Order};
use super::out::{Ended, Exit, Out, Stop, clean, text};
use super::progress;
use crate::wiring::{has_store, processed_file};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal reconcile
  onceseal reconcile --after-restore --hold      after a restore, before the server is started

Looks at all records and files, as the server does at its start and more: adopts files whose record is
missing, rebuilds files that are missing or damaged, and marks what only a person can mend (exit code 3).

With --after-restore it looks for what a restored database forgot: anchor keys, certificates whose files or
lines in processed.jsonl stand there without a record, records without a line, announcements that may have gone
out before. What verifies is put on record again; nothing is removed, nothing guessed. No server may run, on
other nodes neither. Exit code 3: something was found")]
pub struct Reconcile {
    /// Compare a restored database with files, list and keys
    #[arg(long)]
    after_restore: bool,
    /// Let announcements that may have gone out before wait for a person, instead of sending them
    #[arg(long, requires = "after_restore")]
    hold: bool,
}

/// Kinds of findings, as they are told, with what to do about them.
const KINDS: [(&str, &str, &str); 7] = [
    ("keys", "anchor keys that the database forgot", ""),
    (
        "adopted",
        "certificates put on record again",
        "their announcements wait: `onceseal announcements list`",
    ),
    (
        "files_without_record",
        "certificates whose files can't become a record",
        "look at each; a sender's repeat makes a new one",
    ),
    (
        "lines_without_record",
        "events in processed.jsonl without a record",
        "`onceseal import` takes such lines over, so that these events are not certified again",
    ),
    (
        "lines_that_differ",
        "events whose line names another certificate than the record",
        "look at each with `onceseal inspect`",
    ),
    (
        "records_without_line",
        "records without a line in processed.jsonl",
        "`onceseal export --rebuild` makes the list anew",
    ),
    (
        "announcements",
        "announcements that may have gone out before",
        "--hold keeps them back; without it they are sent at the start",
    ),
];

impl Reconcile {
    /// Runs it.
    ///
    /// # Errors
    /// The store or the folder can't be read.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        if self.after_restore {
            return after_restore(
                globals,
                if self.hold { Announcements::Hold } else { Announcements::Tell },
                out,
            )
            .await;
        }
        let api = Api::open(globals, Folder::Expected).await?;
        let done =
            progress::during("looking at records and files", api.call(Order::post("/reconcile"))).await?;
        out.answer(&done);
        let orphaned = done.get("orphaned").and_then(Json::as_u64).unwrap_or_default();
        Ok(if orphaned == 0 { Exit::Fine } else { Exit::Problems })
    }
}

async fn after_restore(globals: &Globals, announcements: Announcements, out: Out) -> Ended {
    if globals.server.is_some() {
        let text = "--after-restore needs the data folder itself; run it on that machine, without --server";
        return Err(Stop::new(Exit::Usage, text));
    }
    let loaded = globals.load()?;
    let folder = &loaded.config.storage.folder;
    if api::running(folder)?.is_some() {
        let text =
            format!("a server uses {}; stop it, and those of other nodes, before looking", folder.display());
        return Err(Stop::new(Exit::Server, text));
    }
    if !has_store(&loaded) {
        let text = format!("there is no data in {} (storage.folder)", folder.display());
        return Err(Stop::new(Exit::NothingFound, text));
    }
    let Api::Local { house, .. } = Api::local(&loaded).await? else {
        return Err(Stop::failed("the folder could not be opened"));
    };
    let export = ProcessedFile::at(processed_file(folder));
    let looked = house.visa.after_restore(&export, announcements, "local");
    let report = progress::during("comparing the database with files, list and keys", looked).await;
    let report = report.map_err(|cause| Stop::failed(cause.to_string()))?;
    if out.json {
        out.value(&report);
    } else {
        show(&report, out);
    }
    let found = report.get("found").and_then(Json::as_u64).unwrap_or_default();
    Ok(if found == 0 { Exit::Fine } else { Exit::Problems })
}

fn show(report: &Json, out: Out) {
    let count =
        |kind: &str| report.pointer(&format!("/{kind}/count")).and_then(Json::as_u64).unwrap_or_default();
    let rows: Vec<Vec<String>> =
        KINDS.iter().map(|(kind, what, _)| vec![count(kind).to_string(), (*what).to_owned()]).collect();
    out.table(&["found", "what"], &rows);
    for (kind, what, next) in KINDS.iter().filter(|(kind, ..)| count(kind) > 0) {
        out.line(format_args!("\n{what}{}{next}", if next.is_empty() { "" } else { ": " }));
        let list = report.pointer(&format!("/{kind}/list")).and_then(Json::as_array);
        for finding in list.into_iter().flatten() {
            let names = finding.as_object().map(|members| members.keys().cloned().collect::<Vec<_>>());
            let words: Vec<String> = names
                .unwrap_or_default()
                .iter()
                .map(|name| format!("{name} {}", text(finding, name)))
                .collect();
            out.line(format_args!("  {}", clean(&words.join("  "))));
        }
    }
}
