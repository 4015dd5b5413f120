//! Begins a payout (section 6.4): from here on it can't be cancelled. Nothing is posted; what pays hears of it
//! through the outbox, and the settlement's number is its reference on every attempt (section 12, row 14).

use kernel::Time;
use store::values;

use super::attempts;
use super::step::{self, Found, Moved, Step};
use super::withdraw::seconds_up;
use crate::action::{Context, Refusal, Stop};
use crate::rows::{Settlement, SettlementStatus};

const START: &str = "update supply_settlements
set status = 'processing', processing_at = $1, version = version + 1,
  request_id = $2, idempotency_key = $3, audit_trace_id = $4, updated_ip = $5, updated_at = $6
where id = $7 and tenant_id = $8 and status = 'pending' and version = $9";

/// `POST /api/v1/platform/settlements/{id}/start`, and the scheduler's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Which settlement.
    pub settlement_id: i64,
}

impl Step for Start {
    const EVENT: &'static str = "supply.settlement.payout.start";
    const TOLD: &'static str = "supply.settlement.payout_start.succeeded";

    const COMES_DUE: bool = true;

    fn settlement_id(&self) -> i64 {
        self.settlement_id
    }

    fn allows(&self, context: &Context, found: &Found<'_>, at: Time) -> Result<(), Refusal> {
        let settlement = found.settlement;
        step::wants(settlement, SettlementStatus::Pending)?;
        let due = settlement.created_at.plus(context.house.policy.withdraw_review);
        if at < due {
            let refusal = step::state_conflict(settlement).with("reason", "review_running");
            return Err(refusal.with("retry_after_seconds", seconds_up(at, due)));
        }
        match found.supplier {
            Some(supplier) if !supplier.is_blocked() => Ok(()),
            _ => Err(step::state_conflict(settlement).with("reason", "supplier_blocked")),
        }
    }

    fn moved(&self, settlement: &Settlement, at: Time) -> Result<Moved, Stop> {
        Ok(Moved {
            status: SettlementStatus::Processing,
            fail_reason: None,
            update: START,
            own: values![at],
            posting: None,
            more: vec![attempts::next(settlement.id, at)],
            payment_transaction_id: None,
        })
    }
}
