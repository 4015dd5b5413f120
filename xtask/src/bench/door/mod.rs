//! Measurement of the door on PostgreSQL: pgbench with the door's own statements, the door without and with
//! HTTP, and what a user would pick instead ([`peer`]), all with the same job, a keyed transfer, in one run.
//!
//! Modules in reading order: [`subject`] (what is measured, as values), [`database`] (the private server),
//! [`pgbench`], [`ours`], [`peer`] (the others), [`served`] (a started one over HTTP), [`same`] (one key sent
//! many times at once), [`kill`] (killed in mid-work), [`growth`] (many stored keys), [`table`].
//!
//! Not here: assertions about the figures, as everywhere in `bench`.

mod database;
mod growth;
mod kill;
mod ours;
mod peer;
pub(super) mod pgbench;
mod same;
mod served;
mod subject;
mod table;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use self::database::{Database, Template};
use self::subject::{Kind, Place, Sample, Subject};
use self::table::{Named, Row};
use super::disk::Speed;

/// Tells the child of a run which disk it sees (the shim has to be there before the program starts), and
/// which subjects there are.
const SEEN: &str = "BENCH_DOOR_DISK";
const CHOSEN: &str = "BENCH_DOOR_SUBJECTS";

/// Measures the door on PostgreSQL beside what stands below it and what stands instead of it.
#[derive(Args)]
pub(crate) struct Door {
    /// Storage engine
    #[arg(long, value_enum, default_value = "postgres")]
    engine: Engine,
    /// Clients, each with one request under way
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128])]
    clients: Vec<usize>,
    /// Seconds of each measured load
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Rounds; a cell of a table is their median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Subjects, by name [default: all]
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// Disks
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["native", "slow"])]
    disks: Vec<Speed>,
    /// What is shown
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["rates", "same-key", "kill", "growth"])]
    parts: Vec<Part>,
    /// Times that one key is sent 32 times at once
    #[arg(long, default_value_t = 20)]
    trials: u64,
    /// Times that each is killed under load
    #[arg(long, default_value_t = 5)]
    kills: u64,
    /// Stored keys between which the latency is compared; on the disk as it is
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 10_000_000])]
    stored: Vec<u64>,
}

/// A subject that can't be had, and why.
type LeftOut = (&'static str, String);

/// Storage engine of the door.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// A private server, started for the run
    Postgres,
}

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// First-time transfers and repeats by clients
    Rates,
    /// Effects of 32 sends of one key at once
    SameKey,
    /// What a kill in mid-work leaves
    Kill,
    /// Latency with few and many stored keys
    Growth,
}

impl Door {
    /// Measures and prints the tables; progress goes to standard error.
    ///
    /// # Errors
    /// A subject is unknown, our own can't be built, or one stops answering. A peer that can't be had is
    /// named under the tables instead.
    pub(crate) fn run(&self) -> Result<()> {
        let Engine::Postgres = self.engine;
        let seen = std::env::var(SEEN).ok();
        if let Some(seen) = seen {
            let speed = if seen == name(Speed::Slow) { Speed::Slow } else { Speed::Native };
            let chosen = std::env::var(CHOSEN).unwrap_or_default();
            let mut subjects = subject::all();
            subjects.retain(|it| chosen.split(',').any(|name| name == it.name));
            return self.on(&subjects, speed);
        }
        let (subjects, left_out) = self.chosen()?;
        let chosen: Vec<_> = subjects.iter().map(|it| it.name).collect();
        println!("{} s a load, median of {} rounds. {}\n", self.seconds, self.rounds, table::JOBS);
        for &speed in &self.disks {
            // Everything below inherits the disk: the server, Redis, the peers.
            let own = std::env::current_exe().context("this program's own place is unknown")?;
            let status = Command::new(own)
                .args(std::env::args_os().skip(1))
                .envs(speed.environment()?)
                .env(SEEN, name(speed))
                .env(CHOSEN, chosen.join(","))
                .status()?;
            ensure!(status.success(), "the run with {} failed, see above", speed.title());
        }
        for (name, why) in left_out {
            println!("{name}: not run: {why}");
        }
        super::clear_scratch()
    }

