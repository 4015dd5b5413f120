//! A disk that becomes slow and fast again under a running server: a library that is preloaded into it looks
//! at a file before each sync.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// The library and its file, in a folder that every user can read.
pub(super) struct SlowDisk {
    folder: TempDir,
}

impl SlowDisk {
    /// Compiles the library.
    ///
    /// # Errors
    /// There is no C compiler.
    pub(super) fn prepare() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("onceseal-disk-").tempdir()?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        let disk = Self { folder };
        let source = disk.folder.path().join("slow-disk.c");
        std::fs::write(&source, include_str!("slow-disk.c"))?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Werror", "-fPIC", "-shared", "-o"]);
        let status = compiler.arg(disk.library()).arg(&source).arg("-ldl").status();
        let status = status.context("no C compiler `cc`; install one (Debian: gcc)")?;
        ensure!(status.success(), "cc refused slow-disk.c, see its messages above");
        Ok(disk)
    }

    /// What a program's environment needs to have this disk.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![("LD_PRELOAD", self.library().into()), ("SLOW_DISK_FILE", self.told().into())]
    }

    /// From now on each sync takes this much longer; zero is as fast as it is.
    ///
    /// # Errors
    /// The file can't be written.
    pub(super) fn slow(&self, by: Duration) -> Result<()> {
        if by.is_zero() {
            return match std::fs::remove_file(self.told()) {
                Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(cause.into()),
                _ => Ok(()),
            };
        }
        // Written aside, so that nobody reads half a number.
        let aside = self.folder.path().join("next");
        std::fs::write(&aside, by.as_micros().to_string())?;
        Ok(std::fs::rename(aside, self.told())?)
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libslow-disk.so")
    }

    fn told(&self) -> PathBuf {
        self.folder.path().join("microseconds")
    }
}
