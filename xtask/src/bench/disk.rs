//! The disk: how fast it syncs, and how a slower one is played.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

/// How long the sync rate is measured.
const TIME: Duration = Duration::from_secs(2);

/// Size of one append, in bytes: a page of the disk and of SQLite.
const APPEND: usize = 4096;

/// Time added to each sync on the slow disk, in microseconds.
const SLOW_US: u32 = 1_000;

/// The disk a run sees.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speed {
    /// As it is.
    Native,
    /// 1 ms added to each fsync and fdatasync, as disks of clouds take.
    Slow,
}

impl Speed {
    /// Heading of its tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Speed::Native => "disk as it is",
            Speed::Slow => "1 ms added to each sync",
        }
    }

    /// What a program's environment needs to see this disk; compiles the shim
    /// when it is needed.
    ///
    /// # Errors
    /// The C compiler is missing or refuses the shim.
    pub(crate) fn environment(self) -> Result<Vec<(&'static str, OsString)>> {
        match self {
            Speed::Native => Ok(Vec::new()),
            Speed::Slow => Ok(vec![
                ("LD_PRELOAD", shim()?.into_os_string()),
                ("SLOW_FSYNC_US", SLOW_US.to_string().into()),
            ]),
        }
    }

    /// Appends of 4 kB with fdatasync a second, one stream.
    ///
    /// # Errors
    /// The disk refuses, or this program can't be started again with the shim.
    pub(crate) fn syncs_per_second(self) -> Result<u64> {
        let own = std::env::current_exe().context("this program's own place is unknown")?;
        let output = Command::new(own).args(["bench", "disk"]).envs(self.environment()?).output()?;
        ensure!(output.status.success(), "the sync rate can't be measured; run `cargo xtask bench disk`");
        let text = String::from_utf8(output.stdout)?;
        text.trim().parse().context("the sync rate is not a number")
    }
}

/// Measures the sync rate once, on the disk this program sees, and prints it.
///
/// # Errors
/// The disk refuses.
pub(crate) fn print_rate() -> Result<()> {
    println!("{}", measured(&super::scratch_folder()?)?);
    Ok(())
}

fn measured(folder: &Path) -> Result<u64> {
    let path = folder.join(format!("syncs.{}", std::process::id()));
    let mut file = File::create(&path).context("no file can be made in target/bench")?;
    let start = Instant::now();
    let mut count: u128 = 0;
    while start.elapsed() < TIME {
        file.write_all(&[0x5a; APPEND]).context("the disk refused an append")?;
        file.sync_data().context("the disk refused to sync")?;
        count += 1;
    }
    let rate = count * 1_000_000_000 / start.elapsed().as_nanos().max(1);
    std::fs::remove_file(&path)?;
    Ok(u64::try_from(rate)?)
}

fn shim() -> Result<PathBuf> {
    let library = super::scratch_folder()?.join("libslow-fsync.so");
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror", "-fPIC", "-shared", "-o"])
        .arg(&library)
        .arg(super::root().join("bench/slow-fsync.c"))
        .arg("-ldl")
        .status()
        .context("no C compiler `cc`; install one (Debian: gcc) or run with --disks native")?;
    ensure!(status.success(), "cc refused bench/slow-fsync.c, see its messages above");
    Ok(library)
}
