//! `onceseal gate`: holds the acceptance gate of the supply side and writes its report, sealed.

use std::path::{Path, PathBuf};

use clap::Args;
use guard::canary::contains_run;
use kernel::Clock as _;
use serde_json::json;

use super::out::{Ended, Exit, Out, Stop, Tone, clean};
use crate::gate::check::{Entry, Holds, Verdict};
use crate::gate::database::Address;
use crate::gate::evidence::Redactor;
use crate::gate::report::Report;
use crate::gate::{self, Held, sealed};
use crate::random::SystemClock;

/// Name of the engine that needs no server.
const SQLITE: &str = "sqlite";

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal gate                                          on SQLite, report in ./gate-report
  onceseal gate --database sqlite --database postgres://postgres@127.0.0.1:5432/postgres --out gate
  onceseal verify gate-report/gate-report.zip --keys gate-report/keys.json

It starts servers of its own in a temporary folder, with databases of its own: on a PostgreSQL server it makes
one and drops it. Nothing that is there already is touched.

Exit codes: 0 all checks passed, 3 one did not, 1 the gate could not be held")]
pub struct Gate {
    /// `sqlite`, or the address of a PostgreSQL server as a user who may make databases; may be given several times
    #[arg(long, value_name = "sqlite|URL", default_value = SQLITE)]
    database: Vec<String>,
    /// Folder of the report
    #[arg(long, value_name = "FOLDER", default_value = "gate-report")]
    out: PathBuf,
}

impl Gate {
    /// Runs it.
    ///
    /// # Errors
    /// The gate can't be held, or the report not written.
    pub async fn run(self, out: Out) -> Ended {
        let servers = self.database.iter().map(|text| match text.as_str() {
            SQLITE => Ok(None),
            address => Address::parse(address).map(Some).map_err(|cause| Stop::new(Exit::Usage, cause)),
        });
        let servers: Vec<Option<Address>> = servers.collect::<Result<_, _>>()?;
        let temporary = tempfile::Builder::new().prefix("onceseal-gate-").tempdir()?;
        let mut all = Vec::new();
        for (number, server) in servers.iter().enumerate() {
            let folder = temporary.path().join(number.to_string());
            let engine = if server.is_some() { "postgres" } else { SQLITE };
            let tell = |what: &str| {
                if !out.json {
                    out.line(out.paint(Tone::Faint, &format!("{engine}: {what}")));
                }
            };
            all.push(gate::hold(&folder, server.as_ref(), &tell).await.map_err(Stop::failed)?);
        }
        let report = self.written(&all).map_err(Stop::failed)?;
        let entries = all.iter().flat_map(|held| &held.entries);
        if out.json {
            let failed: Vec<&str> = entries
                .filter(|one| one.verdict != Verdict::Passed)
                .map(|one| one.item.id.as_str())
                .collect();
            out.value(&json!({ "checks": report.checks_total, "failed": failed, "report": self.out }));
        } else {
            entries.filter(|entry| entry.verdict != Verdict::Passed).for_each(|entry| print(out, entry));
            out.line(format_args!("report  {}", self.out.join("report.html").display()));
            out.line(format_args!(
                "verify  onceseal verify {} --keys {}",
                self.out.join("gate-report.zip").display(),
                self.out.join("keys.json").display()
            ));
            out.line(report.closing());
        }
        Ok(if report.checks_failed == 0 { Exit::Fine } else { Exit::Problems })
    }

    fn written(&self, all: &[Held]) -> Result<Report, String> {
        let (at, redactor) = (SystemClock.now(), Redactor::new()?);
        let entries: Vec<Entry> = all.iter().flat_map(|held| held.entries.clone()).collect();
        let engines = all.iter().map(|held| held.engine.clone()).collect();
        let report = Report::new(&entries, engines, at, redactor.guard());
        let (forms, sealed) = (report.forms(redactor.guard())?, sealed::sealed(&report, at)?);
        let canaries = || all.iter().map(|held| held.canary.as_str());
        if forms.iter().any(|(_, bytes)| canaries().any(|canary| contains_run(bytes, canary, 8))) {
            return Err("the report is not written: it holds a part of the mounted credentials".into());
        }
        let fail = |path: &Path, cause: &std::io::Error| format!("{}: {cause}", path.display());
        std::fs::create_dir_all(&self.out).map_err(|cause| fail(&self.out, &cause))?;
        for (name, bytes) in &forms {
            let path = self.out.join(name);
            std::fs::write(&path, bytes).map_err(|cause| fail(&path, &cause))?;
        }
        sealed::write(&self.out, &sealed)?;
        Ok(report)
    }
}

/// What did not pass, and why.
fn print(out: Out, entry: &Entry) {
    out.line(format_args!("{} {}", out.paint(Tone::Bad, entry.verdict.name()), entry.item.id));
    if let Some(cause) = &entry.check.broke {
        out.line(format_args!("    broke off: {}", clean(cause)));
    }
    for one in entry.check.assertions.iter().filter(|one| one.holds == Holds::No) {
        out.line(format_args!(
            "    {}: expected {}, seen {}",
            clean(&one.what),
            clean(&one.expected),
            clean(&one.seen)
        ));
    }
}
