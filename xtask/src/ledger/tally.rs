//! How often each kind of command was sent, and what came of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::command::{KINDS, Sent};

/// From so many commands on every kind must have succeeded and been refused.
pub(super) const COMPLETE: u64 = 20_000;
/// Is answered with a receipt an item, whatever became of them.
const NEVER_REFUSED: &str = "batch price";

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    succeeded: u64,
    refused: u64,
    replayed: u64,
    misused: u64,
}

/// Counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    /// How often store and model were compared, and rows of the model at the end.
    pub(super) compared: u64,
    pub(super) lines: usize,
    /// Commits that share a moment with another.
    pub(super) shared: usize,
    kinds: BTreeMap<&'static str, Counts>,
    codes: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts a batch.
    pub(super) fn count(&mut self, batch: &[Sent]) {
        for sent in batch {
            self.sent += 1;
            let counts = self.kinds.entry(sent.command.what.kind()).or_default();
            match &sent.told {
                told if !told.same => counts.misused += 1,
                told if told.replayed => counts.replayed += 1,
                told if told.code < 300 => counts.succeeded += 1,
                told => {
                    counts.refused += 1;
                    *self.codes.entry(told.error()).or_default() += 1;
                }
            }
        }
    }

    /// What never happened.
    pub(super) fn unseen(&self) -> Vec<String> {
        let mut unseen = Vec::new();
        for kind in KINDS {
            let counts = self.kinds.get(kind).copied().unwrap_or_default();
            if counts.succeeded == 0 {
                unseen.push(format!("{kind} that succeeds"));
            }
            if counts.refused == 0 && kind != NEVER_REFUSED {
                unseen.push(format!("{kind} that is refused"));
            }
        }
        unseen
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let mut text =
            format!("{:<22}{:>10}{:>10}{:>10}{:>10}\n", "", "succeeded", "refused", "repeated", "misused");
        let mut line = |name: &str, counts: Counts| {
            let Counts { succeeded, refused, replayed, misused } = counts;
            // Writing to a string can't fail.
            let _ = writeln!(text, "{name:<22}{succeeded:>10}{refused:>10}{replayed:>10}{misused:>10}");
        };
        let mut sum = Counts::default();
        for kind in KINDS {
            let counts = self.kinds.get(kind).copied().unwrap_or_default();
            line(kind, counts);
            sum.succeeded += counts.succeeded;
            sum.refused += counts.refused;
            sum.replayed += counts.replayed;
            sum.misused += counts.misused;
        }
        line("all", sum);
        let codes: Vec<String> = self.codes.iter().map(|(code, count)| format!("{code} {count}")).collect();
        let _ = writeln!(text, "refused with: {}", codes.join(", "));
        let _ = write!(
            text,
            "compared {} times, {} rows at the end; {} commits share a moment with another",
            self.compared, self.lines, self.shared
        );
        text
    }
}
