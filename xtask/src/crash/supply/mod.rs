//! `cargo xtask crash --supply`: each of the five critical writes of the supply side, on either engine. The release
//! server is killed before every write, rename, sync and send between the request's first byte and its answer, and
//! at every receipt; it starts again, and the same request comes again under the same key.
//!
//! A run without a death says what the database looks like before and after. A death of a write in one transaction
//! leaves the one or the other; a batch is left between two slices, a mount with its claim at most. The repeat then
//! ends all of them as the run without a death ended.
//!
//! Modules in reading order: [`stage`] (the market that all trials begin with, and its five requests), [`portrait`]
//! (all that a database has of the supply side), [`traced`] (one run and its death), [`judge`] (what must hold),
//! [`tally`] (sums). Not here: power cuts and the database's own deaths, which the matrices of a delivery have; the
//! door is the same.

mod judge;
mod portrait;
mod stage;
mod tally;
mod traced;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use super::{Crash, UNKILLED_MAX};
use judge::Reference;
pub(super) use stage::Critical;
use stage::Stage;
use tally::{Tally, Trial};
use traced::{Death, Traced};

/// Crashes every write at every place.
///
/// # Errors
/// A trial failed, the planted bug was not found, or the runs could not be made.
pub(super) fn run(asked: &Crash, root: &Path, program: PathBuf) -> Result<()> {
    let began = Instant::now();
    let stage = Stage::make(root, program, (asked.engine, asked.planted))?;
    let tally = Mutex::new(Tally::default());
    for write in Critical::ALL.into_iter().filter(|write| asked.command.is_none_or(|one| one == *write)) {
        let (counted, reference) = counted(&stage, write)?;
        println!("{}: {} points, {} receipts", write.name(), counted.recording.counted, counted.receipts);
        take(&tally, write, answered(&stage, &reference, counted, asked.keep))?;
        let (points, receipts) = reference.places;
        killed(&stage, asked, (&tally, &reference), (Death::BeforePoint, points))?;
        killed(&stage, asked, (&tally, &reference), (Death::AtReceipt, receipts))?;
        if write == Critical::Mount && asked.only.is_none() {
            take(&tally, write, trial(&stage, &reference, Death::InCall, asked.keep))?;
        }
    }
    let tally = tally.into_inner().map_err(|_| anyhow::anyhow!("a trial panicked"))?;
    tally.end(asked, began.elapsed())
}

fn take(tally: &Mutex<Tally>, write: Critical, trial: Trial) -> Result<()> {
    tally.lock().map_err(|_| anyhow::anyhow!("another trial panicked"))?.take(write, trial);
    Ok(())
}

/// The run without a death: how many places there are, and what all trials must come to.
fn counted(stage: &Stage, write: Critical) -> Result<(Traced, Reference)> {
    let traced = traced::run(stage, write, ("counting", Death::Answered))?;
    ensure!(traced.told.len() == 1, "{}: the run without a death was not answered", write.name());
    let after = stage.portrait("counting", &traced.house)?;
    let before = stage.before.clone();
    ensure!(before != after, "{}: the run without a death changed nothing", write.name());
    let places = (traced.recording.counted, traced.receipts);
    Ok((traced, Reference { write, before, after, places }))
}

/// The run without a death is a trial of its own: killed after its answer.
fn answered(stage: &Stage, reference: &Reference, traced: Traced, keep: bool) -> Trial {
    let mut trial = Trial { death: Death::Answered, ..Trial::default() };
    judged(stage, reference, ("counting", &mut trial), Ok(traced));
    cleared(stage, "counting", &mut trial, keep);
    trial
}

/// One trial; what can't be judged is wrong.
fn trial(stage: &Stage, reference: &Reference, death: Death, keep: bool) -> Trial {
    let name = format!("{}_{}", reference.write.name(), death.name());
    let mut trial = Trial { death, ..Trial::default() };
    judged(stage, reference, (&name, &mut trial), traced::run(stage, reference.write, (&name, death)));
    cleared(stage, &name, &mut trial, keep);
    trial
}

fn judged(stage: &Stage, reference: &Reference, (name, trial): (&str, &mut Trial), traced: Result<Traced>) {
    let judged = traced.and_then(|traced| {
        trial.killed = traced.died;
        trial.before = traced.recording.killed_before.as_ref().map(ToString::to_string);
        judge::judge(stage, reference, (name, &traced))
    });
    match judged {
        Ok((found, wrong)) => (trial.found, trial.wrong) = (found, wrong),
        Err(cause) => trial.wrong.push(format!("{cause:#}")),
    }
}

fn cleared(stage: &Stage, name: &str, trial: &mut Trial, keep: bool) {
    if !keep && let Err(cause) = stage.clear(name) {
        trial.wrong.push(format!("{cause:#}"));
    }
}

/// The server is killed at every place of a kind, several trials at a time. Runs differ in length: past the counted
/// places it goes on until runs are too short to be killed there.
fn killed(
    stage: &Stage,
    asked: &Crash,
    (tally, reference): (&Mutex<Tally>, &Reference),
    (death, counted): (fn(u64) -> Death, u64),
) -> Result<()> {
    let (first, last) = asked.only.map_or((1, u64::MAX), |only| (only, only));
    let (next, late) = (AtomicU64::new(first), AtomicU64::new(0));
    let work = || -> Result<()> {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let caught = tally.lock().map_err(|_| anyhow::anyhow!("another trial panicked"))?.caught();
            let ended = late.load(Ordering::Relaxed) >= UNKILLED_MAX || (asked.planted.is_some() && caught);
            if place > last || ended {
                return Ok(());
            }
            let trial = trial(stage, reference, death(place), asked.keep);
            if !trial.killed && place > counted {
                late.fetch_add(1, Ordering::Relaxed);
            }
            take(tally, reference.write, trial)?;
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
    .with_context(|| format!("crashing {}", reference.write.name()))
}
