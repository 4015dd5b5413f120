//! `cargo xtask schemathesis`: Schemathesis, a tester that knows nothing of this project, reads the OpenAPI document
//! that a real server serves and tries what the document says and does not say: examples, every limit and one beyond
//! it, seeded noise, chains of calls along the links. All of its checks are on, and none may find anything.
//!
//! Modules in reading order: [`venv`] (the tool, at a pinned version), [`stage`] (a server and a market on it, so that
//! links end at real objects), [`desk`] (where the run gets its SMS codes), [`statuses`] (which refusals business rules
//! allow each operation, from one file), [`settings`] (what the tool is told), [`verdict`] (what it says). `hooks.py`
//! runs inside the tool.
//!
//! Not here: what an answer must mean. That is what the tests of `web` and the gate judge.

mod desk;
mod fill;
mod settings;
mod stage;
mod statuses;
mod venv;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::lab::{self, Build};
use stage::Stage;
use statuses::Statuses;
use verdict::Verdict;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Schemathesis {
    /// How long it tries, in seconds
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(10..=86_400))]
    seconds: u32,
    /// What is random in this run
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// Only this operation, by its `operationId`
    #[arg(long, value_name = "ID")]
    operation: Option<String>,
    /// A program that is built already, instead of this checkout's
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

impl Schemathesis {
    /// Runs it.
    ///
    /// # Errors
    /// The tool can't be installed, the market can't be made, or something was found.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let statuses = Statuses::read()?;
        let tool = venv::tool()?;
        let program = match &self.program {
            Some(program) => program.canonicalize().context("--program")?,
            None => Build::Release.program()?,
        };
        let folder = lab::scratch("schemathesis")?;
        let runtime = tokio::runtime::Runtime::new()?;
        let stage = runtime.block_on(Stage::set(&program, &folder))?;
        statuses.agree_with(&stage.document)?;
        let described =
            self.operation.as_ref().map_or_else(|| statuses::operations(&stage.document).len(), |_| 1);
        settings::write(&folder, &stage, &statuses)?;
        let ended = self.tried(&tool, &folder, &stage)?;
        let verdict = Verdict::of(&folder, described)?;
        let address = stage.server.address;
        stage.server.stop().with_context(|| format!("the server at {address} did not outlive the run"))?;
        println!("reports: {}", folder.display());
        println!("{verdict}");
        ensure!(verdict.is_clean() && ended, "findings; the tool's words are above");
        Ok(())
    }

    /// Runs the tool; whether it is content.
    fn tried(&self, tool: &Path, folder: &Path, stage: &Stage) -> anyhow::Result<bool> {
        let mut command = Command::new(tool);
        command
            .args(["--config-file", "schemathesis.toml", "run"])
            .arg(format!("http://{}/api/v1/openapi.json", stage.server.address))
            .args(["--checks", "all", "--phases", "examples,coverage,fuzzing,stateful", "--mode", "all"])
            .args(["--continue-on-failure", "--no-color"])
            .arg(format!("--seed={}", self.seed))
            .arg(format!("--max-time={}", self.seconds))
            .args(["--report", "junit,json,ndjson", "--report-dir", "reports"])
            .args(self.operation.iter().flat_map(|id| ["--include-operation-id", id.as_str()]))
            // Its own caches and found examples stay in the run's folder: the same seed is the same run.
            .env("PYTHONHASHSEED", "0")
            .stdin(Stdio::null())
            .current_dir(folder);
        Ok(command.status().context("schemathesis can't be started")?.success())
    }
}
