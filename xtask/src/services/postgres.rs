//! A private PostgreSQL server: made, started, stopped in three ways, removed. Clients log in by password
//! (SCRAM) as a user without rights of its own, as they do in production.
//!
//! Text is compared by the rules of a language (ICU, en-US), as on most installed servers and unlike
//! SQLite: SQL that depends on the order of bytes has to say so.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::Signal;

use super::account::Account;
use super::binaries::Binaries;
use super::folder::Folder;
use super::memory::Left;
use super::port;
use super::psql::Psql;
use super::running::{Running, last_words, wait};

/// Who may do everything: for tests that break the server.
pub(crate) const ADMIN: &str = "postgres";
/// Who may log in and make databases, no more: for Onceseal.
pub(crate) const USER: &str = "onceseal";

/// How long a start may take, the recovery after a crash included.
const STARTED_WITHIN: Duration = Duration::from_secs(120);
/// How long a stop may take; a fast one writes a checkpoint and waits for standbys.
const STOPPED_WITHIN: Duration = Duration::from_secs(60);
/// How long the end of a server that nobody needs any more may take, before it is killed.
const DROPPED_WITHIN: Duration = Duration::from_secs(6);
/// How long a changed setting may take to be in force.
const RELOADED_WITHIN: Duration = Duration::from_secs(20);
/// How often another port is tried when somebody took it in the moment before the start.
const PORTS_TRIED: usize = 5;
/// Read by the server after its own configuration.
const CONFIGURATION: &str = "onceseal.conf";

/// How a server is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Whether a commit outlives the machine's power.
    pub(crate) durability: Durability,
    /// Whether clients may come by TLS.
    pub(crate) tls: Tls,
    /// Folder below which its own is made, such as a small or slow disk; else the system's temporary one.
    pub(crate) within: Option<PathBuf>,
    /// More settings, which win over ours.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// What the server's own environment has besides, such as a library that makes its disk slow.
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

/// Whether a commit outlives the machine's power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It does: PostgreSQL's default.
    #[default]
    Synced,
    /// It outlives a kill of the server, not more: `fsync=off`.
    Unsynced,
}

/// Whether clients may come by TLS; without it they can't, which is what a measurement wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tls {
    /// They can't.
    #[default]
    Off,
    /// They may, and [`Postgres::certificate`] is what they trust.
    On,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Sessions are ended, a checkpoint is written.
    Fast,
    /// At once; the next start recovers.
    Immediate,
}

/// A private server; ended and removed when dropped.
pub(crate) struct Postgres {
    running: Option<Running>,
    left: Left,
    binaries: Binaries,
    account: Account,
    port: u16,
    password: String,
    settings: BTreeMap<String, String>,
    environment: Vec<(&'static str, OsString)>,
    folder: Folder,
}

impl Postgres {
    /// Makes a server and starts it.
    ///
    /// # Errors
    /// There is no PostgreSQL new enough, or it doesn't start; the message has its last words.
    pub(crate) fn launch(options: &Options) -> anyhow::Result<Self> {
        let mut server = Self::new(options, BTreeMap::new(), secret()?)?;
        server.initialised()?;
        if options.tls == Tls::On {
            server.certified()?;
        }
        server.started_somewhere()?;
        // The password is hexadecimal.
        server.execute(&format!("create role {USER} login createdb password '{}'", server.password))?;
        server.create(USER)?;
        Ok(server)
    }

    /// A server with nothing in its folder; `settings` are those of the one it is a copy of.
    pub(super) fn new(
        options: &Options,
        mut settings: BTreeMap<String, String>,
        password: String,
    ) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let folder = Folder::make("postgres", options.within.as_deref(), &account)?;
        let mut set = |name: &str, value: &str| settings.insert(name.to_owned(), value.to_owned());
        set("listen_addresses", "127.0.0.1");
        set("unix_socket_directories", &folder.path().to_string_lossy());
        set("max_connections", "300");
        set("wal_level", "replica");
        set("log_lock_waits", "on");
        set("log_line_prefix", "%m [%p] %q%a ");
        set("ssl", if options.tls == Tls::On { "on" } else { "off" });
        let synced = if options.durability == Durability::Synced { "on" } else { "off" };
        set("fsync", synced);
        set("full_page_writes", synced);
        for (name, value) in &options.settings {
            set(name, value);
        }
        Ok(Self {
            running: None,
            left: Left::default(),
            binaries: Binaries::find()?,
            account,
            port: port::free()?,
            password,
            settings,
            environment: options.environment.clone(),
            folder,
        })
    }

