//! One check while it is made: what was expected, what was seen, and the evidence. And the book of all: a check that
//! is missing, empty or without evidence fails, whatever it did. Not here: what is checked ([`super::checks`]).

use std::collections::BTreeMap;
use std::fmt::Debug;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::database::Engine;
use super::list::{self, Group, Item};

/// Requests whose ids are kept of one check; all are counted.
const REQUESTS_KEPT: usize = 24;
/// Rows of the audit that are kept of one check.
const SAMPLES_KEPT: usize = 6;
/// Longest text of what was expected or seen, in characters.
const TEXT_MAX: usize = 400;

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// Of what.
    pub what: String,
    /// What it should be.
    pub expected: String,
    /// What it was.
    pub seen: String,
    /// Whether they agree.
    pub holds: Holds,
}

/// Whether an assertion holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// `X-Request-Id`.
    pub request_id: String,
    /// Method and path.
    pub call: String,
    /// What it was answered.
    pub status: u16,
}

/// What is recorded of one check.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// All comparisons.
    pub assertions: Vec<Assertion>,
    /// The first requests.
    pub requests: Vec<Sent>,
    /// How many there were.
    pub sent: usize,
    /// Figures: what was measured, and how much.
    pub values: BTreeMap<String, Json>,
    /// Rows of the audit.
    pub samples: Vec<Json>,
    /// Why it could not be made to its end.
    pub broke: Option<String>,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every assertion holds, and there is evidence.
    Passed,
    /// One does not, or the check broke off.
    Failed,
    /// Nothing was asserted, or nothing shows that it was made.
    Empty,
    /// It was not made.
    Missing,
}

impl Verdict {
    /// As it stands in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Empty => "empty",
            Self::Missing => "missing",
        }
    }
}

impl Check {
    /// Two things must be the same.
    pub fn equal<T: PartialEq + Debug>(&mut self, what: impl Into<String>, expected: &T, seen: &T) {
        let holds = if expected == seen { Holds::Yes } else { Holds::No };
        let told = |value: &T| {
            let text = format!("{value:?}");
            if text.chars().count() <= TEXT_MAX {
                return text;
            }
            let start: String = text.chars().take(TEXT_MAX).collect();
            format!("{start}… ({} characters)", text.chars().count())
        };
        let (mut expected, mut seen) = (told(expected), told(seen));
        if holds == Holds::No && expected == seen {
            // They differ behind what is kept.
            expected.push_str(" (as before)");
            seen.push_str(" (something else)");
        }
        self.assertions.push(Assertion { what: what.into(), expected, seen, holds });
    }

    /// Something must be so.
    pub fn so(&mut self, what: impl Into<String>, seen: bool) {
        self.equal(what, &true, &seen);
    }

    /// A request was answered.
    pub fn sent(&mut self, request_id: &str, call: String, status: u16) {
        self.sent += 1;
        if self.requests.len() < REQUESTS_KEPT {
            self.requests.push(Sent { request_id: request_id.to_owned(), call, status });
        }
    }

    /// A figure.
    pub fn value(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        self.values.insert(name.into(), value.into());
    }

    /// Whether there is room for more rows of the audit.
    #[must_use]
    pub fn wants_samples(&self) -> bool {
        self.samples.len() < SAMPLES_KEPT
    }

    /// A row of the audit.
    pub fn sample(&mut self, row: Json) {
        if self.wants_samples() {
            self.samples.push(row);
        }
    }

    /// How it ended.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.broke.is_some() || self.assertions.iter().any(|one| one.holds == Holds::No) {
            return Verdict::Failed;
        }
        let evidence = self.sent > 0 || !self.values.is_empty() || !self.samples.is_empty();
        if self.assertions.is_empty() || !evidence { Verdict::Empty } else { Verdict::Passed }
    }

    /// Everything, for reports.
    #[must_use]
    pub fn json(&self) -> Json {
        let assertions: Vec<Json> = self
            .assertions
            .iter()
            .map(|one| {
                json!({ "what": one.what, "expected": one.expected, "seen": one.seen,
                    "holds": one.holds == Holds::Yes })
            })
            .collect();
        let requests: Vec<Json> = self
            .requests
            .iter()
            .map(|one| json!({ "request_id": one.request_id, "call": one.call, "status": one.status }))
            .collect();
        json!({ "assertions": assertions, "requests": requests, "requests_sent": self.sent,
            "values": self.values, "audit_samples": self.samples, "broke": self.broke })
    }
}

