//! `cargo xtask test`: installs and starts what the tests need, builds them once, and runs the same
//! executables on each engine: all on SQLite, those that touch a store once more on PostgreSQL, and the
//! store's own a third time through PgBouncer.
//!
//! Which ones touch a store is read from the packages' dependencies. That they really worked on PostgreSQL
//! is read from its transaction numbers: a part that has written nothing there is not green.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value as Json;

use testkit::canary::{PLANTED, Search};

use crate::services;
use crate::services::pgbouncer::{self, PgBouncer};
use crate::services::postgres::{Durability, Options, Postgres};
use crate::services::psql::Psql;

/// Where tests may make databases: the suite's choice of the engine. Absent: SQLite.
const SERVER: &str = "ONCESEAL_TEST_POSTGRES";
/// Where a pooler stands before that server, "host:port". Absent: tests go directly.
const POOLER: &str = "ONCESEAL_TEST_POOLER";
/// The package whose dependents' tests depend on the engine.
const STORE: &str = "store";
/// Begins the line with which the test runner closes.
const CLOSING: &str = "test result: ";
/// Oldest PostgreSQL that Onceseal supports, as `server_version_num` writes it.
const OLDEST: u32 = 150_000;
/// Modules of tests for one engine. A test of one is left out only where the other engine runs, and only
/// in a program that runs on both.
const ONLY_SQLITE: [&str; 2] = ["--skip", "only_sqlite::"];
const ONLY_POSTGRES: [&str; 2] = ["--skip", "only_postgres::"];

/// Runs the suite on both engines.
///
/// # Errors
/// What is missing, or the first part that is not green.
pub(crate) fn test() -> anyhow::Result<()> {
    services::install()?;
    // Before the long part: without it there is nothing to be green.
    let given = std::env::var(SERVER).ok();
    let server = given.map_or_else(Server::private, Server::given)?;
    let began = Instant::now();
    let programs = programs()?;
    let sqlite = on_sqlite(&programs)?;
    let postgres = server.proven(|| on_postgres(&programs, &server))?;
    server.without_canary()?;
    let server = if server.has_pooler() { server } else { Server::private()? };
    let pooled = server.proven(|| through_pooler(&programs, &server))?;
    for part in [sqlite, postgres, pooled] {
        part.tell();
    }
    eprintln!("== tests: green on both engines after {} s", began.elapsed().as_secs());
    Ok(())
}

