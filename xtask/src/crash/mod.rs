//! `cargo xtask crash`: the release binary is killed before every write, rename, sync and send between the
//! first byte of a delivery and the durable mark that its announcement went out; then the clock moves by
//! an hour, the signing key is rotated, the program starts again, and the sender delivers once more.
//!
//! Each point is judged three times: the folder as the kill left it; the folder as a power cut at that
//! moment would have left it, with nothing that no sync covered ([`crate::trace::replay()`]); and as one
//! that kept all names, but no content that was not synced.
//!
//! Modules in reading order: [`stage`] (the folder all runs begin with), [`telegram`] (hears the
//! announcements), [`traced`] (one run under trace and what it told whom), [`after`] (restart, redelivery),
//! [`judge`] (what must hold then), [`report`] (what is printed); [`many`] (the same for two servers on one
//! PostgreSQL); [`supply`] (the critical writes of the supply side).
//!
//! Not here: how points are told apart and counted ([`crate::trace`]); many events at once (`race`).

mod after;
mod judge;
mod many;
mod report;
mod stage;
mod supply;
mod telegram;
mod traced;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use crate::canary::{self, Observed};
use crate::lab::{self, Build};
use crate::trace::{self, Durability};
use judge::Found;
use report::{Crashed, Failing, Tally};
use stage::{Clock, Stage};
use traced::Traced;

/// Runs that end before their point, after which no more points are looked for.
const UNKILLED_MAX: u64 = 3;

/// Arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Crash {
    /// What keeps the records
    #[arg(long, default_value = "sqlite", value_name = "ENGINE")]
    engine: Engine,
    /// The critical writes of the supply side instead of a delivery
    #[arg(long)]
    supply: bool,
    /// With --supply: only this write
    #[arg(long, value_name = "WRITE", requires = "supply")]
    command: Option<supply::Critical>,
    /// Only this point
    #[arg(long, value_name = "POINT")]
    only: Option<u64>,
    /// With PostgreSQL: only the deaths of the servers, or only those of the database
    #[arg(long, value_name = "WHOSE", conflicts_with = "supply")]
    deaths: Option<Deaths>,
    /// Leave the folders of all runs in target/lab/crash
    #[arg(long)]
    keep: bool,
    /// Build with this bug planted and demand that it is found
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
    /// Crash this build of the program instead of building it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Points at work at once: most of their time they wait for announcements
    #[arg(long, default_value = "8", value_name = "COUNT")]
    jobs: NonZeroUsize,
}

/// What keeps the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// A file in the server's folder
    Sqlite,
    /// A private PostgreSQL that two servers share
    Postgres,
}

/// Whose deaths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Deaths {
    /// One of the two servers
    Servers,
    /// The database that they share
    Database,
}

/// Bugs that a crash shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Bug {
    /// The sender is told 2xx before the record is durable
    AckBeforeCommit,
    /// The announcement is written after the record, in a transaction of its own
    AnnounceOutsideCommit,
    /// A file is served without a look at its hash
    ServedFileNotChecked,
}

impl Bug {
    /// Its name in the environment of the program.
    const fn name(self) -> &'static str {
        match self {
            Self::AckBeforeCommit => "ack-before-commit",
            Self::AnnounceOutsideCommit => "announce-outside-commit",
            Self::ServedFileNotChecked => "served-file-not-checked",
        }
    }

    /// In which life of the program it is there: the other one must be sound, so that a finding is
    /// about what the crash left.
    const fn life(self) -> Clock {
        match self {
            Self::AckBeforeCommit | Self::AnnounceOutsideCommit => Clock::True,
            Self::ServedFileNotChecked => Clock::Moved,
        }
    }
}

/// How the machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// SIGKILL: the kernel keeps all that was written.
    Kill,
    /// Only what a sync covered is left.
    PowerCut,
    /// All names are left, content only as far as a sync covered it.
    NamesLeft,
}

impl Stop {
    const ALL: [Self; 3] = [Self::Kill, Self::PowerCut, Self::NamesLeft];

    const fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::PowerCut => "power cut",
            Self::NamesLeft => "names left",
        }
    }

    /// What a disk keeps; `None`: the folder is the one that the run left.
    const fn keeps(self) -> Option<Durability> {
        match self {
            Self::Kill => None,
            Self::PowerCut => Some(Durability::Strict),
            Self::NamesLeft => Some(Durability::Names),
        }
    }
}

/// Counts the points, crashes at each, judges, reports.
///
/// # Errors
/// A point failed, the planted bug was not found, or the runs could not be made.
pub(crate) fn run(asked: &Crash) -> anyhow::Result<()> {
    ensure!(
        asked.deaths.is_none() || asked.engine == Engine::Postgres,
        "--deaths is for two servers and their database; ask for --engine postgres"
    );
    let root = lab::scratch("crash")?;
    let program = program(asked)?;
    let began = Instant::now();
    let done = if asked.supply {
        supply::run(asked, &root, program)
    } else if asked.engine == Engine::Postgres {
        many::run(asked, &root, program)
    } else {
        Stage::make(&root, program, asked.planted).and_then(|stage| {
            let counted = count(&stage)?;
            let tally = crash(&stage, asked, counted)?;
            report::end(&tally, asked, (counted, began.elapsed()))
        })
    };
    if !asked.keep {
        std::fs::remove_dir_all(&root).context("clearing target/lab/crash")?;
    }
    done
}