/// A check and how it ended.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which.
    pub item: Item,
    /// On which engine.
    pub engine: Engine,
    /// How it ended.
    pub verdict: Verdict,
    /// What is recorded of it.
    pub check: Check,
}

/// What was recorded on one engine.
pub struct Book {
    engine: Engine,
    made: Mutex<BTreeMap<String, Check>>,
}

impl Book {
    /// An empty one.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        Self { engine, made: Mutex::default() }
    }

    /// Makes a check; what breaks it off fails it and nothing else.
    pub async fn check<F>(&self, id: &str, make: F)
    where
        F: AsyncFnOnce(&mut Check) -> Result<(), String>,
    {
        let mut check = Check::default();
        if let Err(cause) = make(&mut check).await {
            check.broke = Some(cause);
        }
        let id = format!("{id}@{}", self.engine);
        tracing::info!(check = id, verdict = check.verdict().name(), "checked");
        let twice = self.made.lock().insert(id.clone(), check);
        if twice.is_some() {
            let check = Check { broke: Some("it was made twice".into()), ..Check::default() };
            self.made.lock().insert(id, check);
        }
    }

    /// Everything that was to be made, and what else was; judged.
    #[must_use]
    pub fn judged(self) -> Vec<Entry> {
        let mut made = self.made.into_inner();
        let mut entries = Vec::new();
        for item in list::all(self.engine) {
            let check = made.remove(&item.id);
            let verdict = check.as_ref().map_or(Verdict::Missing, Check::verdict);
            entries.push(Entry { item, engine: self.engine, verdict, check: check.unwrap_or_default() });
        }
        for (id, mut check) in made {
            check.broke = Some("its id stands in no list".into());
            let item = Item { id, group: Group::Whole };
            entries.push(Entry { item, engine: self.engine, verdict: Verdict::Failed, check });
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[Entry], id: &str) -> Verdict {
        entries.iter().find(|entry| entry.item.id == format!("{id}@sqlite")).unwrap().verdict
    }

    #[tokio::test]
    async fn a_check_passes_only_with_assertions_that_hold_and_with_evidence() {
        let book = Book::new(Engine::Sqlite);
        let evidence = |check: &mut Check| check.value("rows", 1);
        book.check("M-013", async |check| {
            check.equal("exposures", &0, &0);
            evidence(check);
            Ok(())
        })
        .await;
        book.check("M-014", async |_| Ok(())).await;
        book.check("M-015", async |check| {
            check.so("nobody did", true);
            Ok(())
        })
        .await;
        book.check("M-016", async |check| {
            evidence(check);
            check.so("all were refused", false);
            Ok(())
        })
        .await;
        book.check("M-004", async |check| {
            evidence(check);
            check.so("it began well", true);
            Err("the server went away".into())
        })
        .await;
        book.check("M-999", async |_| Ok(())).await;
        let entries = book.judged();
        let ends = ["M-013", "M-014", "M-015", "M-016", "M-004", "M-005", "M-999"].map(|id| of(&entries, id));
        let expected = [
            Verdict::Passed,
            Verdict::Empty,
            Verdict::Empty,
            Verdict::Failed,
            Verdict::Failed,
            Verdict::Missing,
            Verdict::Failed,
        ];
        assert_eq!(ends, expected);
        assert_eq!(entries.len(), list::all(Engine::Sqlite).len() + 1);
    }

    #[tokio::test]
    async fn a_check_that_is_made_twice_fails() {
        let book = Book::new(Engine::Sqlite);
        for _ in 0..2 {
            book.check("M-013", async |check| {
                check.so("well", true);
                check.value("rows", 1);
                Ok(())
            })
            .await;
        }
        assert_eq!(of(&book.judged(), "M-013"), Verdict::Failed);
    }
}
