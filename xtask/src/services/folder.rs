//! A temporary folder of one server. Removed with its value; what a killed run left is removed by the
//! next run, which knows it by a lock that nobody holds any more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

use super::account::Account;

const PREFIX: &str = "onceseal-service-";
/// Locked as long as the folder is in use.
const HELD: &str = "held";

/// A folder that belongs to a server's account.
pub(super) struct Folder {
    folder: TempDir,
    _held: File,
}

impl Folder {
    /// Makes an empty folder below `within`, or below the system's temporary folder.
    ///
    /// # Errors
    /// It can't be made.
    pub(super) fn make(name: &str, within: Option<&Path>, account: &Account) -> anyhow::Result<Self> {
        let base = within.map_or_else(std::env::temp_dir, Path::to_owned);
        sweep(&base);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{name}-"))
            .tempdir_in(&base)
            .with_context(|| format!("making a folder in {}", base.display()))?;
        // Under its name only once it is locked: a sweep must not take it in between.
        let unlocked = folder.path().join("new");
        let held = File::create(&unlocked)?;
        held.try_lock().context("locking a new folder")?;
        fs::rename(&unlocked, folder.path().join(HELD))?;
        account.own(folder.path())?;
        Ok(Self { folder, _held: held })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Removes folders whose owner is gone. One that can't be removed is somebody else's.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if ours && File::open(path.join(HELD)).is_ok_and(|held| held.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_left_by_a_killed_run_is_swept_and_one_in_use_is_not() {
        let base = tempfile::tempdir().unwrap();
        let left = base.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(HELD), "").unwrap();
        let account = Account::unprivileged().unwrap();
        let used = Folder::make("used", Some(base.path()), &account).unwrap();
        let next = Folder::make("next", Some(base.path()), &account).unwrap();
        assert!(!left.exists());
        assert!(used.path().exists() && next.path().exists());
    }
}
