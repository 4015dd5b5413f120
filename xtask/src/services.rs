//! What tests need from the machine: installed by Debian's package manager where it is missing and may
//! be, named clearly where not.

use std::path::Path;
use std::process::Command;

use anyhow::bail;

/// A program, the Debian package that brings it, and what it is for.
const PROGRAMS: [(&str, &str, &str); 2] = [
    ("/usr/bin/chromium", "chromium", "certificates and pages are opened in a real browser"),
    ("/usr/bin/faketime", "faketime", "crash runs move the clock"),
];

/// Installs what is missing.
///
/// # Errors
/// Names what is missing and how to get it, when it can't be installed from here.
pub(crate) fn install() -> anyhow::Result<()> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(path, ..)| !Path::new(path).exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for (path, package, reason) in &missing {
        eprintln!("== missing: {path} (package {package}): {reason}");
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package, _)| *package).collect();
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command.status().is_ok_and(|status| status.success())
    };
    if apt(&["update", "-qq"])
        && apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages.as_slice()].concat())
    {
        return Ok(());
    }
    bail!("could not install {}; run as root: apt-get install {}", packages.join(", "), packages.join(" "))
}
