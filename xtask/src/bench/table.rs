//! Figures of all rounds, and the Markdown they become.
//!
//! A cell is the median over the rounds. Integers throughout: a ratio is in
//! hundredths, a latency in microseconds.

use std::fmt::Write;

use super::subject::{BARE, NAIVE};

/// One subject under one load in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Answers 2xx a second.
    pub(crate) rate: u64,
    /// Median latency, in microseconds.
    pub(crate) p50: u64,
    /// 99th percentile of the latency, in microseconds.
    pub(crate) p99: u64,
    /// The subject's processor time an answer, in microseconds.
    pub(crate) processor: u64,
    /// Resident memory after the load, in KiB.
    pub(crate) resident: u64,
    /// Peak resident memory since the start, in KiB.
    pub(crate) peak: u64,
    /// Requests without an expected 2xx.
    pub(crate) failures: u64,
}

/// A row of one table, with one entry a round.
pub(crate) struct Row {
    pub(crate) clients: usize,
    pub(crate) subject: &'static str,
    pub(crate) rounds: Vec<Figures>,
}

impl Row {
    /// The median of each column; failures are summed, as none may hide.
    pub(crate) fn median(&self) -> Figures {
        let of = |column: fn(&Figures) -> u64| median(self.rounds.iter().map(column).collect());
        Figures {
            rate: of(|it| it.rate),
            p50: of(|it| it.p50),
            p99: of(|it| it.p99),
            processor: of(|it| it.processor),
            resident: of(|it| it.resident),
            peak: of(|it| it.peak),
            failures: self.rounds.iter().map(|it| it.failures).sum(),
        }
    }
}

/// The table of one load on one disk.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| clients | subject | req/s | lowest-highest | x bare | x naive | p50 ms | p99 ms | cpu µs/req | RSS MiB | peak MiB | failed |\n\
         |---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let it = row.median();
        let against = |name| ratio(it.rate, rate_of(rows, row.clients, name));
        let rates = || row.rounds.iter().map(|it| it.rate);
        let (lowest, highest) = (rates().min().unwrap_or_default(), rates().max().unwrap_or_default());
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {lowest}-{highest} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.clients,
            row.subject,
            it.rate,
            against(BARE),
            against(NAIVE),
            thousandths(it.p50),
            thousandths(it.p99),
            it.processor,
            mebibytes(it.resident),
            mebibytes(it.peak),
            it.failures,
        );
    }
    text
}

/// The line on the disk under a table: syncs a second around its rounds.
pub(crate) fn disk(syncs: &[u64]) -> String {
    let (lowest, highest) = (syncs.iter().min(), syncs.iter().max());
    let (lowest, highest) = (lowest.copied().unwrap_or_default(), highest.copied().unwrap_or_default());
    format!("Disk alone: {} syncs/s of 4 kB appends ({lowest}-{highest})", median(syncs.to_vec()))
}

fn rate_of(rows: &[Row], clients: usize, subject: &str) -> Option<u64> {
    rows.iter().find(|it| it.clients == clients && it.subject == subject).map(|it| it.median().rate)
}

/// The value in the middle; of an even number the upper one.
pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// A quotient in hundredths, a dash without a base.
pub(crate) fn ratio(rate: u64, base: Option<u64>) -> String {
    match base {
        Some(base) if base > 0 => {
            let hundredths = (rate * 100 + base / 2) / base;
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        }
        _ => "-".to_owned(),
    }
}

/// Microseconds as milliseconds.
pub(crate) fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1000, value % 1000)
}

fn mebibytes(kib: u64) -> String {
    format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &'static str, rates: &[u64]) -> Row {
        let rounds = rates.iter().map(|&rate| Figures { rate, failures: 1, ..Figures::default() }).collect();
        Row { clients: 32, subject, rounds }
    }

    #[test]
    fn a_cell_is_the_median_and_failures_add_up() {
        let median = row("naive", &[300, 100, 200]).median();
        assert_eq!((median.rate, median.failures), (200, 3));
    }

    #[test]
    fn rates_stand_in_relation_to_bare_and_naive_at_the_same_clients() {
        let rows = [row(BARE, &[60_000]), row(NAIVE, &[6_000]), row("other", &[9_010])];
        let text = markdown(&rows);
        assert!(text.contains("| 32 | other | 9010 | 9010-9010 | 0.15 | 1.50 |"), "{text}");
    }

    #[test]
    fn a_missing_base_is_a_dash_and_units_keep_their_places() {
        assert_eq!(ratio(5, None), "-");
        assert_eq!((thousandths(1_007), mebibytes(1536)), ("1.007".to_owned(), "1.5".to_owned()));
    }
}
