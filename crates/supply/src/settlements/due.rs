//! Settlements that the scheduler has something to do for, of all tenants, the longest waiting first: found by
//! state, never by a mark of how far it came; the commands judge the time again.

use std::time::Duration;

use kernel::Time;
use store::{Query, values};

use crate::house::House;

const START: &str =
    "select t.tenant_id, t.id from supply_settlements t join supply_suppliers s on s.user_id = t.user_id
where t.status = 'pending' and t.created_at <= $1 and s.status = 'active' and s.open_risk_cases = 0
order by t.created_at, t.id limit $2";

/// What was told already is left out: its alert stands in the audit.
const STUCK: &str = "select t.tenant_id, t.id from supply_settlements t
where t.status = 'processing' and t.processing_at <= $1 and not exists (
  select 1 from audit_events a where a.tenant_id > 1 and a.tenant_id = t.tenant_id
    and a.object_type = 'supply_settlement' and a.object_id = cast(t.id as text)
    and a.event_name = 'supply.settlement.payout.stuck' and a.result_code = 'OK')
order by t.processing_at, t.id limit $2";

/// Business days that a payout may take (section 12, row 15).
const STUCK_AFTER: u32 = 3;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Withdrawals whose review is over: for [`super::Start`], fact `payout_start`. Read by
/// [`crate::platform::Due`].
#[must_use]
pub fn to_start(now: Time, limit: i64, house: &House) -> Query {
    Query::new("due.payout_start", START, values![now.minus(house.policy.withdraw_review), limit])
}

/// Payouts that have been on their way for more than three business days: for [`super::Stuck`], fact
/// `payout_stuck`. Read by [`crate::platform::Due`].
#[must_use]
pub fn stuck(now: Time, limit: i64) -> Query {
    Query::new("due.payout_stuck", STUCK, values![stuck_before(now), limit])
}

/// The same time of day three business days before: Mondays to Fridays in Shanghai, without holidays, which no
/// calendar of ours knows.
pub(super) fn stuck_before(now: Time) -> Time {
    let mut instant = now;
    let mut left = STUCK_AFTER;
    while left > 0 {
        instant = instant.minus(DAY);
        left -= u32::from(is_business_day(instant));
    }
    instant
}

fn is_business_day(instant: Time) -> bool {
    // 1970-01-01 was a Thursday.
    let days = instant.shanghai_midnight().plus(Duration::from_secs(8 * 3600)).seconds() / 86_400;
    (1..=5).contains(&(days + 4).rem_euclid(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        Time::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn weekends_do_not_count() {
        // The 27th of March 2026 was a Friday.
        for (now, before) in [
            ("2026-03-27T10:00:00+08:00", "2026-03-24T10:00:00+08:00"),
            ("2026-03-30T10:00:00+08:00", "2026-03-25T10:00:00+08:00"),
            ("2026-04-01T10:00:00+08:00", "2026-03-27T10:00:00+08:00"),
            ("2026-03-29T10:00:00+08:00", "2026-03-25T10:00:00+08:00"),
            // Saturday in Shanghai, still Friday in UTC.
            ("2026-03-28T01:00:00+08:00", "2026-03-25T01:00:00+08:00"),
        ] {
            assert_eq!(stuck_before(time(now)), time(before), "{now}");
        }
    }
}
