//! Many seeds on many threads, each thread with a database of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::market;
use crate::run::{Report, run};
use crate::stage::Stage;
use crate::tally::{self, Tally};

/// Between two lines that say how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(15);

/// Which seeds, and when to stop.
#[derive(Clone, Copy, Debug)]
pub struct Hunt {
    /// First seed.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Of which kind.
    pub kind: Kind,
    /// Threads.
    pub threads: usize,
    /// Stop at the first seed that fails.
    pub first_only: bool,
    /// Begin no further seed after this time.
    pub within: Option<Duration>,
}

/// Which kind of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As they come.
    All,
    /// Runs with the supply side, and no others.
    Supply,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Caught {
    /// All that was done.
    pub tally: Tally,
    /// Seeds that failed, in the order of their numbers.
    pub failed: Vec<Report>,
}

impl Hunt {
    /// Runs the seeds; `told` is called now and then with what was done so far.
    ///
    /// # Errors
    /// The schema can't be made.
    pub fn run(&self, told: impl Fn(&Tally, usize, Duration)) -> anyhow::Result<Caught> {
        tally::listen();
        let began = Instant::now();
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut caught = Caught::default();
        std::thread::scope(|scope| {
            let (sender, reports) = channel();
            let workers: Vec<_> = (0..self.threads.max(1))
                .map(|_| {
                    let (sender, next, stop) = (sender.clone(), &next, &stop);
                    scope.spawn(move || self.work(next, stop, &sender, began))
                })
                .collect();
            drop(sender);
            let mut last = Instant::now();
            for (tally, report) in reports {
                caught.tally.add(&tally);
                caught.failed.extend(report);
                if self.first_only && !caught.failed.is_empty() {
                    stop.store(true, Ordering::Relaxed);
                }
                if last.elapsed() >= TOLD_EVERY {
                    last = Instant::now();
                    told(&caught.tally, caught.failed.len(), began.elapsed());
                }
            }
            for worker in workers {
                worker.join().map_err(|_| anyhow::anyhow!("a thread of the simulation panicked"))??;
            }
            anyhow::Ok(())
        })?;
        caught.failed.sort_by_key(|report| report.seed);
        Ok(caught)
    }

    fn work(
        &self,
        next: &AtomicU64,
        stop: &AtomicBool,
        sender: &Sender<(Tally, Option<Report>)>,
        began: Instant,
    ) -> anyhow::Result<()> {
        let stage = Stage::new()?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let over = self.within.is_some_and(|within| began.elapsed() >= within);
            if index >= self.count || over || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let seed = match self.kind {
                Kind::All => self.first + index,
                Kind::Supply => market::seed(self.first, index),
            };
            let report = run(&stage, seed, false);
            let mut tally = report.tally.clone();
            tally.seeds = 1;
            tally.take_branches();
            // The receiver lives as long as all workers.
            let _ = sender.send((tally, (!report.findings.is_empty()).then_some(report)));
        }
    }
}
