//! What all trials begin with: a database in which one earlier event was certified and announced, and the
//! houses of the two servers that did it; copies of all three. Not here: running a copy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value as Json;

use crate::crash::Bug;
use crate::crash::telegram::Telegram;
use crate::lab::event::{Event, Report, checkout, delivery};
use crate::lab::house::{Database, PUBLIC_URL};
use crate::lab::nodes::Nodes;
use crate::lab::{self, House, Setup, wire};
use crate::services::postgres::{Durability, Options, Postgres, USER};
use crate::services::psql::Psql;
use crate::trace;

/// How long the earlier event's announcement may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Few connections: many trials share one database server.
const SETTINGS: &str = "connections = 4\n";
/// Which of the two servers.
pub(super) const KILLED: usize = 0;
pub(super) const OTHER: usize = 1;

/// The common ground.
pub(super) struct Ground {
    /// The database server of all trials; in a lock of its own for those that kill it.
    pub(super) server: Server,
    root: PathBuf,
    bases: [House; 2],
    setup: Setup,
    program: PathBuf,
    bug: Option<Bug>,
    /// Certified and announced before everything else.
    pub(super) earlier: Event,
    /// The one whose delivery is crashed.
    pub(super) event: Event,
}

/// A database server that a tracing thread may kill.
#[derive(Clone)]
pub(super) struct Server {
    postgres: std::sync::Arc<std::sync::Mutex<Postgres>>,
    address: std::net::SocketAddr,
}

impl Server {
    /// Where it listens, before and after its death.
    pub(super) const fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    /// Something that is done with it.
    ///
    /// # Errors
    /// What `done` says, or another trial panicked with it.
    pub(super) fn with<T>(&self, done: impl FnOnce(&mut Postgres) -> Result<T>) -> Result<T> {
        done(&mut *self.postgres.lock().map_err(|_| anyhow::anyhow!("another trial panicked"))?)
    }
}

impl Ground {
    /// Prepares it in a folder, for trials that kill servers of ours.
    ///
    /// # Errors
    /// The programs don't certify and announce the earlier event.
    pub(super) fn make(root: &Path, program: PathBuf, bug: Option<Bug>) -> Result<Self> {
        Self::prepared(root, program, (bug, Durability::Unsynced))
    }

    /// As [`Ground::make`], for trials that kill the database.
    ///
    /// # Errors
    /// As [`Ground::make`].
    pub(super) fn make_synced(root: &Path, program: PathBuf, bug: Option<Bug>) -> Result<Self> {
        Self::prepared(root, program, (bug, Durability::Synced))
    }

    fn prepared(root: &Path, program: PathBuf, (bug, durability): (Option<Bug>, Durability)) -> Result<Self> {
        let server = Postgres::launch(&Options { durability, ..Options::default() })?;
        let telegram = Telegram::start()?;
        // The port is another one at each start; flags say which.
        let setup = Setup { telegram: Some(telegram.address), ..Setup::default() };
        let database = Database::at(&server.url(USER), SETTINGS)?;
        let nodes = Nodes::start_with(
            &program,
            &root.join("base"),
            &setup,
            vec![database.clone(), database],
            |_| {},
        )?;
        let (earlier, event) = (checkout(1, Report::First)?, checkout(2, Report::First)?);
        let answer = wire::exchange(nodes.node(KILLED).address(), &delivery(&earlier, lab::now())?)?;
        ensure!(answer.status == 200, "the earlier event got {} {}", answer.status, answer.text());
        ensure!(telegram.wait(1, PATIENCE) == 1, "the earlier event was not announced");
        // Both have its files, so that `check` finds none missing.
        for name in ["html_url", "zip_url", "json_url"] {
            let link =
                answer.json().get(name).and_then(Json::as_str).map(ToOwned::to_owned).context("a link")?;
            let path = link.strip_prefix(PUBLIC_URL).context("a link of ours")?;
            for node in nodes.iter() {
                let file = node.get(path)?;
                ensure!(file.status == 200, "{path} is answered {}", file.status);
            }
        }
        let bases = [KILLED, OTHER].map(|number| nodes.node(number).house.clone());
        nodes.stop()?;
        telegram.settle()?;
        let address = server.address();
        let server = Server { postgres: std::sync::Arc::new(std::sync::Mutex::new(server)), address };
        Ok(Self { server, root: root.to_owned(), bases, setup, program, bug, earlier, event })
    }

    /// A database of that name as it was after the earlier event.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn database(&self, name: &str) -> Result<()> {
        let sql = format!("create database \"{name}\" template \"{USER}\" owner {USER} strategy file_copy");
        self.server.with(|server| server.execute(&sql)).map(drop)
    }

    /// A server's house for the trial `name`, as it was after the earlier event.
    ///
    /// # Errors
    /// A file can't be written.
    pub(super) fn house(&self, name: &str, number: usize) -> Result<House> {
        let url = self.server.with(|server| Ok(server.url(name)))?;
        let setup = Setup { database: Some(Database::at(&url, SETTINGS)?), ..self.setup.clone() };
        let house = House::make(self.folder(name).join(format!("node-{number}")), &setup)?;
        let base = self.bases.get(number).context("a server's base")?;
        trace::replay(&base.data(), &[], &house.data())?;
        Ok(house)
    }

    /// The trial's database, read past the servers.
    ///
    /// # Errors
    /// There is no client.
    pub(super) fn psql(&self, name: &str) -> Result<Psql> {
        Psql::at(&self.server.with(|server| Ok(server.url(name)))?)
    }

    /// What somebody who may everything sees of the trial's sessions.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn sessions(&self, name: &str) -> Result<String> {
        let sql = SESSIONS.replace("$1", name);
        self.server.with(|server| server.execute(&sql))
    }

    /// `onceseal serve` in a house, with its announcements to `telegram`.
    pub(super) fn command(&self, house: &House, telegram: &Telegram) -> Command {
        let mut command = house.command(&self.program, &["serve"]);
        command.arg("--set").arg(format!("announce.telegram.base_url=http://{}", telegram.address));
        command
    }

    /// As [`Ground::command`], with the planted bug.
    pub(super) fn planted(&self, house: &House, telegram: &Telegram) -> Command {
        let mut command = self.command(house, telegram);
        if let Some(bug) = self.bug {
            command.env("ONCESEAL_PLANTED_BUG", bug.name());
        }
        command
    }

    /// The folder of a trial.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Removes what a trial left.
    ///
    /// # Errors
    /// It can't be removed.
    pub(super) fn clear(&self, name: &str) -> Result<()> {
        self.server
            .with(|server| server.execute(&format!("drop database if exists \"{name}\" with (force)")))?;
        let folder = self.folder(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("clearing {name}"))?;
        }
        Ok(())
    }
}

/// Sessions in the database `$1`, a line each: state, whether in a transaction, advisory locks.
const SESSIONS: &str = "select coalesce(a.state, '?') || ', in a transaction: ' || (a.xact_start is not null) || \
     ', advisory locks: ' || (select count(*) from pg_locks l where l.pid = a.pid and l.locktype = 'advisory') \
     from pg_stat_activity a where a.datname = '$1' and a.usename = 'onceseal'";
