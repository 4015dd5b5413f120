//! How to reach a PostgreSQL server, and how long to wait for it.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use crate::error::Error;

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Prepared once on each connection: for a direct connection, or a pooler that keeps sessions.
    #[default]
    Prepared,
    /// Unnamed each time, with time-outs set in each transaction: for a pooler that gives a server
    /// connection for one transaction only (pgbouncer's transaction mode).
    Unnamed,
}

/// Bounds of every wait. None is ever off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection to be made.
    pub connect: Duration,
    /// For a connection of the pool to become free.
    pub free: Duration,
    /// For a lock inside the server (`lock_timeout`).
    pub lock: Duration,
    /// For one statement inside the server (`statement_timeout`).
    pub statement: Duration,
    /// For our next statement, seen from the server (`idle_in_transaction_session_timeout`): what a node
    /// that died or hangs may hold.
    pub idle: Duration,
    /// For the answer to a round trip, seen from here. Afterwards the connection is dropped; a commit whose
    /// answer did not come counts as unknown.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            free: Duration::from_secs(5),
            lock: Duration::from_secs(2),
            statement: Duration::from_secs(5),
            idle: Duration::from_secs(10),
            answer: Duration::from_secs(10),
        }
    }
}

/// A PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Postgres {
    /// `postgres://user:password@host:5432/database`; several hosts with commas, of which the one that
    /// takes writes is chosen. Holds a password: never shown.
    pub url: SecretString,
    /// How statements are sent.
    pub mode: Mode,
    /// Connections of this node: about four times the server's cores divided by the nodes. More do not
    /// make it faster.
    pub connections: usize,
    /// PEM file of the authorities whose certificates are believed, instead of the public ones.
    pub authorities: Option<PathBuf>,
    /// Bounds of every wait.
    pub timeouts: Timeouts,
}

impl Postgres {
    /// A server with the defaults: 16 connections, prepared statements.
    #[must_use]
    pub fn new(url: impl Into<SecretString>) -> Self {
        Self {
            url: url.into(),
            mode: Mode::default(),
            connections: 16,
            authorities: None,
            timeouts: Timeouts::default(),
        }
    }

    /// The client library's own settings.
    ///
    /// # Errors
    /// [`Error::Setup`] when the URL can't be read; it does not show the URL.
    pub(super) fn config(&self) -> Result<Config, Error> {
        let mut config = Config::from_str(self.url.expose_secret()).map_err(|cause| {
            let why = std::error::Error::source(&cause).map_or_else(|| cause.to_string(), ToString::to_string);
            Error::Setup(format!(
                "the database's address can't be read: {why}; it must be like postgres://user:password@host:5432/database"
            ))
        })?;
        if config.get_hosts().is_empty() || config.get_dbname().is_none_or(str::is_empty) {
            return Err(Error::Setup(
                "the database's address names no host or no database; it must be like postgres://user:password@host:5432/database".into(),
            ));
        }
        config
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .connect_timeout(self.timeouts.connect)
            .tcp_user_timeout(self.timeouts.answer)
            .keepalives(true)
            // In whole seconds at the system; none would be refused.
            .keepalives_idle(self.timeouts.answer.max(Duration::from_secs(1)))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3);
        if config.get_application_name().is_none() {
            config.application_name("onceseal");
        }
        Ok(config)
    }
}
