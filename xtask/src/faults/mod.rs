//! `cargo xtask faults`: an installation of three servers on one PostgreSQL, under load, is broken in every
//! way that we know, one kind after the other. Each kind proves that it fired while at least 20 submissions
//! were under way; then everything must come back by itself, what was not acknowledged is delivered again,
//! and a checker explains every answer by exactly one effect.
//!
//! Modules in reading order: [`site`] (the installation), [`load`] (senders), [`ledger`] (what they were
//! told), [`kinds`] (the faults), [`scene`] (how one is played), [`verdict`] (what must hold), and what
//! kinds need: [`serverlog`], [`slowdisk`], [`mounts`].
//!
//! Not here: kills at every system call (`crash`), sends at the same instant (`race`).

mod kinds;
mod ledger;
mod load;
mod mounts;
mod scene;
mod serverlog;
mod site;
mod slowdisk;
mod verdict;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::lab::Build;
use kinds::Kind;
use scene::Played;
use site::Site;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Faults {
    /// Only these kinds, by name
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<String>,
    /// Name all kinds and play none
    #[arg(long)]
    list: bool,
    /// Build with this bug planted and demand that it is found
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
    /// A program that is built already, instead of this checkout's
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Bugs that faults show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bug {
    /// What was sent before the commit may have failed
    CommitWithoutGuard,
}

impl Bug {
    /// Its name in the environment of the program.
    const fn name(self) -> &'static str {
        match self {
            Self::CommitWithoutGuard => "commit-without-guard",
        }
    }

    /// The kinds that show it, quickest first.
    const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::CommitWithoutGuard => &["serialization-failure", "deadlock"],
        }
    }
}

/// Sums over all kinds.
#[derive(Default)]
struct Sums {
    kinds: usize,
    submissions: usize,
    anomalies: Vec<String>,
}

impl Faults {
    /// Plays the kinds.
    ///
    /// # Errors
    /// A kind did not fire or left something wrong; or a planted bug was not found.
    pub(crate) fn run(&self) -> Result<()> {
        if self.list {
            kinds::all().for_each(|kind| println!("{:<26} {}", kind.name, kind.about));
            return Ok(());
        }
        let chosen = self.chosen()?;
        let program = match &self.program {
            Some(program) => program.canonicalize().context("--program")?,
            None if self.planted.is_some() => Build::Planted.program()?,
            None => Build::Release.program()?,
        };
        if chosen.iter().any(|kind| kind.name.starts_with("s3-")) {
            // Before anything runs that a build would slow down.
            kinds::bucket_program()?;
        }
        let began = Instant::now();
        let mut site = Site::start(&program, site::folder()?, self.planted.map(Bug::name))?;
        let mut sums = Sums::default();
        for kind in chosen {
            sums.take(kind, (kind.play)(&mut site));
            if self.planted.is_some() && !sums.anomalies.is_empty() {
                break;
            }
            if let Err(cause) = site.mended() {
                sums.anomalies.push(format!("after {}: {cause:#}", kind.name));
                break;
            }
        }
        self.ended(&site, sums, began)
    }

    fn chosen(&self) -> Result<Vec<&'static Kind>> {
        let planted = self.planted.map(Bug::kinds).unwrap_or_default();
        let wanted: Vec<&str> = self.only.iter().map(String::as_str).chain(planted.iter().copied()).collect();
        for name in &wanted {
            ensure!(kinds::all().any(|kind| kind.name == *name), "there is no kind {name}; see --list");
        }
        Ok(kinds::all().filter(|kind| wanted.is_empty() || wanted.contains(&kind.name)).collect())
    }

    fn ended(&self, site: &Site, mut sums: Sums, began: Instant) -> Result<()> {
        if let Some(bug) = self.planted {
            let Some(first) = sums.anomalies.first() else {
                bail!("the planted bug {} was not found", bug.name())
            };
            println!("caught {} after {} s: {first}", bug.name(), began.elapsed().as_secs());
            return Ok(());
        }
        match verdict::end(site) {
            Ok((lines, wrong)) => {
                lines.iter().for_each(|line| println!("{line}"));
                sums.anomalies.extend(wrong);
            }
            Err(cause) => sums.anomalies.push(format!("at the end: {cause:#}")),
        }
        println!("after {} s", began.elapsed().as_secs());
        println!(
            "{} kinds, {} submissions, {} anomalies",
            sums.kinds,
            sums.submissions,
            sums.anomalies.len()
        );
        ensure!(sums.anomalies.is_empty(), "anomalies:\n  {}", sums.anomalies.join("\n  "));
        Ok(())
    }
}

impl Sums {
    /// Counts a kind in, and prints its line.
    fn take(&mut self, kind: &Kind, played: Result<Played>) {
        let name = kind.name;
        let Played { fired, back, verdict } = match played {
            Ok(played) => played,
            Err(cause) => {
                println!("{name}: FAILED: {cause:#}");
                return self.anomalies.push(format!("{name}: {cause:#}"));
            }
        };
        self.kinds += 1;
        self.submissions += verdict.submissions;
        println!(
            "{name}: {} with {} submissions under way; {}; {} anomalies; normal {} ms later",
            fired.proof,
            fired.in_flight,
            verdict.summary,
            verdict.anomalies.len(),
            back.as_millis()
        );
        for anomaly in verdict.anomalies.iter().take(10) {
            println!("  {anomaly}");
        }
        self.anomalies.extend(verdict.anomalies.into_iter().map(|anomaly| format!("{name}: {anomaly}")));
    }
}