fn on_sqlite(programs: &[Program]) -> anyhow::Result<Part> {
    let mut part = Part::new("SQLite");
    for program in programs {
        let mut command = program.command();
        if program.touches_store {
            command.args(ONLY_POSTGRES);
        }
        part.run(&program.name, &mut command)?;
    }
    part.run("examples in the documentation", cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    part.close()
}

fn on_postgres(programs: &[Program], server: &Server) -> anyhow::Result<Part> {
    let mut part = Part::new(&server.name);
    for program in programs.iter().filter(|program| program.touches_store) {
        part.run(&program.name, program.command().env(SERVER, &server.url).args(ONLY_SQLITE))?;
    }
    part.close()
}

fn through_pooler(programs: &[Program], server: &Server) -> anyhow::Result<Part> {
    let (address, _private) = server.pooler()?;
    let mut part = Part::new(&format!("{} through PgBouncer, transaction mode", server.name));
    for program in programs.iter().filter(|program| program.is_store) {
        let mut command = program.command();
        command.env(SERVER, &server.url).env(POOLER, &address).args(ONLY_SQLITE);
        part.run(&program.name, &mut command)?;
    }
    part.close()
}

/// The PostgreSQL that the tests use.
struct Server {
    url: String,
    /// As the report calls it.
    name: String,
    /// Kept until the end of the suite; `None`: the caller's.
    private: Option<Postgres>,
}

impl Server {
    /// One of our own.
    fn private() -> anyhow::Result<Self> {
        let server = Postgres::launch(&options()).context("the suite needs a PostgreSQL")?;
        let named = Self::named(server.url("postgres"), "private, fsync=off")?;
        Ok(Self { private: Some(server), ..named })
    }

    /// The caller's.
    fn given(url: String) -> anyhow::Result<Self> {
        Self::named(url, "given")
    }

    fn named(url: String, whose: &str) -> anyhow::Result<Self> {
        let psql = Psql::at(&url)?;
        let number: u32 = psql.ask("show server_version_num")?.parse().context("server_version_num")?;
        let version = psql.ask("select split_part(current_setting('server_version'), ' ', 1)")?;
        ensure!(number >= OLDEST, "{SERVER}: PostgreSQL 15 or newer is needed, this is {version}");
        Ok(Self { url, name: format!("PostgreSQL {version} ({whose})"), private: None })
    }

    /// No part of a credential that tests mounted is in the server's files: databases, write-ahead log, log. That
    /// the search finds is shown first, by another text that is put there.
    fn without_canary(&self) -> anyhow::Result<()> {
        let Some(private) = &self.private else { return Ok(()) };
        let began = Instant::now();
        let folder = private.files();
        let sql = format!("create table canary as select '{PLANTED}' as text; checkpoint");
        let psql = Psql::at(&private.admin_url("postgres"))?;
        psql.ask(&sql)?;
        let file =
            psql.ask("select current_setting('data_directory') || '/' || pg_relation_filepath('canary')")?;
        // Its own database's folder only: all of them are gigabytes.
        let beside = Path::new(&file).parent().context("the folder of the planted canary")?;
        let planted = Search::planted().below(beside)?;
        ensure!(!planted.is_empty(), "a planted canary is not found in {}", self.name);
        let found = Search::mounted().below(folder)?;
        ensure!(found.is_empty(), "a credential that tests mounted, or a part of it, is in {found:?}");
        eprintln!(
            "== canary: planted and found, then none in the files of {}, {} s",
            self.name,
            began.elapsed().as_secs()
        );
        Ok(())
    }

    /// Whether there is a pooler before it: always before our own, before the caller's if he says where.
    fn has_pooler(&self) -> bool {
        self.private.is_some() || std::env::var_os(POOLER).is_some()
    }

    /// Where the pooler stands, and that pooler, when it is ours.
    fn pooler(&self) -> anyhow::Result<(String, Option<PgBouncer>)> {
        let Some(private) = &self.private else { return Ok((std::env::var(POOLER)?, None)) };
        // Each test has a database, so a pool, of its own: what it no longer uses must not fill the server.
        let settings = vec![("server_idle_timeout", "1".to_owned())];
        let options = pgbouncer::Options { settings, ..pgbouncer::Options::default() };
        let pooler = PgBouncer::launch(private, &options)?;
        Ok((pooler.address().to_string(), Some(pooler)))
    }

    /// Runs a part, which must have written here.
    fn proven(&self, run: impl FnOnce() -> anyhow::Result<Part>) -> anyhow::Result<Part> {
        let before = self.transaction()?;
        let mut part = run()?;
        // To ask for the number takes one.
        let written = self.transaction()?.saturating_sub(before).saturating_sub(1);
        ensure!(written > 0, "the tests wrote nothing on {}; do they obey {SERVER}?", part.engine);
        part.written = Some(written);
        Ok(part)
    }

    /// The number of a new transaction; only those that write have one, over all databases of the server.
    fn transaction(&self) -> anyhow::Result<u64> {
        let number = Psql::at(&self.url)?.ask("select pg_current_xact_id()")?;
        number.parse().context("a transaction's number")
    }
}

/// A server for tests that lose nothing when the machine fails, each in a database of its own.
fn options() -> Options {
    // Hundreds of databases that live for a second: their housekeeping would take a core.
    let settings = vec![("autovacuum", "off".to_owned())];
    Options { durability: Durability::Unsynced, settings, ..Options::default() }
}

/// The suite, or a part of it, on one engine.
struct Part {
    engine: String,
    /// The closing lines of all test programs.
    closing: Vec<String>,
    /// Runs that did not end well.
    red: Vec<String>,
    /// What no output may have.
    sought: Search,
    /// Transactions that wrote, where the engine counts them.
    written: Option<u64>,
}

/// Numbers of tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Part {
    fn new(engine: &str) -> Self {
        eprintln!("== tests on {engine}");
        Self {
            engine: engine.to_owned(),
            closing: Vec::new(),
            red: Vec::new(),
            sought: Search::mounted(),
            written: None,
        }
    }

    /// Runs one command, showing what it says.
    fn run(&mut self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        eprintln!("== {}: {name}", self.engine);
        command.env("RUST_BACKTRACE", "0").stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{name} can't be started"))?;
        let told = child.stdout.take().context("its standard output")?;
        self.shown(told)?;
        let status = child.wait()?;
        if !status.success() {
            self.red.push(format!("{name} ended with {status}"));
        }
        Ok(())
    }

    fn shown(&mut self, told: impl Read) -> anyhow::Result<()> {
        for line in BufReader::new(told).split(b'\n') {
            // A test may print what it likes.
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            if self.sought.is_in(line.as_bytes()) {
                self.red.push("a credential that tests mounted is in their output".to_owned());
            }
            if line.starts_with(CLOSING) {
                self.closing.push(line);
            }
        }
        Ok(())
    }

    /// # Errors
    /// A test failed or is marked to be ignored, or none ran.
    fn close(self) -> anyhow::Result<Self> {
        let Sums { passed, ignored, .. } = self.sums();
        if !self.red.is_empty() {
            self.tell();
            bail!("tests on {} are not green: {}", self.engine, self.red.join("; "));
        }
        ensure!(passed > 0, "no test ran on {}", self.engine);
        ensure!(ignored == 0, "{ignored} tests were ignored on {}", self.engine);
        Ok(self)
    }

    fn sums(&self) -> Sums {
        self.closing.iter().fold(Sums::default(), |sums, line| Sums {
            passed: sums.passed + counted(line, "passed"),
            failed: sums.failed + counted(line, "failed"),
            ignored: sums.ignored + counted(line, "ignored"),
        })
    }

    /// The runner's own closing lines, and their sum.
    fn tell(&self) {
        let Sums { passed, failed, ignored } = self.sums();
        self.closing.iter().for_each(|line| eprintln!("   {line}"));
        let written = self.written.map(|count| format!(", {count} transactions written")).unwrap_or_default();
        eprintln!("== {}: {passed} passed, {failed} failed, {ignored} ignored{written}", self.engine);
    }
}

