//! Measurement of the supply side on PostgreSQL: withdraw, replay, publish and batch price over HTTP, beside pgbench
//! with the statements that the server logged for the same requests; then the service levels of section 18 under the
//! loads it names, and the guard's share of the processor time.
//!
//! Modules in reading order: [`seed`] (many suppliers alike), [`ours`] (the product and its requests), [`load`],
//! [`recorded`] (from the server's log to pgbench's script), [`slo`], [`share`].
//!
//! Not here: assertions about the figures, as everywhere in `bench`.

mod load;
mod ours;
mod recorded;
mod seed;
mod share;
mod slo;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use play::{Client, Market};

use self::load::Sample;
use self::ours::Job;
use self::seed::{Seeded, Size};
use crate::bench::door::pgbench;
use crate::lab::market::Outside;
use crate::lab::{Build, House};
use crate::services::postgres::{Options, Postgres};

/// The database that the others are copies of.
const MARKET: &str = "market";
/// As in the measurement of the door: memory as on a small server, and no checkpoint inside a short load.
const SETTINGS: [(&str, &str); 3] =
    [("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "15min")];

/// Measures the supply side beside what stands below it.
#[derive(Args)]
pub(crate) struct Bench {
    /// Clients, each with one request under way
    #[arg(long, value_delimiter = ',', default_values_t = [8, 32])]
    clients: Vec<usize>,
    /// Suppliers that each load withdraws from and publishes for
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(100..=4000))]
    suppliers: u64,
    /// Batches of 200 prices of each load
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(32..=500))]
    batches: u64,
    /// Rounds; a cell of the table is their median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    rounds: u32,
    /// Seconds of verifications at 100 a second
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600))]
    verify_seconds: u64,
}

/// A cell of the table: one job by one subject with so many clients.
struct Cell {
    job: Job,
    clients: usize,
    ours: Vec<Sample>,
    pgbench: Vec<Sample>,
}

/// What a run needs everywhere.
struct Bed {
    postgres: Postgres,
    program: PathBuf,
    folder: PathBuf,
    outside: Outside,
    /// The first house, whose keys all have.
    first: House,
    seeded: Seeded,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// Measures and prints the tables; progress goes to standard error.
    ///
    /// # Errors
    /// PostgreSQL or the product doesn't start, or answers otherwise than expected.
    pub(crate) fn run(&self) -> Result<()> {
        self.size()?;
        let folder = crate::bench::scratch_folder()?.join(format!("supply.{}", std::process::id()));
        std::fs::create_dir(&folder).context("a folder for the run can't be made")?;
        let bed = self.bed(&folder)?;
        let busy = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("Load average of the machine before: {}", busy.split(' ').next().unwrap_or_default());
        let scripts = self.recorded(&bed)?;
        let mut cells: Vec<Cell> = Vec::new();
        for job in Job::ALL {
            cells.extend(self.clients.iter().map(|&clients| Cell {
                job,
                clients,
                ours: vec![],
                pgbench: vec![],
            }));
        }
        for round in 1..=self.rounds {
            eprintln!("round {round}: pgbench");
            self.below(&bed, (&scripts, round), &mut cells)?;
            eprintln!("round {round}: onceseal");
            self.above(&bed, round, &mut cells)?;
        }
        print_rates(&cells);
        self.levels(&bed)?;
        drop(bed);
        std::fs::remove_dir_all(&folder).context("the run's folder can't be removed")
    }

    /// How many copies of the supplier the loads of one round use up.
    fn size(&self) -> Result<Size> {
        let loads = self.clients.len();
        let suppliers = usize::try_from(self.suppliers)? * loads + seed::HISTORY;
        ensure!(
            i64::try_from(suppliers)? < seed::COPIES_MAX,
            "{loads} loads of {} suppliers are more than {} copies: give fewer --clients or --suppliers",
            self.suppliers,
            seed::COPIES_MAX
        );
        Ok(Size { suppliers, batches: usize::try_from(self.batches)? * loads + 1 })
    }

