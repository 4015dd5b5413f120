//! Takes a withdrawal back before its payout has begun (section 6.4, INV-SET-001).

use kernel::Time;
use ledger::{ids, posting};
use store::values;

use super::parts::Parts;
use super::step::{self, Found, Moved, Step};
use crate::action::{Context, Refusal, Stop};
use crate::code::Invariant;
use crate::rows::{FailReason, Settlement, SettlementStatus};

const CANCEL: &str = "update supply_settlements
set status = 'failed', fail_reason = 'cancelled', closed_at = $1, version = version + 1,
  request_id = $2, idempotency_key = $3, audit_trace_id = $4, updated_ip = $5, updated_at = $6
where id = $7 and tenant_id = $8 and status = 'pending' and version = $9";

/// `POST /api/v1/supply/settlements/{settlementId}/cancel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Which settlement.
    pub settlement_id: i64,
}

impl Step for Cancel {
    const EVENT: &'static str = "supply.settlement.withdraw.cancel";
    const TOLD: &'static str = "supply.settlement.cancel.succeeded";

    fn settlement_id(&self) -> i64 {
        self.settlement_id
    }

    fn allows(&self, _: &Context, found: &Found<'_>, _: Time) -> Result<(), Refusal> {
        let settlement = found.settlement;
        match settlement.status {
            SettlementStatus::Pending => Ok(()),
            SettlementStatus::Processing | SettlementStatus::Completed => {
                Err(Refusal::broken(Invariant::Set001).with("status", settlement.status.as_str()))
            }
            SettlementStatus::Failed => Err(step::state_conflict(settlement)),
        }
    }

    fn moved(&self, settlement: &Settlement, at: Time) -> Result<Moved, Stop> {
        let (id, user) = (ids::Settlement(settlement.id), ids::Supplier(settlement.user_id));
        let journal = posting::cancel(id, user, settlement.total)?;
        Ok(Moved {
            status: SettlementStatus::Failed,
            fail_reason: Some(FailReason::Cancelled),
            update: CANCEL,
            own: values![at],
            posting: Some((journal, Parts::Thaw)),
            more: vec![],
            payment_transaction_id: None,
        })
    }
}
