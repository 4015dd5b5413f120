//! A circuit breaker: after some failures in a row nothing is asked for a while, then one question finds out
//! whether the other side is back. In memory; tokio's clock. Not here: what counts as a failure ([`crate::wire`]).

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// When a circuit opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it.
    pub after: u32,
    /// How long nothing is asked.
    pub rest: Duration,
}

impl Default for BreakerSettings {
    /// 5 failures, 10 s: a supplier who tries again after reading the message finds it half open.
    fn default() -> Self {
        Self { after: 5, rest: Duration::from_secs(10) }
    }
}

#[derive(Debug)]
struct State {
    failures: u32,
    closed_from: Option<Instant>,
    probing: bool,
}

#[derive(Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
    state: Mutex<State>,
}

impl Breaker {
    pub(crate) const fn new(settings: BreakerSettings) -> Self {
        let state = State { failures: 0, closed_from: None, probing: false };
        Self { settings, state: Mutex::new(state) }
    }

    /// Leave to ask; `None` while the circuit is open, or another is finding out.
    pub(crate) fn enter(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        let probe = state.failures >= self.settings.after.max(1);
        if probe {
            if state.probing || state.closed_from.is_some_and(|from| Instant::now() < from) {
                return None;
            }
            state.probing = true;
        }
        drop(state);
        Some(Turn { breaker: self, probe })
    }
}

/// Leave to ask once. Dropped without an end (the asker went away), it teaches nothing.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    breaker: &'a Breaker,
    probe: bool,
}

impl Turn<'_> {
    /// The other side answered, whatever it said.
    pub(crate) fn reached(self) {
        self.breaker.state.lock().failures = 0;
    }

    /// The other side did not answer, or is broken.
    pub(crate) fn failed(self) {
        let mut state = self.breaker.state.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= self.breaker.settings.after.max(1) {
            state.closed_from = Some(Instant::now() + self.breaker.settings.rest);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.probe {
            self.breaker.state.lock().probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: BreakerSettings = BreakerSettings { after: 2, rest: Duration::from_secs(10) };

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_lets_one_find_out() {
        let breaker = Breaker::new(SETTINGS);
        breaker.enter().unwrap().failed();
        breaker.enter().unwrap().reached();
        breaker.enter().unwrap().failed();
        breaker.enter().unwrap().failed();
        assert!(breaker.enter().is_none());
        tokio::time::advance(SETTINGS.rest).await;
        let probe = breaker.enter().unwrap();
        assert!(breaker.enter().is_none());
        probe.failed();
        assert!(breaker.enter().is_none());
        tokio::time::advance(SETTINGS.rest).await;
        breaker.enter().unwrap().reached();
        assert!(breaker.enter().is_some() && breaker.enter().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_goes_away_leaves_its_place_to_the_next() {
        let breaker = Breaker::new(SETTINGS);
        breaker.enter().unwrap().failed();
        breaker.enter().unwrap().failed();
        tokio::time::advance(SETTINGS.rest).await;
        drop(breaker.enter().unwrap());
        breaker.enter().unwrap().reached();
        assert!(breaker.enter().is_some());
    }
}