/// "3" before "passed;" in "test result: ok. 3 passed; 0 failed; ..."; 0 where it doesn't stand.
fn counted(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';']).filter(|part| !part.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair.get(1) == Some(&word));
    pair.and_then(|pair| pair.first()?.parse().ok()).unwrap_or(0)
}

/// A built test program.
struct Program {
    /// Its source, from the package's folder on.
    name: String,
    executable: PathBuf,
    /// The package's folder, where cargo would run it.
    folder: PathBuf,
    /// Whether it is [`STORE`]'s own.
    is_store: bool,
    /// Whether its outcome depends on the engine.
    touches_store: bool,
}

impl Program {
    /// Runs it as cargo would, on SQLite.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env_remove(SERVER).env_remove(POOLER);
        command
    }
}

/// Builds all test programs.
fn programs() -> anyhow::Result<Vec<Program>> {
    let packages = packages()?;
    let dependents = dependents(&packages);
    let build = ["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"];
    let told = json_lines(cargo().args(build))?;
    let mut programs: Vec<_> = told.iter().filter_map(program).collect();
    // Cargo names them as they get ready.
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    for program in &mut programs {
        let of = |package: &&Package| package.folder == program.folder;
        let name = packages.iter().find(of).map(|package| &package.name);
        program.is_store = name.is_some_and(|name| name == STORE);
        program.touches_store = name.is_some_and(|name| dependents.contains(name));
    }
    ensure!(programs.iter().any(|program| program.is_store), "cargo names no test program of {STORE}");
    Ok(programs)
}

/// What cargo says of one artefact; `None`: it is no test program.
fn program(message: &Json) -> Option<Program> {
    let is_test = message.pointer("/profile/test")?.as_bool()?;
    let executable = PathBuf::from(message.get("executable")?.as_str()?);
    let folder = Path::new(message.get("manifest_path")?.as_str()?).parent()?.to_owned();
    let source = message.pointer("/target/src_path").and_then(Json::as_str).map(Path::new)?;
    let name = source.strip_prefix(folder.parent()?).unwrap_or(source).display().to_string();
    is_test.then_some(Program { name, executable, folder, is_store: false, touches_store: false })
}

/// A package of the workspace.
struct Package {
    name: String,
    folder: PathBuf,
    needs: BTreeSet<String>,
}

fn packages() -> anyhow::Result<Vec<Package>> {
    let told = json_lines(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let packages = told.first().and_then(|all| all.get("packages")?.as_array());
    Ok(packages.context("cargo metadata names no packages")?.iter().filter_map(package).collect())
}

fn package(told: &Json) -> Option<Package> {
    let text = |json: &Json, name: &str| Some(json.get(name)?.as_str()?.to_owned());
    let needs = told.get("dependencies")?.as_array()?.iter().filter_map(|one| text(one, "name")).collect();
    let folder = Path::new(told.get("manifest_path")?.as_str()?).parent()?.to_owned();
    Some(Package { name: text(told, "name")?, folder, needs })
}

/// [`STORE`] and all that depend on it, over any number of steps. Not this one: its tests start the
/// servers that they need.
fn dependents(packages: &[Package]) -> BTreeSet<String> {
    let mut found = BTreeSet::from([STORE.to_owned()]);
    loop {
        let count = found.len();
        let next = packages.iter().filter(|package| !package.needs.is_disjoint(&found));
        found.extend(next.map(|package| package.name.clone()).collect::<Vec<_>>());
        if found.len() == count {
            break;
        }
    }
    found.remove(env!("CARGO_PKG_NAME"));
    found
}

fn json_lines(command: &mut Command) -> anyhow::Result<Vec<Json>> {
    let told = command.stderr(Stdio::inherit()).output().context("cargo can't be started")?;
    ensure!(told.status.success(), "cargo ended with {}", told.status);
    let lines = told.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
}

fn cargo() -> Command {
    Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed_and_an_ignored_test_is_not_green() {
        let mut part = Part::new("SQLite");
        let told = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n\
                    test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; finished in 0.10s\n";
        part.shown(told.as_bytes()).unwrap();
        assert_eq!(part.sums(), Sums { passed: 15, failed: 0, ignored: 1 });
        assert!(part.close().err().unwrap().to_string().contains("1 tests were ignored"));
    }

    #[test]
    fn all_packages_that_depend_on_the_store_are_found_and_no_other() {
        let found = dependents(&packages().unwrap());
        for name in ["store", "door", "certify", "relay", "web", "onceseal"] {
            assert!(found.contains(name), "{name}");
        }
        assert!(!found.contains("seal") && !found.contains("xtask"));
    }
}