/// The program under test.
fn program(asked: &Crash) -> anyhow::Result<PathBuf> {
    match &asked.program {
        Some(program) => program.canonicalize().context("--program"),
        None if asked.planted.is_some() => Build::Planted.program(),
        None => Build::Release.program(),
    }
}

/// The recording of a whole run says how many points there are, and proves that the log misses no write.
fn count(stage: &Stage) -> anyhow::Result<u64> {
    let traced = traced::run(stage, "counting", None)?;
    let Traced { house, recording, announced, .. } = traced;
    ensure!(recording.killed_at.is_none() && recording.counted > 0, "the counting run was no whole run");
    ensure!(announced.len() == 1, "the counting run announced {} times", announced.len());
    let copy = stage.folder("counting-replayed")?;
    trace::replay_with(&stage.base().data(), &recording.points, &copy, Durability::Everything)?;
    report::same_tree(&house.data(), &copy).context("the recording does not tell the whole folder")?;
    let mails = [&stage.earlier, &stage.event].map(|event| event.mail.clone()).to_vec();
    canary::proven_then_clean(&house, &Observed { mails, ..Observed::default() })?;
    let log: String = recording.points.iter().map(|point| format!("{point}\n")).collect();
    std::fs::write(stage.folder("points.log")?, log)?;
    println!("{}", report::heading(&recording));
    Ok(recording.counted)
}

/// Crashes at every point, several at a time. Runs differ in length, since threads take turns as they
/// like: past the counted points it goes on until runs are too short to be killed there.
fn crash(stage: &Stage, asked: &Crash, counted: u64) -> anyhow::Result<Tally> {
    let (first, last) = asked.only.map_or((1, u64::MAX), |only| (only, only));
    ensure!(first >= 1, "points are numbered from 1");
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let lock = || tally.lock().map_err(|_| anyhow::anyhow!("another point panicked"));
    let work = || -> anyhow::Result<()> {
        loop {
            let point = next.fetch_add(1, Ordering::Relaxed);
            let ended = lock()?.unkilled() >= UNKILLED_MAX || (asked.planted.is_some() && lock()?.caught());
            if point > last || ended {
                return Ok(());
            }
            let crashed = at(stage, point, asked.keep)?;
            lock()?.take(point, crashed, counted);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..asked.jobs.get()).map(|_| scope.spawn(work)).collect();
        let mut ends = workers.into_iter().map(|worker| match worker.join() {
            Ok(end) => end,
            Err(_) => bail!("a point panicked"),
        });
        ends.try_for_each(|end| end)
    })?;
    tally.into_inner().map_err(|_| anyhow::anyhow!("a point panicked"))
}

/// One point, all ways.
fn at(stage: &Stage, point: u64, keep: bool) -> anyhow::Result<Crashed> {
    let name = format!("{point:04}");
    let traced = traced::run(stage, &name, Some(point))?;
    let line = match &traced.recording.killed_before {
        Some(before) => before.to_string(),
        None => format!("{point} (this run had only {} points)", traced.recording.counted),
    };
    let killed = traced.recording.killed_at.is_some();
    let (mut found_by, mut failing) = (Vec::new(), Vec::new());
    for stop in Stop::ALL {
        let house = match stop.keeps() {
            None => Ok(traced.house.clone()),
            Some(model) => stage.house(&format!("{name}-{stop:?}"), &traced.recording.points, model),
        };
        let judged = house.and_then(|house| {
            let (found, mut wrong) = judge::judge(stage, &house, &traced)?;
            let mails = [&stage.earlier, &stage.event].map(|event| event.mail.as_str());
            wrong.extend(canary::leaks(&house, &mails)?);
            Ok((found, wrong))
        });
        let (found, wrong) = judged.unwrap_or_else(|cause| (Found::default(), vec![format!("{cause:#}")]));
        failing.extend(wrong.into_iter().map(|what| Failing { stop, line: line.clone(), what }));
        found_by.push((stop, found));
    }
    if !keep {
        stage.clear(&name)?;
        for stop in Stop::ALL {
            stage.clear(&format!("{name}-{stop:?}"))?;
        }
    }
    Ok(Crashed { killed, found: found_by, failing })
}

/// Everything under a folder with its content, by path relative to it.
fn tree(folder: &Path) -> anyhow::Result<std::collections::BTreeMap<String, Vec<u8>>> {
    let mut found = std::collections::BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
                found.insert(name, std::fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Asked {
        #[command(flatten)]
        crash: Crash,
    }

    #[test]
    fn whose_deaths_is_asked_of_two_servers_and_their_database_alone() {
        let asked =
            |words: &[&str]| Asked::try_parse_from([&["crash", "--deaths", "servers"], words].concat());
        assert!(asked(&["--engine", "postgres", "--supply"]).is_err());
        assert!(asked(&["--engine", "postgres"]).is_ok());
        let told = run(&asked(&[]).unwrap().crash).unwrap_err().to_string();
        assert!(told.contains("--engine postgres"), "{told}");
    }
}
