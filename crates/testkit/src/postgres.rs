//! Databases for tests, on the server that the test command started. Without one the suites run on the
//! embedded store.

#![expect(clippy::panic, reason = "a test whose database can't be had must fail, and say why")]

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Config, NoTls};

/// URL of a server on which tests may make databases, as a user who may.
pub const SERVER: &str = "ONCESEAL_TEST_POSTGRES";
/// `host:port` of a pooler in front of that server, in transaction mode; the suites then go through it.
pub const POOLER: &str = "ONCESEAL_TEST_POOLER";

/// A database of a test's own.
#[derive(Clone, Debug)]
pub struct Database {
    /// Where the product connects: the pooler where there is one.
    pub url: String,
    /// Whether that is a pooler in transaction mode.
    pub pooled: bool,
    /// Where a test looks behind the product's back.
    pub direct: String,
}

/// A new, empty database, if the suite runs on PostgreSQL.
///
/// # Panics
/// When the server can't be reached: a database test is never skipped.
#[must_use]
pub fn fresh() -> Option<Database> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var(SERVER).ok()?;
    let name = format!("onceseal_test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
    execute(&server, &format!("create database {name}"));
    Some(database(&server, &name))
}

/// As [`fresh`], for a test that has no other engine.
///
/// # Panics
/// When there is no server.
#[must_use]
pub fn required() -> Database {
    fresh().unwrap_or_else(|| panic!("this test needs PostgreSQL: run `cargo xtask test`, or set {SERVER}"))
}

/// The database that belongs to `folder`: made at the first call, the same ever after. For tests that
/// close an installation and open it again.
///
/// # Panics
/// As [`fresh`], or when the folder can't be written.
#[must_use]
pub fn beside(folder: &Path) -> Option<Database> {
    let server = std::env::var(SERVER).ok()?;
    let note = folder.join("test-database");
    if let Ok(name) = std::fs::read_to_string(&note) {
        return Some(database(&server, &name));
    }
    let made = fresh()?;
    let name = name(&made.direct);
    std::fs::create_dir_all(folder).unwrap_or_else(|cause| panic!("{}: {cause}", folder.display()));
    std::fs::write(&note, name).unwrap_or_else(|cause| panic!("{}: {cause}", note.display()));
    Some(made)
}

/// Gives `copy` a database of its own that is like the one of `folder`, if the suite runs on PostgreSQL.
/// Nobody may be connected to that one.
///
/// # Panics
/// As [`beside`].
pub fn copy_beside(folder: &Path, copy: &Path) {
    let (Some(from), Some(to)) = (beside(folder), beside(copy)) else { return };
    let Ok(server) = std::env::var(SERVER) else { return };
    let (from, to) = (name(&from.direct), name(&to.direct));
    execute(&server, &format!("drop database {to}"));
    execute(&server, &format!("create database {to} template {from}"));
}

/// Runs statements without parameters, on a thread of its own: for tests with and without a runtime.
///
/// # Panics
/// When the server can't be reached or refuses.
pub fn execute(url: &str, sql: &str) {
    let _ = rows(url, sql);
}

/// As [`execute`]; gives the first column of each row as text.
///
/// # Panics
/// As [`execute`].
#[must_use]
pub fn rows(url: &str, sql: &str) -> Vec<String> {
    std::thread::scope(|scope| scope.spawn(|| run(url, sql)).join())
        .unwrap_or_else(|_| panic!("the database thread panicked"))
}

fn run(url: &str, sql: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|cause| panic!("no runtime: {cause}"));
    runtime.block_on(async {
        let config: Config = url.parse().unwrap_or_else(|cause| panic!("{SERVER}: {cause}"));
        let (client, wire) = config.connect(NoTls).await.unwrap_or_else(|cause| panic!("{SERVER}: {cause}"));
        let wire = tokio::spawn(wire);
        let answers = client.simple_query(sql).await.unwrap_or_else(|cause| panic!("{sql}: {cause}"));
        wire.abort();
        let texts = answers.into_iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        texts.collect()
    })
}

fn database(server: &str, name: &str) -> Database {
    let direct = replaced(server, str::to_owned, name);
    let pooler = std::env::var(POOLER).ok();
    let url = pooler.as_deref().map_or_else(
        || direct.clone(),
        |pooler| {
            let through = |authority: &str| {
                let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
                format!("{user}@{pooler}")
            };
            replaced(server, through, name)
        },
    );
    Database { url, pooled: pooler.is_some(), direct }
}

fn name(url: &str) -> &str {
    url.rsplit('/').next().and_then(|tail| tail.split('?').next()).unwrap_or_default()
}

/// `scheme://authority/name?options` with another authority and name.
fn replaced(url: &str, authority: impl Fn(&str) -> String, name: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (rest, options) = rest.split_once('?').map_or((rest, String::new()), |(r, o)| (r, format!("?{o}")));
    let old = rest.split('/').next().unwrap_or_default();
    format!("{scheme}://{}/{name}{options}", authority(old))
}

/// How the store of `folder` is opened on the engine that the suite runs on.
///
/// # Panics
/// As [`beside`].
#[must_use]
pub fn settings(folder: &Path) -> store::Settings {
    beside(folder).map_or_else(
        || store::Settings::folder(folder),
        |database| store::Settings::Postgres(database.settings()),
    )
}

impl Database {
    /// A few connections: the tests of one binary run side by side.
    #[must_use]
    pub fn settings(&self) -> store::Postgres {
        let mode = if self.pooled { store::Mode::Unnamed } else { store::Mode::Prepared };
        store::Postgres { mode, connections: 4, ..store::Postgres::new(self.url.clone()) }
    }
}

impl Database {
    /// The address as a configuration names it, and the password beside it.
    #[must_use]
    pub fn address(&self) -> (String, Option<String>) {
        let Some((user, host)) = self.url.rsplit_once('@') else { return (self.url.clone(), None) };
        let Some((scheme, user)) = user.split_once("://") else { return (self.url.clone(), None) };
        let (name, password) = user.split_once(':').map_or((user, None), |(name, word)| (name, Some(word)));
        (format!("{scheme}://{name}@{host}"), password.map(ToOwned::to_owned))
    }
}

impl Database {
    /// As [`Database::settings`], through a proxy that may do harm on the way.
    ///
    /// # Panics
    /// When the proxy can't listen.
    #[must_use]
    pub fn behind_proxy(&self) -> (store::Postgres, crate::proxy::Proxy) {
        use std::net::ToSocketAddrs as _;
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("postgres", &self.url));
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let target = host.to_socket_addrs().ok().and_then(|mut found| found.next());
        let target = target.unwrap_or_else(|| panic!("{host} is no address"));
        let proxy = crate::proxy::Proxy::start(target).unwrap_or_else(|cause| panic!("no proxy: {cause}"));
        let url = format!("{scheme}://{user}@{}/{name}", proxy.address());
        (store::Postgres { url: url.into(), ..self.settings() }, proxy)
    }
}