    fn bed(&self, folder: &Path) -> Result<Bed> {
        let program = Build::Release.program()?;
        pgbench::there()?;
        let settings = SETTINGS.map(|(name, value)| (name, value.to_owned())).to_vec();
        let options = Options { within: Some(folder.to_owned()), settings, ..Options::default() };
        let postgres = Postgres::launch(&options)?;
        let url = postgres.create(MARKET)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let outside = runtime.block_on(Outside::open())?;
        eprintln!("making the market");
        let (first, server) =
            ours::start(&program, (&folder.join("first"), None), &outside, (&url, ours::Pace::Seeding))?;
        let admin = postgres.admin_url(MARKET);
        seed::spread_ids(&admin, seed::Era::Seeding)?;
        let token = crate::lab::market::admin(&first, &program)?;
        let client = Client::new(format!("http://{}", server.address)).map_err(|cause| anyhow!(cause))?;
        let market = Market::new(client, token);
        let seeded = runtime.block_on(seed::seed(&market, &outside.phone, &admin, self.size()?))?;
        server.stop()?;
        let bed = Bed { postgres, program, folder: folder.to_owned(), outside, first, seeded, runtime };
        self.age(&bed, &url)?;
        Ok(bed)
    }

    /// Gives the market a past: its last suppliers withdraw.
    fn age(&self, bed: &Bed, url: &str) -> Result<()> {
        let last = self.size()?.suppliers;
        let (_house, server) = bed.on(MARKET, (url, ours::Pace::Measuring))?;
        let requests = (last - seed::HISTORY + 1..=last)
            .map(|copy| Job::Withdraw.request(&bed.seeded, copy))
            .collect::<Result<Vec<_>>>()?;
        load::run(server.address, 8, requests, Job::Withdraw.expected())?;
        bed.runtime.block_on(seed::settle(&bed.postgres.admin_url(MARKET)))?;
        server.stop()
    }

    /// What the server logs of one request of each job, as pgbench's scripts.
    fn recorded(&self, bed: &Bed) -> Result<Vec<(Job, String)>> {
        let copy = self.size()?.batches;
        let url = bed.fresh("recorded")?;
        bed.postgres.execute("alter database recorded set log_statement = 'all'")?;
        let (_house, server) = bed.on("recorded", (&url, ours::Pace::Measuring))?;
        let mut scripts = Vec::new();
        for job in Job::ALL {
            let from = std::fs::metadata(bed.postgres.log())?.len();
            let sent = load::run(server.address, 1, vec![job.request(&bed.seeded, copy)?], job.expected())?;
            ensure!(sent.failures == 0, "the request to be recorded was refused");
            let log = recorded::since(&bed.postgres.log(), from)?;
            let script = recorded::script(&log, job.marks(), i64::try_from(copy)?).context(job.title())?;
            scripts.push((job, script));
        }
        server.stop()?;
        bed.remove("recorded")?;
        Ok(scripts)
    }

    /// So many requests or transactions a load.
    fn count(&self, job: Job) -> Result<usize> {
        Ok(usize::try_from(if job == Job::BatchPrice { self.batches } else { self.suppliers })?)
    }

    fn below(&self, bed: &Bed, (scripts, round): (&[(Job, String)], u32), cells: &mut [Cell]) -> Result<()> {
        let name = format!("pgbench_{round}");
        let url = bed.fresh(&name)?;
        for (job, script) in scripts {
            for (at, &clients) in self.clients.iter().enumerate() {
                let (count, first) = (self.count(*job)?, at * self.count(*job)?);
                let each = count / clients;
                let variables = [format!("first={first}"), format!("each={each}"), "n=0".to_owned()];
                let mut arguments = vec![format!("--client={clients}"), format!("--transactions={each}")];
                arguments.extend(variables.into_iter().flat_map(|it| ["-D".to_owned(), it]));
                let log =
                    pgbench::logged((&url, &bed.folder), script, &arguments).with_context(|| job.title())?;
                let latencies: Vec<u64> = log.done.iter().map(|one| one.took).collect();
                let began = log.done.iter().map(|one| one.at - one.took).min().unwrap_or_default();
                let ended = log.done.iter().map(|one| one.at).max().unwrap_or_default();
                let elapsed = Duration::from_micros(ended - began);
                let sample = Sample::of(latencies, elapsed, log.failures);
                cell(cells, (*job, clients)).for_each(|cell| cell.pgbench.push(sample));
            }
        }
        bed.remove(&name)
    }

    fn above(&self, bed: &Bed, round: u32, cells: &mut [Cell]) -> Result<()> {
        let name = format!("onceseal_{round}");
        let (_house, server) = bed.start(&name, ours::Pace::Measuring)?;
        for job in Job::ALL {
            for (at, &clients) in self.clients.iter().enumerate() {
                let count = self.count(job)?;
                let copies = at * count + 1..=(at + 1) * count;
                let requests =
                    copies.map(|copy| job.request(&bed.seeded, copy)).collect::<Result<Vec<_>>>()?;
                let sample = load::run(server.address, clients, requests, job.expected());
                let sample = sample.with_context(|| format!("{} with {clients} clients", job.title()))?;
                cell(cells, (job, clients)).for_each(|cell| cell.ours.push(sample));
            }
        }
        server.stop()?;
        bed.remove(&name)
    }

