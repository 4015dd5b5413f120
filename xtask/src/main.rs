//! The project's own tasks, run as `cargo xtask TASK`.

mod bench;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "so far only its own tests drive the tracer")
)]
mod trace;

use clap::Parser;

/// One task.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Measure what a delivery costs
    Bench(bench::Bench),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Bench(bench) => bench::run(&bench),
    }
}
