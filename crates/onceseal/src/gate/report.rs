//! The report of a gate: JSON with everything, Markdown and a page for people, with a place to sign. Nothing that looks
//! like a credential is in it. Not here: sealing it ([`super::sealed`]).

use std::fmt::Write as _;

use askama::Template;
use guard::{Guard, Verdict as Judged};
use kernel::Time;
use serde::Serialize;
use serde_json::Value as Json;

use super::check::{Entry, Holds, Verdict};
use super::list::{Group, WRITES};

/// `kind` of the JSON.
pub const KIND: &str = "onceseal-gate/1";
/// Roles that sign.
const ROLES: [(&str, &str); 4] = [
    ("测试负责人", "Test"),
    ("安全负责人", "Security"),
    ("财务负责人", "Finance"),
    ("发布负责人", "Release"),
];

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What this is.
    pub kind: &'static str,
    /// Of the program.
    pub version: &'static str,
    /// When the gate was held (RFC 3339).
    pub made_at: String,
    /// Engine and version, one a line.
    pub engines: Vec<String>,
    /// How many checks.
    pub checks_total: usize,
    /// How many of them did not pass.
    pub checks_failed: usize,
    /// By gate.
    pub groups: Vec<Gate>,
    /// All checks.
    pub checks: Vec<Line>,
    /// Where people sign.
    pub sign_off: Vec<SignOff>,
}

/// One gate.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    /// `SUP-004` and so on.
    pub id: &'static str,
    /// In Chinese.
    pub title_zh: &'static str,
    /// In English.
    pub title: &'static str,
    /// How many checks.
    pub checks: usize,
    /// How many of them did not pass.
    pub failed: usize,
}

/// One check.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Its id.
    pub id: String,
    /// Its gate.
    pub group: &'static str,
    /// On which engine.
    pub engine: &'static str,
    /// Which of the five writes, if it is about one.
    pub command: Option<String>,
    /// `passed`, `failed`, `empty` or `missing`.
    pub verdict: &'static str,
    /// What broke it off.
    pub broke: Option<String>,
    /// What was compared.
    pub assertions: Vec<Compared>,
    /// Requests that were sent.
    pub requests_sent: usize,
    /// The first of them.
    pub requests: Vec<Requested>,
    /// Figures.
    pub values: Vec<Figure>,
    /// Rows of the audit, as JSON.
    pub audit_samples: Vec<String>,
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Of what.
    pub what: String,
    /// What it should be.
    pub expected: String,
    /// What it was.
    pub seen: String,
    /// Whether they agree.
    pub holds: bool,
}

/// One request.
#[derive(Clone, Debug, Serialize)]
pub struct Requested {
    /// `X-Request-Id`.
    pub request_id: String,
    /// Method and path.
    pub call: String,
    /// Status of the answer.
    pub status: u16,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Of what.
    pub name: String,
    /// As JSON.
    pub value: String,
}

/// A line to be filled in.
#[derive(Clone, Debug, Serialize)]
pub struct SignOff {
    /// In Chinese.
    pub role_zh: &'static str,
    /// In English.
    pub role: &'static str,
    /// Who.
    pub name: &'static str,
    /// When.
    pub date: &'static str,
    /// Go, no go, with conditions.
    pub decision: &'static str,
}

#[derive(Template)]
#[template(path = "gate_v1.html")]
struct Page<'a> {
    style: &'static str,
    report: &'a Report,
}

const STYLE: &str = include_str!("../../templates/gate_v1.css");

impl Report {
    /// Of all checks on all engines; every text is redacted.
    #[must_use]
    pub fn new(entries: &[Entry], engines: Vec<String>, at: Time, guard: &Guard) -> Self {
        let failed = |entries: &[&Entry]| entries.iter().filter(|one| one.verdict != Verdict::Passed).count();
        let groups = Group::ALL.map(|group| {
            let of: Vec<&Entry> = entries.iter().filter(|one| one.item.group == group).collect();
            let (title_zh, title) = group.title();
            Gate { id: group.id(), title_zh, title, checks: of.len(), failed: failed(&of) }
        });
        let sign_off =
            ROLES.map(|(role_zh, role)| SignOff { role_zh, role, name: "", date: "", decision: "" });
        Self {
            kind: KIND,
            version: env!("CARGO_PKG_VERSION"),
            made_at: at.to_rfc3339_seconds(),
            engines,
            checks_total: entries.len(),
            checks_failed: failed(&entries.iter().collect::<Vec<_>>()),
            groups: groups.into(),
            checks: entries.iter().map(|entry| line(entry, guard)).collect(),
            sign_off: sign_off.into(),
        }
    }

    /// The last line of a run.
    #[must_use]
    pub fn closing(&self) -> String {
        format!("{} checks, {} failed", self.checks_total, self.checks_failed)
    }

    /// Canonical JSON.
    ///
    /// # Errors
    /// A number is not exact.
    pub fn json(&self) -> Result<Vec<u8>, String> {
        seal::jcs::to_vec_exact(self).map_err(|cause| cause.to_string())
    }

    /// The page.
    ///
    /// # Errors
    /// The template fails.
    pub fn html(&self) -> Result<String, String> {
        Page { style: STYLE, report: self }.render().map_err(|cause| cause.to_string())
    }

