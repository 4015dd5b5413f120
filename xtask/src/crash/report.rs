//! What a run prints: what is crashed, each failing point, the sum. Not here: judging.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure};

use crate::trace::Recording;

use super::judge::Found;
use super::{Crash, Stop, tree};

/// One thing that is wrong after one crash.
#[derive(Debug)]
pub(super) struct Failing {
    /// How the machine stopped.
    pub(super) stop: Stop,
    /// The log line of the point before which it did.
    pub(super) line: String,
    /// What is wrong.
    pub(super) what: String,
}

/// One point, crashed at in all ways.
#[derive(Debug)]
pub(super) struct Crashed {
    /// Whether the run came to the point.
    pub(super) killed: bool,
    /// What each crash turned out to be.
    pub(super) found: Vec<(Stop, Found)>,
    /// What is wrong.
    pub(super) failing: Vec<Failing>,
}

/// The sum over all crashes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    points: u64,
    failed: u64,
    unkilled: u64,
    caught: Option<String>,
    found: BTreeMap<(&'static str, &'static str), u64>,
}

const CRASHES: &str = "crashes";

/// Whether a crash turned out so.
type Trait = fn(Found) -> bool;

/// What crashes turn out to be, in words.
const TRAITS: [(&str, Trait); 6] = [
    (CRASHES, |_| true),
    ("record durable before the restart", |found| found.committed),
    ("sender had been told 2xx", |found| found.told),
    ("announcement had arrived", |found| found.announced),
    ("files without a record adopted", |found| found.adopted),
    ("announcement held as uncertain", |found| found.uncertain),
];

impl Tally {
    /// Counts a point in, and prints what is wrong with it. Beyond the `counted` ones a point that its run
    /// did not come to is none, but what it shows is judged all the same.
    pub(super) fn take(&mut self, point: u64, crashed: Crashed, counted: u64) {
        self.points += u64::from(crashed.killed || point <= counted);
        self.unkilled += u64::from(!crashed.killed && point > counted);
        self.failed += u64::from(!crashed.failing.is_empty());
        for Failing { stop, line, what } in crashed.failing {
            println!("point {point}, {}, before {line}: {what}", stop.word());
            self.caught
                .get_or_insert_with(|| format!("point {point} ({}), before {line}: {what}", stop.word()));
        }
        for (stop, found) in crashed.found {
            for (name, holds) in TRAITS {
                *self.found.entry((name, stop.word())).or_default() += u64::from(holds(found));
            }
        }
        if self.points.is_multiple_of(20) {
            eprintln!("{} points done", self.points);
        }
    }

    /// Runs past the counted points that were too short for theirs.
    pub(super) const fn unkilled(&self) -> u64 {
        self.unkilled
    }

    /// Whether something was wrong somewhere.
    pub(super) const fn caught(&self) -> bool {
        self.caught.is_some()
    }

    fn times(&self, name: &'static str, stop: Stop) -> u64 {
        self.found.get(&(name, stop.word())).copied().unwrap_or_default()
    }

    fn table(&self) -> String {
        let [kill, cut, names] = Stop::ALL.map(Stop::word);
        let mut text = format!("{:<36} {kill:>10} {cut:>10} {names:>10}\n", "");
        for (name, _) in TRAITS {
            let [kill, cut, names] = Stop::ALL.map(|stop| self.times(name, stop));
            // Writing to a string can't fail.
            let _ = writeln!(text, "{name:<36} {kill:>10} {cut:>10} {names:>10}");
        }
        text
    }
}

/// What the counting run saw.
pub(super) fn heading(recording: &Recording) -> String {
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for point in recording.points.iter().filter(|point| point.number.is_some()) {
        *calls.entry(point.call).or_default() += 1;
    }
    let calls: Vec<String> = calls.iter().map(|(call, count)| format!("{count} {call}")).collect();
    format!(
        "{} points from the first byte received to the last durable mark (announced, synced, exported): {}",
        recording.counted,
        calls.join(", ")
    )
}

