//! What happened, line by line, for whoever replays a seed; and a digest of it, for the proof that a seed
//! always makes the same run.

use kernel::{Digest, Time};

/// The lines of a run. Empty unless asked for: writing them takes longer than the run.
#[derive(Debug, Default)]
pub struct Trace {
    wanted: bool,
    began: Time,
    lines: Vec<String>,
}

impl Trace {
    pub(crate) const fn new(wanted: bool, began: Time) -> Self {
        Self { wanted, began, lines: Vec::new() }
    }

    pub(crate) fn tell(&mut self, now: Time, line: impl FnOnce() -> String) {
        if self.wanted {
            let millis = now.since(self.began).as_millis();
            self.lines.push(format!("{:>9}.{:03} {}", millis / 1000, millis % 1000, line()));
        }
    }

    /// The lines, each with its time: seconds of the store's clock since the run began.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Of all lines.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let lines: Vec<&[u8]> = self.lines.iter().map(String::as_bytes).collect();
        Digest::of_fields(&lines)
    }
}
