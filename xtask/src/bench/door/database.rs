//! The private PostgreSQL that all subjects with a database share, each with a database of its own, copied
//! from a template.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::services::postgres::{Options, Postgres};
use crate::services::psql::Psql;

/// What a database begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// The product's schema, the accounts, pgbench's functions.
    Door,
    /// The peers' tables.
    Peer,
    /// Nothing: whoever starts brings its schema.
    Empty,
}

impl Template {
    const fn name(self) -> &'static str {
        match self {
            Self::Door => "template_door",
            Self::Peer => "template_peer",
            Self::Empty => "template1",
        }
    }
}

/// Settings beyond PostgreSQL's own: memory as on a small server, and no checkpoint inside a short load. All
/// that makes a commit durable is as PostgreSQL has it.
const SETTINGS: [(&str, &str); 3] =
    [("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "15min")];

/// Who may come in: everybody on this machine. A password's check takes some 10 ms, which pgbench counts as
/// time of its run.
const LOGINS: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\n";

/// The server, started; ends when dropped.
pub(super) struct Database {
    server: Postgres,
}

impl Database {
    /// Starts it on the disk that is measured and makes the templates.
    ///
    /// # Errors
    /// PostgreSQL is missing or doesn't start, or a schema is refused.
    pub(super) fn start() -> Result<Self> {
        let folder = crate::bench::scratch_folder()?;
        let logins = folder.join("pg_hba.conf");
        std::fs::write(&logins, LOGINS)?;
        let mut settings = SETTINGS.map(|(name, value)| (name, value.to_owned())).to_vec();
        settings.push(("hba_file", logins.to_string_lossy().into_owned()));
        let options = Options { within: Some(folder), settings, ..Options::default() };
        let database = Self { server: Postgres::launch(&options)? };
        let door = database.server.create(Template::Door.name())?;
        let status =
            Command::new(super::ours::program()?).arg("schema").env(super::ours::URL, &door).status()?;
        ensure!(status.success(), "bench-door doesn't bring its schema up, see above");
        for sql in [
            include_str!("sql/accounts.sql"),
            include_str!("sql/known.sql"),
            include_str!("sql/functions.sql"),
        ] {
            Psql::at(&door)?.ask(sql).context("the template of the door")?;
        }
        let peer = database.server.create(Template::Peer.name())?;
        for sql in [
            include_str!("../../../../bench/peers/accounts.sql"),
            include_str!("../../../../bench/peers/fastapi/keys.sql"),
        ] {
            Psql::at(&peer)?.ask(sql).context("the template of the peers")?;
        }
        for url in [&door, &peer] {
            Psql::at(url)?.ask("vacuum analyze")?;
        }
        Ok(database)
    }

    /// A new database like the template; its URL.
    ///
    /// # Errors
    /// As `psql` says.
    pub(super) fn fresh(&self, name: &str, template: Template) -> Result<String> {
        let owner = crate::services::postgres::USER;
        self.server.execute(&format!("create database {name} template {} owner {owner}", template.name()))?;
        Ok(self.server.url(name))
    }

    /// Runs statements with all rights in one database.
    ///
    /// # Errors
    /// As `psql` says.
    pub(super) fn ask(&self, name: &str, sql: &str) -> Result<String> {
        Psql::at(&self.server.admin_url(name))?.ask(sql)
    }

    /// Ends the database and what is in it.
    ///
    /// # Errors
    /// As `psql` says.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        self.server.execute(&format!("drop database {name} with (force)")).map(drop)
    }

    /// Version and settings that count, in one line.
    ///
    /// # Errors
    /// As `psql` says.
    pub(super) fn described(&self) -> Result<String> {
        let version = self.server.execute("show server_version")?;
        let settings = self.server.execute(
            "select string_agg(name || '=' || current_setting(name), ', ') from pg_settings where name in
             ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'shared_buffers', 'max_wal_size')",
        )?;
        Ok(format!("PostgreSQL {version}, over TCP on this machine: {settings}"))
    }
}
