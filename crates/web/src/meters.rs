//! Counting requests: by route and status, with a histogram of their time. Routes and statuses are fixed
//! lists, so a client can't make new series, and the meters are looked up once.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram, counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusRecorder};
use serde_json::Value as Json;

use crate::edge::Edge;
use crate::supply::count::SECONDS;

/// All routes as they are counted; what matches none of them is `unmatched`.
const ROUTES: [&str; 32] = [
    "unmatched",
    "/webhooks/{source}",
    "/d/{file}",
    "/.well-known/onceseal/keys.json",
    "/healthz",
    "/readyz",
    "/metrics",
    "/actuator/health",
    "/actuator/health/live",
    "/actuator/health/ready",
    "/api/v1/certify/events",
    "/api/v1/certify/events/{event}",
    "/api/v1/certify/events/{event}/retry",
    "/api/v1/certify/events/{event}/inspect",
    "/api/v1/certify/events/{event}/erase",
    "/api/v1/certify/status",
    "/api/v1/certify/reconcile",
    "/api/v1/certify/check",
    "/api/v1/certify/export",
    "/api/v1/certify/export/rebuild",
    "/api/v1/certify/import",
    "/api/v1/certify/keys/rotate",
    "/api/v1/certify/backup",
    "/api/v1/certify/tokens",
    "/api/v1/certify/tokens/{name}/revoke",
    "/api/v1/certify/platform-admins",
    "/api/v1/certify/platform-tokens",
    "/api/v1/certify/ledger",
    "/api/v1/certify/slo",
    "/api/v1/certify/announcements",
    "/api/v1/certify/announcements/{id}/redrive",
    "/api/v1/certify/announcements/{id}/settle",
];

const STATUSES: [(u16, &str); 15] = [
    (0, "other"),
    (200, "200"),
    (202, "202"),
    (304, "304"),
    (400, "400"),
    (401, "401"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (409, "409"),
    (410, "410"),
    (413, "413"),
    (415, "415"),
    (500, "500"),
    (503, "503"),
];

/// Upper ends of the histogram's buckets, in seconds. The last ones are the limits that senders set.
const BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 5.0];

/// Those of the supply side's buttons: the limits of their promises are among them, so that a rule can ask how many
/// were slower. In seconds what [`BOUNDS_MS`](supply::slo::tally::BOUNDS_MS) is in milliseconds.
const SUPPLY_BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 5.0];

/// The recorder for `metrics::set_global_recorder`; its handle is what `/metrics` prints.
///
/// # Errors
/// Never with the buckets above; the exporter's signature has it.
pub fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let supply = Matcher::Full(SECONDS.to_owned());
    let builder = PrometheusBuilder::new().set_buckets(&BUCKETS)?;
    Ok(builder.set_buckets_for_metric(supply, &SUPPLY_BUCKETS)?.build_recorder())
}

/// The meters of all routes.
pub(crate) struct Meters(Vec<Meter>);

struct Meter {
    route: &'static str,
    seconds: OnceLock<Histogram>,
    statuses: [OnceLock<Counter>; STATUSES.len()],
}

impl Meters {
    pub(crate) fn new() -> Self {
        let meter = |route| Meter {
            route,
            seconds: OnceLock::new(),
            statuses: [const { OnceLock::new() }; STATUSES.len()],
        };
        Self(ROUTES.into_iter().map(meter).collect())
    }

    /// Counts one answered request.
    pub(crate) fn count(&self, route: usize, status: u16, took: Duration) {
        let Some(meter) = self.0.get(route) else { return };
        let at = STATUSES.iter().position(|(known, _)| *known == status).unwrap_or(0);
        if let (Some(slot), Some((_, name))) = (meter.statuses.get(at), STATUSES.get(at)) {
            slot.get_or_init(|| counter!("http_requests_total", "route" => meter.route, "status" => *name))
                .increment(1);
        }
        meter
            .seconds
            .get_or_init(|| histogram!("http_request_seconds", "route" => meter.route))
            .record(took.as_secs_f64());
    }
}

/// Number of a matched route.
pub(crate) fn route(matched: &str) -> usize {
    ROUTES.iter().position(|route| *route == matched).unwrap_or(0)
}

/// Brings the gauges up to date; they are only as fresh as somebody reads them.
pub(crate) async fn refresh(edge: &Edge) {
    let store = edge.visa.door().store();
    gauge!("store_log_bytes").set(exact(store.log_bytes()));
    gauge!("store_waiting_writes").set(exact(store.waiting() as u64));
    if let Some(bytes) = resident_bytes() {
        gauge!("process_resident_memory_bytes").set(exact(bytes));
    }
    match edge.visa.standing().await {
        Ok(standing) => {
            for (kind, count, age) in [
                ("events", "certify_open_events", "certify_oldest_open_event_seconds"),
                ("announcements", "certify_open_announcements", "certify_oldest_open_announcement_seconds"),
            ] {
                set_groups(standing.get(kind), count, age);
            }
        }
        Err(error) => tracing::warn!(%error, "gauges_not_refreshed"),
    }
}

/// States that a group may have; those without members are set to nothing, so that no old value stays.
const STATES: [&str; 8] =
    ["processing", "failed", "orphaned", "pending", "sending", "refused", "uncertain", "dead"];

fn set_groups(groups: Option<&Json>, count: &'static str, age: &'static str) {
    let number = |state: &str, member: &str| {
        groups.and_then(|groups| groups.get(state)?.get(member)?.as_u64()).unwrap_or(0)
    };
    for state in STATES {
        gauge!(count, "status" => state).set(exact(number(state, "count")));
    }
    let oldest = STATES.iter().map(|state| number(state, "oldest_age_s")).max().unwrap_or(0);
    gauge!(age).set(exact(oldest));
}

/// A count as a gauge's value: beyond 2^53 it saturates nowhere near anything that is counted here.
#[expect(clippy::cast_precision_loss, reason = "counts and bytes stay far below 2^53")]
const fn exact(count: u64) -> f64 {
    count as f64
}

/// Memory of this program that is in RAM; `None` where the system doesn't say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_classed_alike_in_metrics_and_in_kept_rows() {
        let kept = ::supply::slo::tally::BOUNDS_MS.map(Duration::from_millis);
        assert_eq!(SUPPLY_BUCKETS.map(Duration::from_secs_f64), kept);
    }
}
