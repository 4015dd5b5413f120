//! Our own: the program `bench-door`, which is the door with the transfer as its command, over HTTP or
//! loaded from inside.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::served::{Balances, Program, SUCCEEDED, Served, free_address};
use super::subject::{Kind, Place, Sample, Started};
use crate::bench::delivery::Delivery;
use crate::bench::subject;
use crate::lab::house::Database;

const PACKAGE: &str = "bench-door";
const SERVER: &str = "onceseal";

/// Where the server finds its database's password.
const PASSWORD: &str = "BENCH_DATABASE_PASSWORD";

/// Where `bench-door` finds its database's URL.
pub(super) const URL: &str = "BENCH_DATABASE";

/// Transfers that repeats go to.
const KNOWN: u64 = 1_000;

/// Builds it in release.
///
/// # Errors
/// It doesn't build.
pub(super) fn build() -> Result<()> {
    built(PACKAGE)
}

/// Builds the server in release.
///
/// # Errors
/// It doesn't build.
pub(super) fn build_server() -> Result<()> {
    built(SERVER)
}

fn built(package: &str) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "--package", package]).current_dir(crate::bench::root());
    let status = command.status().context("cargo can't be started; run it through cargo xtask")?;
    ensure!(status.success(), "{package} doesn't build, see cargo's messages above");
    Ok(())
}

/// Where it is.
///
/// # Errors
/// This program's own place is unknown.
pub(super) fn program() -> Result<PathBuf> {
    Ok(crate::bench::release_folder()?.join(PACKAGE))
}

/// The door over HTTP.
///
/// # Errors
/// It doesn't start.
pub(super) fn serve(place: &Place<'_>, url: &str) -> Result<Served> {
    let address = free_address()?;
    let mut door = Program::new(&program()?, &place.folder, "door");
    door.command().env(URL, url).args(["serve", "--listen", &address.to_string()]);
    let mut served = Served {
        programs: vec![door],
        stores: Vec::new(),
        address,
        health: (address, "/health"),
        delivery: Delivery::transfer(address, "/transfers", "")?,
        status: SUCCEEDED,
        balances: Balances::Rows { url: url.to_owned(), table: "bench_accounts" },
        next: 0,
    };
    served.start()?;
    Ok(served)
}

/// The server as it is delivered, on PostgreSQL: new events of our own tasks that get no certificate. Each
/// leaves the record, the arrival, the state, two words to be found by, and the audit row; its body has
/// 3.6 kB.
///
/// # Errors
/// It doesn't start.
pub(super) fn serve_server(place: &Place<'_>, url: &str) -> Result<Served> {
    let address = free_address()?;
    let Database { address: database, password, .. } = Database::at(url, "")?;
    let more = format!("database = \"{database}\"\n[postgres]\npassword = {{ env = \"{PASSWORD}\" }}\n");
    let launch = subject::configured(&place.folder, &more)?;
    let file = place.folder.join("onceseal.toml");
    let text = std::fs::read_to_string(&file)?.replace("127.0.0.1:0", &address.to_string());
    std::fs::write(&file, text)?;
    let mut server = Program::new(&crate::bench::release_folder()?.join(SERVER), &place.folder, SERVER);
    server.command().args(launch.args).envs(launch.env).env(PASSWORD, password).current_dir(&place.folder);
    let mut served = Served {
        programs: vec![server],
        stores: Vec::new(),
        address,
        health: (address, "/readyz"),
        delivery: Delivery::internal(address)?,
        status: "recorded",
        balances: Balances::None,
        next: 0,
    };
    served.start()?;
    Ok(served)
}

/// The door without HTTP, loaded in its own process.
pub(super) struct Direct {
    pub(super) url: String,
    /// Number of the next new transfer.
    pub(super) next: u64,
}

impl Started for Direct {
    fn measure(&mut self, kind: Kind, clients: usize, time: Duration) -> Result<Sample> {
        let mut command = Command::new(program()?);
        command.env(URL, &self.url).args(["load", "--clients", &clients.to_string()]);
        command.args(["--milliseconds", &time.as_millis().to_string(), "--from", &self.next.to_string()]);
        if kind == Kind::Repeat {
            command.args(["--known", &KNOWN.to_string()]);
        }
        let told = command.output().context("bench-door can't be started; build it first")?;
        ensure!(told.status.success(), "bench-door failed: {}", String::from_utf8_lossy(&told.stderr).trim());
        let text = String::from_utf8(told.stdout)?;
        let figures: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [rate, p50, p99, failures, next] = figures.as_slice() else {
            anyhow::bail!("bench-door tells {text:?} instead of five figures")
        };
        if kind == Kind::First {
            self.next = *next;
        }
        Ok(Sample { rate: *rate, p50: *p50, p99: *p99, failures: *failures })
    }
}
