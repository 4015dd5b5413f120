//! When a failed send is tried again: 1, 2, 4, 8, 16 s, then minutes up to hours, each moved by chance so
//! that what failed together does not come back together. Not here: reading the clock.

use std::time::Duration;

use kernel::Random;

/// Attempts of one delivery before it is dead: two and a half days, so that a weekend's outage buries
/// nothing.
pub const ATTEMPTS_MAX: i64 = 24;
/// Longest time the other side may ask for; more is taken as this.
pub const AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// Failures in a row that open a channel's circuit. Fewer would be chance.
pub const CIRCUIT_AFTER: u32 = 4;
/// Longest time between two tries of a channel whose circuit is open: what a backlog waits at most after
/// the other side is back.
pub const CIRCUIT_MAX: Duration = Duration::from_secs(60);

/// Quick tries where nothing is said (section 23, `outbox_quick_retries`): 1, 2, 4, 8, 16 s.
pub const QUICK: u32 = 5;
/// Most quick tries: a seventh would come later than the first slow one.
pub const QUICK_MAX: u32 = 6;

/// Seconds after each failed attempt behind the quick ones; the last one repeats.
const SLOW: [u64; 10] = [60, 120, 240, 480, 960, 1_920, 3_600, 7_200, 14_400, 21_600];

/// The wait after failed attempt number `attempt` (from 1), of which the first `quick` are followed by a quick try, at
/// most [`QUICK_MAX`]; moved by up to a quarter either way.
#[must_use]
pub fn wait(attempt: i64, quick: u32, random: &dyn Random) -> Duration {
    let (before, quick) = (attempt.max(1) - 1, i64::from(quick.min(QUICK_MAX)));
    let seconds = if before < quick {
        u32::try_from(before).ok().and_then(|shift| 1_u64.checked_shl(shift))
    } else {
        usize::try_from(before - quick).ok().and_then(|at| SLOW.get(at).copied()).or(SLOW.last().copied())
    };
    jittered(Duration::from_secs(seconds.unwrap_or(1)), random)
}

/// The pause of a channel after `failures` failures in a row; `None` while its circuit is closed.
#[must_use]
pub fn pause(failures: u32, random: &dyn Random) -> Option<Duration> {
    let over = failures.checked_sub(CIRCUIT_AFTER)?;
    let seconds = 1_u64.checked_shl(over).unwrap_or(u64::MAX);
    // Below the cap also with its share of chance.
    Some(jittered(Duration::from_secs(seconds), random).min(CIRCUIT_MAX))
}

/// `base` moved by up to a quarter either way, in whole microseconds.
fn jittered(base: Duration, random: &dyn Random) -> Duration {
    let mut bytes = [0; 8];
    random.fill(&mut bytes);
    let share = u64::from_le_bytes(bytes) % 501;
    let micros = u64::try_from(base.as_micros()).unwrap_or(u64::MAX / 2_000);
    Duration::from_micros(micros.saturating_mul(750 + share) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u8);

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0);
            bytes[0] = self.0;
        }
    }

    #[test]
    fn gaps_grow_from_a_second_to_six_hours() {
        let middle = Fixed(250);
        let seconds: Vec<u64> = (1..=ATTEMPTS_MAX).map(|n| wait(n, QUICK, &middle).as_secs()).collect();
        assert_eq!(seconds[..7], [1, 2, 4, 8, 16, 60, 120]);
        assert!(seconds.is_sorted());
        assert_eq!(seconds.last(), Some(&21_600));
        let days = seconds[..seconds.len() - 1].iter().sum::<u64>() / 86_400;
        assert_eq!(days, 2);
    }

    #[test]
    fn so_many_tries_are_quick_and_gaps_never_shrink() {
        let middle = Fixed(250);
        let gaps = |quick| (1..=ATTEMPTS_MAX).map(|n| wait(n, quick, &middle).as_secs()).collect::<Vec<_>>();
        assert_eq!(gaps(0)[..3], [60, 120, 240]);
        assert_eq!(gaps(1)[..3], [1, 60, 120]);
        assert_eq!(gaps(QUICK_MAX)[..8], [1, 2, 4, 8, 16, 32, 60, 120]);
        assert_eq!(gaps(u32::MAX), gaps(QUICK_MAX));
        assert!((0..=QUICK_MAX).all(|quick| gaps(quick).is_sorted()));
        assert_eq!(wait(i64::MIN, QUICK, &middle), Duration::from_secs(1));
    }

    #[test]
    fn chance_moves_a_gap_by_a_quarter_at_most() {
        assert_eq!(wait(6, QUICK, &Fixed(0)), Duration::from_secs(45));
        assert!(wait(6, QUICK, &Fixed(255)) <= Duration::from_secs(75));
    }

    #[test]
    fn a_circuit_opens_after_some_failures_and_never_waits_beyond_its_cap() {
        let middle = Fixed(250);
        assert_eq!(pause(CIRCUIT_AFTER - 1, &middle), None);
        assert_eq!(pause(CIRCUIT_AFTER, &middle), Some(Duration::from_secs(1)));
        assert_eq!(pause(CIRCUIT_AFTER + 2, &middle), Some(Duration::from_secs(4)));
        assert_eq!(pause(u32::MAX, &middle), Some(CIRCUIT_MAX));
    }
}
