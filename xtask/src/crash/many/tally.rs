//! The sum over all trials, and what is printed of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::judge::Found;
use super::traced::Death;
use crate::crash::Crash;

/// One trial.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub(super) name: String,
    pub(super) death: Death,
    /// Whether something died as it should.
    pub(super) killed: bool,
    /// The point before which it did.
    pub(super) before: Option<String>,
    pub(super) found: Found,
    pub(super) wrong: Vec<String>,
}

/// All trials of one kind of death.
#[derive(Debug, Default)]
struct Kind {
    trials: u64,
    committed: u64,
    told: u64,
    announced: u64,
    uncertain: u64,
}

/// The sum.
#[derive(Debug, Default)]
pub(super) struct Tally {
    kinds: BTreeMap<&'static str, Kind>,
    trials: u64,
    failed: u64,
    caught: Option<String>,
    acknowledged: Duration,
    gone: Duration,
}

impl Tally {
    /// Counts a trial in, and prints what is wrong with it. One that was too short is none, unless it was
    /// `expected`; what it shows is judged all the same.
    pub(super) fn take(&mut self, trial: Trial, expected: bool) {
        let Trial { name, death, killed, before, found, wrong } = trial;
        let counts = u64::from(killed || expected);
        let kind = self.kinds.entry(death.kind()).or_default();
        kind.trials += counts;
        kind.committed += u64::from(found.committed);
        kind.told += u64::from(found.told);
        kind.announced += u64::from(found.announced);
        kind.uncertain += u64::from(found.uncertain);
        self.trials += counts;
        self.failed += u64::from(!wrong.is_empty());
        self.acknowledged = self.acknowledged.max(found.acknowledged);
        self.gone = self.gone.max(found.gone);
        for what in wrong {
            let line = format!("{name}, before {}: {what}", before.as_deref().unwrap_or("its end"));
            println!("{line}");
            self.caught.get_or_insert(line);
        }
        if self.trials.is_multiple_of(20) {
            eprintln!("{} trials done", self.trials);
        }
    }

    /// Whether something was wrong somewhere.
    pub(super) const fn caught(&self) -> bool {
        self.caught.is_some()
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{:<56} {:>7} {:>9} {:>5} {:>9} {:>9}\n",
            "", "trials", "committed", "told", "announced", "uncertain"
        );
        for (name, kind) in &self.kinds {
            let Kind { trials, committed, told, announced, uncertain } = kind;
            // Writing to a string can't fail.
            let _ = writeln!(
                text,
                "{name:<56} {trials:>7} {committed:>9} {told:>5} {announced:>9} {uncertain:>9}"
            );
        }
        text
    }

    /// Prints the sum.
    ///
    /// # Errors
    /// A trial failed; or, with a planted bug, none did.
    pub(super) fn end(&self, asked: &Crash, took: Duration) -> Result<()> {
        if let Some(bug) = asked.planted {
            let Some(caught) = &self.caught else {
                bail!("the planted bug {} was not caught in {} trials", bug.name(), self.trials);
            };
            println!("{} caught at {caught}, after {} s", bug.name(), took.as_secs());
            return Ok(());
        }
        print!("{}", self.table());
        println!(
            "the dead server's sessions were gone after {} ms at most, a redelivery to the other one was acknowledged \
             after {} ms at most; {} s in all",
            self.gone.as_millis(),
            self.acknowledged.as_millis(),
            took.as_secs()
        );
        println!("{} points, {} failed", self.trials, self.failed);
        ensure!(self.failed == 0, "{} trials failed", self.failed);
        if asked.only.is_none() {
            let kinds = if asked.deaths.is_some() { 2 } else { 4 };
            ensure!(
                self.kinds.len() == kinds,
                "only {} of {kinds} kinds of death were tried",
                self.kinds.len()
            );
            let seen = |count: fn(&Kind) -> u64| self.kinds.values().map(count).sum::<u64>() > 0;
            let all = seen(|kind| kind.committed) && seen(|kind| kind.told) && seen(|kind| kind.announced);
            ensure!(all, "no death came after the commit, after the answer, or after the announcement");
        }
        Ok(())
    }
}
