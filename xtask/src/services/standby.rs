//! A standby of a private server: a streaming copy of it that can be promoted. Afterwards it is a server
//! as any other, and the old primary comes back only as a new standby of it.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::binaries::Binaries;
use super::postgres::{ADMIN, Options, Postgres};
use super::running::wait;

/// How long a started standby may take to be connected, and to have all that its primary has.
const STREAMS_WITHIN: Duration = Duration::from_secs(60);

/// A standby.
pub(crate) struct Standby {
    /// The server itself: stop, start, kill and ask it like any other. Read-only until promoted.
    pub(crate) server: Postgres,
    name: String,
}

impl Standby {
    /// Copies `primary`, starts the copy and waits until it streams. `name` is its slot and what the
    /// primary's `synchronous_standby_names` calls it: lower-case letters, digits, underscores.
    ///
    /// # Errors
    /// The name is taken or not such a name; the copy fails or doesn't start.
    pub(crate) fn of(primary: &Postgres, name: &str, options: &Options) -> anyhow::Result<Self> {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        ensure!(!name.is_empty() && name.chars().all(plain), "{name:?} is no name for a standby");
        let mut settings = primary.settings().clone();
        // Once promoted it would wait for standbys that are not its own.
        settings.remove("synchronous_standby_names");
        settings.insert("cluster_name".into(), name.into());
        let mut server = Postgres::new(options, settings, primary.password().to_owned())?;
        let mut command = server.command("pg_basebackup");
        let source =
            format!("host=127.0.0.1 port={} user={ADMIN} application_name={name}", primary.address().port());
        command.arg("-D").arg(server.data()).args(["-d", &source, "-R", "-C", "-S", name]);
        command.args(["-X", "stream", "-c", "fast", "--no-sync"]).env("PGPASSWORD", primary.password());
        Binaries::run(command, "pg_basebackup").context("copying the primary")?;
        server.started_somewhere()?;
        let standby = Self { server, name: name.to_owned() };
        standby.streams(primary)?;
        Ok(standby)
    }

    /// Waits until it is connected to its primary.
    ///
    /// # Errors
    /// It isn't after a while, or the primary doesn't answer.
    pub(crate) fn streams(&self, primary: &Postgres) -> anyhow::Result<()> {
        let question = self.asked("state = 'streaming'");
        let seen = wait(STREAMS_WITHIN, || Ok(primary.execute(&question)? == "t"))?;
        ensure!(seen, "standby {} doesn't stream after {STREAMS_WITHIN:?}", self.name);
        Ok(())
    }

    /// Waits until a reader of it sees all that the primary has committed by now.
    ///
    /// # Errors
    /// It doesn't after a while, or the primary doesn't answer.
    pub(crate) fn caught_up(&self, primary: &Postgres) -> anyhow::Result<()> {
        let here = primary.execute("select pg_current_wal_lsn()")?;
        let question = self.asked(&format!("replay_lsn >= '{here}'"));
        let seen = wait(STREAMS_WITHIN, || Ok(primary.execute(&question)? == "t"))?;
        ensure!(seen, "standby {} lacks what was written {STREAMS_WITHIN:?} ago", self.name);
        Ok(())
    }

    /// Makes it a primary and waits until it takes writes; whether the old one is gone is the caller's care.
    ///
    /// # Errors
    /// It is none any more, or doesn't become one within a minute.
    pub(crate) fn promote(&self) -> anyhow::Result<()> {
        let done = self.server.execute("select pg_promote(true, 60)")?;
        ensure!(done == "t", "standby {} is not promoted after a minute", self.name);
        Ok(())
    }

    fn asked(&self, condition: &str) -> String {
        format!(
            "select coalesce(bool_or({condition}), false) from pg_stat_replication \
             where application_name = '{}'",
            self.name
        )
    }
}
