//! The project's own tasks, run as `cargo xtask TASK`.

mod bench;
mod canary;
mod crash;
mod faults;
mod gate;
mod gates;
mod hammer;
mod lab;
mod ledger;
mod race;
mod schemathesis;
mod services;
mod sim;
mod tidy;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "crash drives a part of it, its own tests the whole")
)]
mod trace;
mod vectors;

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
    /// Kill the release binary at every write, rename, sync and send, and cut its power there
    Crash(crash::Crash),
    /// Measure what a delivery costs
    Bench(bench::Bench),
    /// A thousand changes, each sent several times at once, some connections cut: one certificate a change
    Race(race::Race),
    /// Clients of one supplier that withdraw, cancel and pay out all at once: never two open, never a cent lost
    Hammer(hammer::Hammer),
    /// Three servers on one PostgreSQL under load, broken in every known way: every answer has its one effect
    Faults(faults::Faults),
    /// Random commands through the supply side, and a model of their own that must agree with every row
    Ledger(ledger::Ledger),
    /// Schemathesis against a real server with a market on it: all checks, by the document that it serves
    Schemathesis(schemathesis::Schemathesis),
    /// The acceptance gate of the supply side on both engines: real faults, real locks, a sealed report
    Gate(gate::Gate),
    /// Seeded runs of several nodes in virtual time over a store that fails, with the real door and relay
    Sim(sim::Sim),
    /// No secret and no mail address in what a run left behind
    Canary(canary::Canary),
    /// All senders' and all proof vectors, through the real route
    Vectors(vectors::Vectors),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Ci => gates::ci(),
        Task::Test => gates::test(),
        Task::Tidy => tidy::run(),
        Task::Bench(bench) => bench::run(&bench),
        Task::Crash(crash) => crash::run(&crash),
        Task::Race(race) => race.run(),
        Task::Hammer(hammer) => hammer.run(),
        Task::Faults(faults) => faults.run(),
        Task::Ledger(ledger) => ledger.run(),
        Task::Schemathesis(schemathesis) => schemathesis.run(),
        Task::Gate(gate) => gate.run(),
        Task::Sim(sim) => sim.run(),
        Task::Canary(canary) => canary.run(),
        Task::Vectors(vectors) => vectors.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("{cause:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `cargo xtask` that a text of the project shows, with its words.
    fn shown() -> Vec<String> {
        let files = ["README.md", "README.zh-CN.md", "TESTING.md", "ARCHITECTURE.md", "bench/README.md"];
        let docs = lab::root().join("docs");
        let more = docs.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let pages = files.iter().map(|file| lab::root().join(file)).chain(more.filter(|path| path.is_file()));
        let text: Vec<String> = pages.map(|page| std::fs::read_to_string(page).unwrap()).collect();
        let text = text.join("\n");
        let commands = text.match_indices("cargo xtask ").map(|(at, _)| &text[at..]);
        commands
            .map(|rest| rest.split(['`', '#', '\n']).next().unwrap_or_default().trim().to_owned())
            .collect()
    }

    #[test]
    fn every_task_that_the_texts_show_is_there() {
        let shown = shown();
        assert!(shown.len() > 30, "{shown:?}");
        for command in shown {
            let words = command.split_whitespace().skip(1);
            if let Err(cause) = Task::try_parse_from(words) {
                panic!("{command}: {cause}");
            }
        }
    }
}
