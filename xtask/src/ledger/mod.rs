//! `cargo xtask ledger`: random commands of every kind that moves money or quota, by several writers at once, through
//! the product's own door; a model that shares no code with the product replays them in the order of commits. After
//! each batch store and model must be equal, every check of section 11.5 must hold, and no balance be below zero.
//!
//! Modules in reading order: [`command`] (what is asked, as plain figures), [`model`] (the market once more, from the
//! text of the specification), [`stage`] (the real market), [`drive`] (commands as the product's actions), [`board`]
//! (what writers know), [`plan`] (what they ask next), [`time`] (what falls due), [`look`] (store and model in the
//! same words; the order of commits), [`plant`] (what must be found), [`tally`] (how often what happened). Not here:
//! HTTP, tokens, processes and crashes.

mod board;
mod command;
mod drive;
mod look;
mod model;
mod plan;
mod plant;
mod stage;
mod tally;
#[cfg(test)]
mod tests;
mod time;

use std::path::PathBuf;
use std::process::Command as Program;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};
use store::values;
use testkit::Seeded;
use tokio::task::JoinSet;

use crate::lab;
use crate::services::postgres::{Durability, Options, Postgres};
use crate::services::psql::Psql;
use board::Board;
use command::Sent;
use model::Model;
use plan::Writer;
use plant::Planted;
use stage::Market;
use tally::Tally;

/// Suppliers and buyers.
const PEOPLE: (usize, usize) = (12, 10);
/// From so many commands on a build that is not optimised takes too long.
const MANY: u64 = 20_000;
/// Findings that are shown.
const SHOWN: usize = 20;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct Ledger {
    /// How many commands, on each engine
    #[arg(long, default_value_t = 200_000, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(100..))]
    commands: u64,
    /// What is random in this run; how the writers' commands meet is not
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// What keeps the rows
    #[arg(long, default_value = "both", value_name = "ENGINE")]
    engine: Engines,
    /// How many write at once
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=64))]
    writers: u64,
    /// After how many commands store and model are compared
    #[arg(long, default_value_t = 5_000, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(50..))]
    batch: u64,
    /// A PostgreSQL to make a database on, instead of a private one; needs track_commit_timestamp = on
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Spoil the store after the first batch and demand that it is found
    #[arg(long, value_name = "SPOIL")]
    planted: Option<Planted>,
}

/// What keeps the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engines {
    /// A file in memory
    Sqlite,
    /// A private PostgreSQL
    Postgres,
    /// One after the other
    Both,
}

impl Ledger {
    /// Runs the commands.
    ///
    /// # Errors
    /// Something was answered, written or summed up wrongly; a kind of command never succeeded or never was
    /// refused; or what was planted was not found.
    pub(crate) fn run(&self) -> Result<()> {
        if cfg!(debug_assertions) && self.commands > MANY {
            return in_release();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        if self.engine != Engines::Postgres {
            self.judged(&runtime.block_on(self.on(None))?)?;
        }
        if self.engine != Engines::Sqlite {
            let server = Server::open(self.database.as_deref())?;
            self.judged(&runtime.block_on(self.on(Some(&server.url)))?)?;
        }
        Ok(())
    }

    /// Tells how it went.
    fn judged(&self, ended: &Ended) -> Result<()> {
        let Ended { tally, wrong, took, engine } = ended;
        if let Some(planted) = self.planted {
            ensure!(!wrong.is_empty(), "the planted {planted:?} was not found");
            println!("found {planted:?} on {engine}: {} findings, such as", wrong.len());
            wrong.iter().take(3).for_each(|finding| println!("  {finding}"));
            return Ok(());
        }
        println!("{}", tally.table());
        let unseen = if tally.sent >= tally::COMPLETE { tally.unseen() } else { Vec::new() };
        wrong.iter().take(SHOWN).for_each(|finding| println!("wrong: {finding}"));
        println!(
            "{engine}, seed {}, {} writers, {took} s: {} commands, {} wrong",
            self.seed,
            self.writers,
            tally.sent,
            wrong.len()
        );
        ensure!(wrong.is_empty(), "{} findings on {engine}, seed {}", wrong.len(), self.seed);
        ensure!(unseen.is_empty(), "never happened on {engine}: {}", unseen.join(", "));
        Ok(())
    }

    async fn on(&self, database: Option<&str>) -> Result<Ended> {
        let began = Instant::now();
        let market = Arc::new(Market::open(database).await?);
        let engine = market.engine.name();
        eprintln!("{engine}: {} commands, seed {}", self.commands, self.seed);
        let mut model = Model::default();
        let (sellers, clients) = market.people(PEOPLE, &mut model).await?;
        let board = Arc::new(Mutex::new(Board { sellers, clients, ..Board::default() }));
        let mut run = Run { market, model, board, tally: Tally::default(), seen: 0, wrong: Vec::new() };
        run.seen = run.last_row().await?;
        let mut writers = run.writers(self);
        while run.tally.sent < self.commands && run.wrong.is_empty() {
            let count = self.batch.min(self.commands - run.tally.sent);
            let tick = (self.commands / 2_000).clamp(20, 100);
            writers = run.batch(writers, count, tick).await?;
            if let Some(planted) = self.planted {
                planted.plant(&run.market).await?;
            }
            run.compare().await?;
            eprintln!("{engine}: {} commands after {} s", run.tally.sent, began.elapsed().as_secs());
        }
        Ok(Ended { tally: run.tally, wrong: run.wrong, took: began.elapsed().as_secs(), engine })
    }
}

/// How a run on one engine went.
struct Ended {
    tally: Tally,
    wrong: Vec<String>,
    /// Seconds.
    took: u64,
    engine: &'static str,
}

/// A run on one engine.
struct Run {
    market: Arc<Market>,
    model: Model,
    board: Arc<Mutex<Board>>,
    tally: Tally,
    /// The last audit row that was looked at.
    seen: i64,
    wrong: Vec<String>,
}

impl Run {
    async fn last_row(&self) -> Result<i64> {
        let rows = self.market.rows("select coalesce(max(id), 0) from audit_events", values![]).await?;
        Ok(rows.first().context("no count")?.int(0)?)
    }

