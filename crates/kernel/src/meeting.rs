//! The one table of answers: what an arrival meets under its key.
//!
//! AuditVisa specification 5.3 to 5.6 and supply specification 2.3, in one function for both. The
//! caller holds the key's lock and has read the record after taking it.

use std::time::Duration;

use crate::claim::{Lease, RETRY_SOONEST};
use crate::digest::Fingerprint;
use crate::record::{Outcome, Record, Standing};
use crate::time::Time;

/// What to do with an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Nothing stands under the key: run.
    First,
    /// Something stands there that may be replaced: run as the next attempt.
    TakeOver {
        /// Row to take over.
        id: i64,
        /// The lapsed lease, if the last holder had one: the take-over must still find it.
        lapsed: Option<Lease>,
        /// Attempts before this one.
        attempts: i64,
    },
    /// A formal result stands: give it again.
    Replay {
        /// Row of the record.
        id: i64,
        /// The result.
        outcome: Outcome,
        /// Whether this arrival's fingerprint is the record's.
        same: bool,
    },
    /// Somebody is at work, or another payload holds the key.
    Running {
        /// Row of the record.
        id: i64,
        /// Whether this arrival's fingerprint is the record's.
        same: bool,
        /// When to ask again.
        retry_after: Duration,
    },
    /// The record is orphaned: recover it, then look again.
    Recover {
        /// Row of the record.
        id: i64,
    },
}

/// What a failed attempt means for another payload under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Nothing formal came of it, so another payload may take the key: a sender of webhooks never chooses
    /// anew.
    Free,
    /// The key stays its payload's: a client that means another one uses another key (supply specification,
    /// section 6, FI-002).
    Held,
}

/// Decides what an arrival with `fingerprint` meets.
#[must_use]
pub fn meet(record: Option<Record>, fingerprint: &Fingerprint, binding: Binding, now: Time) -> Meeting {
    let Some(Record { id, fingerprint: kept, attempt, standing, .. }) = record else {
        return Meeting::First;
    };
    // A record from elsewhere has no fingerprint of ours; nothing can differ from it.
    let same = kept == *fingerprint || kept == Fingerprint::UNKNOWN;
    match standing {
        // A valid lease outranks everything else, expiry too.
        Standing::Running(lease) if lease.holds(now) => {
            Meeting::Running { id, same, retry_after: lease.retry_after(now) }
        }
        // Another payload never takes over what one payload began.
        Standing::Running(lease) if !same => {
            Meeting::Running { id, same, retry_after: lease.retry_after(now) }
        }
        Standing::Running(lease) => Meeting::TakeOver { id, lapsed: Some(lease), attempts: attempt },
        ended if ended.has_ended(now) => Meeting::TakeOver { id, lapsed: None, attempts: 0 },
        Standing::Finished { outcome, .. } => Meeting::Replay { id, outcome, same },
        Standing::Failed { .. } if !same && binding == Binding::Held => {
            Meeting::Running { id, same, retry_after: RETRY_SOONEST }
        }
        Standing::Failed { .. } => Meeting::TakeOver { id, lapsed: None, attempts: attempt },
        Standing::Orphaned => Meeting::Recover { id },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Claim;

    const NOW: Time = Time::from_seconds(1000);

    fn lease(until: i64) -> Lease {
        Lease { claim: Claim { token: [7; 16], attempt: 3 }, until: Time::from_seconds(until) }
    }

    fn finished(expires_at: Option<i64>) -> Standing {
        Standing::Finished { outcome: outcome(), expires_at: expires_at.map(Time::from_seconds) }
    }

    fn failed(expires_at: Option<i64>) -> Standing {
        Standing::Failed { expires_at: expires_at.map(Time::from_seconds) }
    }

    fn outcome() -> Outcome {
        Outcome { code: 200, body: "{}".into() }
    }

    fn met(standing: Standing, same: bool) -> Meeting {
        bound(standing, same, Binding::Free)
    }

    fn bound(standing: Standing, same: bool, binding: Binding) -> Meeting {
        let record =
            Record { id: 9, fingerprint: Fingerprint::of(b"a"), attempt: 3, generation: 1, standing };
        meet(Some(record), &Fingerprint::of(if same { b"a" } else { b"b" }), binding, NOW)
    }

    #[test]
    fn an_unknown_key_runs() {
        assert_eq!(meet(None, &Fingerprint::of(b"a"), Binding::Free, NOW), Meeting::First);
    }

    #[test]
    fn nothing_differs_from_a_record_that_came_from_elsewhere() {
        let record = Record {
            id: 9,
            fingerprint: Fingerprint::UNKNOWN,
            attempt: 1,
            generation: 1,
            standing: finished(None),
        };
        let met = meet(Some(record), &Fingerprint::of(b"a"), Binding::Free, NOW);
        assert_eq!(met, Meeting::Replay { id: 9, outcome: outcome(), same: true });
    }

    #[test]
    fn every_standing_has_its_answer() {
        let ms = Duration::from_millis;
        let take = |lapsed, attempts| Meeting::TakeOver { id: 9, lapsed, attempts };
        let replay = |same| Meeting::Replay { id: 9, outcome: outcome(), same };
        let running = |same, after| Meeting::Running { id: 9, same, retry_after: after };
        let table = [
            (Standing::Running(lease(1001)), true, running(true, ms(1000))),
            (Standing::Running(lease(1001)), false, running(false, ms(1000))),
            (Standing::Running(lease(1999)), true, running(true, ms(2000))),
            (Standing::Running(lease(1000)), true, take(Some(lease(1000)), 3)),
            (Standing::Running(lease(1000)), false, running(false, ms(200))),
            (finished(None), true, replay(true)),
            (finished(None), false, replay(false)),
            (finished(Some(1001)), true, replay(true)),
            (finished(Some(1000)), true, take(None, 0)),
            (finished(Some(1000)), false, take(None, 0)),
            (failed(None), true, take(None, 3)),
            (failed(None), false, take(None, 3)),
            (failed(Some(1001)), true, take(None, 3)),
            (failed(Some(1000)), true, take(None, 0)),
            (failed(Some(1000)), false, take(None, 0)),
            (Standing::Orphaned, true, Meeting::Recover { id: 9 }),
            (Standing::Orphaned, false, Meeting::Recover { id: 9 }),
        ];
        for (standing, same, expected) in table {
            assert_eq!(met(standing.clone(), same), expected, "{standing:?} same={same}");
        }
    }

    #[test]
    fn a_failure_that_binds_its_key_is_gone_on_with_by_its_payload_only() {
        let again = Meeting::TakeOver { id: 9, lapsed: None, attempts: 3 };
        assert_eq!(bound(failed(Some(1001)), true, Binding::Held), again);
        let refused = Meeting::Running { id: 9, same: false, retry_after: RETRY_SOONEST };
        assert_eq!(bound(failed(Some(1001)), false, Binding::Held), refused);
        // Past its end a key is anybody's, however it binds.
        let anew = Meeting::TakeOver { id: 9, lapsed: None, attempts: 0 };
        for ended in [finished(Some(1000)), failed(Some(1000))] {
            assert_eq!(bound(ended.clone(), false, Binding::Held), anew, "{ended:?}");
        }
    }
}
