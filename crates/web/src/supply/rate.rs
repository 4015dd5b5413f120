//! How often an operator may call (sections 7.3, step 4; 8.1): counted per operator and minute in this process; and how
//! often a stranger's refusal is on record. Not here: protection against floods from many addresses, which is the load balancer's.

use std::collections::HashMap;
use std::time::Duration;

use kernel::Time;
use parking_lot::Mutex;
use supply::exit::Quiet;

/// Operators that are remembered without a look for those of past minutes.
const REMEMBERED: usize = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

/// So many calls a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub u32);

/// Limits and counts.
#[derive(Debug)]
pub struct Rates {
    /// Of all calls of one operator.
    pub calls: Rate,
    /// Of verifications of one operator.
    pub verify: Rate,
    counted: Mutex<Counted>,
    /// Which refusals of callers without a token were on record of late: apart from exposures, whose room they must not
    /// take.
    pub(super) strangers: Quiet,
}

/// Windows by operator.
#[derive(Debug)]
struct Counted {
    windows: HashMap<(Kind, i64), Window>,
    /// So many are looked through next: twice those that the last look left, so that a look is paid for by the calls
    /// between two, however many operators call within a minute.
    look_at: usize,
}

impl Default for Counted {
    fn default() -> Self {
        Self { windows: HashMap::new(), look_at: REMEMBERED }
    }
}

impl Counted {
    /// The window of an operator; those of past minutes go now and then.
    fn window(&mut self, whose: (Kind, i64), now: Time) -> &mut Window {
        if self.windows.len() >= self.look_at {
            self.windows.retain(|_, window| now.since(window.began) < MINUTE);
            self.look_at = REMEMBERED.max(2 * self.windows.len());
        }
        self.windows.entry(whose).or_insert(Window { began: now, calls: 0 })
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Call,
    Verify,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Time,
    calls: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Self::new(Rate(6000), Rate(10))
    }
}

impl Rates {
    /// With these limits.
    #[must_use]
    pub fn new(calls: Rate, verify: Rate) -> Self {
        Self { calls, verify, counted: Mutex::default(), strangers: Quiet::default() }
    }

    /// Counts a call.
    ///
    /// # Errors
    /// How long until the next one is taken.
    pub(crate) fn take(&self, kind: Kind, operator_id: i64, now: Time) -> Result<(), Duration> {
        let Rate(limit) = match kind {
            Kind::Call => self.calls,
            Kind::Verify => self.verify,
        };
        let mut counted = self.counted.lock();
        let window = counted.window((kind, operator_id), now);
        // A clock that was set back begins a new minute, too.
        if now.since(window.began) >= MINUTE || now < window.began {
            *window = Window { began: now, calls: 0 };
        }
        if window.calls >= limit {
            return Err(window.began.plus(MINUTE).since(now));
        }
        window.calls += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_verification_of_a_minute_waits_for_the_next() {
        let (rates, start) = (Rates::default(), Time::from_seconds(1000));
        for n in 0..10 {
            assert_eq!(rates.take(Kind::Verify, 7, start.plus(Duration::from_secs(n))), Ok(()));
        }
        assert_eq!(
            rates.take(Kind::Verify, 7, start.plus(Duration::from_secs(20))),
            Err(Duration::from_secs(40))
        );
        assert_eq!(rates.take(Kind::Verify, 8, start), Ok(()), "another operator");
        assert_eq!(rates.take(Kind::Call, 7, start), Ok(()), "another kind");
        assert_eq!(rates.take(Kind::Verify, 7, start.plus(MINUTE)), Ok(()));
    }
    #[test]
    fn operators_of_past_minutes_are_forgotten_and_those_of_this_one_never() {
        let (rates, start) = (Rates::default(), Time::from_seconds(1000));
        let crowd = i64::try_from(3 * REMEMBERED).unwrap();
        for operator in 0..crowd {
            assert_eq!(rates.take(Kind::Verify, operator, start), Ok(()));
        }
        let look_at = rates.counted.lock().look_at;
        assert!(look_at >= 3 * REMEMBERED, "{look_at}: a look at every call");
        for _ in 0..9 {
            assert_eq!(rates.take(Kind::Verify, 0, start), Ok(()));
        }
        assert!(rates.take(Kind::Verify, 0, start).is_err(), "the first of the crowd was forgotten");
        for operator in crowd..2 * crowd {
            assert_eq!(rates.take(Kind::Call, operator, start.plus(MINUTE)), Ok(()));
        }
        let left = rates.counted.lock().windows.len();
        assert!(left <= 3 * REMEMBERED, "{left} are remembered");
    }
}
