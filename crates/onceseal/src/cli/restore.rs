//! `onceseal restore`: puts a backup in the place of the database. The backup is checked on a copy first;
//! what stood there is kept aside, with its write-ahead file, which must never meet the restored one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use kernel::Clock as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use store::migration::Chain;

use super::Globals;
use super::out::{Ended, Exit, Out, Stop};
use super::progress;
use crate::random::SystemClock;
use crate::wiring::{chains, make_folder};

/// What every SQLite file begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Bytes copied at a time.
const CHUNK: usize = 1024 * 1024;
/// Files that belong to one database.
const PARTS: [&str; 3] = ["", "-wal", "-shm"];

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal restore /backup/auditvisa-2026-03-01.db
  onceseal restore backup.db --data /srv/auditvisa

Refuses while a server runs on the folder (exit code 7). The replaced database is kept in a folder beside it.
Before the server is started, `onceseal reconcile --after-restore` looks for what the backup is too old to know")]
pub struct Restore {
    /// File that `onceseal backup` wrote
    #[arg(value_name = "FILE")]
    from: PathBuf,
}

impl Restore {
    /// Runs it.
    ///
    /// # Errors
    /// A server runs, or the file is no whole backup; the old database stands then.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let loaded = globals.load()?;
        let folder = &loaded.config.storage.folder;
        if !self.from.is_file() {
            return Err(Stop::new(
                Exit::NothingFound,
                format!("{}: there is no such file", self.from.display()),
            ));
        }
        looks_whole(&self.from)?;
        make_folder(folder).map_err(Stop::failed)?;
        let lock = lock(folder)?;
        let aside = tempfile::Builder::new().prefix("restore-").tempdir_in(folder)?;
        check(&self.from, aside.path(), &chains(&loaded.config)).await?;
        let fresh = aside.path().join("restored.db");
        let hash = copy(&self.from, &fresh)?;
        let kept = put_aside(folder)?;
        std::fs::rename(&fresh, folder.join(store::FILE))?;
        File::open(folder)?.sync_all()?;
        drop(lock);
        let kept = kept.map(|kept| kept.display().to_string());
        out.answer(
            &json!({ "restored": folder.display().to_string(), "sha256": hash, "replaced_kept_in": kept }),
        );
        Ok(Exit::Fine)
    }
}

/// A database that was copied while it was in use has its newest commits in another file.
fn looks_whole(from: &Path) -> Result<(), Stop> {
    let wrong = |text: &str| Stop::new(Exit::Problems, format!("{}: {text}", from.display()));
    let mut magic = [0; 16];
    let read = File::open(from)?.read_exact(&mut magic);
    if read.is_err() || magic != *MAGIC {
        return Err(wrong("this is no database"));
    }
    let log = part(from, "-wal");
    if std::fs::metadata(log).is_ok_and(|meta| meta.len() > 0) {
        return Err(wrong(
            "a write-ahead file stands beside it, so it is a copied database and no backup; take one with `onceseal backup`",
        ));
    }
    Ok(())
}

/// Nobody may open the folder meanwhile.
fn lock(folder: &Path) -> Result<File, Stop> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(store::LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let text = format!("a server uses {}; stop it before restoring", folder.display());
            Err(Stop::new(Exit::Server, text))
        }
        Err(TryLockError::Error(cause)) => Err(cause.into()),
    }
}

/// Opens a copy as a server would: right schema, whole file.
async fn check(from: &Path, aside: &Path, chains: &[Chain]) -> Result<(), Stop> {
    let folder = aside.join("check");
    std::fs::create_dir(&folder)?;
    copy(from, &folder.join(store::FILE))?;
    let problem = |text: String| Stop::new(Exit::Problems, format!("{}: {text}", from.display()));
    let settings = store::Settings::Sqlite(store::Sqlite { readers: 1, ..store::Sqlite::new(&folder) });
    let opened = store::Store::open(&settings, chains, Arc::new(SystemClock))
        .await
        .map_err(|cause| problem(cause.to_string()))?;
    let found = progress::during("checking the backup", opened.integrity()).await;
    let found = found.map_err(|cause| problem(cause.to_string()))?;
    match found.first() {
        None => Ok(()),
        Some(first) => Err(problem(format!("the backup is damaged: {first}"))),
    }
}

/// Copies and syncs; gives the SHA-256.
fn copy(from: &Path, to: &Path) -> Result<String, Stop> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut source = File::open(from)?;
    let bar = progress::bar("copying", source.metadata()?.len());
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut chunk = vec![0; CHUNK];
    let mut hash = Sha256::new();
    loop {
        let read = source.read(&mut chunk)?;
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        target.write_all(bytes)?;
        hash.update(bytes);
        bar.inc(bytes.len() as u64);
    }
    target.sync_all()?;
    bar.finish_and_clear();
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Moves the old database with all that belongs to it into a folder of its own.
fn put_aside(folder: &Path) -> Result<Option<PathBuf>, Stop> {
    let database = folder.join(store::FILE);
    if !PARTS.iter().any(|suffix| part(&database, suffix).exists()) {
        return Ok(None);
    }
    let kept = folder.join(format!("replaced-{}", SystemClock.now().micros()));
    std::fs::create_dir(&kept)?;
    // The main file goes first: without it the others mean nothing to anybody.
    for suffix in PARTS {
        let from = part(&database, suffix);
        if from.exists() {
            std::fs::rename(&from, part(&kept.join(store::FILE), suffix))?;
        }
    }
    File::open(&kept)?.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok(Some(kept))
}

fn part(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
