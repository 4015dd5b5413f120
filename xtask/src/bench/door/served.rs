//! A started subject over HTTP: its programs, where it takes transfers, and how to see what was debited.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value as Json;

use super::subject::{Kind, Sample, Started};
use crate::bench::delivery::{AMOUNT, Delivery};
use crate::bench::load::{Limit, Load, Numbers, Tally};
use crate::lab::wire::{self, Answer};
use crate::services::psql::Psql;

/// What a transfer is answered with.
pub(super) const SUCCEEDED: &str = "succeeded";
/// What each account begins with.
const OPENING: u64 = 1_000_000_000;
/// Keys that repeats go to.
const KNOWN: u64 = 1_000;
/// Load before each measured one, not counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long a start may take.
const START: Duration = Duration::from_secs(90);
/// Starts after a kill: the port of the dead may still be in use for a moment.
const STARTS_MAX: u32 = 5;
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(20);

/// A program in a process group of its own, so that a kill reaches its children too.
pub(super) struct Program {
    command: Command,
    log: PathBuf,
    child: Option<Child>,
}

impl Program {
    /// `program`, not started yet; it ends with this one, whatever happens.
    pub(super) fn new(program: &Path, folder: &Path, name: &str) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null()).process_group(0);
        Self { command, log: folder.join(format!("{name}.log")), child: None }
    }

    /// For arguments, environment and folder.
    pub(super) const fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// # Errors
    /// It can't be started.
    pub(super) fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        self.command.stdout(log.try_clone()?).stderr(log);
        self.child = Some(self.command.spawn().context("setpriv (package util-linux) can't be started")?);
        Ok(())
    }

    /// Ends it and its children by `SIGKILL`.
    fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Ok(id) = i32::try_from(child.id()) {
            // Gone already is as good.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
        let _ = child.wait();
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|it| it.try_wait().is_ok_and(|status| status.is_some()))
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where to see what was debited.
pub(super) enum Balances {
    /// A table with `id` and `balance` in the database.
    Rows { url: String, table: &'static str },
    /// Nothing is debited.
    None,
    /// The state of Restate's virtual objects, asked for at its admin port.
    Restate { admin: SocketAddr },
}

/// A started subject over HTTP; ends when dropped. Stores beside it (the database, Redis) live on when it is
/// killed.
pub(super) struct Served {
    /// In the order of their start.
    pub(super) programs: Vec<Program>,
    /// Programs that a kill spares.
    pub(super) stores: Vec<Program>,
    /// Where transfers go.
    pub(super) address: SocketAddr,
    /// Where it says, with 200, that it takes them.
    pub(super) health: (SocketAddr, &'static str),
    /// Any transfer, laid out.
    pub(super) delivery: Delivery,
    /// What the answer's `status` has to be.
    pub(super) status: &'static str,
    pub(super) balances: Balances,
    /// Number of the next new transfer.
    pub(super) next: u64,
}

impl Served {
    /// Starts all programs and waits until they take transfers.
    ///
    /// # Errors
    /// One ends or doesn't listen in time; with its last words.
    pub(super) fn start(&mut self) -> Result<()> {
        for _ in 0..STARTS_MAX {
            for program in &mut self.programs {
                program.start()?;
            }
            if self.is_up()? {
                return Ok(());
            }
            self.kill();
        }
        let words: Vec<_> = self.programs.iter().map(Program::last_words).collect();
        bail!("it doesn't start; its last words: {}", words.join(" || "))
    }

    /// Ends it as a crash does.
    pub(super) fn kill(&mut self) {
        self.programs.iter_mut().for_each(Program::kill);
    }

    /// `false` when a program has ended.
    fn is_up(&mut self) -> Result<bool> {
        let (address, path) = self.health;
        let since = Instant::now();
        loop {
            if get(address, path).is_ok_and(|answer| answer.status == 200) {
                return Ok(true);
            }
            if self.programs.iter_mut().any(Program::has_ended) {
                return Ok(false);
            }
            ensure!(since.elapsed() < START, "it doesn't listen after {START:?}");
            pause();
        }
    }

    /// A load on it.
    ///
    /// # Errors
    /// It takes no connections.
    pub(super) fn load(&mut self, clients: usize, limit: Limit, numbers: Numbers) -> Result<Tally> {
        let (to, delivery, status) = (self.address, self.delivery.clone(), Some(self.status));
        let tally = Load { to, clients, limit, delivery, numbers, status }.run()?;
        if matches!(numbers, Numbers::From(_)) {
            self.next += tally.sent;
        }
        if tally.failures() > 0 {
            let Tally { answers, unexpected, unanswered, .. } = &tally;
            eprintln!(
                "  answers by status {answers:?}, other `status` {unexpected}, unanswered {unanswered}"
            );
        }
        Ok(tally)
    }

