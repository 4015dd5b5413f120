//! The crash matrix on PostgreSQL: two servers share a database; one of them is killed at every write, rename,
//! sync and send (to the database, to the sender, to Telegram), and at every receipt from the database; and
//! the database is killed (SIGKILL of all its sessions, started at once) when a COMMIT was sent and when its
//! answer came. Each time the sender delivers again, to the other server.
//!
//! Modules in reading order: [`ground`] (what all trials begin with), [`traced`] (one run and its death),
//! [`judge`] (what must hold), [`tally`] (sums). Not here: power cuts. What a node's folder loses is a cache
//! of the database's records, and its loss is the subject of the matrix on SQLite.

mod ground;
mod judge;
mod tally;
mod traced;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use super::{Crash, Deaths, UNKILLED_MAX};
use crate::trace::Recording;
use ground::Ground;
use tally::{Tally, Trial};
use traced::Death;

/// Counts the points, crashes at each, judges, reports.
///
/// # Errors
/// A trial failed, the planted bug was not found, or the runs could not be made.
pub(super) fn run(asked: &Crash, root: &Path, program: PathBuf) -> Result<()> {
    let began = Instant::now();
    let ground = Ground::make(root, program, asked.planted)?;
    let counted = counted(&ground)?;
    let tally = Mutex::new(Tally::default());
    if asked.deaths != Some(Deaths::Database) {
        nodes(&ground, asked, (&tally, Death::BeforePoint, counted.points))?;
        nodes(&ground, asked, (&tally, Death::AtReceipt, counted.receipts))?;
    }
    drop(ground);
    if asked.only.is_none() && asked.deaths != Some(Deaths::Servers) {
        databases(asked, root, counted.commits, &tally)?;
    }
    let tally = tally.into_inner().map_err(|_| anyhow::anyhow!("a trial panicked"))?;
    tally.end(asked, began.elapsed())
}

/// How often a run can be ended.
struct Counted {
    points: u64,
    receipts: u64,
    commits: u64,
}

fn counted(ground: &Ground) -> Result<Counted> {
    let traced = traced::run(ground, "counting", None)?;
    ensure!(
        traced.recording.killed_at.is_none() && !traced.told.is_empty(),
        "the counting run was no whole run"
    );
    ensure!(traced.announced.len() == 1, "the counting run announced {} times", traced.announced.len());
    let counted = Counted {
        points: traced.recording.counted,
        receipts: traced.receipts,
        commits: commits(&traced.recording),
    };
    println!(
        "{} points from the first byte received to the last mark ({} of them sends to the database), {} receipts \
         from the database, {} commits",
        counted.points,
        sends(&traced.recording, ground),
        counted.receipts,
        counted.commits
    );
    ground.clear("counting")?;
    Ok(counted)
}

fn sends(recording: &Recording, ground: &Ground) -> usize {
    let to_database = |peer| peer == ground.server.address();
    recording
        .points
        .iter()
        .filter(|point| point.number.is_some())
        .filter_map(|point| point.sent())
        .filter(|(socket, _)| to_database(socket.peer))
        .count()
}

fn commits(recording: &Recording) -> u64 {
    let counting = recording.points.iter().filter(|point| point.number.is_some());
    counting.filter_map(|point| point.sent()).map(|(_, bytes)| traced::commits(bytes)).sum()
}

/// One node is killed at every place of a kind, several trials at a time. Runs differ in length: past the
/// counted places it goes on until runs are too short to be killed there.
fn nodes(
    ground: &Ground,
    asked: &Crash,
    (tally, death, counted): (&Mutex<Tally>, fn(u64) -> Death, u64),
) -> Result<()> {
    let (first, last) = asked.only.map_or((1, u64::MAX), |only| (only, only));
    let (next, late) = (AtomicU64::new(first), AtomicU64::new(0));
    let lock = || tally.lock().map_err(|_| anyhow::anyhow!("another trial panicked"));
    let work = || -> Result<()> {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let ended =
                late.load(Ordering::Relaxed) >= UNKILLED_MAX || (asked.planted.is_some() && lock()?.caught());
            if place > last || ended {
                return Ok(());
            }
            let trial = trial(ground, death(place), asked.keep);
            if !trial.killed && place > counted {
                late.fetch_add(1, Ordering::Relaxed);
            }
            lock()?.take(trial, place <= counted);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..asked.jobs.get()).map(|_| scope.spawn(work)).collect();
        let mut ends = workers.into_iter().map(|worker| match worker.join() {
            Ok(end) => end,
            Err(_) => bail!("a trial panicked"),
        });
        ends.try_for_each(|end| end)
    })
}

/// The database is killed around every commit, one trial after the other: its sessions are all that there is.
fn databases(asked: &Crash, root: &Path, commits: u64, tally: &Mutex<Tally>) -> Result<()> {
    let program = match &asked.program {
        Some(program) => program.canonicalize()?,
        None => super::program(asked)?,
    };
    let folder = root.join("databases");
    std::fs::create_dir(&folder)?;
    let ground = Ground::make_synced(&folder, program, asked.planted)?;
    for commit in 1..=commits {
        for death in [Death::DatabaseAtCommit(commit), Death::DatabaseAtAnswer(commit)] {
            let trial = trial(&ground, death, asked.keep);
            let lock = || tally.lock().map_err(|_| anyhow::anyhow!("another trial panicked"));
            lock()?.take(trial, true);
            if asked.planted.is_some() && lock()?.caught() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// One trial; what can't be judged is wrong.
fn trial(ground: &Ground, death: Death, keep: bool) -> Trial {
    let name = death.name();
    let mut trial = Trial { name: name.clone(), death, ..Trial::default() };
    let judged = traced::run(ground, &name, Some(death)).and_then(|traced| {
        trial.killed = traced.died;
        trial.before = traced.recording.killed_before.as_ref().map(ToString::to_string);
        judge::judge(ground, &name, &traced)
    });
    match judged {
        Ok((found, wrong)) => (trial.found, trial.wrong) = (found, wrong),
        Err(cause) => trial.wrong.push(format!("{cause:#}")),
    }
    if !keep && let Err(cause) = ground.clear(&name) {
        trial.wrong.push(format!("{cause:#}"));
    }
    trial
}