/// Prints the sum.
///
/// # Errors
/// A point failed; or, with a planted bug, none did.
pub(super) fn end(tally: &Tally, asked: &Crash, (counted, took): (u64, Duration)) -> anyhow::Result<()> {
    let seconds = took.as_secs();
    if let Some(bug) = asked.planted {
        let Some(caught) = &tally.caught else {
            bail!("the planted bug {} was not caught at {} points", bug.name(), tally.points);
        };
        println!("{} caught at {caught}, after {seconds} s", bug.name());
        return Ok(());
    }
    print!("{}", tally.table());
    let crashes: u64 = Stop::ALL.iter().map(|stop| tally.times(CRASHES, *stop)).sum();
    println!(
        "each point killed, and cut off from power with and without names left: {crashes} crashes in {seconds} s"
    );
    let more = tally.points.saturating_sub(counted);
    if more > 0 {
        println!("{counted} points were counted first; longer runs had {more} more");
    }
    println!("{} points, {} failed", tally.points, tally.failed);
    ensure!(tally.failed == 0, "{} points failed", tally.failed);
    if asked.only.is_none() {
        ensure!(tally.points >= counted, "not all of the {counted} points were tried");
        // Otherwise a state that a crash can leave would go unjudged.
        for (name, _) in TRAITS {
            ensure!(tally.times(name, Stop::Kill) > 0, "no kill came to: {name}");
        }
    }
    Ok(())
}

/// Compares what a replay of everything gives with the folder itself, without SQLite's shared memory.
///
/// # Errors
/// Names the files that differ.
pub(super) fn same_tree(real: &Path, replayed: &Path) -> anyhow::Result<()> {
    let [real, replayed] = [tree(real)?, tree(replayed)?];
    let names = real.keys().chain(replayed.keys()).filter(|name| !name.ends_with("-shm"));
    let mut differing: Vec<&str> =
        names.filter(|name| real.get(*name) != replayed.get(*name)).map(String::as_str).collect();
    differing.dedup();
    ensure!(differing.is_empty(), "these files differ: {}", differing.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crashed(killed: bool, wrong: &[&str]) -> Crashed {
        let failing =
            |what: &&str| Failing { stop: Stop::PowerCut, line: "9 fsync".into(), what: (*what).into() };
        let found = Stop::ALL.map(|stop| (stop, Found { told: true, ..Found::default() })).to_vec();
        Crashed { killed, found, failing: wrong.iter().map(failing).collect() }
    }

    #[test]
    fn points_past_the_counted_ones_count_only_where_a_run_came_to_them() {
        let mut tally = Tally::default();
        for (point, killed) in [(1, true), (2, false), (3, true), (4, false)] {
            tally.take(point, crashed(killed, &[]), 2);
        }
        assert_eq!((tally.points, tally.unkilled(), tally.caught()), (3, 1, false));
        assert_eq!(tally.times("sender had been told 2xx", Stop::Kill), 4);
    }

    #[test]
    fn a_point_fails_once_however_much_is_wrong_and_the_end_says_so() {
        let mut tally = Tally::default();
        tally.take(1, crashed(true, &["this", "that"]), 1);
        assert_eq!((tally.failed, tally.caught()), (1, true));
        let asked = |planted| Crash {
            engine: super::super::Engine::Sqlite,
            supply: false,
            command: None,
            deaths: None,
            only: Some(1),
            keep: false,
            planted,
            program: None,
            jobs: std::num::NonZeroUsize::MIN,
        };
        assert!(end(&tally, &asked(None), (1, Duration::ZERO)).is_err());
        let bug = Some(super::super::Bug::AckBeforeCommit);
        assert!(end(&tally, &asked(bug), (1, Duration::ZERO)).is_ok());
        assert!(end(&Tally::default(), &asked(bug), (1, Duration::ZERO)).is_err());
    }
}
