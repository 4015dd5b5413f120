//! The installation that is broken: a private PostgreSQL, three servers on it, each reaching it (and the host
//! beside it, where a standby may stand) through proxies of its own. It lives through all kinds of fault.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::proxy::{Armed, Proxy, Rule};

use super::load::Load;
use super::serverlog::{self, Mark};
use super::slowdisk::SlowDisk;
use crate::lab::house::Database;
use crate::lab::nodes::{Node, Nodes};
use crate::lab::{self, Setup};
use crate::services::postgres::{Options, Postgres, USER};
use crate::services::psql::Psql;
use crate::services::standby::Standby;

/// Servers of the installation.
pub(super) const NODES: usize = 3;
/// Connections of each server.
pub(super) const CONNECTIONS: usize = 8;
/// Short time-outs, so that each fault has its end within the run.
const SETTINGS: &str = "connections = 8\nconnect_timeout = \"1s\"\nlock_timeout = \"500ms\"\n\
     statement_timeout = \"1s\"\nidle_timeout = \"2s\"\nanswer_timeout = \"2s\"\n";
/// Sessions that the database takes in all.
pub(super) const SESSIONS_MAX: usize = 64;
/// Where nobody listens: the place of a host that is down.
const NOBODY: ([u8; 4], u16) = ([127, 0, 0, 1], 1);
/// How long a node may take to answer whether it is normal.
const PROBE_WITHIN: Duration = Duration::from_secs(2);
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(20);
/// Name of the standby.
pub(super) const SECOND: &str = "second";

/// The installation.
pub(super) struct Site {
    /// What the nodes write to.
    pub(super) primary: Postgres,
    /// What follows it, where a kind asked for one.
    pub(super) standby: Option<Standby>,
    /// One for each node: its ways to both hosts.
    pub(super) ways: Vec<Ways>,
    pub(super) nodes: Arc<Nodes>,
    /// Where senders find the nodes.
    pub(super) places: Arc<Places>,
    /// The database's disk.
    pub(super) disk: SlowDisk,
    /// Everything that the run writes.
    pub(super) folder: PathBuf,
    /// Number of the next load's first change.
    next: u64,
    planted: Option<&'static str>,
}

/// A node's ways to the database.
pub(super) struct Ways {
    /// To the first host: the primary.
    pub(super) first: Proxy,
    /// To the second: a standby, or nobody.
    pub(super) second: Proxy,
}

/// Where senders find each node: itself, or a proxy before it.
pub(super) struct Places {
    nodes: Arc<Nodes>,
    fronts: Mutex<Vec<SocketAddr>>,
}

impl Places {
    /// The place of node number `number`, counted round.
    pub(super) fn address(&self, number: usize) -> SocketAddr {
        let number = number % NODES;
        let front = self.fronts.lock().unwrap_or_else(PoisonError::into_inner).get(number).copied();
        front.unwrap_or_else(|| self.nodes.node(number).address())
    }

    /// Puts something before all nodes; an empty list takes it away.
    pub(super) fn front(&self, addresses: Vec<SocketAddr>) {
        *self.fronts.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }
}

impl Site {
    /// Starts everything in an empty folder.
    ///
    /// # Errors
    /// A part doesn't start.
    pub(super) fn start(program: &Path, folder: PathBuf, planted: Option<&'static str>) -> Result<Self> {
        let disk = SlowDisk::prepare()?;
        let primary = Postgres::launch(&options(&disk))?;
        let ways = (0..NODES).map(|_| Ways::to(primary.address())).collect::<Result<Vec<_>>>()?;
        let databases = ways.iter().map(|ways| ways.database(&primary, USER)).collect::<Result<Vec<_>>>()?;
        let nodes = Nodes::start_with(program, &folder, &Setup::default(), databases, |command| {
            plant(command, planted);
        })?;
        let nodes = Arc::new(nodes);
        let places = Arc::new(Places { nodes: Arc::clone(&nodes), fronts: Mutex::default() });
        Ok(Self { primary, standby: None, ways, nodes, places, disk, folder, next: 0, planted })
    }

