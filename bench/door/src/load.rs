//! The door without HTTP: so many tasks, each with one submission under way, as the load over HTTP has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use door::{Answer, Door, Submission};
use tokio::task::JoinSet;

use crate::transfer::Transfer;

/// Accounts that are debited.
const FIRST_ACCOUNT: u64 = 100_000;
const ACCOUNTS: u64 = 100_000;
const AMOUNT: i64 = 100;

/// Keys are the numbers of 19 digits.
const KEYS_FROM: u64 = 1_000_000_000_000_000_000;

/// One load.
#[derive(Args, Clone, Debug)]
pub(crate) struct Load {
    /// Tasks, each with one submission under way
    #[arg(long)]
    clients: usize,
    /// Milliseconds that are measured
    #[arg(long)]
    milliseconds: u64,
    /// Milliseconds before, not counted
    #[arg(long, default_value_t = 500)]
    warm_up: u64,
    /// Number of the first transfer
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Repeat so many transfers, which are brought in before
    #[arg(long)]
    known: Option<u64>,
}

/// What one load gave.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    latencies: Vec<u32>,
    failures: u64,
    elapsed: Duration,
    next: u64,
}

/// Runs it; prints "rate p50 p99 failures next", latencies in microseconds.
///
/// # Errors
/// A known transfer can't be brought in.
pub(crate) async fn run(door: Door, load: &Load) -> anyhow::Result<()> {
    let mut from = load.from;
    if let Some(known) = load.known {
        for number in 0..known {
            anyhow::ensure!(succeeded(&door, number).await, "transfer {number} was not taken before the run");
        }
    }
    if load.warm_up > 0 {
        from = loaded(&door, load, from, Duration::from_millis(load.warm_up)).await.next;
    }
    let tally = loaded(&door, load, from, Duration::from_millis(load.milliseconds)).await;
    let count = u128::try_from(tally.latencies.len())?;
    let rate = count * 1_000_000_000 / tally.elapsed.as_nanos().max(1);
    let at = |percent: usize| {
        let rank = (tally.latencies.len() * percent).div_ceil(100).max(1);
        tally.latencies.get(rank - 1).copied().unwrap_or_default()
    };
    println!("{rate} {} {} {} {}", at(50), at(99), tally.failures, tally.next);
    Ok(())
}

async fn loaded(door: &Door, load: &Load, from: u64, time: Duration) -> Tally {
    let next = Arc::new(AtomicU64::new(from));
    let start = Instant::now();
    let until = start + time;
    let mut tasks = JoinSet::new();
    for _ in 0..load.clients {
        let (door, next, known) = (door.clone(), Arc::clone(&next), load.known);
        tasks.spawn(async move {
            let mut tally = Tally::default();
            while Instant::now() < until {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let asked = Instant::now();
                if succeeded(&door, known.map_or(number, |known| number % known.max(1))).await {
                    tally.latencies.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
                } else {
                    tally.failures += 1;
                }
            }
            tally
        });
    }
    let mut all = Tally::default();
    for tally in tasks.join_all().await {
        all.latencies.extend(tally.latencies);
        all.failures += tally.failures;
    }
    all.elapsed = start.elapsed();
    all.latencies.sort_unstable();
    all.next = next.load(Ordering::Relaxed);
    all
}

async fn succeeded(door: &Door, number: u64) -> bool {
    let account = FIRST_ACCOUNT + number.wrapping_mul(7_919) % ACCOUNTS;
    let key = (KEYS_FROM + mixed(number) % (8 * KEYS_FROM)).to_string();
    let command = Transfer {
        request_id: format!("bench-{key}"),
        key,
        account: i64::try_from(account).unwrap_or_default(),
        amount: AMOUNT,
    };
    let submission = Submission { key: Some(command.under()), command, wait: Duration::from_secs(5) };
    matches!(door.submit(submission).await, Ok(Answer::Done(done)) if done.outcome.code == 200)
}

/// The finaliser of SplitMix64: spreads a counter over all bits.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
