//! What a private PostgreSQL wrote into its log since a moment: error codes and how often each was raised.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Setting `log_line_prefix` of servers whose log is read here: time, program, code, application.
pub(super) const PREFIX: &str = "%m [%p] %e %q%a ";

/// A place in a log.
pub(super) struct Mark {
    log: PathBuf,
    at: u64,
}

impl Mark {
    /// The end of the log as it is now.
    ///
    /// # Errors
    /// There is no log.
    pub(super) fn now(log: &Path) -> Result<Self> {
        let at = std::fs::metadata(log).context("the database's log")?.len();
        Ok(Self { log: log.to_owned(), at })
    }

    /// What was written since.
    ///
    /// # Errors
    /// The log can't be read.
    pub(super) fn since(&self) -> Result<String> {
        let mut file = File::open(&self.log).context("the database's log")?;
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// How often each of the codes was raised since.
    ///
    /// # Errors
    /// The log can't be read.
    pub(super) fn raised(&self, codes: &[&str]) -> Result<BTreeMap<String, u64>> {
        let mut counts = BTreeMap::new();
        for code in self.since()?.lines().filter_map(code) {
            if codes.contains(&code) {
                *counts.entry(code.to_owned()).or_default() += 1;
            }
        }
        Ok(counts)
    }
}

/// The code in a line that tells of an error; its further lines (detail, statement) tell of none.
fn code(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("] ")?;
    let is_error = ["ERROR: ", "FATAL: ", "PANIC: ", "WARNING: "].iter().any(|word| rest.contains(word));
    let code = rest.get(..5)?;
    (is_error && code != "00000" && rest.as_bytes().get(5) == Some(&b' ')).then_some(code)
}

/// Codes and counts for people: "3 x 40P01, 1 x 55P03".
pub(super) fn shown(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = counts.iter().map(|(code, count)| format!("{count} x {code}")).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_s_code_is_read_from_its_first_line_only() {
        let line = "2026-01-02 03:04:05.678 UTC [42] 40P01 onceseal ERROR:  deadlock detected";
        assert_eq!(code(line), Some("40P01"));
        assert_eq!(code("2026-01-02 03:04:05.678 UTC [42] 40P01 onceseal DETAIL:  Process 42 waits"), None);
        assert_eq!(code("2026-01-02 03:04:05.678 UTC [42] 00000 LOG:  checkpoint starting"), None);
        let counts = BTreeMap::from([("40001".to_owned(), 2), ("40P01".to_owned(), 1)]);
        assert_eq!(shown(&counts), "2 x 40001, 1 x 40P01");
    }
}
