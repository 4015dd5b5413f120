//! `cargo xtask gate`: `onceseal gate` as it is shipped, on SQLite and on a private PostgreSQL, and then the sealed report
//! verified as a stranger would. Not here: what is checked (`onceseal::gate`).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value as Json;

use crate::lab::{self, Build};
use crate::services;
use crate::services::postgres::{Options, Postgres, USER};

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Gate {
    /// Folder of the report [default: target/gate]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Gate {
    /// Holds it.
    ///
    /// # Errors
    /// A check did not pass, or the report does not verify.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        services::install()?;
        let program = Build::Release.program()?;
        let server = Postgres::launch(&Options::default())?;
        let out = self.out.clone().unwrap_or_else(|| lab::root().join("target/gate"));
        let mut command = Command::new(&program);
        command.args(["gate", "--database", "sqlite", "--database", &server.url(USER), "--out"]).arg(&out);
        let held = command.status().context("onceseal can't be started")?;
        let mut command = Command::new(&program);
        command.arg("verify").arg(out.join("gate-report.zip")).arg("--keys").arg(out.join("keys.json"));
        let verified = command.status().context("onceseal can't be started")?;
        ensure!(verified.success(), "the sealed report does not verify");
        let report: Json = serde_json::from_slice(&std::fs::read(out.join("report.json"))?)?;
        let count = |name: &str| report.get(name).and_then(Json::as_u64).context("the report has no counts");
        let closing = format!("{} checks, {} failed", count("checks_total")?, count("checks_failed")?);
        ensure!(held.success(), "{closing}");
        println!("{closing}");
        Ok(())
    }
}
