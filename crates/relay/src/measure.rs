//! The relay's numbers: `relay_deliveries_total{channel,outcome}`, `relay_oldest_pending_seconds{channel}`,
//! `relay_waiting{channel}`, `relay_held{channel,state}`. Not here: how they are exported.

use std::collections::BTreeMap;

use door::{Door, Failure};
use kernel::Time;
use store::{Error, Query};

use crate::message::State;

/// What waits and what is held, by destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// Rows not finished, and since when the oldest of them waits.
    pub waiting: BTreeMap<String, Waiting>,
    /// Rows held for a person, by destination and state.
    pub held: BTreeMap<(String, String), i64>,
}

/// Rows of one destination that are not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How many.
    pub count: i64,
    /// When the oldest was written.
    pub oldest: Time,
}

const WAITING: &str = "select destination, count(*), min(created_at)
from outbox_deliveries
where status in ('pending', 'sending')
group by destination";
const HELD: &str = "select destination, status, count(*)
from outbox_deliveries
where status in ('refused', 'uncertain', 'dead')
group by destination, status";

impl Measure {
    /// Reads the tables and sets the gauges, also those of `destinations` that have nothing.
    ///
    /// # Errors
    /// [`Failure::Store`] when they can't be read.
    pub async fn take(door: &Door, now: Time, destinations: &[String]) -> Result<Self, Failure> {
        let queries = vec![
            Query::new("relay.waiting", WAITING, Vec::new()),
            Query::new("relay.held", HELD, Vec::new()),
        ];
        let mut rows = door.store().queries(queries).await?.into_iter();
        let mut measure = Self::default();
        for row in rows.next().unwrap_or_default() {
            let waiting = Waiting { count: row.int(1)?, oldest: row.time(2)? };
            measure.waiting.insert(row.text(0)?.to_owned(), waiting);
        }
        for row in rows.next().unwrap_or_default() {
            measure.held.insert(held_key(&row)?, row.int(2)?);
        }
        measure.set(now, destinations);
        Ok(measure)
    }

    /// Rows that wait for destinations other than these: nobody will send them.
    #[must_use]
    pub fn unconfigured(&self, destinations: &[String]) -> i64 {
        let foreign = self.waiting.iter().filter(|(name, _)| !destinations.contains(name));
        foreign.map(|(_, waiting)| waiting.count).sum()
    }

    fn set(&self, now: Time, destinations: &[String]) {
        let idle = destinations.iter().filter(|name| !self.waiting.contains_key(*name));
        for channel in idle {
            waits(channel, Waiting { count: 0, oldest: now }, now);
        }
        for (channel, waiting) in &self.waiting {
            waits(channel, *waiting, now);
        }
        for channel in destinations {
            for state in State::HELD.map(State::as_str) {
                // A gauge keeps its value: what is no longer held must be said.
                if !self.held.contains_key(&(channel.clone(), state.to_owned())) {
                    holds(channel, state, 0);
                }
            }
        }
        for ((channel, state), count) in &self.held {
            holds(channel, state, *count);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floating point; these are for eyes")]
fn waits(channel: &str, waiting: Waiting, now: Time) {
    metrics::gauge!("relay_waiting", "channel" => channel.to_owned()).set(waiting.count as f64);
    metrics::gauge!("relay_oldest_pending_seconds", "channel" => channel.to_owned())
        .set(now.since(waiting.oldest).as_secs_f64());
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floating point; these are for eyes")]
fn holds(channel: &str, state: &str, count: i64) {
    metrics::gauge!("relay_held", "channel" => channel.to_owned(), "state" => state.to_owned())
        .set(count as f64);
}

fn held_key(row: &store::Row) -> Result<(String, String), Error> {
    Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
}

/// Counts an end.
pub(crate) fn count(channel: &str, outcome: &'static str) {
    metrics::counter!("relay_deliveries_total", "channel" => channel.to_owned(), "outcome" => outcome)
        .increment(1);
}