    fn writers(&self, of: &Ledger) -> Vec<Writer> {
        let writer = |n: u64| Writer {
            market: Arc::clone(&self.market),
            board: Arc::clone(&self.board),
            chance: Seeded::new(of.seed.wrapping_mul(1_000).wrapping_add(n)),
            name: format!("{}-{n}", of.seed),
            count: 0,
        };
        (0..of.writers).map(writer).collect()
    }

    /// So many commands, and the model after them.
    async fn batch(&mut self, writers: Vec<Writer>, count: u64, tick: u64) -> Result<Vec<Writer>> {
        let next = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for writer in writers {
            tasks.spawn(write(writer, Arc::clone(&next), (count, tick)));
        }
        let (mut writers, mut batch) = (Vec::new(), Vec::new());
        while let Some(ended) = tasks.join_next().await {
            let (writer, sent) = ended.context("a writer panicked")??;
            writers.push(writer);
            batch.extend(sent);
        }
        self.tally.count(&batch);
        self.model.batch();
        let (ordered, shared) = look::ordered(&self.market, batch, &mut self.seen).await?;
        self.tally.shared += shared;
        for (sent, place) in ordered {
            if let Err(wrong) = self.model.replay(&sent, place) {
                self.wrong.push(wrong);
            }
        }
        Ok(writers)
    }

    /// Store against model, and both against the rules.
    async fn compare(&mut self) -> Result<()> {
        self.wrong.append(&mut self.model.books.broken);
        let (stored, modelled) = (look::stored(&self.market).await?, look::modelled(&self.model));
        self.wrong.extend(look::differences(&stored, &modelled));
        self.wrong.extend(look::negative(&stored));
        let found = supply::settlements::reconcile(self.market.door.store()).await?;
        self.wrong.extend(found.iter().map(|violation| format!("reconciled: {violation}")));
        self.tally.compared += 1;
        self.tally.lines = modelled.len();
        Ok(())
    }
}

/// One writer's part of a batch.
async fn write(
    mut writer: Writer,
    next: Arc<AtomicU64>,
    (count, tick): (u64, u64),
) -> Result<(Writer, Vec<Sent>)> {
    let mut all = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= count {
            return Ok((writer, all));
        }
        if number % tick == tick - 1 {
            writer.time_passes().await?;
        }
        let command = writer.next().await?;
        plan::locked(&writer.board).sending(&command);
        let sent = writer.market.send(command).await?;
        plan::locked(&writer.board).learn(&sent);
        all.push(sent);
    }
}

/// A database for the run; removed with it.
struct Server {
    url: String,
    /// Of a database on a server that is given: where it stands and what it is called.
    made: Option<(String, String)>,
    _private: Option<Postgres>,
}

impl Server {
    fn open(given: Option<&str>) -> Result<Self> {
        let Some(server) = given else {
            let memory = PathBuf::from("/dev/shm");
            let set = |name, value: &str| (name, value.to_owned());
            let options = Options {
                durability: Durability::Unsynced,
                within: memory.is_dir().then_some(memory),
                settings: vec![set("track_commit_timestamp", "on"), set("shared_buffers", "256MB")],
                ..Options::default()
            };
            let private = Postgres::launch(&options)?;
            let url = private.create("ledger")?;
            return Ok(Self { url, made: None, _private: Some(private) });
        };
        let tracked = Psql::at(server)?.ask("show track_commit_timestamp")?;
        ensure!(tracked == "on", "--database: the server needs track_commit_timestamp = on");
        let name = format!("onceseal_ledger_{}", std::process::id());
        Psql::at(server)?.ask(&format!("create database {name}"))?;
        let Some((before, _)) = server.rsplit_once('/') else { bail!("--database: no URL of a database") };
        let url = format!("{before}/{name}");
        Ok(Self { url, made: Some((server.to_owned(), name)), _private: None })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.made {
            // The run is over; what can't be removed is the server's owner's to see.
            let _ = Psql::at(server).and_then(|psql| psql.ask(&format!("drop database {name} with (force)")));
        }
    }
}

/// The same task, built in release.
fn in_release() -> Result<()> {
    eprintln!("building xtask in release");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Program::new(cargo);
    command
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1));
    let status = command.current_dir(lab::root()).status().context("cargo can't be started")?;
    ensure!(status.success(), "the ledger is not green, see above");
    Ok(())
}
