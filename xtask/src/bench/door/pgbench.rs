//! pgbench with the door's own statements, in three forms: one by one, in two pipelined round trips, in one
//! call of a function. What the server and a C client alone can do with them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::subject::{Kind, Sample, Started};

/// The first round trip: begin, locks and time, the record, the account.
const FIRST: &str = include_str!("sql/first.sql");
/// The second of a new key: record, debit, audit, outbox, delivery, guard, commit.
const WRITE: &str = include_str!("sql/write.sql");
/// The second of a known key: audit, guard, commit.
const REPEAT: &str = include_str!("sql/repeat.sql");

/// A key, a lock, an account, and a number that grows, as ids of events do.
const NEW: &str = "\\set a random(1000000000000000000, 9223372036854775807)\n";
const KNOWN: &str = "\\set a 1000000000000000000 + random(1, 1000)\n";
const MORE: &str =
    "\\set b random(1, 9223372036854775807)\n\\set account random(100000, 199999)\n\\set n :n + 1\n";

/// Values of the size that the door writes.
const VALUES: [&str; 8] = [
    "n=0",
    "tenant=1",
    "amount=100",
    "request=bench-1234567890123456789",
    r#"answer={"status":"succeeded","transfer":"1234567890123456789","account":100000,"amount":100}"#,
    r#"before={"balance":1000000000,"version":0}"#,
    r#"after={"balance":999999900,"version":1}"#,
    r#"payload={"kind":"transfer","key":"1234567890123456789","account":100000,"amount":100,"before_state":{"balance":1000000000,"version":0},"after_state":{"balance":999999900,"version":1}}"#,
];

/// How the statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Each waits for the one before.
    Step,
    /// Two round trips.
    Pipelined,
    /// One call.
    Function,
}

impl Form {
    fn script(self, kind: Kind) -> String {
        let key = if kind == Kind::First { NEW } else { KNOWN };
        let second = if kind == Kind::First { WRITE } else { REPEAT };
        let body = match (self, kind) {
            (Self::Step, _) => format!("{FIRST}{second}"),
            (Self::Pipelined, _) => {
                format!(
                    "\\startpipeline\n{FIRST}\\endpipeline\n\\startpipeline\n{second}\\endpipeline\n"
                )
            }
            (Self::Function, Kind::First) => {
                "select bench_transfer(:a, :b, :n, :tenant, :account, :amount, :request, :answer, :before, :after, :payload);\n".to_owned()
            }
            (Self::Function, Kind::Repeat) => {
                "select bench_repeat(:a, :b, :n, :tenant, :account, :request);\n".to_owned()
            }
        };
        format!("{key}{MORE}{body}")
    }
}

/// One form on one database.
pub(super) struct Pgbench {
    pub(super) form: Form,
    pub(super) url: String,
    /// For scripts and logs.
    pub(super) folder: PathBuf,
}

/// Whether pgbench is there.
///
/// # Errors
/// It isn't.
pub(in crate::bench) fn there() -> Result<()> {
    let told = Command::new("pgbench").arg("--version").output();
    ensure!(told.is_ok_and(|it| it.status.success()), "pgbench is missing (Debian: postgresql-contrib)");
    Ok(())
}

impl Started for Pgbench {
    fn measure(&mut self, kind: Kind, clients: usize, time: Duration) -> Result<Sample> {
        // Connections come, statements are prepared: not counted. Each client has a server process of its own
        // for that.
        let warm_up = 1 + u64::try_from(clients)? / 32;
        let mut arguments =
            vec![format!("--client={clients}"), format!("--time={}", warm_up + time.as_secs().max(1))];
        VALUES.iter().for_each(|value| arguments.extend(["-D".to_owned(), (*value).to_owned()]));
        let Log { done, failures } = logged((&self.url, &self.folder), &self.form.script(kind), &arguments)?;
        Ok(Sample { failures, ..last(&done, time) })
    }
}

/// What pgbench noted of a run.
pub(in crate::bench) struct Log {
    pub(in crate::bench) done: Vec<Done>,
    pub(in crate::bench) failures: u64,
}