    /// Takes back what a kind that failed may have left: faults on the wire, servers and nodes that are down.
    ///
    /// # Errors
    /// Something doesn't start.
    pub(super) fn mended(&mut self) -> Result<()> {
        self.clear();
        self.places.front(Vec::new());
        self.disk.slow(Duration::ZERO)?;
        if self.primary.id().is_none() {
            self.primary.start()?;
        }
        for node in self.nodes.iter().filter(|node| node.pid().is_err()) {
            self.start_node(node, |_| {})?;
        }
        Ok(())
    }

    /// Ends all sessions of the nodes, among them those that the database can't know to be dead.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn exorcised(&self) -> Result<()> {
        self.ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'onceseal'")?;
        Ok(())
    }

    /// Senders at their work, all normal.
    ///
    /// # Errors
    /// It doesn't become normal.
    pub(super) fn load(&mut self) -> Result<(Load, u64)> {
        let base = self.next;
        self.next += LOAD_MAX;
        Ok((Load::start(&self.places, base)?, base))
    }

    /// Numbers of the changes of the load that began with `base`.
    pub(super) const fn changes(base: u64) -> std::ops::Range<u64> {
        base..base + LOAD_MAX
    }

    /// Waits until every node takes new events and says that it is ready; how long that took.
    ///
    /// # Errors
    /// One doesn't within `patience`.
    pub(super) fn normal(&self, load: &Load, patience: Duration) -> Result<Duration> {
        let since = Instant::now();
        for number in 0..NODES {
            while !(load.probe(self.places.address(number), PROBE_WITHIN)?
                && self.nodes.node(number).is_ready())
            {
                ensure!(
                    since.elapsed() < patience,
                    "node {} is not back to normal after {patience:?}: {}",
                    number + 1,
                    self.nodes.node(number).last_words()
                );
                std::thread::park_timeout(LOOK);
            }
        }
        Ok(since.elapsed())
    }

    /// Switches a fault on for all nodes, on their way to the primary.
    pub(super) fn everywhere(&self, rule: impl Into<Rule>) -> Vec<Armed> {
        let rule = rule.into();
        self.ways.iter().map(|ways| ways.first.set(rule)).collect()
    }

    /// Takes all faults off all ways.
    pub(super) fn clear(&self) {
        for ways in &self.ways {
            ways.first.clear();
            ways.second.clear();
        }
    }

    /// The way of the first node to the primary.
    ///
    /// # Errors
    /// There is no node.
    pub(super) fn first_way(&self) -> Result<&Proxy> {
        Ok(&self.ways.first().context("a node")?.first)
    }

    /// The database as its owner's client sees it.
    ///
    /// # Errors
    /// There is no client.
    pub(super) fn psql(&self) -> Result<Psql> {
        Psql::at(&self.primary.url(USER))
    }

    /// A question to the nodes' database by somebody who may everything.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn ask(&self, sql: &str) -> Result<String> {
        Psql::at(&self.primary.admin_url(USER))?.ask(sql)
    }

    /// The end of the database's log as it is now.
    ///
    /// # Errors
    /// There is no log.
    pub(super) fn mark(&self) -> Result<Mark> {
        Mark::now(&self.primary.log())
    }

    /// Starts a node that is down.
    ///
    /// # Errors
    /// It doesn't start.
    pub(super) fn start_node(&self, node: &Node, changed: impl FnOnce(&mut Command)) -> Result<()> {
        node.start_with(|command| {
            plant(command, self.planted);
            changed(command);
        })
    }

    /// Ends all nodes in order and starts them with more flags (`--set` and its value, and so on).
    ///
    /// # Errors
    /// One doesn't end or start.
    pub(super) fn restart_nodes(&self, flags: impl Fn(usize) -> Vec<String>) -> Result<()> {
        for number in 0..NODES {
            let node = self.nodes.node(number);
            node.stop()?;
            self.start_node(node, |command| {
                command.args(flags(number));
            })?;
        }
        Ok(())
    }

    /// Makes a standby and waits until commits wait for it.
    ///
    /// # Errors
    /// It can't be made, or doesn't follow.
    pub(super) fn followed(&mut self) -> Result<()> {
        if self.standby.is_none() {
            let standby = Standby::of(&self.primary, SECOND, &options(&self.disk))?;
            for ways in &self.ways {
                ways.second.point_at(standby.server.address());
            }
            self.standby = Some(standby);
        }
        let standby = self.standby.as_ref().context("a standby")?;
        standby.streams(&self.primary)?;
        self.primary.set("synchronous_standby_names", SECOND)
    }

    /// Ends the standby for good.
    ///
    /// # Errors
    /// The primary doesn't answer.
    pub(super) fn unfollowed(&mut self) -> Result<()> {
        self.primary.set("synchronous_standby_names", "")?;
        if self.standby.take().is_some() {
            for ways in &self.ways {
                ways.second.point_at(NOBODY.into());
                ways.second.drop_all();
            }
            let drop = format!("select pg_drop_replication_slot('{SECOND}')");
            let since = Instant::now();
            // The slot is in use until the primary sees that its reader is gone.
            while let Err(cause) = self.primary.execute(&drop) {
                ensure!(since.elapsed() < Duration::from_secs(20), "the slot can't be dropped: {cause}");
                std::thread::park_timeout(LOOK);
            }
        }
        Ok(())
    }

    /// The promoted standby is the primary from now on, the old one is gone for good; the nodes find it by
    /// their second way.
    ///
    /// # Errors
    /// There is no standby.
    pub(super) fn succeeded(&mut self) -> Result<()> {
        self.primary = self.standby.take().context("a standby")?.server;
        Ok(())
    }

    /// New connections find the primary by the first way again.
    pub(super) fn rewayed(&self) {
        for ways in &self.ways {
            ways.first.point_at(self.primary.address());
        }
    }
}

