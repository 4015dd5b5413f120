//! `onceseal copy`: a living SQLite installation becomes a PostgreSQL database. The server goes on until the
//! last step; then it is fenced, everything is compared once more, and what both sides hold is told. Not here:
//! how rows are copied (`store::copy`), what the fence is (`certify::fence`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use kernel::Time;
use serde_json::{Value as Json, json};
use store::copy::{Begun, Copy as Copying, Progress, Side, Tally, Walk, is_fenced};
use store::{FolderLock, Settings, Sqlite, Store};

use super::Globals;
use super::api::{self, Api, Folder, Order};
use super::out::{Ended, Exit, Out, Stop, Tone};
use super::progress;
use crate::config::Loaded;
use crate::random::SystemClock;
use crate::wiring::{chains, store_settings};

/// Walks before the fence; each later one has less to do.
const WALKS_MAX: u32 = 5;
/// Rows that a walk may find new or changed for the last step to be short.
const FEW: u64 = 2_000;
/// What is to be done once the copy is whole.
const NEXT: &str = "stop the server, set storage.database and postgres.password, start it again; keep state.db until you are sure";
/// Page cache of a reader, in KiB: chunks are read once.
const CACHE_KIB: u32 = 16 * 1024;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal copy --to postgres://onceseal@db.example.com/onceseal --to-password-file /etc/onceseal/secrets/db
  onceseal copy --to ... --rehearse       everything but the last step; the server is not touched
  onceseal copy --unfence                 gives the move up: the server writes again

Copies state.db of the data folder while its server runs. For the last step the server answers deliveries with
503 (their senders repeat them) and still gives certificates out; it stays so until it is started with the new
database. A copy that ended anywhere is taken up again by the same command. The target must be empty, or hold
the begun copy of this very installation; until the copy is finished, no server starts on it.

Files and keys stay in the data folder. Afterwards set storage.database (and postgres.password) and start the
server again; for more nodes see docs/operations.md. Exit code 3: the sides differ, or the target is not empty")]
pub struct Copy {
    /// Database to copy into; the user must own it
    #[arg(long, value_name = "URL", required_unless_present = "unfence")]
    to: Option<String>,
    /// File with the password of that user
    #[arg(long, value_name = "FILE", requires = "to")]
    to_password_file: Option<PathBuf>,
    /// Copy and compare, and leave the last step for another time
    #[arg(long, requires = "to")]
    rehearse: bool,
    /// Lift the fence: the old installation writes again
    #[arg(long, conflicts_with_all = ["to", "rehearse"])]
    unfence: bool,
}

impl Copy {
    /// Runs it.
    ///
    /// # Errors
    /// A side can't be reached or is refused; what was copied stays, and the source is as it was, except for
    /// the fence once it is up.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        if globals.server.is_some() {
            let text =
                "--server is not for this command: it reads the database file, so run it where that is";
            return Err(Stop::new(Exit::Usage, text));
        }
        let mut loaded = globals.load()?;
        // The source is the file, whatever is served already.
        loaded.config.storage.database = None;
        let folder = loaded.config.storage.folder.clone();
        if !folder.join(store::FILE).is_file() {
            let text = format!("there is no database in {} (storage.folder)", folder.display());
            return Err(Stop::new(Exit::NothingFound, text));
        }
        let Some(to) = &self.to else { return unfence(globals, &loaded, out).await };
        let source = Settings::Sqlite(Sqlite { cache_kib: CACHE_KIB, ..Sqlite::new(&folder) });
        let source = Store::look(&source).await?;
        let target = self.target(globals, to)?;
        let begun = Copying::begin(&source, &target, &chains(&loaded.config), Arc::new(SystemClock)).await;
        let copy = match begun.map_err(refused)? {
            Begun::Copy(copy) => copy,
            Begun::Finished(at) => return finished(&source, at, out).await,
        };
        if self.rehearse {
            return rehearsed(&catch_up(&copy).await?, out);
        }
        if !is_fenced(&source).await? {
            catch_up(&copy).await?;
        }
        let began = Instant::now();
        // Where no server runs, none may start meanwhile.
        let lock = fence(globals, &loaded, &source).await?;
        let tallies = walked("comparing everything", async |told| copy.last(told).await).await?.found;
        let agree = tallies.iter().all(Tally::agrees);
        if agree {
            copy.finish().await?;
        }
        drop(lock);
        show(&tallies, began.elapsed(), out);
        Ok(if agree { Exit::Fine } else { Exit::Problems })
    }

    /// The target, as the configuration would name it.
    fn target(&self, globals: &Globals, to: &str) -> Result<Settings, Stop> {
        let mut more = vec![("--to", format!("storage.database={to}"))];
        if let Some(file) = &self.to_password_file {
            let place = toml::Value::from(file.display().to_string());
            more.push(("--to-password-file", format!("postgres.password={{ file = {place} }}")));
        }
        let config = globals.places(more).load()?.config;
        store_settings(&config).map_err(|cause| Stop::new(Exit::Usage, cause))
    }
}

/// What a walk found, over how many rows, and how long it took.
struct Walked<T> {
    found: T,
    rows: u64,
    took: Duration,
}

