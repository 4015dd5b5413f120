//! `onceseal migrate`: how the schema stands, asked without touching it; and bringing it up while servers of
//! the older version go on. A server does the same at its start.

use std::sync::Arc;

use certify::keyring::LIVE_FOR;
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use store::migration::{Chain, Older, State, Step, missing, steps};
use store::{Query, Settings, Store};

use super::Globals;
use super::out::{Ended, Exit, Out, Stop, Tone};
use super::progress;
use crate::config::unit::Span;
use crate::random::SystemClock;
use crate::wiring::{chains, has_store, store_settings};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal migrate status
  onceseal migrate up --patience 5m

A file whose older programs \"may serve\" can be applied while they do; before any other, stop them. On SQLite
a file is applied while no server runs; on PostgreSQL each waits half a second at most for a table in use and
is tried again until the patience is over. What was not applied is as it was. While servers are alive that may
not serve with a file, it is not applied (exit code 7).

Exit codes of status: 0 up to date, 3 files are missing or the database is of another version")]
pub struct Migrate {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Each schema file, and how it stands in the database; changes nothing
    Status,
    /// Apply what is missing, in order
    Up {
        /// How long to try where another program changes the schema or a table is in use
        #[arg(long, value_name = "DURATION", default_value = "60s")]
        patience: String,
        /// Apply also what older servers may not serve with, while some are alive
        #[arg(long)]
        beside_older: bool,
    },
}

/// What a database has.
struct Standing {
    steps: Vec<Step>,
    /// Names of what is to be applied, or why nothing may be.
    missing: Result<Vec<&'static str>, String>,
}

impl Migrate {
    /// Runs it.
    ///
    /// # Errors
    /// The database can't be reached, is of another version, or a table stays in use.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let loaded = globals.load()?;
        let settings = store_settings(&loaded.config).map_err(|cause| Stop::new(Exit::Usage, cause))?;
        let chains = chains(&loaded.config);
        match self.what {
            What::Status if !has_store(&loaded) => {
                let folder = loaded.config.storage.folder.display();
                let text = format!(
                    "there is no data in {folder} (storage.folder); the schema is made at the first start"
                );
                Err(Stop::new(Exit::NothingFound, text))
            }
            What::Status => status(&settings, &chains, out).await,
            What::Up { patience, beside_older } => {
                let before = standing_before(&settings, &chains).await?;
                if !beside_older {
                    nobody_in_the_way(&settings, &before).await?;
                }
                up(&settings, &chains, (&before, &patience), out).await
            }
        }
    }
}

async fn status(settings: &Settings, chains: &[Chain], out: Out) -> Ended {
    let Standing { steps, missing } = standing(settings, chains).await?;
    let (current, verdict) = match &missing {
        Ok(names) if names.is_empty() => (true, "up to date".to_owned()),
        Ok(names) => (false, format!("{} to be applied: run `onceseal migrate up`", counted(names.len()))),
        Err(cause) => (false, cause.clone()),
    };
    if out.json {
        let files: Vec<Json> = steps.iter().map(shown).collect();
        out.value(&json!({ "up_to_date": current, "verdict": verdict, "files": files }));
    } else {
        out.table(
            &["file", "state", "applied", "older programs", "sha-256"],
            &steps.iter().map(|step| row(step, out)).collect::<Vec<_>>(),
        );
        out.line(verdict);
    }
    Ok(if current { Exit::Fine } else { Exit::Problems })
}

async fn up(settings: &Settings, chains: &[Chain], (before, patience): (&[Step], &str), out: Out) -> Ended {
    let patience: Span = serde_json::from_value(json!(patience))
        .map_err(|cause| Stop::new(Exit::Usage, format!("--patience: {cause}")))?;
    let opened = Store::open_within(settings, chains, Arc::new(SystemClock), patience.0);
    let store = progress::during("bringing the schema up", opened).await?;
    let registered = store.registered().await?;
    let after = steps(&store.chains(chains), registered);
    let stood = |step: &Step| before.iter().any(|old| old.name == step.name && old.state != State::Missing);
    let applied: Vec<&str> =
        after.iter().filter(|step| !stood(step)).map(|step| step.name.as_str()).collect();
    if out.json {
        out.value(&json!({ "applied": applied }));
    } else {
        applied.iter().for_each(|name| out.line(format_args!("applied  {name}")));
        out.line("up to date");
    }
    Ok(Exit::Fine)
}

async fn standing_before(settings: &Settings, chains: &[Chain]) -> Result<Vec<Step>, Stop> {
    Ok(match settings {
        // The folder is made when it isn't there.
        Settings::Sqlite(sqlite) if !sqlite.folder.join(store::FILE).is_file() => Vec::new(),
        _ => standing(settings, chains).await?.steps,
    })
}

/// Servers that are alive would go on with a schema that they may not serve with.
async fn nobody_in_the_way(settings: &Settings, steps: &[Step]) -> Result<(), Stop> {
    let stops = |step: &&Step| step.state == State::Missing && step.older == Older::MustStop;
    let Some(file) = steps.iter().find(stops) else { return Ok(()) };
    let store = Store::look(settings).await?;
    if !store.layout().await?.iter().any(|table| table.name == "certify_nodes") {
        return Ok(());
    }
    let nodes =
        Query::new("nodes.seen", "select address, node_id, seen_at, {now} from certify_nodes", vec![]);
    let mut alive = Vec::new();
    for row in store.query(nodes).await? {
        if row.time(3)?.since(row.time(2)?) <= LIVE_FOR {
            alive.push(format!("{} ({})", row.text(0)?, row.text(1)?));
        }
    }
    if alive.is_empty() {
        return Ok(());
    }
    let text = format!(
        "servers of an older version may not serve with {}, and some are alive: {}; stop them first (one that ended without a word counts as alive for {} s), or give --beside-older",
        file.name,
        alive.join(", "),
        LIVE_FOR.as_secs()
    );
    Err(Stop::new(Exit::Server, text))
}

async fn standing(settings: &Settings, chains: &[Chain]) -> Result<Standing, Stop> {
    let store = Store::look(settings).await?;
    let registered = store.registered().await?;
    let chains = store.chains(chains);
    let missing = missing(&chains, registered.clone());
    Ok(Standing {
        steps: steps(&chains, registered),
        missing: missing
            .map(|files| files.iter().map(|file| file.name).collect())
            .map_err(|cause| cause.to_string()),
    })
}

const fn word(state: State) -> &'static str {
    match state {
        State::Applied => "applied",
        State::Missing => "missing",
        State::Changed => "changed",
        State::Unknown => "unknown",
    }
}

const fn older(step: &Step) -> &'static str {
    match step.older {
        Older::MayServe => "may serve",
        Older::MustStop => "must stop",
    }
}

fn row(step: &Step, out: Out) -> Vec<String> {
    let tone = if step.state == State::Applied { Tone::Good } else { Tone::Bad };
    vec![
        step.name.clone(),
        out.paint(tone, word(step.state)),
        step.applied_at.map_or_else(|| "-".into(), kernel::Time::to_rfc3339_seconds),
        older(step).into(),
        step.checksum.chars().take(12).collect(),
    ]
}

fn shown(step: &Step) -> Json {
    json!({
        "name": step.name,
        "chain": step.chain,
        "state": word(step.state),
        "applied_at": step.applied_at.map(|at| at.to_string()),
        "older_programs": older(step),
        "sha256": step.checksum,
    })
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file is".into() } else { format!("{files} files are") }
}
