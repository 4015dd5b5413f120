//! Several servers of one installation: each a program of its own in a house of its own, all with the same
//! keys, on one PostgreSQL database. Any of them can be killed, paused, and started again while others send
//! to it. Not here: what is sent, and what must hold.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;

use super::house::{Database, House, Setup};
use super::market;
use super::server::Server;
use super::wire::Answer;

/// How long a node may take to say whether it is ready.
const READY_WITHIN: Duration = Duration::from_secs(3);

/// One server and its house.
pub(crate) struct Node {
    /// The folder that it runs in.
    pub(crate) house: House,
    program: PathBuf,
    running: Mutex<Option<Server>>,
    /// Where it listens; the last place while it is down.
    address: Mutex<SocketAddr>,
}

/// All servers of an installation.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
}

impl Nodes {
    /// Houses below `folder`, one for each database that is told (the same one, maybe by different ways), and
    /// their servers, started by commands that are changed: another environment.
    ///
    /// # Errors
    /// One of them doesn't start.
    pub(crate) fn start_with(
        program: &Path,
        folder: &Path,
        setup: &Setup,
        databases: Vec<Database>,
        changed: impl Fn(&mut Command),
    ) -> anyhow::Result<Self> {
        let mut nodes: Vec<Node> = Vec::with_capacity(databases.len());
        for (number, database) in (1..).zip(databases) {
            let setup = Setup { database: Some(database), ..setup.clone() };
            let node = Node::make(program, folder.join(format!("node-{number}")), &setup)?;
            // The first node of an installation makes the keys; all others are given them.
            match nodes.first() {
                Some(first) => copy_keys(&first.house, &node.house)?,
                None if setup.supply.is_empty() => {}
                None => market::keys(&node.house, program)?,
            }
            node.start_with(&changed)?;
            nodes.push(node);
        }
        Ok(Self { nodes })
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The node number `number`, counted round: there always is one.
    pub(crate) fn node(&self, number: usize) -> &Node {
        let count = self.nodes.len().max(1);
        #[expect(clippy::indexing_slicing, reason = "an installation without nodes can't be made")]
        &self.nodes[number % count]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Ends all in order.
    ///
    /// # Errors
    /// One doesn't end in order.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.nodes.iter().try_for_each(Node::stop)
    }
}

impl Node {
    fn make(program: &Path, folder: PathBuf, setup: &Setup) -> anyhow::Result<Self> {
        Ok(Self {
            house: House::make(folder, setup)?,
            program: program.to_owned(),
            running: Mutex::default(),
            address: Mutex::new(SocketAddr::from(([127, 0, 0, 1], 0))),
        })
    }

    /// Starts its server by a command that is changed: another environment, more flags.
    ///
    /// # Errors
    /// It runs already, or ends early; the message has its last words.
    pub(crate) fn start_with(&self, changed: impl FnOnce(&mut Command)) -> anyhow::Result<()> {
        let mut running = self.running();
        ensure!(running.is_none(), "the node runs already");
        let mut command = self.house.command(&self.program, &["serve"]);
        changed(&mut command);
        let server = self.house.start_with(command)?;
        *lock(&self.address) = server.address;
        *running = Some(server);
        Ok(())
    }

    /// Where it listens; the last place while it is down.
    pub(crate) fn address(&self) -> SocketAddr {
        *lock(&self.address)
    }

    /// Its server's id.
    ///
    /// # Errors
    /// It is down.
    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        Ok(self.running().as_ref().context("the node is down")?.pid())
    }

    /// Ends its server by `SIGKILL`; nothing happens when it is down.
    pub(crate) fn kill9(&self) {
        // Its drop kills and waits.
        drop(self.running().take());
    }

    /// Ends its server in order; nothing happens when it is down.
    ///
    /// # Errors
    /// It doesn't end in order.
    pub(crate) fn stop(&self) -> anyhow::Result<()> {
        let server = self.running().take();
        server.map_or(Ok(()), Server::stop)
    }

    /// Sends its server a signal.
    ///
    /// # Errors
    /// It is down.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.running().as_ref().context("the node is down")?.signal(signal)
    }

    /// `GET path`.
    ///
    /// # Errors
    /// No answer.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Answer> {
        super::wire::exchange(self.address(), &super::wire::request("GET", path, &[], b""))
    }

    /// Whether it says that it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        let request = super::wire::request("GET", "/readyz", &[], b"");
        let answer = super::wire::exchange_within(self.address(), &request, READY_WITHIN);
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        self.running().as_ref().map_or_else(|| "it is down".into(), Server::last_words)
    }

    /// How often its running server's log has these words.
    ///
    /// # Errors
    /// It is down, or its log can't be read.
    pub(crate) fn log_counts(&self, words: &str) -> anyhow::Result<usize> {
        let log = self.running().as_ref().context("the node is down")?.log.clone();
        let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
        Ok(text.lines().filter(|line| line.contains(words)).count())
    }

    /// Something that is asked of its running server.
    ///
    /// # Errors
    /// It is down, or what `asked` says.
    pub(crate) fn ask<T>(&self, asked: impl FnOnce(&Server) -> anyhow::Result<T>) -> anyhow::Result<T> {
        asked(self.running().as_ref().context("the node is down")?)
    }

    /// The logs of all its starts, in their order.
    ///
    /// # Errors
    /// The folder can't be read.
    pub(crate) fn logs(&self) -> anyhow::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(self.house.logs())?;
        let mut logs = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
        logs.sort();
        Ok(logs)
    }

    fn running(&self) -> MutexGuard<'_, Option<Server>> {
        lock(&self.running)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a node the keys of another one, as an operator does.
///
/// # Errors
/// The other has none, or they can't be written.
pub(crate) fn copy_keys(from: &House, to: &House) -> anyhow::Result<()> {
    copy_folder(&keys(from), &keys(to))
}

/// Where a house has its private keys.
fn keys(house: &House) -> PathBuf {
    house.data().join("keys")
}

/// A folder of private keys, as an operator copies it to a new node.
fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    std::fs::set_permissions(
        to,
        std::fs::metadata(from).context("the first node has no keys")?.permissions(),
    )?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            // The copy has the original's mode.
            std::fs::copy(from, to)?;
        }
    }
    Ok(())
}