/// Runs a walk over all tables and shows where it is.
async fn walked<T>(
    title: &'static str,
    walk: impl AsyncFnOnce(Progress<'_>) -> Result<T, store::Error>,
) -> Result<Walked<T>, Stop> {
    let began = Instant::now();
    let spinner = progress::spinner(title);
    let rows: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let told = |table: &str, count: u64| {
        spinner.set_message(format!("{title}: {count} rows of {table}"));
        rows.lock().unwrap_or_else(PoisonError::into_inner).insert(table.to_owned(), count);
    };
    let found = walk(&told).await?;
    spinner.finish_and_clear();
    let rows = rows.lock().unwrap_or_else(PoisonError::into_inner).values().sum();
    Ok(Walked { found, rows, took: began.elapsed() })
}

/// Walks until little is new; gives the last walk.
async fn catch_up(copy: &Copying) -> Result<Walked<u64>, Stop> {
    walked("copying", async |told| copy.catch_up(Walk::Append, told).await).await?;
    let mut walks = 1;
    loop {
        let walk = walked("comparing", async |told| copy.catch_up(Walk::Compare, told).await).await?;
        if walk.found <= FEW || walks == WALKS_MAX {
            return Ok(walk);
        }
        walks += 1;
    }
}

/// Ends all writing to the source: by its server where one runs, else here. Gives the folder's lock where no
/// server has it.
async fn fence(globals: &Globals, loaded: &Loaded, source: &Store) -> Result<Option<FolderLock>, Stop> {
    let folder = &loaded.config.storage.folder;
    let order = Order::post("/fence");
    if api::running(folder)?.is_some() {
        let api = Api::open(globals, Folder::Expected).await?;
        return progress::during("fencing the server", api.call(order)).await.map(|_| None);
    }
    if !is_fenced(source).await? {
        Api::local(loaded).await?.call(order).await?;
    }
    Ok(Some(FolderLock::take(folder)?))
}

async fn unfence(globals: &Globals, loaded: &Loaded, out: Out) -> Ended {
    let folder = &loaded.config.storage.folder;
    let order = Order::post("/fence/lift");
    if api::running(folder)?.is_some() {
        Api::open(globals, Folder::Expected).await?.call(order).await?;
    } else {
        store::lift_fence(folder)?;
        // For the audit.
        Api::local(loaded).await?.call(order).await?;
    }
    let next =
        "if the copy was finished, drop that database: two installations must never serve the same senders";
    out.answer(&json!({ "fenced": false, "next": next }));
    Ok(Exit::Fine)
}

/// The target has the whole copy already.
async fn finished(source: &Store, at: Time, out: Out) -> Ended {
    if !is_fenced(source).await? {
        let text = format!(
            "the target holds the copy of this installation, finished at {at}, and the fence was lifted since: what was written afterwards is not in it; drop that database and copy into an empty one"
        );
        return Err(Stop::new(Exit::Problems, text));
    }
    out.answer(&json!({ "finished": true, "finished_at": at.to_string(), "next": NEXT }));
    Ok(Exit::Fine)
}

fn rehearsed(last: &Walked<u64>, out: Out) -> Ended {
    let next = "the same command without --rehearse goes on from here and takes the last step";
    out.answer(&json!({
        "finished": false,
        "rows": last.rows,
        "written_by_the_last_walk": last.found,
        "last_walk_s": last.took.as_secs(),
        "next": next,
    }));
    Ok(Exit::Fine)
}

fn show(tallies: &[Tally], took: Duration, out: Out) {
    let agree = tallies.iter().all(Tally::agrees);
    let rows: u64 = tallies.iter().map(|tally| tally.target.rows).sum();
    let next = if agree {
        NEXT
    } else {
        "run the same command again, or give the move up with `onceseal copy --unfence`"
    };
    if out.json {
        let tables: Vec<Json> = tallies.iter().map(shown).collect();
        let fenced_s = took.as_secs();
        out.value(&json!({ "finished": agree, "rows": rows, "last_step_s": fenced_s, "tables": tables, "next": next }));
        return;
    }
    let short = |side: &Side| side.hash.to_hex().chars().take(16).collect::<String>();
    let row = |tally: &Tally| {
        let (tone, word) = if tally.agrees() { (Tone::Good, "same") } else { (Tone::Bad, "differs") };
        let Tally { source, target, .. } = tally;
        vec![
            tally.table.clone(),
            source.rows.to_string(),
            target.rows.to_string(),
            short(source),
            short(target),
            out.paint(tone, word),
        ]
    };
    let headings = ["table", "rows here", "rows there", "sha-256 here", "sha-256 there", ""];
    let holds = |tally: &&Tally| tally.source.rows + tally.target.rows > 0;
    out.table(&headings, &tallies.iter().filter(holds).map(row).collect::<Vec<_>>());
    let empty = tallies.len() - tallies.iter().filter(holds).count();
    out.line(format_args!("and {empty} tables without rows on both sides"));
    let verdict =
        if agree { "the copy is whole" } else { "the sides differ, and no server starts on the target" };
    out.line(format_args!("{verdict}: {rows} rows; the last step took {} s", took.as_secs()));
    out.line(format_args!("next: {next}"));
}

fn shown(tally: &Tally) -> Json {
    let Tally { table, source, target, written } = tally;
    json!({
        "table": table,
        "agrees": tally.agrees(),
        "source": { "rows": source.rows, "sha256": source.hash.to_hex() },
        "target": { "rows": target.rows, "sha256": target.hash.to_hex() },
        "written_by_the_last_step": written,
    })
}

/// A target that holds something else is a problem of its own kind.
fn refused(cause: store::Error) -> Stop {
    let stop = Stop::from(cause);
    if stop.text.contains("the target is not empty") { Stop { exit: Exit::Problems, ..stop } } else { stop }
}