    fn initialised(&self) -> anyhow::Result<()> {
        let password = self.folder.file("password");
        self.account.write(&password, &self.password)?;
        let mut command = self.command("initdb");
        command.arg("-D").arg(self.data()).arg("--pwfile").arg(&password);
        command.args(["-U", ADMIN, "--auth=scram-sha-256", "--no-sync", "-E", "UTF8"]);
        command.args(["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]);
        Binaries::run(command, "initdb")
            .context("no database can be made; TMPDIR must be a folder that the user postgres can enter")?;
        std::fs::remove_file(password)?;
        let own = self.data().join("postgresql.conf");
        let text = std::fs::read_to_string(&own)?;
        self.account.write(&own, &format!("{text}\ninclude '{CONFIGURATION}'\n"))
    }

    /// A certificate for 127.0.0.1 and localhost that is its own authority. It stands among the data under
    /// PostgreSQL's default names, so a standby has it too.
    fn certified(&self) -> anyhow::Result<()> {
        let wish = self.folder.file("certificate.conf");
        let text = "[req]\ndistinguished_name = name\nx509_extensions = more\nprompt = no\n\
                    [name]\nCN = localhost\n[more]\nbasicConstraints = critical, CA:FALSE\n\
                    subjectAltName = DNS:localhost, IP:127.0.0.1\n";
        self.account.write(&wish, text)?;
        let mut command = self.account.command(Path::new("openssl"), Signal::SIGKILL);
        command.current_dir(self.data()).arg("req").arg("-config").arg(&wish);
        command.args(["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        command.args(["-days", "2", "-keyout", "server.key", "-out", "server.crt"]);
        Binaries::run(command, "openssl")?;
        Ok(())
    }

    /// Starts it, on another port when somebody was quicker.
    pub(super) fn started_somewhere(&mut self) -> anyhow::Result<()> {
        for _ in 1..PORTS_TRIED {
            match self.start() {
                Err(_) if last_words(&self.log()).contains("Address already in use") => {
                    self.port = port::free()?;
                }
                done => return done,
            }
        }
        self.start()
    }

    /// Starts it again where it was, and waits until it answers.
    ///
    /// # Errors
    /// It runs already, or it doesn't start; the message has its last words.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        ensure!(self.running.is_none(), "PostgreSQL runs already on port {}", self.port);
        self.configure()?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut running = Running::spawn(command, &self.log())?;
        let is_up = wait(STARTED_WITHIN, || Ok(running.has_ended()? || self.is_ready(running.id())))?;
        if !is_up || running.has_ended()? {
            bail!("PostgreSQL doesn't start; its last words: {}", last_words(&self.log()));
        }
        self.running = Some(running);
        // What a kill left behind, the new start has taken back.
        self.left = Left::default();
        Ok(())
    }

    /// Stops it and waits for its end; nothing happens when it is down.
    ///
    /// # Errors
    /// It doesn't end within a minute.
    pub(crate) fn stop(&mut self, stop: Stop) -> anyhow::Result<()> {
        self.stopped_within(stop, STOPPED_WITHIN)
    }

    fn stopped_within(&mut self, stop: Stop, patience: Duration) -> anyhow::Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        running.signal(match stop {
            Stop::Fast => Signal::SIGINT,
            Stop::Immediate => Signal::SIGQUIT,
        })?;
        if running.ended_within(patience)?.is_none() {
            bail!("PostgreSQL lives {patience:?} after a {stop:?} stop: {}", last_words(&self.log()));
        }
        self.running = None;
        Ok(())
    }

    /// Stops it in order and starts it again.
    ///
    /// # Errors
    /// As [`Self::stop`] and [`Self::start`].
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        self.stop(Stop::Fast)?;
        self.start()
    }

    /// Ends it and every backend by `SIGKILL`, all in the same moment, as when its machine fails.
    ///
    /// # Errors
    /// A backend lives on.
    pub(crate) fn kill9(&mut self) -> anyhow::Result<()> {
        if let Some(mut running) = self.running.take() {
            self.left = running.kill_all()?;
        }
        Ok(())
    }

    /// Changes a setting and waits until new sessions have it (a session that is there takes it with its
    /// next statement, a background worker a moment later). While it is down: from the next start on.
    ///
    /// # Errors
    /// The server doesn't answer, or the setting is not in force after a while.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        let before = if self.running.is_some() { Some(self.execute(LOADED)?) } else { None };
        self.settings.insert(name.to_owned(), value.to_owned());
        self.configure()?;
        let (Some(before), Some(running)) = (before, &mut self.running) else { return Ok(()) };
        running.signal(Signal::SIGHUP)?;
        let loaded = wait(RELOADED_WITHIN, || Ok(self.execute(LOADED)? != before))?;
        ensure!(loaded, "PostgreSQL hasn't read its settings again after {RELOADED_WITHIN:?}");
        Ok(())
    }

