//! What a user would pick instead. Each is installed once below `target/peers`, from its pinned list of
//! packages, and stands in `bench/peers/` with a README of its own.
//!
//! To add one: a module with `install` and `serve`, and its line in [`all`].

mod axum_idempotent;
mod fastapi;
mod restate;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::database::Template;
use super::subject::{Subject, Way};

/// All of them, in the order of the tables.
pub(super) fn all() -> Vec<Subject> {
    let peer =
        |name, install, serve| Subject { name, install, template: Template::Peer, way: Way::Served(serve) };
    vec![
        peer("fastapi", fastapi::install, fastapi::serve),
        peer("axum-idempotent", axum_idempotent::install, axum_idempotent::serve),
        peer("restate", restate::install, restate::serve_state),
        peer("restate-row", restate::install, restate::serve_row),
    ]
}

/// A peer's folder in the tree.
fn source(name: &str) -> PathBuf {
    crate::bench::root().join("bench/peers").join(name)
}

/// Where a peer is installed; made when missing.
///
/// # Errors
/// It can't be made.
fn installed(name: &str) -> Result<PathBuf> {
    let folder = crate::bench::release_folder()?.join("../peers").join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder.canonicalize()?)
}

/// Whether what `list` says is installed already; [`remember`] tells that it is.
fn is_there(folder: &Path, list: &Path) -> Result<bool> {
    let list = std::fs::read(list).context("a peer's list of packages is not in the tree")?;
    Ok(std::fs::read(folder.join("installed")).is_ok_and(|kept| kept == list))
}

fn remember(folder: &Path, list: &Path) -> Result<()> {
    std::fs::copy(list, folder.join("installed"))?;
    Ok(())
}

/// Runs a step of an installation.
///
/// # Errors
/// It failed, with its last words: such as a registry's that doesn't have a package.
fn step(command: &mut Command, what: &str) -> Result<()> {
    eprintln!("{what}");
    let told = command.output().with_context(|| format!("{what}: it can't be started"))?;
    if told.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&told.stderr);
    let words: Vec<_> = words.lines().filter(|it| !it.trim().is_empty()).rev().take(4).collect();
    bail!("{what}: {}", words.into_iter().rev().collect::<Vec<_>>().join(" | "))
}

/// A virtual environment of Python with a list of packages.
///
/// # Errors
/// There is no Python, or a package can't be had.
fn python(folder: &Path, list: &Path) -> Result<()> {
    if is_there(folder, list)? {
        return Ok(());
    }
    let place = folder.join("venv");
    step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place), "making a Python environment")?;
    let mut command = Command::new(place.join("bin/pip"));
    command.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(list);
    let name = list.file_name().unwrap_or_default().display();
    step(&mut command, &format!("installing the packages of {name}"))?;
    remember(folder, list)
}
