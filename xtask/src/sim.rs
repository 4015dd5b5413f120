//! `cargo xtask sim`: builds the simulation (crate `sim`) and runs seeds of it; with `--planted`, built with
//! the bugs on purpose, and each must be caught within a minute, by runs with the supply side alone too. Not
//! here: what a seed does and what must hold at its end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};

use crate::lab;

/// A planted bug must be caught within this time.
const CAUGHT_WITHIN: Duration = Duration::from_secs(60);
/// Seeds that the build with the bugs must pass while none is switched on: what is caught is the bug then.
const CLEAN_SEEDS: u64 = 500;
/// How the program's last line begins when it caught something.
const CAUGHT: &str = "caught by seed ";

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// How many seeds
    #[arg(long, default_value_t = 10_000, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first one
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    from: u64,
    /// Only seeds with the supply side
    #[arg(long, conflicts_with = "seed")]
    supply: bool,
    /// Only this seed
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// With `--seed`: all that happens in it
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Build with the bugs on purpose, switch this one on and demand that it is caught
    #[arg(long, value_name = "BUG", conflicts_with_all = ["seeds", "seed"])]
    planted: Option<Planted>,
}

/// Which bugs to catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Planted {
    /// One after the other
    All,
    /// A lost claim is settled all the same
    NoFenceCheck,
    /// The foreign step comes before the claim
    ClaimAfterEffect,
    /// A key's result is given again for ever
    ExpiryIgnored,
    /// The record is read before the lock is held, and believed
    LookBeforeLock,
    /// A commit is believed whose writes raised
    CommitWithoutGuard,
    /// The relay looks for new rows above the highest one it took
    IdWatermark,
    /// Another payload passes for the same
    NoMismatchCheck,
    /// Announcements are written after the commit
    OutboxOutsideTransaction,
    /// Nobody asks for an open settlement, and no index keeps a second one out
    OpenSettlementNotAsked,
    /// A withdrawal that is taken back moves its earnings and posts nothing
    CancelWithoutJournal,
    /// Who takes a batch over does not ask which items have their receipt
    SliceDoneAgain,
}

impl Planted {
    fn bugs(self) -> Vec<Self> {
        let all = Self::value_variants().iter().copied().filter(|bug| *bug != Self::All);
        all.filter(|bug| self == Self::All || self == *bug).collect()
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Sim {
    /// Runs the seeds.
    ///
    /// # Errors
    /// A seed failed, a branch was never taken, or a planted bug was not caught.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if let Some(planted) = self.planted {
            return caught(planted);
        }
        let mut command = Command::new(program(Build::Clean)?);
        match self.seed {
            Some(seed) => {
                command.args(["--seed", &seed.to_string()]).args(self.trace.then_some("--trace"));
            }
            None => {
                command.args(["--seeds", &self.seeds.to_string(), "--from", &self.from.to_string()]);
                command.args(self.supply.then_some("--supply"));
            }
        }
        let status = command.status().context("the simulation can't be started")?;
        ensure!(status.success(), "the simulation is not green, see above");
        Ok(())
    }
}

/// Which build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    Clean,
    Planted,
}

/// Builds the program and gives its path. The one with the bugs gets a name of its own, so that the next
/// build of the other doesn't replace it.
fn program(build: Build) -> anyhow::Result<PathBuf> {
    eprintln!("building sim ({build:?})");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "--package", "sim"]).current_dir(lab::root());
    if build == Build::Planted {
        command.args(["--features", "planted-bugs"]);
    }
    let status = command.status().context("cargo can't be started; run it through cargo xtask")?;
    ensure!(status.success(), "sim doesn't build, see cargo's messages above");
    let built = lab::root().join("target/release/sim").canonicalize()?;
    if build == Build::Clean {
        return Ok(built);
    }
    let kept = built.with_file_name("sim-planted");
    std::fs::copy(&built, &kept).with_context(|| format!("copying {}", built.display()))?;
    Ok(kept)
}

fn caught(planted: Planted) -> anyhow::Result<()> {
    let program = program(Build::Planted)?;
    let clean = Command::new(&program).args(["--seeds", &CLEAN_SEEDS.to_string()]).output()?;
    ensure!(clean.status.success(), "the build is not clean without a bug:\n{}", text(&clean));
    let mut missed = Vec::new();
    for bug in planted.bugs() {
        for only in [None, Some("--supply")] {
            let (began, name) = (Instant::now(), bug.name() + only.map_or("", |_| " (supply side)"));
            match catch(&program, &bug.name(), only)? {
                Some(line) => println!("{name}: {line} ({} ms)", began.elapsed().as_millis()),
                None => {
                    println!("{name}: not caught within {} s", CAUGHT_WITHIN.as_secs());
                    missed.push(name);
                }
            }
        }
    }
    ensure!(missed.is_empty(), "not caught: {}", missed.join(", "));
    Ok(())
}

/// The line that says which seed caught the bug.
fn catch(program: &Path, bug: &str, only: Option<&str>) -> anyhow::Result<Option<String>> {
    let mut command = Command::new(program);
    command.args(only);
    command.args(["--catch", &CAUGHT_WITHIN.as_secs().to_string()]).env("ONCESEAL_PLANTED_BUG", bug);
    let output = command.output().context("the simulation can't be started")?;
    let line = text(&output).lines().find(|line| line.starts_with(CAUGHT)).map(ToOwned::to_owned);
    Ok(line.filter(|_| output.status.success()))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_means_every_one() {
        let names: Vec<String> = Planted::All.bugs().into_iter().map(Planted::name).collect();
        assert_eq!(names.len(), 11);
        assert!(names.contains(&"no-fence-check".to_owned()) && !names.contains(&"all".to_owned()));
        assert_eq!(Planted::IdWatermark.bugs(), [Planted::IdWatermark]);
    }
}