    /// For reading in a terminal or a review.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# 供应侧验收门禁报告 · Acceptance gate of the supply side\n\nOnceseal {}, {}\n\n**{}**\n\n",
            self.version,
            self.made_at,
            self.closing()
        );
        for engine in &self.engines {
            line_to(&mut text, format_args!("- {engine}"));
        }
        text.push_str("\n## 门禁 · Gates\n\n| gate | | checks | failed |\n|---|---|---|---|\n");
        for gate in &self.groups {
            line_to(
                &mut text,
                format_args!(
                    "| {} | {} · {} | {} | {} |",
                    gate.id, gate.title_zh, gate.title, gate.checks, gate.failed
                ),
            );
        }
        text.push_str("\n## 检查项 · Checks\n");
        for check in &self.checks {
            checked(&mut text, check);
        }
        text.push_str("\n## 签署 · Sign-off\n\n| 角色 · role | 姓名 · name | 日期 · date | 结论 · decision |\n|---|---|---|---|\n");
        for one in &self.sign_off {
            line_to(&mut text, format_args!("| {} · {} | | | |", one.role_zh, one.role));
        }
        text
    }

    /// The three forms by their file names, looked at by the guard before they are written.
    ///
    /// # Errors
    /// One can't be made, or looks like it holds a credential.
    pub fn forms(&self, guard: &Guard) -> Result<[(&'static str, Vec<u8>); 3], String> {
        let forms = [
            ("report.json", self.json()?),
            ("report.md", self.markdown().into_bytes()),
            ("report.html", self.html()?.into_bytes()),
        ];
        for (name, bytes) in &forms {
            if let Judged::Exposed(exposure) = guard.text(name, bytes) {
                return Err(format!("the report is not written: {exposure}"));
            }
        }
        Ok(forms)
    }
}

fn line_to(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "{line}");
}

/// In one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn checked(text: &mut String, check: &Line) {
    line_to(text, format_args!("\n### {} · {} · {}\n", check.id, check.group, check.verdict));
    if let Some(cause) = &check.broke {
        line_to(text, format_args!("**broke off:** {}\n", cell(cause)));
    }
    text.push_str("| | what | expected | seen |\n|---|---|---|---|\n");
    for one in &check.assertions {
        let mark = if one.holds { "✓" } else { "✗" };
        line_to(
            text,
            format_args!("| {mark} | {} | {} | {} |", cell(&one.what), cell(&one.expected), cell(&one.seen)),
        );
    }
    if check.requests_sent > 0 {
        line_to(text, format_args!("\n{} requests, the first of them:\n", check.requests_sent));
        for one in &check.requests {
            line_to(text, format_args!("- `{}` {} → {}", one.request_id, one.call, one.status));
        }
    }
    for figure in &check.values {
        line_to(text, format_args!("\n{}: `{}`", figure.name, figure.value));
    }
    for row in &check.audit_samples {
        line_to(text, format_args!("\n```json\n{row}\n```"));
    }
}

fn line(entry: &Entry, guard: &Guard) -> Line {
    let check = &entry.check;
    let clean = |text: &str| guard.redact(text).into_owned();
    let value = |value: &Json| clean(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let mut words = entry.item.id.split(['.', '@']);
    Line {
        id: entry.item.id.clone(),
        group: entry.item.group.id(),
        engine: entry.engine.name(),
        command: words.find(|word| WRITES.contains(word)).map(str::to_owned),
        verdict: entry.verdict.name(),
        broke: check.broke.as_deref().map(clean),
        assertions: check
            .assertions
            .iter()
            .map(|one| Compared {
                what: clean(&one.what),
                expected: clean(&one.expected),
                seen: clean(&one.seen),
                holds: one.holds == Holds::Yes,
            })
            .collect(),
        requests_sent: check.sent,
        requests: check
            .requests
            .iter()
            .map(|one| Requested {
                request_id: clean(&one.request_id),
                call: clean(&one.call),
                status: one.status,
            })
            .collect(),
        values: check
            .values
            .iter()
            .map(|(name, of)| Figure { name: clean(name), value: value(of) })
            .collect(),
        audit_samples: check.samples.iter().map(|row| clean(&row.to_string())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use guard::Scanner;
    use serde_json::json;

    use super::*;
    use crate::gate::check::Book;
    use crate::gate::database::Engine;

    fn guard() -> Guard {
        Guard::new(Scanner::standard().unwrap(), Vec::new(), &[7; 32])
    }

    async fn report() -> Report {
        let book = Book::new(Engine::Sqlite);
        book.check("FI-002.withdraw.failed", async |check| {
            check.equal("status | code", &400, &400);
            check.sent("6f1c0000-0000-4000-8000-000000000001", "POST /api/v1/x".into(), 400);
            check.value("the line", format!("sk-{}", "Q7xZ".repeat(12)));
            check.sample(json!({ "event_name": "invariant_violation" }));
            Ok(())
        })
        .await;
        Report::new(&book.judged(), vec!["sqlite".into()], Time::from_seconds(1_774_576_984), &guard())
    }

    #[tokio::test]
    async fn a_report_names_its_evidence_has_a_place_to_sign_and_holds_no_credential() {
        let report = report().await;
        assert_eq!(report.checks_failed, report.checks_total - 1);
        assert!(report.closing().ends_with(&format!("{} failed", report.checks_failed)));
        let line = report.checks.iter().find(|line| line.verdict == "passed").unwrap();
        assert_eq!(
            (line.command.as_deref(), line.group, line.engine),
            (Some("withdraw"), "SUP-006", "sqlite")
        );
        for (name, bytes) in report.forms(&guard()).unwrap() {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("6f1c0000-0000-4000-8000-000000000001"), "{name}");
            assert!(text.contains("REDACTED") && !text.contains("Q7xZ"), "{name}");
            assert!(text.contains("发布负责人") && text.contains("SEC-SUP-002"), "{name}");
        }
    }
}
