//! The sum over all trials, and what is printed of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::judge::Found;
use super::stage::Critical;
use super::traced::Death;
use crate::crash::Crash;

/// One trial.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub(super) death: Death,
    /// Whether it died as it should.
    pub(super) killed: bool,
    /// The point before which it did.
    pub(super) before: Option<String>,
    pub(super) found: Found,
    pub(super) wrong: Vec<String>,
}

/// All trials of one write.
#[derive(Debug, Default)]
struct Sum {
    points: u64,
    nothing: u64,
    begun: u64,
    committed: u64,
    told: u64,
}

/// The sum.
#[derive(Debug, Default)]
pub(super) struct Tally {
    writes: BTreeMap<Critical, Sum>,
    points: u64,
    failed: u64,
    caught: Option<String>,
}

impl Tally {
    /// Counts a trial in, and prints what is wrong with it. A run that was too short for its death is none, but what
    /// it shows is judged all the same.
    pub(super) fn take(&mut self, write: Critical, trial: Trial) {
        let Trial { death, killed, before, found, wrong } = trial;
        let (counts, sum) = (u64::from(killed), self.writes.entry(write).or_default());
        sum.points += counts;
        sum.nothing += u64::from(killed && !found.begun && !found.committed);
        sum.begun += u64::from(killed && found.begun);
        sum.committed += u64::from(killed && found.committed);
        sum.told += u64::from(killed && found.told);
        self.points += counts;
        self.failed += u64::from(!wrong.is_empty());
        for what in wrong {
            let place = before.as_deref().unwrap_or("its end");
            let line = format!("{} {}, before {place}: {what}", write.name(), death.name());
            println!("{line}");
            self.caught.get_or_insert(line);
        }
        if self.points.is_multiple_of(50) {
            eprintln!("{} points done", self.points);
        }
    }

    /// Whether something was wrong somewhere.
    pub(super) const fn caught(&self) -> bool {
        self.caught.is_some()
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{:<12} {:>7} {:>9} {:>7} {:>10} {:>6}\n",
            "", "points", "nothing", "begun", "committed", "told"
        );
        for (write, Sum { points, nothing, begun, committed, told }) in &self.writes {
            // Writing to a string can't fail.
            let _ = writeln!(
                text,
                "{:<12} {points:>7} {nothing:>9} {begun:>7} {committed:>10} {told:>6}",
                write.name()
            );
        }
        text
    }

    /// Prints the sum.
    ///
    /// # Errors
    /// A trial failed; or, with a planted bug, none did; or no death came to a state that there is.
    pub(super) fn end(&self, asked: &Crash, took: Duration) -> Result<()> {
        if let Some(bug) = asked.planted {
            let Some(caught) = &self.caught else {
                bail!("the planted bug {} was not caught at {} points", bug.name(), self.points);
            };
            println!("{} caught at {caught}, after {} s", bug.name(), took.as_secs());
            return Ok(());
        }
        print!("{}", self.table());
        println!("{} s in all", took.as_secs());
        println!("supply: {} points, {} failed", self.points, self.failed);
        ensure!(self.failed == 0, "{} points failed", self.failed);
        for (write, sum) in self.writes.iter().filter(|_| asked.only.is_none()) {
            let leased = matches!(write, Critical::Mount | Critical::BatchPrice);
            let all = sum.nothing > 0 && sum.committed > 0 && sum.told > 0 && (sum.begun > 0) == leased;
            ensure!(all, "{}: no death came to some state that there is: {sum:?}", write.name());
        }
        Ok(())
    }
}
