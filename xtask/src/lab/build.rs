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
    /// Builds it and gives the program's path.
    ///
    /// # Errors
    /// Cargo is missing or the build failed.
    pub(crate) fn program(self) -> anyhow::Result<PathBuf> {
        eprintln!("building onceseal ({self:?})");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--package", "onceseal"]).current_dir(super::root());
        let folder = match self {
            Self::Release => {
                command.arg("--release");
                "target/release"
            }
            Self::Debug => "target/debug",
            Self::Planted => {
                command.args(["--features", "certify/planted-bugs", "--target-dir", "target/planted"]);
                "target/planted/debug"
            }
        };
        let status = command.status().context("cargo can't be started; run it through cargo xtask")?;
        ensure!(status.success(), "onceseal doesn't build, see cargo's messages above");
        Ok(super::root().join(folder).join("onceseal").canonicalize()?)
    }
}
