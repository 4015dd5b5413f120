//! `cargo xtask race`: many changes, each reported by several sends at the same instant, some under two
//! event ids, some connections cut at any byte. One certificate a change, nothing doubled, nothing lost.
//!
//! The release binary runs as a process of its own behind real sockets; on PostgreSQL several of them, which
//! are killed and started again meanwhile. Modules in reading order: [`plan`] (what is sent and where it is
//! cut, from a seed), [`drive`] (threads that send it), [`judge`] (answers, store and folder against each
//! other), [`damage`] (files are broken and fetched), [`observe`] (what the server says when secrets are
//! thrown at it), [`same`] (the same event gives the same bytes elsewhere), [`many`] (several servers on one
//! database). Not here: crashes (`crash`), faults (`faults`), leaked secrets (`canary`).

mod damage;
mod drive;
mod judge;
mod many;
mod observe;
mod plan;
mod same;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};

use crate::canary;
use crate::lab::record::Records;
use crate::lab::{self, Build, House, Setup};
use judge::Verdict;
use plan::Plan;

/// How long announcements may take after the last answer.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(120);
/// Uncut sends to one server that have to be answered with links at once, of a hundred.
const LINKED: usize = 90;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Race {
    /// What keeps the records
    #[arg(long, default_value = "sqlite", value_name = "ENGINE")]
    engine: Engine,
    /// How many servers run on the one database; only with PostgreSQL
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(2..=9))]
    nodes: u8,
    /// How many changes happen
    #[arg(long, default_value_t = 1_000, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(20..=100_000))]
    changes: u64,
    /// What is random in this run: the same seed cuts the same connections at the same bytes
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// When an arrival is durable
    #[arg(long, default_value = "durable", value_name = "MODE")]
    arrivals: Arrivals,
    /// Build with this bug planted and demand that it is found
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
    /// A program that is built already, instead of this checkout's
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// What keeps the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// A file in the server's folder
    Sqlite,
    /// A private PostgreSQL that several servers share
    Postgres,
}

/// The setting `arrivals.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Arrivals {
    /// With the answer
    Durable,
    /// A moment later, where the result is known already
    Buffered,
}

/// Bugs that a race shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bug {
    /// The auxiliary key of a change is not recorded
    ChangeKeyNotUnique,
    /// A file is served without a look at its hash
    ServedFileNotChecked,
    /// On PostgreSQL, what was sent before the commit may have failed
    CommitWithoutGuard,
}

impl Race {
    /// Runs the race.
    ///
    /// # Errors
    /// Something was doubled, lost or told differently; or a planted bug was not found.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let build = if self.planted.is_some() { Build::Planted } else { Build::Release };
        let program = match &self.program {
            Some(program) => program.canonicalize().context("--program")?,
            None => build.program()?,
        };
        let verdict = self.once(&program, None)?;
        if let Some(bug) = self.planted.filter(|_| verdict.findings.is_empty()) {
            // Without the bug the same build is clean: what is found now is the bug.
            let verdict = self.once(&program, Some(bug))?;
            ensure!(!verdict.findings.is_empty(), "the planted bug {bug:?} was not found");
            println!("caught {bug:?}: {} findings, such as", verdict.findings.len());
            verdict.findings.iter().take(3).for_each(|finding| println!("  {finding}"));
            return Ok(());
        }
        if !verdict.findings.is_empty() {
            let shown: Vec<_> = verdict.findings.iter().take(20).map(String::as_str).collect();
            println!("{}", verdict.sum());
            bail!("{} findings:\n  {}", verdict.findings.len(), shown.join("\n  "));
        }
        if self.engine == Engine::Postgres {
            println!("{}", verdict.sum());
            return Ok(());
        }
        let debug = if self.program.is_none() { Some(Build::Debug.program()?) } else { None };
        same::everywhere(&program, debug.as_deref())?;
        println!("{}", verdict.sum());
        Ok(())
    }

    fn once(&self, program: &Path, bug: Option<Bug>) -> anyhow::Result<Verdict> {
        match self.engine {
            Engine::Sqlite => self.raced(program, bug),
            Engine::Postgres => many::raced(self, program, bug),
        }
    }

    fn raced(&self, program: &Path, bug: Option<Bug>) -> anyhow::Result<Verdict> {
        let folder = lab::scratch("race")?;
        let house = House::make(&folder, &self.setup())?;
        let mut command = house.command(program, &["serve"]);
        plant(&mut command, bug);
        let server = house.start_with(command)?;
        let plan = Plan::new(self.seed, self.changes)?;
        println!("{}", plan.summary());
        let since = Instant::now();
        let told = drive::all(&plan, &server.address)?;
        println!("{}", drive::summary(&told, since.elapsed()));
        await_announcements(|| Records::of(&house))?;
        let mut verdict = Verdict::default();
        verdict.answers(&plan, &told, LINKED);
        verdict.operator(&server, &plan)?;
        verdict.checked(&mut house.command(program, &["check"]))?;
        damage::fetched(&house, &server, self.seed, &mut verdict)?;
        let seen = observe::said(&house, &server, &plan)?;
        let log = server.log.clone();
        server.stop()?;
        let records = Records::of(&house)?;
        verdict.record(&records, &plan, &told);
        for name in verdict.folder(&house.deliveries(), &records, &told)? {
            verdict.find(format!("{name}: no record names this file"));
        }
        verdict.announced(&records, &[log])?;
        if bug.is_none() {
            canary::proven_then_clean(&house, &seen)?;
        }
        verdict.lines().for_each(|line| println!("{line}"));
        Ok(verdict)
    }

    fn setup(&self) -> Setup {
        let more = match self.arrivals {
            Arrivals::Durable => "",
            Arrivals::Buffered => "[arrivals]\nmode = \"buffered\"\n",
        };
        Setup { more, level: "trace", passphrase: true, ..Setup::default() }
    }
}

/// Switches a bug on in a program that has it.
fn plant(command: &mut Command, bug: Option<Bug>) {
    if let Some(bug) = bug.and_then(|bug| bug.to_possible_value()) {
        command.env("ONCESEAL_PLANTED_BUG", bug.get_name());
    }
}

/// Waits until no announcement is left to be sent.
fn await_announcements(records: impl Fn() -> anyhow::Result<Records>) -> anyhow::Result<()> {
    let since = Instant::now();
    loop {
        let open = records()?.announcements.iter().filter(|one| one.status != "delivered").count();
        if open == 0 {
            return Ok(());
        }
        ensure!(
            since.elapsed() < ANNOUNCED_WITHIN,
            "{open} announcements were not sent in {ANNOUNCED_WITHIN:?}"
        );
        // The relay polls on its own clock; there is nothing here to be woken by.
        std::thread::park_timeout(Duration::from_millis(100));
    }
}