/// Runs a script on a database, with these further arguments; its files go into `folder`.
///
/// # Errors
/// pgbench can't be started, or gives up.
pub(in crate::bench) fn logged(
    (url, folder): (&str, &Path),
    script: &str,
    arguments: &[String],
) -> Result<Log> {
    let file = folder.join("script.sql");
    std::fs::write(&file, script)?;
    let logs = folder.join("log");
    // Of the run before.
    let _ = std::fs::remove_dir_all(&logs);
    std::fs::create_dir(&logs)?;
    let mut command = Command::new("pgbench");
    command.args(["--protocol=prepared", "--no-vacuum", "--jobs=1", "--log"]);
    command.arg(format!("--log-prefix={}", logs.join("pgbench").display())).args(arguments);
    command.arg("--file").arg(&file).envs(environment(url)?);
    let told = command.output().context("pgbench can't be started")?;
    let words = String::from_utf8_lossy(&told.stderr);
    ensure!(told.status.success(), "pgbench failed: {}", words.trim().replace('\n', " | "));
    let text = String::from_utf8_lossy(&told.stdout);
    let failures = value(&text, "number of failed transactions: ").unwrap_or_default();
    let mut done = Vec::new();
    for entry in std::fs::read_dir(logs)? {
        let text = std::fs::read_to_string(entry?.path())?;
        done.extend(text.lines().filter_map(Done::read));
    }
    Ok(Log { done, failures })
}

/// A transaction in the log, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) struct Done {
    pub(in crate::bench) took: u64,
    /// When it ended, since 1970.
    pub(in crate::bench) at: u64,
}

impl Done {
    /// "client number took script seconds microseconds"
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').map(|it| it.parse::<u64>().ok());
        let took = fields.nth(2)??;
        let (seconds, micros) = (fields.nth(1)??, fields.next()??);
        Some(Self { took, at: seconds * 1_000_000 + micros })
    }
}

/// The figures of the last so long; what was before is the warm-up.
fn last(done: &[Done], time: Duration) -> Sample {
    let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
    let end = done.iter().map(|it| it.at).max().unwrap_or_default();
    let counted = done.iter().filter(|it| it.at > end.saturating_sub(time));
    let mut latencies: Vec<u64> = counted.map(|it| it.took).collect();
    latencies.sort_unstable();
    let at = |percent: usize| {
        let rank = (latencies.len() * percent).div_ceil(100).max(1);
        latencies.get(rank - 1).copied().unwrap_or_default()
    };
    let count = u64::try_from(latencies.len()).unwrap_or_default();
    Sample { rate: count * 1_000_000 / time, p50: at(50), p99: at(99), failures: 0 }
}

/// The whole number behind a word of pgbench's report.
fn value(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// libpq's environment from a URL with user, password, address and database: command lines can be read by
/// everybody.
fn environment(url: &str) -> Result<[(&'static str, String); 5]> {
    let parts = || {
        let (user, rest) = url.strip_prefix("postgres://")?.split_once(':')?;
        let (password, rest) = rest.split_once('@')?;
        let (address, database) = rest.split_once('/')?;
        let (host, port) = address.rsplit_once(':')?;
        let text = str::to_owned;
        Some([
            ("PGUSER", text(user)),
            ("PGPASSWORD", text(password)),
            ("PGHOST", text(host)),
            ("PGPORT", text(port)),
            ("PGDATABASE", text(database)),
        ])
    };
    parts().context("the database's URL has another shape than the private server gives")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_time_after_the_warm_up() {
        let log = "0 1 90000 0 1767225600 900000\n0 2 300 0 1767225601 500000\n1 1 100 0 1767225602 0\n";
        let done: Vec<_> = log.lines().filter_map(Done::read).collect();
        assert_eq!(done[1], Done { took: 300, at: 1_767_225_601_500_000 });
        let sample = last(&done, Duration::from_secs(1));
        assert_eq!((sample.rate, sample.p50, sample.p99), (2, 100, 300));
        assert_eq!(last(&[], Duration::from_secs(1)), Sample::default());
    }

    #[test]
    fn failures_are_read_from_the_report() {
        assert_eq!(
            value("number of failed transactions: 3 (0.010%)\n", "number of failed transactions: "),
            Some(3)
        );
        assert_eq!(value("tps = 1", "latency = "), None);
    }

    #[test]
    fn the_pipelined_form_has_the_same_statements_in_two_round_trips() {
        let step = Form::Step.script(Kind::First);
        let pipelined = Form::Pipelined.script(Kind::First);
        let statements = |text: &str| text.matches(";\n").count();
        assert_eq!(statements(&step), 11);
        assert_eq!(statements(&pipelined), 11);
        assert_eq!(pipelined.matches("\\startpipeline").count(), 2);
    }

    #[test]
    fn a_url_becomes_libpqs_environment() {
        let of = environment("postgres://onceseal:ab12@127.0.0.1:15432/bench_1").unwrap();
        let values: Vec<_> = of.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["onceseal", "ab12", "127.0.0.1", "15432", "bench_1"]);
    }
}
