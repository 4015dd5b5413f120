//! Runs seeds of the simulation and tells what failed; `cargo xtask sim` builds and starts it.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::Parser;
use sim::hunt::{Hunt, Kind};
use sim::{Report, Stage, Tally, run, tally};

/// So many seeds take every branch; fewer may miss a rare one.
const FULL: u64 = 20_000;
/// Failing seeds that are shown.
const SHOWN_MAX: usize = 5;

/// Seeded simulation of door, recovery and relay over an unreliable store.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    seeds: u64,
    /// The first one
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    from: u64,
    /// Threads; as many as there are cores by default
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Only this seed
    #[arg(long, value_name = "NUMBER", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// With `--seed`: all that happens in it
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Only seeds with the supply side
    #[arg(long, conflicts_with = "seed")]
    supply: bool,
    /// Stop at the first seed that fails, and demand that one does within so many seconds
    #[arg(long, value_name = "SECONDS", conflicts_with = "seed")]
    catch: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match (arguments.seed, arguments.catch) {
        (Some(seed), _) => one(seed, arguments.trace),
        (None, Some(seconds)) => catch(&arguments, Duration::from_secs(seconds)),
        (None, None) => all(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("{cause:#}");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, trace: bool) -> anyhow::Result<()> {
    tally::listen();
    let report = run(&Stage::new()?, seed, trace);
    report.trace.lines().iter().for_each(|line| say(line));
    show(&report);
    ensure!(report.findings.is_empty(), "seed {seed} failed");
    say(&format!(
        "seed {seed}: {} steps, {} submissions, 0 findings",
        report.tally.steps, report.tally.submissions
    ));
    Ok(())
}

fn all(arguments: &Arguments) -> anyhow::Result<()> {
    let caught = hunt(arguments).run(progress)?;
    print(&caught.tally);
    for report in caught.failed.iter().take(SHOWN_MAX) {
        show(report);
        let again = run(&Stage::new()?, report.seed, true);
        again.trace.lines().iter().for_each(|line| say(&format!("  {line}")));
    }
    let done = caught.tally.branches().chain(caught.tally.outcomes());
    let missed: Vec<_> = done.filter(|(_, count)| *count == 0).map(|(name, _)| name).collect();
    let last = format!("{} seeds, {} failed", caught.tally.seeds, caught.failed.len());
    if caught.tally.seeds >= FULL && !arguments.supply {
        ensure!(missed.is_empty(), "{last}; what never happened: {}", missed.join(", "));
    }
    ensure!(caught.failed.is_empty(), "{last}");
    say(&last);
    Ok(())
}

fn catch(arguments: &Arguments, within: Duration) -> anyhow::Result<()> {
    let hunt =
        Hunt { first_only: true, within: Some(within), count: u64::MAX - arguments.from, ..hunt(arguments) };
    let caught = hunt.run(progress)?;
    let Some(report) = caught.failed.first() else {
        anyhow::bail!("not caught: {} seeds, 0 failed", caught.tally.seeds);
    };
    let finding = report.findings.first().map_or("", String::as_str);
    say(&format!("caught by seed {}, after {} seeds: {finding}", report.seed, caught.tally.seeds));
    Ok(())
}

fn hunt(arguments: &Arguments) -> Hunt {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(cores);
    let kind = if arguments.supply { Kind::Supply } else { Kind::All };
    let (first, count) = (arguments.from, arguments.seeds);
    Hunt { first, count, kind, threads, first_only: false, within: None }
}

fn progress(tally: &Tally, failed: usize, since: Duration) {
    eprintln!("{} seeds, {failed} failed, after {} s", tally.seeds, since.as_secs());
}

fn print(tally: &Tally) {
    say(&format!(
        "{} seeds ({} with AuditVisa, {} with the supply side), {} steps, {} submissions",
        tally.seeds, tally.certified, tally.traded, tally.steps, tally.submissions
    ));
    say("branches of the table of answers:");
    tally.branches().for_each(|(name, count)| say(&format!("  {count:>10}  {name}")));
    say("outcomes of the supply side:");
    tally.outcomes().for_each(|(name, count)| say(&format!("  {count:>10}  {name}")));
    say("mishaps of the store:");
    tally.mishaps().for_each(|(name, count)| say(&format!("  {count:>10}  {name}")));
}

fn show(report: &Report) {
    report.findings.iter().for_each(|finding| say(&format!("seed {}: {finding}", report.seed)));
    if !report.findings.is_empty() {
        say(&format!("replay it: cargo xtask sim --seed {} --trace", report.seed));
    }
}

/// Prints a line. Whoever stops reading needs no more of them.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
