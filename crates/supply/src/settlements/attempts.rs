//! Attempts to pay a settlement out (section 5.11). The reference is the settlement's number on each, so that a
//! channel which removes repeats pays once. Not here: the call to the channel, which is the outbox consumer's.

use kernel::Time;
use store::{Write, values};

/// Counts on from the last one, as long as the payout is on its way.
const NEXT: &str = "insert into supply_payout_attempts (settlement_id, attempt, tenant_id, payout_ref, created_at)
select t.id, (select coalesce(max(p.attempt), 0) + 1 from supply_payout_attempts p where p.settlement_id = t.id),
  t.tenant_id, t.settlement_no, $1
from supply_settlements t where t.id = $2 and t.status = 'processing'";

const END: &str = "update supply_payout_attempts set result = $1, raw_code = $2, ended_at = $3
where settlement_id = $4 and result in ('pending', 'unknown')
  and attempt = (select max(p.attempt) from supply_payout_attempts p where p.settlement_id = $5)";

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Result {
    /// Paid.
    Succeeded,
    /// Not paid, and never will be.
    Failed,
    /// The answer was lost: it may have been paid. It is asked about, or sent again under the same reference.
    Unknown,
}

impl Result {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// One more attempt of a settlement that is processing by then.
#[must_use]
pub fn next(settlement_id: i64, at: Time) -> Write {
    Write::one("payout.attempt", NEXT, values![at, settlement_id])
}

/// The end of the last attempt, if it has none for certain yet. `raw_code` is the channel's, redacted, at most 64
/// characters.
#[must_use]
pub fn ended(settlement_id: i64, result: Result, raw_code: Option<&str>, at: Time) -> Write {
    Write::any("payout.ended", END, values![result.as_str(), raw_code, at, settlement_id, settlement_id])
}
