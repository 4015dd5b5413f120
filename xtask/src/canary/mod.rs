//! `cargo xtask canary FOLDER...`: no secret and no full mail address in what a run left behind.
//!
//! Every secret is a canary. First the scan proves that it finds: a canary is planted in a copy of one log,
//! error, metric, export, page and database, and each must be found there. Then the run itself is scanned
//! and nothing may be found. Modules in reading order: [`hoard`] (what is secret in a house), [`scan`]
//! (where it is looked for), [`plant`] (the proof),
//! [`demo`] (a run of the demo to scan), [`market`] (a life of the supply side to scan). Of a mounted credential any
//! eight characters in a row count.
//!
//! A folder is a house of the laboratory ([`crate::lab::House`]); what its server said over HTTP is kept
//! beside it in `observed/`. Not here: runs; race and crash bring theirs.

mod demo;
mod hoard;
mod market;
mod plant;
mod scan;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::lab::House;
use hoard::Hoard;

/// Ending of a file beside a house's data that is a secret, as the demo's.
const SECRET_END: &str = ".secret";
/// Folder beside a house's data with what was seen over HTTP.
const OBSERVED: &str = "observed";
/// Name of a canary any part of which counts.
const CREDENTIAL: &str = "credential";
/// File in it with canaries that stand in no other file: `name`, tab, text.
const CANARIES: &str = "canaries.txt";

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Canary {
    /// Folders of runs, such as target/lab/race
    #[arg(required_unless_present_any = ["demo", "market"], value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Run `onceseal demo` with everything logged, and scan that
    #[arg(long)]
    demo: bool,
    /// Let suppliers mount, rotate, sell and withdraw with everything logged, and scan that
    #[arg(long)]
    market: bool,
}

impl Canary {
    /// Scans each folder.
    ///
    /// # Errors
    /// A canary was found, or a planted one was not.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if self.demo {
            demo::scanned()?;
        }
        if self.market {
            market::scanned()?;
        }
        for folder in &self.folders {
            let house = House::at(folder.canonicalize().with_context(|| folder.display().to_string())?);
            judged(&house)?;
        }
        Ok(())
    }
}

/// What was seen over HTTP, and what must not be seen.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Full mail addresses that were sent.
    pub(crate) mails: Vec<String>,
    /// Secrets that stand in no file, with a name for people: tokens issued in the run.
    pub(crate) secrets: Vec<(String, String)>,
    /// Credentials that were mounted, or sent to be.
    pub(crate) credentials: Vec<String>,
    /// Bodies of error answers.
    pub(crate) errors: Vec<Vec<u8>>,
    /// Answers of `/metrics`.
    pub(crate) metrics: Vec<Vec<u8>>,
    /// Answers of the export.
    pub(crate) exports: Vec<Vec<u8>>,
    /// Any other answer: pages, certificates, the operator API.
    pub(crate) pages: Vec<Vec<u8>>,
}

impl Observed {
    /// Keeps it beside the house's data, over what an earlier call kept.
    fn keep(&self, house: &House) -> anyhow::Result<()> {
        let folder = house.folder().join(OBSERVED);
        std::fs::create_dir_all(&folder)?;
        let kinds = [
            ("errors", &self.errors),
            ("metrics", &self.metrics),
            ("exports", &self.exports),
            ("pages", &self.pages),
        ];
        for (name, bodies) in kinds {
            std::fs::write(folder.join(name), bodies.join(&b"\n"[..]))?;
        }
        let mails = self.mails.iter().map(|mail| format!("mail\t{mail}\n"));
        let secrets = self.secrets.iter().map(|(name, text)| format!("{name}\t{text}\n"));
        let credentials = self.credentials.iter().map(|text| format!("{CREDENTIAL}\t{text}\n"));
        std::fs::write(folder.join(CANARIES), mails.chain(secrets).chain(credentials).collect::<String>())?;
        Ok(())
    }
}

/// Keeps what was seen, proves the scan, and scans the house.
///
/// # Errors
/// A canary was found, or a planted one was not.
pub(crate) fn proven_then_clean(house: &House, seen: &Observed) -> anyhow::Result<()> {
    seen.keep(house)?;
    judged(house)
}

/// Scans one house of many, whose scan was proven on another; gives what was found.
///
/// # Errors
/// The house can't be read.
pub(crate) fn leaks(house: &House, mails: &[&str]) -> anyhow::Result<Vec<String>> {
    let seen = Observed { mails: mails.iter().map(ToString::to_string).collect(), ..Observed::default() };
    seen.keep(house)?;
    let scanned = scan::folder(house.folder(), &Hoard::of(house)?)?;
    Ok(scanned.findings.iter().map(ToString::to_string).collect())
}

fn judged(house: &House) -> anyhow::Result<()> {
    let hoard = Hoard::of(house)?;
    let planted = plant::all_found(house, &hoard)?;
    let scanned = scan::folder(house.folder(), &hoard)?;
    let found: Vec<_> = scanned.findings.iter().map(ToString::to_string).collect();
    ensure!(found.is_empty(), "secrets were found:\n  {}", found.join("\n  "));
    println!(
        "canary: {planted} planted and found; then {} canaries in {} files ({} KiB): none found",
        hoard.count(),
        scanned.files,
        scanned.bytes / 1024
    );
    Ok(())
}

/// The path below a house, for people.
fn shown(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}