    /// All subjects that were asked for and can be had; and those that can't, with the reason.
    fn chosen(&self) -> Result<(Vec<Subject>, Vec<LeftOut>)> {
        let mut subjects = subject::all();
        for name in &self.subjects {
            let known = subjects.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
            ensure!(subjects.iter().any(|it| it.name == name), "no subject {name}; there are {known}");
        }
        if !self.subjects.is_empty() {
            subjects.retain(|it| self.subjects.iter().any(|name| name == it.name));
        }
        ours::build()?;
        let mut left_out = Vec::new();
        subjects.retain(|it| match (it.install)() {
            Ok(()) => true,
            Err(error) => {
                left_out.push((it.name, format!("{error:#}")));
                false
            }
        });
        Ok((subjects, left_out))
    }

    fn on(&self, subjects: &[Subject], speed: Speed) -> Result<()> {
        let database = Database::start()?;
        let busy = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let busy = busy.split(' ').next().unwrap_or_default();
        println!(
            "## Disk: {}\n\n{}; load average of the machine before: {busy}\n",
            speed.title(),
            database.described()?
        );
        if self.parts.contains(&Part::Rates) {
            self.rates(&database, subjects, speed)?;
        }
        let served: Vec<&Subject> = subjects.iter().filter(|it| it.takes_transfers()).collect();
        if self.parts.contains(&Part::SameKey) {
            let lines = each(&served, (&database, speed), |subject, place| {
                same::sent(&mut subject.serve(place)?, self.trials)
            })?;
            println!("### One key, 32 sends at once, {} times\n\n{}", self.trials, table::same(&lines));
        }
        if self.parts.contains(&Part::Kill) {
            let lines = each(&served, (&database, speed), |subject, place| {
                kill::killed(&mut subject.serve(place)?, self.kills)
            })?;
            println!("### Killed in mid-work, 32 clients, {} times\n\n{}", self.kills, table::kill(&lines));
        }
        if self.parts.contains(&Part::Growth) && speed == Speed::Native {
            let time = Duration::from_secs(self.seconds);
            let rows = growth::measured(&database, subjects, &self.stored, (self.rounds, time))?;
            println!("### Stored keys\n\n{}", table::growth(&rows));
        }
        Ok(())
    }

    fn rates(&self, database: &Database, subjects: &[Subject], speed: Speed) -> Result<()> {
        let subjects: Vec<&Subject> = subjects.iter().collect();
        let time = Duration::from_secs(self.seconds);
        let mut first: Vec<Row> = Vec::new();
        for kind in [Kind::First, Kind::Repeat] {
            let row =
                |clients, subject: &&Subject| Row { clients, subject: subject.name, samples: Vec::new() };
            let mut rows: Vec<Row> =
                self.clients.iter().flat_map(|&n| subjects.iter().map(move |it| row(n, it))).collect();
            let mut syncs = Vec::new();
            for round in 1..=self.rounds {
                eprintln!("{}, {}: round {round}", speed.title(), kind.title());
                syncs.push(speed.syncs_per_second()?);
                let samples = each(&subjects, (database, speed), |subject, place| {
                    let mut started = subject.start(place)?;
                    self.clients.iter().map(|&n| Ok((n, started.measure(kind, n, time)?))).collect()
                })?;
                for Named { name, it } in samples {
                    add(&mut rows, name, it);
                }
            }
            println!(
                "### {}\n\n{}\n{}\n",
                kind.title(),
                table::rates(&rows, &first),
                super::table::disk(&syncs)
            );
            first = rows;
        }
        Ok(())
    }
}

/// Adds the samples that one round has of a subject, by clients.
fn add(rows: &mut [Row], name: &str, samples: Vec<(usize, Sample)>) {
    for (clients, sample) in samples {
        let row = rows.iter_mut().find(|it| it.subject == name && it.clients == clients);
        row.into_iter().for_each(|it| it.samples.push(sample));
    }
}

/// Does one thing with each subject, each in a place of its own, and gives the results by name. A peer that
/// fails is told and left out; what is ours has to work.
fn each<T>(
    subjects: &[&Subject],
    (database, speed): (&Database, Speed),
    mut act: impl FnMut(&Subject, &Place<'_>) -> Result<T>,
) -> Result<Vec<Named<T>>> {
    let mut results = Vec::new();
    for &subject in subjects {
        eprintln!("  {}", subject.name);
        let place = Place::new(database, speed, subject.name)?;
        match act(subject, &place) {
            Ok(it) => results.push(Named { name: subject.name, it }),
            Err(error) if subject.template == Template::Peer => {
                println!("{}: left out of the next table: {error:#}\n", subject.name);
            }
            Err(error) => return Err(error.context(subject.name)),
        }
        place.clear()?;
    }
    Ok(results)
}

const fn name(speed: Speed) -> &'static str {
    match speed {
        Speed::Native => "native",
        Speed::Slow => "slow",
    }
}
