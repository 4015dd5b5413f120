//! Searching for a planted secret: any few of its bytes in a row count (section 15.2 and FI-008: any 8
//! consecutive characters). For tests and for the gate; it holds the canary in plain text, which the guard
//! never does with a secret.

use std::collections::HashMap;

/// Bytes in a row that count as an exposure (FI-008).
pub const RUN: usize = 8;

/// A planted secret, ready to be searched for in many texts.
pub struct Canary {
    runs: HashMap<Vec<u8>, usize>,
    length: usize,
}

/// Where a run was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// First byte in the text.
    pub at: usize,
    /// First byte in the canary.
    pub of: usize,
}

impl Canary {
    /// Prepares a canary; `length` is the number of bytes in a row that count, at least 1. `None` if the canary
    /// is shorter: such a search would find nothing and prove nothing.
    #[must_use]
    pub fn new(canary: &str, length: usize) -> Option<Self> {
        let mut runs = HashMap::new();
        for (of, run) in canary.as_bytes().windows(length.max(1)).enumerate() {
            runs.entry(run.to_vec()).or_insert(of);
        }
        (length > 0 && !runs.is_empty()).then_some(Self { runs, length })
    }

    /// The first run of the canary in a text.
    #[must_use]
    pub fn seen_in(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> Option<Sighting> {
        let mut runs = text.as_ref().windows(self.length).enumerate();
        runs.find_map(|(at, run)| self.runs.get(run).map(|of| Sighting { at, of: *of }))
    }
}

/// Whether any `length` consecutive bytes of the canary stand in the text. A canary that is too short for the
/// question counts as found, so that a test with a wrong canary fails.
#[must_use]
pub fn contains_run(text: &(impl AsRef<[u8]> + ?Sized), canary: &str, length: usize) -> bool {
    Canary::new(canary, length).is_none_or(|canary| canary.seen_in(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_run_of_a_canary_is_seen_and_one_byte_less_is_not() {
        let canary = "ck-0123456789abcdefghij";
        for start in 0..=canary.len() - RUN {
            let run = &canary[start..start + RUN];
            assert!(contains_run(&format!("a log line {run} and more"), canary, RUN), "{run}");
            assert!(!contains_run(&format!("a log line {} and more", &run[1..]), canary, RUN), "{run}");
        }
        let seen = Canary::new(canary, RUN).unwrap().seen_in("..456789ab..");
        assert_eq!(seen, Some(Sighting { at: 2, of: 7 }));
    }

    #[test]
    fn a_canary_too_short_for_the_search_counts_as_found() {
        assert!(contains_run("anything", "short", RUN));
        assert!(contains_run("anything", "", RUN));
        assert!(contains_run("anything", "canary", 0));
        assert!(!contains_run("", "long enough", RUN));
    }
}
