//! Keeps what this server counted of the supply side's requests (section 19), at least each minute, and brings the
//! metrics that stand in the audit into `/metrics`. Not here: what is counted (`web`), and what it means
//! ([`supply::slo`]).

use std::sync::Arc;
use std::time::Duration;

use kernel::Time;
use store::Error;
use supply::slo::{Metric, Period};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use web::supply::Supply;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// What does not press is kept so often (section 16.2).
const KEPT_EVERY: Duration = Duration::from_secs(60);
/// The audit is read up to so long ago: who began earlier has committed by then.
const SETTLED: Duration = Duration::from_secs(10);
/// Metrics that stand in the audit as events, some of them as parts of requests.
const AUDITED: [&str; 5] = ["m004", "m005", "m011", "m013", "m015"];
/// Suppliers are counted so often; they are few and stay.
const SUPPLIERS_EVERY: Duration = Duration::from_secs(3600);

/// The running keeper.
#[derive(Debug)]
pub struct Keeper {
    stopping: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Keeper {
    /// Begins now: what was before is in the database.
    #[must_use]
    pub fn start(supply: Arc<Supply>) -> Self {
        let (stopping, stop) = watch::channel(());
        Self { stopping, task: tokio::spawn(run(supply, stop)) }
    }

    /// Keeps what is left, and ends.
    pub async fn stop(self) {
        drop(self.stopping);
        if self.task.await.is_err() {
            tracing::error!("keeper_stopped_early");
        }
    }
}

async fn run(supply: Arc<Supply>, mut stop: watch::Receiver<()>) {
    let started = supply.clock.now();
    let (mut kept, mut read, mut counted) = (started, started.minus(SETTLED), None);
    loop {
        let stopping = tokio::select! {
            _ = stop.changed() => true,
            () = tokio::time::sleep(EVERY) => false,
        };
        let now = supply.clock.now();
        if stopping || supply.tally.is_pressing() || now.since(kept) >= KEPT_EVERY {
            if let Err(failure) = supply.tally.keep(&supply.door).await {
                tracing::warn!(%failure, "counts_not_kept");
            }
            kept = now;
        }
        if stopping || supply.door.store().is_closed() {
            return;
        }
        let period = Period { from: read, to: now.minus(SETTLED) };
        if period.to > period.from {
            match audited(&supply, period).await {
                Ok(()) => read = period.to,
                Err(cause) => tracing::warn!(%cause, "metrics_not_read"),
            }
        }
        if counted.is_none_or(|at| now.since(at) >= SUPPLIERS_EVERY) && suppliers(&supply, now).await.is_ok()
        {
            counted = Some(now);
        }
    }
}

/// Counts the events of a period. Every server counts all of them, so that of several the largest is right.
async fn audited(supply: &Supply, period: Period) -> Result<(), Error> {
    let metrics = AUDITED.into_iter().filter_map(Metric::of);
    let mut readings = Vec::new();
    for metric in metrics {
        readings.push((metric.slug, metric.read(supply.door.store(), period).await?));
    }
    let unexplained = supply::slo::unexplained(supply.door.store(), period).await?;
    // All or none: a period that could not be read whole is read again.
    metrics::counter!("onceseal_supply_batch_items_unexplained_total").increment(unexplained);
    for (slug, reading) in readings {
        metrics::counter!("onceseal_supply_gate_events_total", "metric" => slug).increment(reading.numerator);
        if let Some(whole) = reading.denominator {
            metrics::counter!("onceseal_supply_gate_requests_total", "metric" => slug).increment(whole);
        }
    }
    Ok(())
}

async fn suppliers(supply: &Supply, now: Time) -> Result<(), Error> {
    let Some(metric) = Metric::of("m012") else { return Ok(()) };
    let reading = metric.read(supply.door.store(), Period { from: now, to: now }).await?;
    let count = u32::try_from(reading.numerator).unwrap_or(u32::MAX);
    metrics::gauge!("onceseal_supply_suppliers_onboarded").set(count);
    Ok(())
}