    /// Service levels and the guard's share.
    fn levels(&self, bed: &Bed) -> Result<()> {
        let (house, server) = bed.start("levels", ours::Pace::Measuring)?;
        let client = Client::new(format!("http://{}", server.address)).map_err(|cause| anyhow!(cause))?;
        let market = Market::new(client, crate::lab::market::admin(&house, &bed.program)?);
        let owner = &bed.seeded.owner;
        let waves = bed.runtime.block_on(slo::withdrawals(&market, &bed.outside.phone, owner))?;
        println!(
            "\n50 withdrawals at once of one supplier, {} times: {} made, P95 {} ms (service level 1,200), {} other answers",
            waves.waves,
            waves.made,
            waves.sample.p95 / 1000,
            waves.sample.failures
        );
        let time = Duration::from_secs(self.verify_seconds);
        let checked = bed.runtime.block_on(slo::verifications(&market, owner, time))?;
        println!(
            "verifications at 100 a second for {} s: {} a second, P50 {} ms, P95 {} ms (service level 800), {} failed",
            time.as_secs(),
            checked.rate,
            checked.p50 / 1000,
            checked.p95 / 1000,
            checked.failures
        );
        let count = self.count(Job::Withdraw)?;
        let requests =
            (1..=count).map(|copy| Job::Withdraw.request(&bed.seeded, copy)).collect::<Result<Vec<_>>>()?;
        let before = ours::processor_time(server.pid())?;
        load::run(server.address, 8, requests, 201)?;
        let spent = (ours::processor_time(server.pid())? - before) * 1000 / u64::try_from(count)?;
        let answer = ours::answer(&market, &bed.seeded, &bed.runtime)?;
        let guard = share::nanoseconds(&bed.postgres.admin_url("levels"), &answer)?;
        println!(
            "guard: {} us of the server's {} us of processor time for a withdrawal, {} %",
            guard / 1000,
            spent / 1000,
            guard * 100 / spent.max(1)
        );
        server.stop()?;
        bed.remove("levels")
    }
}

impl Bed {
    /// A new copy of the market; its URL.
    fn fresh(&self, name: &str) -> Result<String> {
        let owner = crate::services::postgres::USER;
        self.postgres.execute(&format!("create database {name} template {MARKET} owner {owner}"))?;
        Ok(self.postgres.url(name))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.postgres.execute(&format!("drop database {name} with (force)")).map(drop)
    }

    fn start(&self, name: &str, pace: ours::Pace) -> Result<(House, crate::lab::Server)> {
        let url = self.fresh(name)?;
        self.on(name, (&url, pace))
    }

    fn on(&self, name: &str, place: (&str, ours::Pace)) -> Result<(House, crate::lab::Server)> {
        let folder = self.folder.join(name);
        ours::start(&self.program, (&folder, Some(&self.first)), &self.outside, place)
    }
}

fn cell(cells: &mut [Cell], (job, clients): (Job, usize)) -> impl Iterator<Item = &mut Cell> {
    cells.iter_mut().filter(move |cell| cell.job == job && cell.clients == clients)
}

fn print_rates(cells: &[Cell]) {
    println!(
        "\n| job | clients | pgbench a second | onceseal a second | ratio | p50 ms | p95 ms | p99 ms | failed |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for cell in cells {
        let median = |samples: &[Sample], of: fn(&Sample) -> u64| {
            let mut values: Vec<u64> = samples.iter().map(of).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        let (below, above) = (median(&cell.pgbench, |it| it.rate), median(&cell.ours, |it| it.rate));
        let percent = above * 100 / below.max(1);
        let failed: u64 = cell.ours.iter().chain(&cell.pgbench).map(|it| it.failures).sum();
        println!(
            "| {} | {} | {below} | {above} | {}.{:02}x | {} | {} | {} | {failed} |",
            cell.job.title(),
            cell.clients,
            percent / 100,
            percent % 100,
            median(&cell.ours, |it| it.p50) / 1000,
            median(&cell.ours, |it| it.p95) / 1000,
            median(&cell.ours, |it| it.p99) / 1000,
        );
    }
}