/// More changes than one load can make.
const LOAD_MAX: u64 = 1_000_000;

impl Ways {
    fn to(primary: SocketAddr) -> Result<Self> {
        let start = |to| Proxy::start(to).context("a proxy");
        Ok(Self { first: start(primary)?, second: start(NOBODY.into())? })
    }

    /// A database of `primary` by these ways.
    fn database(&self, primary: &Postgres, name: &str) -> Result<Database> {
        let direct = primary.address().to_string();
        let both = format!("{},{}", self.first.address(), self.second.address());
        Database::at(&primary.url(name).replacen(&direct, &both, 1), SETTINGS)
    }
}

/// How the servers of the installation are made.
pub(super) fn options(disk: &SlowDisk) -> Options {
    let set = |name, value: &str| (name, value.to_owned());
    Options {
        settings: vec![
            set("log_line_prefix", serverlog::PREFIX),
            set("max_connections", &SESSIONS_MAX.to_string()),
            set("log_checkpoints", "off"),
        ],
        environment: disk.environment(),
        ..Options::default()
    }
}

/// Switches a bug on in a program that has it.
fn plant(command: &mut Command, planted: Option<&'static str>) {
    if let Some(bug) = planted {
        command.env("ONCESEAL_PLANTED_BUG", OsString::from(bug));
    }
}

/// An empty folder for the run. What a killed run left mounted below it is let go first.
///
/// # Errors
/// It can't be made, or another run is using it.
pub(super) fn folder() -> Result<PathBuf> {
    let all = lab::root().canonicalize()?.join("target/lab/faults");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let below =
        mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|at| Path::new(at).starts_with(&all));
    for place in below.collect::<Vec<_>>().into_iter().rev() {
        // Whether it worked is seen when the folder is cleared.
        let _ = Command::new("umount").args(["-l", place]).status();
    }
    lab::scratch("faults")
}
