//! Measurements: what a delivery costs, next to a route that does nothing and a
//! receiver a good team writes first.
//!
//! A run starts each [`subject`] as a release binary in a fresh folder, loads it
//! over real connections ([`load`]) with deliveries of real shape
//! ([`delivery`]), and prints Markdown ([`table`]). Not here: assertions about
//! the figures. A machine shared with the load is too noisy to fail a build on.

mod certify;
mod connection;
mod delivery;
mod disk;
pub(crate) mod door;
mod load;
mod response;
mod subject;
mod supply;
mod table;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

/// What to measure.
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Certificates, repeats and keyed writes of every subject, as tables
    Certify(certify::Certify),
    /// Keyed transfers through the door on PostgreSQL, beside pgbench and what a user would pick instead
    Door(door::Door),
    /// Withdraw, publish, batch price and replay over HTTP on PostgreSQL, beside pgbench with the same statements;
    /// the service levels; the guard's share
    Supply(supply::Bench),
    /// How often a second the disk under target/ syncs a 4 kB append
    Disk,
}

/// Runs the measurement; a debug build of this program first replaces itself by
/// a release build, because the load shares the cores with what it measures.
///
/// # Errors
/// A subject can't be built or started, or stops answering.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    if cfg!(debug_assertions) {
        return Err(released());
    }
    match &bench.what {
        What::Certify(certify) => certify.run(),
        What::Door(door) => door.run(),
        What::Supply(supply) => supply.run(),
        What::Disk => disk::print_rate(),
    }
}

/// Goes on as the release build, with the same arguments. Returns only when it
/// can't be started.
fn released() -> anyhow::Error {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let error = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .current_dir(root())
        .exec();
    anyhow::Error::new(error)
        .context("cargo can't be started for the release build; run it through cargo xtask")
}

/// The checkout's top folder.
fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Where cargo put the release binaries: beside this one.
///
/// # Errors
/// The system doesn't say where this program is.
fn release_folder() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("this program's own place is unknown")?;
    exe.parent().map(PathBuf::from).context("this program stands in no folder")
}

/// Folder for everything a run writes, on the disk that is measured.
///
/// # Errors
/// It can't be made.
/// Removes the folders of all subjects, once nothing is measured any more.
fn clear_scratch() -> Result<()> {
    std::fs::remove_dir_all(scratch_folder()?).context("the folder target/bench can't be removed")
}

fn scratch_folder() -> Result<PathBuf> {
    let folder = release_folder()?.join("../bench");
    std::fs::create_dir_all(&folder).context("the folder target/bench can't be made")?;
    folder.canonicalize().context("the folder target/bench can't be found")
}