    /// How often each account was debited; accounts that were not are left out.
    ///
    /// # Errors
    /// They can't be asked.
    pub(super) fn debits(&self) -> Result<BTreeMap<u64, u64>> {
        let kept = match &self.balances {
            Balances::Rows { url, table } => {
                let sql = format!("select id, balance from {table} where balance <> {OPENING}");
                let pair = |line: &str| {
                    let (id, balance) = line.split_once('|')?;
                    Some((id.parse().ok()?, balance.parse().ok()?))
                };
                Psql::at(url)?.ask(&sql)?.lines().map(pair).collect::<Option<BTreeMap<u64, u64>>>()
            }
            Balances::None => Some(BTreeMap::new()),
            Balances::Restate { admin } => restate_state(*admin)?,
        };
        let kept = kept.context("the balances can't be read")?;
        Ok(kept.into_iter().map(|(id, balance)| (id, OPENING.abs_diff(balance) / AMOUNT)).collect())
    }
}

impl Started for Served {
    fn measure(&mut self, kind: Kind, clients: usize, time: Duration) -> Result<Sample> {
        if kind == Kind::Repeat && self.next < KNOWN {
            let (limit, numbers) = (Limit::Count(KNOWN - self.next), Numbers::From(self.next));
            let failures = self.load(32, limit, numbers)?.failures();
            ensure!(failures == 0, "{failures} of {KNOWN} transfers were not taken before the run");
        }
        let numbers = |next| match kind {
            Kind::First => Numbers::From(next),
            Kind::Repeat => Numbers::Among(KNOWN),
        };
        self.load(clients, Limit::Time(WARM_UP), numbers(self.next))?;
        Ok(Sample::from(&self.load(clients, Limit::Time(time), numbers(self.next))?))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Whoever uses a store goes before it.
        self.kill();
        self.stores.clear();
    }
}

fn restate_state(admin: SocketAddr) -> Result<Option<BTreeMap<u64, u64>>> {
    let query =
        "select service_key, value_utf8 from state where service_name = 'Account' and key = 'balance'";
    let headers = [("content-type", "application/json"), ("accept", "application/json")];
    let body = serde_json::json!({ "query": query }).to_string();
    let answer = wire::exchange(admin, &wire::request("POST", "/query", &headers, body.as_bytes()))?;
    ensure!(answer.status == 200, "Restate says {} to a query", answer.status);
    let body = unchunked(&answer.body).context("Restate's answer to a query is not in chunks")?;
    let text: Json = serde_json::from_slice(&body).context("Restate's answer to a query")?;
    let rows = text.get("rows").and_then(Json::as_array).context("Restate's answer has no rows")?;
    let number = |row: &Json, name: &str| row.get(name)?.as_str()?.parse::<u64>().ok();
    Ok(rows.iter().map(|row| Some((number(row, "service_key")?, number(row, "value_utf8")?))).collect())
}

/// A body that was sent in chunks (RFC 9112, 7.1): a length in hexadecimal, its bytes, and so on to length 0.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|it| it == b"\r\n")?;
        let length = std::str::from_utf8(rest.get(..end)?).ok()?.split(';').next()?;
        let length = usize::from_str_radix(length.trim(), 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        let start = end + 2;
        body.extend(rest.get(start..start + length)?);
        rest = rest.get(start + length + 2..)?;
    }
}

/// # Errors
/// Nobody listens, or it is no HTTP.
pub(super) fn get(to: SocketAddr, path: &str) -> Result<Answer> {
    wire::exchange(to, &wire::request("GET", path, &[], b""))
}

/// Waits a moment before the next look.
pub(super) fn pause() {
    std::thread::park_timeout(LOOK);
}

/// An address of this machine where nobody listens just now.
///
/// # Errors
/// None is free.
pub(super) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_and_a_cut_one_is_nothing() {
        assert_eq!(unchunked(b"3\r\n{\"a\r\n2;x=y\r\n\"}\r\n0\r\n\r\n").as_deref(), Some(&b"{\"a\"}"[..]));
        assert_eq!(unchunked(b"5\r\nab"), None);
    }
}
