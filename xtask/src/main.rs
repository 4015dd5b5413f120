//! The project's own tasks, run as `cargo xtask TASK`.

mod bench;
mod gates;
#[expect(dead_code, unused_imports, reason = "race and crash drive it")]
mod lab;
mod services;
mod tidy;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "so far only its own tests drive the tracer")
)]
mod trace;

use std::process::ExitCode;

use clap::Parser;

/// One task.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Format, lints, docs, licences, tidy, and then all tests: what CI runs
    Ci,
    /// Install and start what the tests need, then run all of them
    Test,
    /// Rules of the house that no compiler knows
    Tidy,
    /// Measure what a delivery costs
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Ci => gates::ci(),
        Task::Test => gates::test(),
        Task::Tidy => tidy::run(),
        Task::Bench(bench) => bench::run(&bench),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("{cause:#}");
            ExitCode::FAILURE
        }
    }
}
