//! The Markdown of all parts. Cells are medians over the rounds, ratios in hundredths, latencies in
//! milliseconds with three places.

use std::fmt::Write as _;

use super::kill::Killed;
use super::same::Same;
use super::subject::{PIPELINED, STEP, Sample};
use crate::bench::table::{median, ratio, thousandths};

/// Rates of one subject with so many clients, a sample a round.
pub(super) struct Row {
    pub(super) clients: usize,
    pub(super) subject: &'static str,
    pub(super) samples: Vec<Sample>,
}

/// Latency of one subject with so many stored keys.
pub(super) struct Growth {
    pub(super) subject: &'static str,
    pub(super) clients: usize,
    pub(super) stored: u64,
    pub(super) samples: Vec<Sample>,
}

/// A result with its subject.
pub(super) struct Named<T> {
    pub(super) name: &'static str,
    pub(super) it: T,
}

fn of(samples: &[Sample], column: fn(&Sample) -> u64) -> u64 {
    median(samples.iter().map(column).collect())
}

fn rate_of(rows: &[Row], clients: usize, subject: &str) -> Option<u64> {
    rows.iter()
        .find(|it| it.clients == clients && it.subject == subject)
        .map(|it| of(&it.samples, |it| it.rate))
}

/// What the rows do; stands above the rates.
pub(super) const JOBS: &str = "All transfer an amount under a key: the account's row is debited if its balance allows it, the answer is kept.
pgbench and the door also write an audit row, an outbox row and its delivery, and an audit row for each repeat. The
peers write a row of what was transferred and leave no trace of a repeat; `restate` has the balances in its own state,
`restate-row` and the others in PostgreSQL. `onceseal` is the whole server with another job: internal webhook events of
3.6 kB, recorded with arrival, state, search words and audit; a repeat with its arrival.";

/// Rates and latencies; `first` are the rows of first-time transfers, for the table of repeats.
pub(super) fn rates(rows: &[Row], first: &[Row]) -> String {
    let mut text = String::from("| clients | subject | 1/s | lowest-highest | x step | x pipelined |");
    if !first.is_empty() {
        text.push_str(" x own first time |");
    }
    text.push_str(" p50 ms | p99 ms | failed |\n|---:|---|---:|---:|---:|---:|");
    if !first.is_empty() {
        text.push_str("---:|");
    }
    text.push_str("---:|---:|---:|\n");
    for row in rows {
        let rate = of(&row.samples, |it| it.rate);
        let all = || row.samples.iter().map(|it| it.rate);
        let against = |name| ratio(rate, rate_of(rows, row.clients, name));
        // Writing to a string can't fail.
        let _ = write!(
            text,
            "| {} | {} | {rate} | {}-{} | {} | {} |",
            row.clients,
            row.subject,
            all().min().unwrap_or_default(),
            all().max().unwrap_or_default(),
            against(STEP),
            against(PIPELINED),
        );
        if !first.is_empty() {
            let _ = write!(text, " {} |", ratio(rate, rate_of(first, row.clients, row.subject)));
        }
        let _ = writeln!(
            text,
            " {} | {} | {} |",
            thousandths(of(&row.samples, |it| it.p50)),
            thousandths(of(&row.samples, |it| it.p99)),
            row.samples.iter().map(|it| it.failures).sum::<u64>(),
        );
    }
    text
}

/// Effects of one key sent many times at once.
pub(super) fn same(lines: &[Named<Same>]) -> String {
    let mut text = String::from(
        "| subject | effects of a key | keys with more than one | answers by status | unanswered |\n|---|---:|---:|---|---:|\n",
    );
    for Named { name, it } in lines {
        let effects =
            if it.fewest == it.most { it.most.to_string() } else { format!("{}-{}", it.fewest, it.most) };
        let answers: Vec<_> =
            it.answers.iter().map(|(status, count)| format!("{count} x {status}")).collect();
        let _ = writeln!(
            text,
            "| {name} | {effects} | {} | {} | {} |",
            it.doubled,
            answers.join(", "),
            it.unanswered
        );
    }
    text
}

/// What kills in mid-work left.
pub(super) fn kill(lines: &[Named<Killed>]) -> String {
    let mut text = String::from(
        "| subject | keys sent | cut by a kill | doubled | lost | stuck | slowest answer after it ms |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for Named { name, it } in lines {
        let Killed { sent, cut, doubled, lost, stuck, slowest } = it;
        let _ = writeln!(
            text,
            "| {name} | {sent} | {cut} | {doubled} | {lost} | {stuck} | {} |",
            slowest.as_millis()
        );
    }
    text
}

/// Latency with few and with many stored keys; the ratio is to the fewest.
pub(super) fn growth(rows: &[Growth]) -> String {
    let mut text = String::from(
        "| clients | subject | stored keys | 1/s | p50 ms | p99 ms | x p99 with the fewest | failed |\n|---:|---|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut sorted: Vec<_> = rows.iter().collect();
    sorted.sort_by_key(|it| (it.clients, it.subject, it.stored));
    for row in &sorted {
        let p99 = of(&row.samples, |it| it.p99);
        let same = |it: &&&Growth| it.clients == row.clients && it.subject == row.subject;
        let fewest = sorted.iter().find(same).map(|it| of(&it.samples, |it| it.p99));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.clients,
            row.subject,
            row.stored,
            of(&row.samples, |it| it.rate),
            thousandths(of(&row.samples, |it| it.p50)),
            thousandths(p99),
            ratio(p99, fewest),
            row.samples.iter().map(|it| it.failures).sum::<u64>(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: u64, p99: u64) -> Sample {
        Sample { rate, p50: 1_000, p99, failures: 0 }
    }

    fn row(subject: &'static str, rate: u64) -> Row {
        Row { clients: 8, subject, samples: vec![sample(rate, 2_000)] }
    }

    #[test]
    fn rates_stand_against_both_ways_of_sending_and_repeats_against_the_first_time() {
        let first = [row(STEP, 3_000), row(PIPELINED, 6_000), row("door", 5_400)];
        assert!(
            rates(&first, &[]).contains("| 8 | door | 5400 | 5400-5400 | 1.80 | 0.90 | 1.000 | 2.000 | 0 |")
        );
        let repeats = [row("door", 10_800)];
        assert!(rates(&repeats, &first).contains("| 8 | door | 10800 | 10800-10800 | - | - | 2.00 |"));
    }

    #[test]
    fn latency_with_many_keys_stands_against_the_fewest() {
        let growth_of =
            |stored, p99| Growth { subject: "door", clients: 8, stored, samples: vec![sample(1, p99)] };
        let text = growth(&[growth_of(10_000, 2_000), growth_of(10_000_000, 3_000)]);
        assert!(text.contains("| 8 | door | 10000000 | 1 | 1.000 | 3.000 | 1.50 | 0 |"), "{text}");
    }
}
