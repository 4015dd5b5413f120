//! Programs that tests need: installed by Debian's package manager where they are missing and may be,
//! named clearly where not. Installing starts nothing: see [`Quiet`].

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::binaries::Binaries;
use super::pgbouncer;

/// A program, the Debian package that brings it, and what it is for.
struct Need {
    program: &'static str,
    package: &'static str,
    reason: &'static str,
    found: fn() -> bool,
}

const NEEDS: [Need; 4] = [
    Need {
        program: "chromium",
        package: "chromium",
        reason: "certificates and pages are opened in a real browser",
        found: || Path::new("/usr/bin/chromium").exists(),
    },
    Need {
        program: "faketime",
        package: "faketime",
        reason: "crash runs move the clock",
        found: || Path::new("/usr/bin/faketime").exists(),
    },
    Need {
        program: "postgres, version 15 or newer",
        package: "postgresql",
        reason: "the suite runs on PostgreSQL too",
        found: || Binaries::find().is_ok(),
    },
    Need {
        program: "pgbouncer",
        package: "pgbouncer",
        reason: "many nodes may stand behind a pooler",
        found: || pgbouncer::program().is_some(),
    },
];

/// Asked by Debian's packages before they start a service; 101 says "don't".
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// Present as soon as any PostgreSQL package is installed.
const CLUSTERS: &str = "/etc/postgresql-common";

/// Installs what is missing.
///
/// # Errors
/// Names what is missing and how to get it, when it can't be installed from here.
pub(crate) fn install() -> anyhow::Result<()> {
    let missing: Vec<_> = NEEDS.iter().filter(|need| !(need.found)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for Need { program, package, reason, .. } in &missing {
        eprintln!("== missing: {program} (package {package}): {reason}");
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    // A guard that can't be made means no rights; apt says so next.
    let quiet = Quiet::new().ok();
    let done = apt(&["update", "-qq"])
        && apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages.as_slice()].concat());
    drop(quiet);
    if !done {
        bail!(
            "could not install {}; run as root: apt-get install {}",
            packages.join(", "),
            packages.join(" ")
        )
    }
    let still: Vec<&str> = missing.iter().filter(|need| !(need.found)()).map(|need| need.program).collect();
    ensure!(
        still.is_empty(),
        "still missing after apt-get install {}: {}; get it another way and put it in PATH",
        packages.join(" "),
        still.join(", ")
    );
    Ok(())
}

fn apt(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command.status().is_ok_and(|status| status.success())
}

/// While it lives, a package that is installed starts no service; and where PostgreSQL is new to the
/// machine, its package makes no database either.
struct Quiet {
    /// Whether the file is ours to remove: containers often have one of their own.
    made_policy: bool,
}

impl Quiet {
    fn new() -> anyhow::Result<Self> {
        if !Path::new(CLUSTERS).exists() {
            let folder = Path::new(CLUSTERS).join("createcluster.d");
            fs::create_dir_all(&folder).context("making createcluster.d")?;
            fs::write(folder.join("onceseal.conf"), "create_main_cluster = false\n")?;
        }
        let made_policy = match fs::File::create_new(POLICY) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error).context(POLICY),
        };
        let quiet = Self { made_policy };
        if made_policy {
            fs::write(POLICY, "#!/bin/sh\nexit 101\n")?;
            fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))?;
        }
        Ok(quiet)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.made_policy {
            // Nothing more can be done about a file that doesn't go.
            let _ = fs::remove_file(POLICY);
        }
    }
}
