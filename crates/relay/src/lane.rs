//! How fast one channel may be used just now: its rate, a pause it was told to keep, and its circuit. Pure
//! arithmetic in memory; a restart forgets it, and the first answer teaches it again. Each channel has its
//! own, so that one that fails delays no other.

use std::time::Duration;

use kernel::{Random, Time};

use crate::channel::{Outcome, Pace, Reach};
use crate::schedule;

/// Rest of a channel whose settings are wrong: they change with a restart, which forgets the rest.
const MISCONFIGURED: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(crate) struct Lane {
    pace: Pace,
    /// Time up to which the rate is used up (the "theoretical arrival" of a leaky bucket).
    spent_until: Time,
    paused_until: Time,
    failures: u32,
}

impl Lane {
    pub(crate) const fn new(pace: Pace) -> Self {
        let never = Time::from_micros(i64::MIN);
        Self { pace, spent_until: never, paused_until: never, failures: 0 }
    }

    /// How many messages may be sent at `now`.
    pub(crate) fn permits(&self, now: Time) -> u32 {
        if now < self.paused_until {
            return 0;
        }
        let parallel = self.pace.parallel.max(1);
        // With an open circuit one message finds out whether the other side is back.
        let parallel = if self.failures >= schedule::CIRCUIT_AFTER { 1 } else { parallel };
        let spent = self.spent_until.since(now).as_micros();
        let Some(used) = spent.checked_div(self.pace.every.as_micros()) else { return parallel };
        let used = u32::try_from(used).unwrap_or(u32::MAX)
            + u32::from(!spent.is_multiple_of(self.pace.every.as_micros()));
        self.pace.burst.max(1).saturating_sub(used).min(parallel)
    }

    /// When a message may be sent next.
    pub(crate) fn opens_at(&self, now: Time) -> Time {
        let rest = self.pace.every * (self.pace.burst.max(1) - 1);
        now.max(self.paused_until).max(self.spent_until.minus(rest))
    }

    /// Counts a message that is about to be sent.
    pub(crate) fn spend(&mut self, now: Time) {
        self.spent_until = self.spent_until.max(now).plus(self.pace.every);
    }

    /// Learns from an end.
    pub(crate) fn learn(&mut self, outcome: &Outcome, now: Time, random: &dyn Random) {
        let pause = match outcome {
            Outcome::Delivered { .. } | Outcome::Refused { reach: Reach::Message, .. } => {
                self.failures = 0;
                None
            }
            Outcome::Refused { reach: Reach::Channel, .. } => Some(MISCONFIGURED),
            Outcome::Retry { after: Some(after), .. } => Some((*after).min(schedule::AFTER_MAX)),
            Outcome::Retry { after: None, .. } | Outcome::Uncertain { .. } => {
                self.failures = self.failures.saturating_add(1);
                schedule::pause(self.failures, random)
            }
        };
        if let Some(pause) = pause {
            self.paused_until = self.paused_until.max(now.plus(pause));
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::CountingRandom;

    use super::*;

    fn lane(parallel: u32, burst: u32) -> Lane {
        Lane::new(Pace { parallel, burst, every: Duration::from_secs(1) })
    }

    #[test]
    fn a_burst_passes_and_then_one_a_second() {
        let mut lane = lane(9, 3);
        let start = Time::from_seconds(1_000);
        assert_eq!(lane.permits(start), 3);
        (0..3).for_each(|_| lane.spend(start));
        assert_eq!(lane.permits(start), 0);
        assert_eq!(lane.opens_at(start), Time::from_seconds(1_001));
        assert_eq!(lane.permits(Time::from_seconds(1_001)), 1);
        lane.spend(Time::from_seconds(1_001));
        assert_eq!(lane.permits(Time::from_seconds(1_001)), 0);
        assert_eq!(lane.permits(Time::from_seconds(1_099)), 3);
    }

    #[test]
    fn without_a_rate_only_the_parallel_limit_counts() {
        let lane = Lane::new(Pace { parallel: 16, burst: 1, every: Duration::ZERO });
        assert_eq!(lane.permits(Time::from_seconds(0)), 16);
    }

    #[test]
    fn a_told_pause_is_kept_up_to_its_cap() {
        let mut lane = lane(1, 1);
        let now = Time::from_seconds(0);
        let day = Outcome::Retry { cause: String::new(), after: Some(Duration::from_secs(86_400)) };
        lane.learn(&day, now, &CountingRandom::default());
        assert_eq!(lane.permits(Time::from_seconds(3_599)), 0);
        assert_eq!(lane.opens_at(now), Time::from_seconds(3_600));
        assert_eq!(lane.permits(Time::from_seconds(3_600)), 1);
    }

    #[test]
    fn an_open_circuit_lets_one_message_find_out() {
        let mut lane = Lane::new(Pace { parallel: 16, burst: 16, every: Duration::ZERO });
        let now = Time::from_seconds(0);
        let lost = Outcome::Retry { cause: String::new(), after: None };
        (0..schedule::CIRCUIT_AFTER).for_each(|_| lane.learn(&lost, now, &CountingRandom::default()));
        assert_eq!(lane.permits(now), 0);
        assert_eq!(lane.permits(lane.opens_at(now)), 1);
        let fine = Outcome::Delivered { receipt: String::new() };
        lane.learn(&fine, lane.opens_at(now), &CountingRandom::default());
        assert_eq!(lane.permits(lane.opens_at(now)), 16);
    }
}
