//! Where canaries are looked for: every file of a house but those that hold the secrets by design.

use std::fmt;
use std::path::{Path, PathBuf};

use super::hoard::Hoard;
use super::{CANARIES, OBSERVED, SECRET_END, shown};

/// Files and folders that hold secrets by design.
const HOLDERS: [&str; 3] = ["secrets", "data/keys", "data/run"];

/// A kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Log,
    Error,
    Metric,
    Export,
    Page,
    Database,
    Backup,
    Other,
}

/// A canary where none may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    /// Name of the secret, never its text.
    pub(crate) name: String,
    file: String,
    at: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} in {} at byte {}", self.place, self.name, self.file, self.at)
    }
}

/// What a scan saw.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) files: usize,
    pub(crate) bytes: usize,
    pub(crate) findings: Vec<Finding>,
}

/// Scans a house.
///
/// # Errors
/// A file can't be read.
pub(crate) fn folder(folder: &Path, hoard: &Hoard) -> anyhow::Result<Scanned> {
    let mut scanned = Scanned::default();
    for path in files(folder)? {
        let bytes = std::fs::read(&path)?;
        scanned.files += 1;
        scanned.bytes += bytes.len();
        let file = shown(folder, &path);
        for (canary, at) in hoard.found_in(&bytes) {
            let name = hoard.name(canary).to_owned();
            scanned.findings.push(Finding { place: place(&file), name, file: file.clone(), at });
        }
    }
    Ok(scanned)
}

/// All files that are scanned, in the order of their names.
///
/// # Errors
/// A folder can't be read.
pub(crate) fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next)? {
            let entry = entry?;
            let name = shown(folder, &entry.path());
            let holds = HOLDERS.contains(&name.as_str()) || name.ends_with(SECRET_END);
            if holds || name == format!("{OBSERVED}/{CANARIES}") {
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                all.push(entry.path());
            }
        }
    }
    all.sort();
    Ok(all)
}

/// The kind of a file, by its path below the house.
pub(crate) fn place(file: &str) -> Place {
    let kinds = [
        ("logs/", Place::Log),
        ("observed/errors", Place::Error),
        ("observed/metrics", Place::Metric),
        ("observed/exports", Place::Export),
        ("data/processed.jsonl", Place::Export),
        ("observed/pages", Place::Page),
        ("data/deliveries/", Place::Page),
        ("data/state.db", Place::Database),
        ("backup/", Place::Backup),
    ];
    kinds.iter().find(|(start, _)| file.starts_with(start)).map_or(Place::Other, |(_, place)| *place)
}