    /// Runs statements as [`ADMIN`]; rows as [`Psql::ask`] gives them.
    ///
    /// # Errors
    /// As [`Psql::ask`].
    pub(crate) fn execute(&self, sql: &str) -> anyhow::Result<String> {
        Psql::at(&self.admin_url(ADMIN))?.ask(sql)
    }

    /// Makes a database that belongs to [`USER`], and gives its URL. `onceseal` is there from the start.
    ///
    /// # Errors
    /// As [`Psql::ask`]; such as when it exists.
    pub(crate) fn create(&self, database: &str) -> anyhow::Result<String> {
        self.execute(&format!("create database \"{database}\" owner {USER}"))?;
        Ok(self.url(database))
    }

    /// Where [`USER`] logs in, password included; `postgres` is the database to make others from.
    pub(crate) fn url(&self, database: &str) -> String {
        self.url_of(USER, database)
    }

    /// Where [`ADMIN`] logs in, password included.
    pub(crate) fn admin_url(&self, database: &str) -> String {
        self.url_of(ADMIN, database)
    }

    fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}:{}@{}/{database}", self.password, self.address())
    }

    /// Where it listens; the same after every start.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Folder of its unix socket, for clients that prefer it.
    pub(crate) fn socket(&self) -> &Path {
        self.folder.path()
    }

    /// Folder of everything that it writes: databases, write-ahead log, log.
    pub(crate) fn files(&self) -> &Path {
        self.folder.path()
    }

    /// Its log, all starts in one file.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.file("log")
    }

    /// What a client trusts when the server has TLS (PEM).
    pub(crate) fn certificate(&self) -> PathBuf {
        self.data().join("server.crt")
    }

    /// Its process id while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.running.as_ref().map(Running::id)
    }

    /// The password of both users.
    pub(super) fn password(&self) -> &str {
        &self.password
    }

    /// What it was told, our defaults included.
    pub(super) fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Its database files.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.file("data")
    }

    /// One of PostgreSQL's programs, as the server's account, in the server's folder.
    pub(super) fn command(&self, name: &str) -> std::process::Command {
        // At once, but so that it takes its shared memory along.
        let mut command = self.account.command(&self.binaries.program(name), Signal::SIGQUIT);
        command.current_dir(self.folder.path());
        command
    }

    fn configure(&self) -> anyhow::Result<()> {
        let mut text = format!("port = {}\n", self.port);
        for (name, value) in &self.settings {
            let value = value.replace('\\', "\\\\").replace('\'', "''");
            // Writing to a string can't fail.
            let _ = writeln!(text, "{name} = '{value}'");
        }
        self.account.write(&self.data().join(CONFIGURATION), &text)
    }

    /// `postmaster.pid`: the id in its first line, the state in its eighth. A killed server leaves it.
    fn is_ready(&self, id: u32) -> bool {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines();
        lines.next() == Some(&id.to_string()) && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Not in order: that would write a checkpoint (seconds, where commits are synced) into files that
        // are removed next.
        if self.stopped_within(Stop::Immediate, DROPPED_WITHIN).is_err() {
            // The last resort; nobody is told of a drop.
            let _ = self.kill9();
        }
        self.left.remove();
    }
}

/// When the settings were read.
const LOADED: &str = "select pg_conf_load_time()";

/// A password nobody has used before: 128 bits, hexadecimal.
fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}
