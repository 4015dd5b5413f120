//! The wall clock that a program sees, moved by the preload library of Debian's package faketime. Waits go by
//! the other clock and files keep their true times.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// The library.
///
/// # Errors
/// It is not installed.
pub(crate) fn faketime() -> anyhow::Result<PathBuf> {
    let places = std::fs::read_dir("/usr/lib")?.filter_map(Result::ok);
    places
        .map(|place| place.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists())
        .context("Debian's package faketime is missing; `cargo xtask test` installs it")
}

/// Moves a command's clock by so many seconds.
pub(crate) fn shift(command: &mut Command, library: &Path, seconds: i64) {
    fake(command, library).env("FAKETIME", format!("{seconds:+}s"));
}

/// Lets a command's clock follow a file: "+90000" is 25 hours ahead, whenever that is written there.
pub(crate) fn follow(command: &mut Command, library: &Path, file: &Path) {
    fake(command, library).env("FAKETIME_TIMESTAMP_FILE", file).env("FAKETIME_NO_CACHE", "1");
}

fn fake<'c>(command: &'c mut Command, library: &Path) -> &'c mut Command {
    command.env("LD_PRELOAD", library).env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1")
}

/// Removes what the library leaves of a killed program.
pub(crate) fn sweep(pid: u32) {
    for name in [format!("faketime_shm_{pid}"), format!("sem.faketime_sem_{pid}")] {
        // Not there: the program removed it itself.
        let _ = std::fs::remove_file(Path::new("/dev/shm").join(name));
    }
}
