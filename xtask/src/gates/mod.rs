//! `cargo xtask ci`: the gates, one line each, and then exactly the test command (`suite`).

mod suite;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::tidy;
pub(crate) use suite::test;

/// Runs every gate, then the tests.
///
/// # Errors
/// The first gate that is not green.
pub(crate) fn ci() -> anyhow::Result<()> {
    gate("format", &["fmt", "--all", "--check"], &[])?;
    gate(
        "lints",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
        &[],
    )?;
    gate(
        "docs",
        &["doc", "--workspace", "--no-deps", "--document-private-items"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    deny()?;
    tidy::run()?;
    test()
}

/// Licences, bans and sources. The advisory database is not fetched: it changes without the project.
fn deny() -> anyhow::Result<()> {
    if Command::new("cargo-deny").arg("--version").output().is_err() {
        eprintln!("== cargo-deny is missing: installing it");
        gate("install cargo-deny", &["install", "--locked", "cargo-deny"], &[])?;
    }
    gate(
        "licences, bans, sources",
        &["deny", "--log-level", "error", "check", "bans", "licenses", "sources"],
        &[],
    )
}

fn gate(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<()> {
    let began = Instant::now();
    eprintln!("== {name}: cargo {}", arguments.join(" "));
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(arguments).envs(environment.iter().copied());
    let status = command.status().with_context(|| format!("{name}: cargo can't be started"))?;
    if !status.success() {
        bail!("{name} is not green: cargo {} ended with {status}", arguments.join(" "));
    }
    eprintln!("== {name}: green after {} s", began.elapsed().as_secs());
    Ok(())
}
