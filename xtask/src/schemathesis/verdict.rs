//! What the tool says at its end, from its JSON report: how much it tried, and what it found.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value as Json;

/// The phases that all must have run.
const PHASES: [&str; 4] = ["examples", "coverage", "fuzzing", "stateful"];

/// A run's end.
#[derive(Debug)]
pub(super) struct Verdict {
    operations: u64,
    cases: u64,
    findings: Vec<String>,
}

impl Verdict {
    /// Reads the report in a run's folder. `described` is how many operations the document has.
    ///
    /// # Errors
    /// There is no report, or it says nothing.
    pub(super) fn of(folder: &Path, described: usize) -> anyhow::Result<Self> {
        let found = std::fs::read_dir(folder.join("reports")).context("schemathesis left no reports")?;
        let mut paths = found.filter_map(|entry| Some(entry.ok()?.path()));
        let path = paths.find(|path| path.extension().is_some_and(|ending| ending == "json"));
        let text = std::fs::read(path.context("schemathesis left no JSON report")?)?;
        Self::read(&serde_json::from_slice(&text)?, described)
    }

    fn read(report: &Json, described: usize) -> anyhow::Result<Self> {
        let count = |at: &str| report.pointer(at).and_then(Json::as_u64).unwrap_or_default();
        let (operations, cases) = (count("/operations/tested"), count("/test_cases/generated"));
        ensure!(cases > 0, "schemathesis tried nothing; its words are above");
        let list = |name: &str| report.get(name).and_then(Json::as_array).cloned().unwrap_or_default();
        let mut findings: Vec<String> =
            list("failures").iter().map(|one| worded(one, "operations")).collect();
        findings.extend(list("errors").iter().map(|one| worded(one, "count")));
        if report.get("complete") != Some(&Json::Bool(true)) {
            let reason = report.get("stop_reason").unwrap_or(&Json::Null);
            findings.push(format!("the run is not complete: {reason}"));
        }
        if operations != u64::try_from(described)? {
            findings.push(format!("{operations} operations of {described} were tried"));
        }
        for phase in PHASES {
            let told = report.get("phases").and_then(|phases| phases.get(phase)).unwrap_or(&Json::Null);
            if told.get("status").and_then(Json::as_str) != Some("success") {
                findings.push(format!("{phase}: {told}"));
            }
        }
        Ok(Self { operations, cases, findings })
    }

    /// Whether nothing was found.
    pub(super) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

fn worded(finding: &Json, more: &str) -> String {
    format!("{}: {}", finding["title"].as_str().unwrap_or("no title"), finding[more])
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, cases, findings } = self;
        for finding in findings {
            writeln!(f, "found {finding}")?;
        }
        write!(f, "schemathesis: {operations} operations, {cases} cases, {} findings", findings.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Json {
        let done = json!({ "status": "success", "skip_reason": null });
        json!({ "complete": true, "operations": { "tested": 2 }, "test_cases": { "generated": 9 }, "failures": [],
            "errors": [], "phases": { "examples": done, "coverage": done, "fuzzing": done, "stateful": done } })
    }

    #[test]
    fn a_run_without_findings_ends_with_its_line() {
        let verdict = Verdict::read(&report(), 2).unwrap();
        assert!(verdict.is_clean());
        assert_eq!(verdict.to_string(), "schemathesis: 2 operations, 9 cases, 0 findings");
    }

    #[test]
    fn whatever_is_missing_is_a_finding() {
        let changed = |at: &str, value: Json| {
            let mut report = report();
            *report.pointer_mut(at).unwrap() = value;
            Verdict::read(&report, 2).unwrap().findings.len()
        };
        assert_eq!(changed("/failures", json!([{ "title": "Server error", "operations": ["GET /a"] }])), 1);
        assert_eq!(changed("/errors", json!([{ "title": "Hook Error", "count": 1 }])), 1);
        assert_eq!(changed("/complete", json!(false)), 1);
        assert_eq!(changed("/operations/tested", json!(1)), 1);
        assert_eq!(changed("/phases/stateful/status", json!("skip")), 1);
        assert!(Verdict::read(&json!({}), 2).is_err());
    }
}
