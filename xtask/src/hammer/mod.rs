//! `cargo xtask hammer`: some dozens of clients let one supplier withdraw, cancel and be paid out all at once, on
//! several release servers that share a PostgreSQL, while its earnings go on. Never two settlements open, never a
//! cent lost, every acknowledged answer with its one effect, every repeat the same.
//!
//! Modules in reading order: [`ground`] (the installation and its market), [`deed`] (what is asked for), [`field`]
//! (the clients and what they share), [`watch`] (a session that looks all the time), [`history`] (what the audit
//! tells, in the order of commits), [`judge`] (answers, rows and sums against each other).
//!
//! Not here: kills (`crash --supply`), one rule at a time (`supply`'s own tests).

mod deed;
mod field;
mod ground;
mod history;
mod judge;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};

use crate::lab::{self, Build};
use field::Field;
use ground::Ground;
use judge::Verdict;
use watch::Watch;

/// Withdrawals that a minute has to complete, and refusals that it has to give, to be worth anything.
const PAID_MIN: u64 = 150;
const REFUSED_MIN: u64 = 5_000;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Hammer {
    /// How long
    #[arg(long, default_value_t = 60, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(5..=3_600))]
    seconds: u64,
    /// Clients at once
    #[arg(long, default_value_t = 50, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(2..=500))]
    clients: u64,
    /// How many servers run on the one database
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// What clients choose in this run; when they meet is up to the machine
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// Build with this bug planted and demand that it is found
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
    /// A program that is built already, instead of this checkout's
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Bugs that a hammer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bug {
    /// A withdrawal does not look for an open settlement, and the database has lost its indexes on them
    OpenSettlementNotAsked,
    /// A key is looked up before its lock is held, and never again
    LookBeforeLock,
}

impl Bug {
    /// Its name in the environment of the program.
    const fn name(self) -> &'static str {
        match self {
            Self::OpenSettlementNotAsked => "open-settlement-not-asked",
            Self::LookBeforeLock => "look-before-lock",
        }
    }

    /// What is done to the database besides.
    const fn sql(self) -> Option<&'static str> {
        match self {
            Self::OpenSettlementNotAsked => {
                Some("drop index uq_settlement_supplier_open; drop index uq_settlement_supplier_processing")
            }
            Self::LookBeforeLock => None,
        }
    }
}

impl Hammer {
    /// Hammers.
    ///
    /// # Errors
    /// Something was wrong, or too little happened; or a planted bug was not found.
    pub(crate) fn run(&self) -> Result<()> {
        let build = if self.planted.is_some() { Build::Planted } else { Build::Release };
        let program = match &self.program {
            Some(program) => program.canonicalize().context("--program")?,
            None => build.program()?,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let verdict = runtime.block_on(self.once(&program, None))?;
        if let Some(bug) = self.planted {
            // Without the bug the same build is sound: what is found then is the bug.
            verdict.sound()?;
            let verdict = runtime.block_on(self.once(&program, Some(bug)))?;
            ensure!(!verdict.findings.is_empty(), "the planted bug {} was not found", bug.name());
            println!("caught {}: {} findings, such as", bug.name(), verdict.findings.len());
            verdict.findings.iter().take(3).for_each(|finding| println!("  {finding}"));
            return Ok(());
        }
        verdict.findings.iter().take(20).for_each(|finding| println!("wrong: {finding}"));
        println!("{}", verdict.sum());
        verdict.sound()?;
        let enough = |count: u64, wanted: u64| count * 60 >= wanted * self.seconds.min(60);
        ensure!(
            enough(verdict.paid, PAID_MIN) && enough(verdict.refused, REFUSED_MIN),
            "a minute needs {PAID_MIN} paid and {REFUSED_MIN} refused; this machine was too slow or too busy"
        );
        Ok(())
    }

    async fn once(&self, program: &Path, bug: Option<Bug>) -> Result<Verdict> {
        let folder = lab::scratch("hammer")?;
        let ground = Ground::make(&folder, program, (self.nodes, bug)).await?;
        let field = Field::new(&ground)?;
        let watch = Watch::start(&ground.url, ground.supplier.tenant_id)?;
        let began = Instant::now();
        let until = began + Duration::from_secs(self.seconds);
        let intentions = field.hammered((self.clients, self.seed), until).await?;
        let took = began.elapsed();
        let seen = watch.end()?;
        let mut verdict = Verdict::of(&ground, &intentions)?;
        verdict.findings.extend(seen.findings);
        verdict.findings.extend(lab::market::ledger(&ground.nodes.node(0).house, program)?);
        println!("{}", field::summary(&intentions, took));
        println!("{} looks, none longer than {} ms after the one before", seen.looks, seen.gap.as_millis());
        verdict.lines.iter().for_each(|line| println!("{line}"));
        ground.nodes.stop()?;
        Ok(verdict)
    }
}
