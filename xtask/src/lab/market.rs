//! What the supply side has around it: provider and SMS service on loopback, its keys, the platform's first
//! administrator. Not here: suppliers, packages, money ([`play::Market`]).

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use kernel::Time;
use play::{Phone, Provider};

use super::house::{House, Setup};

/// The outside world of an installation; it ends with the runtime that it was opened in.
pub(crate) struct Outside {
    /// Verifies every credential.
    pub(crate) provider: Provider,
    /// Takes the codes.
    pub(crate) phone: Phone,
}

impl Outside {
    /// Listens on loopback.
    ///
    /// # Errors
    /// There is no port.
    pub(crate) async fn open() -> Result<Self> {
        Ok(Self { provider: Provider::start().await?, phone: Phone::start().await? })
    }

    /// Houses with a supply side that knows it; `more` are further lines of `[supply]`.
    pub(crate) fn setup(&self, more: &str) -> Setup {
        let sections =
            play::setting::supply(self.provider.address(), self.phone.address(), "secrets/sms", more);
        Setup { supply: format!("\n{sections}"), ..Setup::default() }
    }
}

/// Makes the keys of the supply side in a house, as an operator does before the first start.
///
/// # Errors
/// `onceseal init` fails.
pub(crate) fn keys(house: &House, program: &Path) -> Result<()> {
    said(house, program, &["init", "--supply"]).map(drop)
}

/// Makes the platform's administrator, and a token for three days.
///
/// # Errors
/// `onceseal supply admin` fails.
pub(crate) fn admin(house: &House, program: &Path) -> Result<String> {
    said(house, program, &["supply", "admin", "lab"]).map(|token| token.trim().to_owned())
}

/// Exit code of a command that found what it looked for (`docs/command-line.md`).
const PROBLEMS: i32 = 3;

/// Whether the ledger adds up; what does not, a line each.
///
/// # Errors
/// `onceseal ledger verify` can't look through it.
pub(crate) fn ledger(house: &House, program: &Path) -> Result<Vec<String>> {
    let ran = house.command(program, &["ledger", "verify"]).output().context("onceseal ledger verify")?;
    let out = String::from_utf8_lossy(&ran.stdout);
    if ran.status.success() {
        return Ok(Vec::new());
    }
    ensure!(
        ran.status.code() == Some(PROBLEMS) && !out.trim().is_empty(),
        "onceseal ledger verify ended with {}: {}",
        ran.status,
        String::from_utf8_lossy(&ran.stderr)
    );
    Ok(out.lines().map(|line| format!("the ledger: {line}")).collect())
}

/// The wall clock as the API writes times.
pub(crate) fn now() -> String {
    Time::from_seconds(super::now()).to_rfc3339_seconds()
}

/// A command's standard output.
fn said(house: &House, program: &Path, arguments: &[&str]) -> Result<String> {
    let ran = house.command(program, arguments).output().context("onceseal can't be started")?;
    let words = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "onceseal {} ended with {}: {words}", arguments.join(" "), ran.status);
    Ok(String::from_utf8(ran.stdout)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// What is made of a program that prints a line and ends with this code.
    fn told(code: u8) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("program");
        std::fs::write(&program, format!("#!/bin/sh\necho balances differ\nexit {code}\n"))?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
        ledger(&House::at(folder.path()), &program)
    }

    #[test]
    fn what_the_program_finds_is_a_finding_and_what_it_can_not_say_is_an_error() {
        assert_eq!(told(0).unwrap(), Vec::<String>::new());
        assert_eq!(told(3).unwrap(), ["the ledger: balances differ"]);
        assert!(told(1).is_err());
    }
}
