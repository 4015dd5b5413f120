//! The measurement of the certificate chain: three loads on every subject.
//!
//! Subjects take turns within a round, so that what the machine does beside the
//! run meets all of them; a subject starts anew, with an empty folder, for each
//! load of each round.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::delivery::Delivery;
use super::disk::Speed;
use super::load::{Limit, Load, Numbers, Tally};
use super::subject::{self, Answers, Running, Subject, Usage};
use super::table::{self, Figures, Row};

/// Load before each measured one, not counted.
const WARM_UP: Duration = Duration::from_millis(500);

/// Events that repeats go to.
const KNOWN: u64 = 1_000;

/// Connections that fill a store before it is measured.
const FILLING: usize = 64;

/// Events filled in with one signature time: senders' times go out of date, and
/// at a thousand a second this takes less than a minute.
const FILLED_AT_ONCE: u64 = 50_000;

/// Measures certificates, repeats and keyed writes.
#[derive(Args)]
pub(crate) struct Certify {
    /// Connections, each with one request under way
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32, 128, 256])]
    clients: Vec<usize>,
    /// Seconds of each measured load
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Rounds; a cell of the table is their median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Subjects, by name [default: all]
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// What is delivered
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["certificate", "repeat", "keyed-write"])]
    loads: Vec<Kind>,
    /// Disks
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["native", "slow"])]
    disks: Vec<Speed>,
    /// Events stored before each measurement
    #[arg(long, default_value_t = 0)]
    stored: u64,
}

/// What is delivered.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// New paid checkouts
    Certificate,
    /// The same thousand checkouts again and again
    Repeat,
    /// New events of our own tasks that get no certificate
    KeyedWrite,
}

impl Kind {
    fn title(self) -> &'static str {
        match self {
            Kind::Certificate => "Certificates: new paid checkouts",
            Kind::Repeat => "Repeats: checkouts that are known, every arrival durable",
            Kind::KeyedWrite => "Keyed writes: new internal events without a certificate",
        }
    }

    /// The `status` a subject answers with.
    fn status(self) -> &'static str {
        match self {
            Kind::Certificate => "processed",
            Kind::Repeat => "duplicate_reused",
            Kind::KeyedWrite => "recorded",
        }
    }
}

impl Certify {
    /// Measures and prints the tables; progress goes to standard error.
    ///
    /// # Errors
    /// A subject is unknown, can't be built or started, or stops answering.
    pub(crate) fn run(&self) -> Result<()> {
        let subjects = self.chosen()?;
        subject::build(&subjects)?;
        println!(
            "{} s a load, median of {} rounds, {} events stored before\n",
            self.seconds, self.rounds, self.stored
        );
        for &speed in &self.disks {
            println!("## Disk: {}\n", speed.title());
            for &kind in &self.loads {
                let (rows, syncs) = self.rounds(&subjects, speed, kind)?;
                println!("### {}\n\n{}\n{}\n", kind.title(), table::markdown(&rows), table::disk(&syncs));
            }
        }
        super::clear_scratch()
    }

    fn chosen(&self) -> Result<Vec<Subject>> {
        let mut subjects = subject::all();
        for name in &self.subjects {
            let known = subjects.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
            ensure!(subjects.iter().any(|it| it.name == name), "no subject {name}; there are {known}");
        }
        if !self.subjects.is_empty() {
            subjects.retain(|it| self.subjects.iter().any(|name| name == it.name));
        }
        Ok(subjects)
    }

