//! Places in the file system that are small or can't be written, by mounts of our own: that takes root.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A mounted place; let go when dropped.
pub(super) struct Mounted {
    place: PathBuf,
}

impl Mounted {
    /// A file system in memory of so many MiB at an existing empty folder, for its owner.
    ///
    /// # Errors
    /// We may not mount.
    pub(super) fn small(place: &Path, mib: u32) -> Result<Self> {
        let owner = std::fs::metadata(place)?;
        let options = format!("size={mib}m,mode=0750,nosuid,nodev");
        mount(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(place))?;
        let mounted = Self { place: place.to_owned() };
        chown(place, Some(owner.uid()), Some(owner.gid()))?;
        Ok(mounted)
    }

    /// The folder over itself, read-only: whoever comes by its path can't write.
    ///
    /// # Errors
    /// We may not mount.
    pub(super) fn read_only(place: &Path) -> Result<Self> {
        mount(Command::new("mount").arg("--bind").arg(place).arg(place))?;
        let mounted = Self { place: place.to_owned() };
        mount(Command::new("mount").args(["-o", "remount,ro,bind"]).arg(place))?;
        Ok(mounted)
    }

    /// Fills it to the last byte; gives what took the space, to be removed.
    ///
    /// # Errors
    /// It can't be written at all.
    pub(super) fn fill(&self) -> Result<PathBuf> {
        let filler = self.place.join("filler");
        // It ends when nothing is left, which is what it calls a failure.
        let output = Command::new("dd")
            .args(["if=/dev/zero", "bs=64K"])
            .arg(format!("of={}", filler.display()))
            .output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        if !words.contains("No space left") {
            bail!("{} can't be filled: {}", self.place.display(), words.trim());
        }
        Ok(filler)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Open files in it keep it alive; the name is free all the same. Nobody is told of a drop.
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

fn mount(command: &mut Command) -> Result<()> {
    let output = command.output().context("mount (package mount) can't be started")?;
    if !output.status.success() {
        bail!("mounting takes root: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
