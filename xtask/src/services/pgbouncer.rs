//! A private PgBouncer in transaction mode before a private server: a session of a client is another one
//! of the server at each transaction.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;

use super::account::Account;
use super::folder::Folder;
use super::port;
use super::postgres::{ADMIN, Postgres, USER};
use super::running::{Running, last_words, wait};

/// Debian's places for it; `/usr/sbin` is not in everybody's `PATH`.
const PLACES: [&str; 2] = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
/// How long a start may take.
const STARTED_WITHIN: Duration = Duration::from_secs(20);
/// How often another port is tried when somebody took it in the moment before the start.
const PORTS_TRIED: usize = 5;

/// Where PgBouncer is, if it is installed.
pub(super) fn program() -> Option<&'static Path> {
    PLACES.into_iter().map(Path::new).find(|path| path.exists())
}

/// How a pooler is set up.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Sessions with the server for each user and database.
    pub(crate) pool_size: u16,
    /// Sessions with clients.
    pub(crate) clients_max: u16,
    /// Where it finds the server; `None`: directly, else such as a proxy in between.
    pub(crate) server: Option<SocketAddr>,
    /// More settings, which win over ours.
    pub(crate) settings: Vec<(&'static str, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { pool_size: 20, clients_max: 1_000, server: None, settings: Vec::new() }
    }
}

/// A private pooler; ended and removed when dropped.
pub(crate) struct PgBouncer {
    running: Option<Running>,
    account: Account,
    port: u16,
    password: String,
    /// Its configuration but for the port.
    configuration: String,
    folder: Folder,
}

impl PgBouncer {
    /// Starts a pooler before `server`, with the same users and passwords.
    ///
    /// # Errors
    /// It is not installed, or doesn't start; the message has its last words.
    pub(crate) fn launch(server: &Postgres, options: &Options) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let folder = Folder::make("pgbouncer", None, &account)?;
        let password = server.password().to_owned();
        // Written out: it has to log in as them at the server, for which a digest is not enough.
        let users = format!("\"{ADMIN}\" \"{password}\"\n\"{USER}\" \"{password}\"\n");
        account.write(&folder.file("users"), &users)?;
        let configuration = configuration(options.server.unwrap_or(server.address()), options, &folder);
        let mut pooler =
            Self { running: None, account, port: port::free()?, password, configuration, folder };
        for _ in 1..PORTS_TRIED {
            match pooler.start() {
                Err(_) if last_words(&pooler.log()).contains("Address already in use") => {
                    pooler.port = port::free()?;
                }
                done => return done.map(|()| pooler),
            }
        }
        pooler.start()?;
        Ok(pooler)
    }

    /// Starts it again where it was; nothing happens when it runs.
    ///
    /// # Errors
    /// It doesn't start; the message has its last words.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        let file = self.folder.file("pgbouncer.ini");
        self.account.write(&file, &format!("{}listen_port = {}\n", self.configuration, self.port))?;
        let program = program().context("PgBouncer is not installed; as root: apt-get install pgbouncer")?;
        let mut command = self.account.command(program, Signal::SIGKILL);
        command.current_dir(self.folder.path()).arg(&file);
        let mut running = Running::spawn(command, &self.log())?;
        let answers = || TcpStream::connect(self.address()).is_ok();
        let is_up = wait(STARTED_WITHIN, || Ok(running.has_ended()? || answers()))?;
        if !is_up || running.has_ended()? {
            bail!("PgBouncer doesn't start; its last words: {}", last_words(&self.log()));
        }
        self.running = Some(running);
        Ok(())
    }

    /// Ends it by `SIGKILL`: all sessions on both sides break.
    ///
    /// # Errors
    /// It lives on.
    pub(crate) fn kill9(&mut self) -> anyhow::Result<()> {
        if let Some(mut running) = self.running.take() {
            running.kill_all()?;
        }
        Ok(())
    }

    /// Kills it and starts it again.
    ///
    /// # Errors
    /// As [`Self::kill9`] and [`Self::start`].
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        self.kill9()?;
        self.start()
    }

    /// Where [`USER`] logs in, password included.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{}@{}/{database}", self.password, self.address())
    }

    /// Its own console (`show pools`, `pause`), a database for [`ADMIN`].
    pub(crate) fn console_url(&self) -> String {
        format!("postgres://{ADMIN}:{}@{}/pgbouncer", self.password, self.address())
    }

    /// Where it listens; the same after every start.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Its log, all starts in one file.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.file("log")
    }
}

fn configuration(server: SocketAddr, options: &Options, folder: &Folder) -> String {
    let mut text = format!(
        "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir = {}\n\
         auth_type = scram-sha-256\nauth_file = {}\nadmin_users = {ADMIN}\npool_mode = transaction\n\
         default_pool_size = {}\nmax_client_conn = {}\n\
         ignore_startup_parameters = extra_float_digits,options\n",
        server.ip(),
        server.port(),
        folder.path().display(),
        folder.file("users").display(),
        options.pool_size,
        options.clients_max,
    );
    for (name, value) in &options.settings {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}