    /// The rows of one table, and the disk's sync rate at the start of each
    /// round: others may use it too.
    fn rounds(&self, subjects: &[Subject], speed: Speed, kind: Kind) -> Result<(Vec<Row>, Vec<u64>)> {
        let row = |clients, subject: &Subject| Row { clients, subject: subject.name, rounds: Vec::new() };
        let mut rows: Vec<Row> = self
            .clients
            .iter()
            .flat_map(|&clients| subjects.iter().map(move |it| row(clients, it)))
            .collect();
        let mut syncs = Vec::new();
        for round in 1..=self.rounds {
            syncs.push(speed.syncs_per_second()?);
            for subject in subjects {
                eprintln!("{}, {}: round {round}, {}", speed.title(), kind.title(), subject.name);
                let mut bench = Measurement::start(subject, speed, kind)?;
                bench.fill(self.stored)?;
                for row in rows.iter_mut().filter(|it| it.subject == subject.name) {
                    row.rounds.push(bench.measured(row.clients, Duration::from_secs(self.seconds))?);
                }
            }
        }
        Ok((rows, syncs))
    }
}

/// A started subject and the deliveries it gets.
struct Measurement {
    running: Running,
    kind: Kind,
    status: Option<&'static str>,
    /// Number of the next new event.
    next: u64,
}

impl Measurement {
    fn start(subject: &Subject, speed: Speed, kind: Kind) -> Result<Measurement> {
        let status = (subject.answers == Answers::ByEvent).then(|| kind.status());
        Ok(Measurement { running: subject.start(speed)?, kind, status, next: 0 })
    }

    /// Delivers `stored` new events, and those that repeats go to.
    fn fill(&mut self, stored: u64) -> Result<()> {
        let count = if self.kind == Kind::Repeat { stored.max(KNOWN) } else { stored };
        while self.next < count {
            let limit = Limit::Count(FILLED_AT_ONCE.min(count - self.next));
            let numbers = Numbers::From(self.next);
            let load = Load { numbers, limit, clients: FILLING, status: None, ..self.load()? };
            let tally = load.run()?;
            let failures = tally.failures();
            ensure!(failures == 0, "{failures} of {count} events were not taken before the run");
            self.next += tally.sent;
        }
        Ok(())
    }

    fn measured(&mut self, clients: usize, time: Duration) -> Result<Figures> {
        self.loaded(clients, WARM_UP)?;
        let before = self.running.usage()?;
        let tally = self.loaded(clients, time)?;
        let after = self.running.usage()?;
        if tally.failures() > 0 {
            let Tally { answers, unexpected, unanswered, .. } = &tally;
            eprintln!(
                "  answers by status {answers:?}, other `status` {unexpected}, unanswered {unanswered}"
            );
        }
        Ok(figures(&tally, before, after))
    }

    fn loaded(&mut self, clients: usize, time: Duration) -> Result<Tally> {
        let tally = Load { clients, limit: Limit::Time(time), ..self.load()? }.run()?;
        self.next += tally.sent;
        Ok(tally)
    }

    /// The load of this kind on one connection, signed now.
    fn load(&self) -> Result<Load> {
        let to = self.running.address;
        let (delivery, numbers) = match self.kind {
            Kind::Certificate => (Delivery::checkout(to, unix_seconds())?, Numbers::From(self.next)),
            Kind::Repeat => (Delivery::checkout(to, unix_seconds())?, Numbers::Among(KNOWN)),
            Kind::KeyedWrite => (Delivery::internal(to)?, Numbers::From(self.next)),
        };
        Ok(Load { to, clients: 1, limit: Limit::Count(1), delivery, numbers, status: self.status })
    }
}

fn figures(tally: &Tally, before: Usage, after: Usage) -> Figures {
    let spent = (after.processor - before.processor).as_micros();
    let answers = u128::try_from(tally.latencies.len()).unwrap_or_default().max(1);
    Figures {
        rate: tally.rate(),
        p50: tally.percentile(50).into(),
        p99: tally.percentile(99).into(),
        processor: u64::try_from(spent / answers).unwrap_or(u64::MAX),
        resident: after.resident,
        peak: after.peak,
        failures: tally.failures(),
    }
}

/// The wall clock, which the receivers compare signatures with.
#[expect(clippy::disallowed_methods, reason = "a sender signs with the wall clock; nothing is decided on it")]
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}
