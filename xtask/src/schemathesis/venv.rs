//! The tool, in a Python environment of its own below `target/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::lab;

/// The version that the statuses and hooks are written for.
const VERSION: &str = "4.32.5";

/// The program `schemathesis`, installed if it is not there.
///
/// # Errors
/// There is no Python 3.11, or the package index can't be reached.
pub(super) fn tool() -> anyhow::Result<PathBuf> {
    let folder = lab::root().canonicalize()?.join(format!("target/schemathesis-{VERSION}"));
    let tool = folder.join("bin/schemathesis");
    if says_version(&tool) {
        return Ok(tool);
    }
    eprintln!("installing schemathesis {VERSION} below target/");
    run("python3", &["-m", "venv", "--clear"], Some(&folder))
        .context("no Python environment can be made; install python3 (3.11 or later) and its venv")?;
    let python = folder.join("bin/python");
    let package = format!("schemathesis=={VERSION}");
    run(python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &package], None).with_context(
        || format!("pip can't install {package}; it needs the package index, or PIP_INDEX_URL or PIP_FIND_LINKS with a copy"),
    )?;
    ensure!(
        says_version(&tool),
        "schemathesis was installed and is not {VERSION}; remove {}",
        folder.display()
    );
    Ok(tool)
}

fn says_version(tool: &Path) -> bool {
    let said = Command::new(tool).arg("--version").stderr(Stdio::null()).output();
    said.is_ok_and(|said| said.status.success() && String::from_utf8_lossy(&said.stdout).contains(VERSION))
}

fn run(program: impl AsRef<Path>, arguments: &[&str], last: Option<&Path>) -> anyhow::Result<()> {
    let program = program.as_ref();
    let status = Command::new(program).args(arguments).args(last).status();
    let status = status.with_context(|| format!("starting {}", program.display()))?;
    if status.success() { Ok(()) } else { bail!("{} ended with {status}", program.display()) }
}
