//! Which binary is under test. Not here: starting it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// A build of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// As it is shipped.
    Release,
    /// As tests are built.
    Debug,
    /// With the bugs on purpose, in a target folder of its own so that it is never taken for the product.
    Planted,
}

impl Build {
    /// Builds an example of a package and gives its path: a program for tests.
    ///
    /// # Errors
    /// Cargo is missing or the build failed.
    pub(crate) fn example(self, package: &str, name: &str) -> anyhow::Result<PathBuf> {
        eprintln!("building {name} ({self:?})");
        let mut command = cargo();
        command.args(["build", "--quiet", "--package", package, "--example", name]);
        let folder = match self {
            Self::Release => {
                command.arg("--release");
                "release"
            }
            Self::Debug | Self::Planted => "debug",
        };
        let status = command.status().context("cargo can't be started; run it through cargo xtask")?;
        ensure!(status.success(), "{name} doesn't build, see cargo's messages above");
        Ok(target().join(folder).join("examples").join(name).canonicalize()?)
    }

    /// Builds it and gives the program's path.
    ///
    /// # Errors
    /// Cargo is missing or the build failed.
    pub(crate) fn program(self) -> anyhow::Result<PathBuf> {
        eprintln!("building onceseal ({self:?})");
        let mut command = cargo();
        command.args(["build", "--quiet", "--package", "onceseal"]);
        let folder = match self {
            Self::Release => {
                command.arg("--release");
                target().join("release")
            }
            Self::Debug => target().join("debug"),
            Self::Planted => {
                command.args(["--features", "certify/planted-bugs,supply/planted-bugs", "--target-dir"]);
                command.arg(target().join("planted"));
                target().join("planted/debug")
            }
        };
        let status = command.status().context("cargo can't be started; run it through cargo xtask")?;
        ensure!(status.success(), "onceseal doesn't build, see cargo's messages above");
        Ok(folder.join("onceseal").canonicalize()?)
    }
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(super::root());
    command
}

/// Where cargo puts what it builds.
fn target() -> PathBuf {
    let told = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    told.unwrap_or_else(|| super::root().join("target"))
}
