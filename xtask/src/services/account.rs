//! Whom a server runs as. PostgreSQL and PgBouncer refuse root, so root hands them to a user without
//! rights; anybody else runs them as himself.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;

/// In this order: the package's own user, else the one that owns nothing.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// A user without rights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// `None`: we are not root, and a server runs as we do.
    other: Option<Ids>,
}

#[derive(Clone, Copy, Debug)]
struct Ids {
    user: u32,
    group: u32,
}

impl Account {
    /// The account for servers started by this program.
    ///
    /// # Errors
    /// We are root, and the machine has neither `postgres` nor `nobody`.
    pub(super) fn unprivileged() -> anyhow::Result<Self> {
        let ours = fs::metadata("/proc/self").context("reading /proc/self")?.uid();
        if ours != 0 {
            return Ok(Self { other: None });
        }
        let other = CANDIDATES.into_iter().find_map(ids);
        ensure!(
            other.is_some(),
            "root can't run a database, and there is no user {}",
            CANDIDATES.join(" or ")
        );
        Ok(Self { other })
    }

    /// Gives it a file or folder of ours.
    ///
    /// # Errors
    /// The file isn't there.
    pub(super) fn own(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(ids) = self.other {
            chown(path, Some(ids.user), Some(ids.group))
                .with_context(|| format!("giving {} away", path.display()))?;
        }
        Ok(())
    }

    /// Writes a file that only this account may read.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        self.own(path)
    }

    /// `program` under this account, with none of the caller's `PG...` settings; the kernel sends it `last`
    /// when the thread that spawned it ends, so a killed xtask leaves nothing running.
    pub(super) fn command(&self, program: &Path, last: Signal) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(ids) = self.other {
            command.args(["--reuid", &ids.user.to_string(), "--regid", &ids.group.to_string()]);
            command.arg("--clear-groups");
        }
        command.args(["--pdeathsig", last.as_str(), "--"]).arg(program);
        without_settings(&mut command);
        // The caller's home is closed to it, and clients of PostgreSQL look there for certificates.
        command.env("HOME", "/nonexistent");
        command
    }
}

/// Takes the caller's `PG...` settings away from a command, and his language.
pub(super) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C.UTF-8");
}

/// The ids of a user by name, from wherever the machine keeps its users.
fn ids(name: &str) -> Option<Ids> {
    let told = Command::new("getent").args(["passwd", name]).output().ok()?;
    let line = String::from_utf8(told.stdout).ok()?;
    let mut fields = line.split(':').skip(2);
    Some(Ids { user: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
}
