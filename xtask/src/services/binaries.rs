//! Where PostgreSQL's programs are: Debian keeps all but a few out of `PATH`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, bail};

/// Oldest version that Onceseal supports.
const OLDEST: u32 = 15;
/// Debian's folder: one folder a major version below it, with `bin/`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The programs of one version.
#[derive(Clone, Debug)]
pub(super) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The first folder of `PATH` that has a server new enough, else Debian's newest.
    ///
    /// # Errors
    /// There is none; the message says which ones are too old.
    pub(super) fn find() -> anyhow::Result<Self> {
        // To ask for a version is a program start, and every question to a server begins here.
        static FOUND: OnceLock<Binaries> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found.clone());
        }
        let found = Self::look()?;
        Ok(FOUND.get_or_init(|| found).clone())
    }

    fn look() -> anyhow::Result<Self> {
        let mut too_old = Vec::new();
        for folder in folders() {
            match version(&folder) {
                Some(found) if found >= OLDEST => return Ok(Self { folder }),
                Some(found) => too_old.push(found.to_string()),
                None => {}
            }
        }
        if too_old.is_empty() {
            bail!("PostgreSQL is not installed; as root: apt-get install postgresql");
        }
        bail!("PostgreSQL {OLDEST} or newer is needed, here is {}", too_old.join(", "))
    }

    /// Path of one of them.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a command to its end and gives its output.
    ///
    /// # Errors
    /// It failed; the message has its last words.
    pub(super) fn run(mut command: Command, name: &str) -> anyhow::Result<String> {
        let told = command.output().with_context(|| format!("{name} can't be started"))?;
        if !told.status.success() {
            let words = String::from_utf8_lossy(&told.stderr);
            bail!("{name} ended with {}: {}", told.status, words.trim().replace('\n', " | "));
        }
        Ok(String::from_utf8(told.stdout)?)
    }
}

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    // A link in a folder of links has no neighbours; the real folder has all programs.
    for folder in &mut folders {
        if let Some(real) = folder.join("postgres").canonicalize().ok().as_deref().and_then(Path::parent) {
            *folder = real.to_owned();
        }
    }
    let mut debian: Vec<(u32, PathBuf)> = std::fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    debian.sort();
    folders.extend(debian.into_iter().rev().map(|(_, folder)| folder));
    folders
}

/// Major version of the server in a folder that has all we use; "postgres (PostgreSQL) 15.18 (Debian ...)".
fn version(folder: &Path) -> Option<u32> {
    let complete =
        ["postgres", "initdb", "psql", "pg_basebackup"].iter().all(|name| folder.join(name).exists());
    if !complete {
        return None;
    }
    let told = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8(told.stdout).ok()?;
    let number: String = text.split_whitespace().nth(2)?.chars().take_while(char::is_ascii_digit).collect();
    number.parse().ok()
}
