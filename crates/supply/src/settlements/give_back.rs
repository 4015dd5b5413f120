//! The bank sent a completed payout back (section 6.4): once, and the fee is given back, too. The settlement stays
//! completed, with the time of its return.

use kernel::Time;
use ledger::{ids, posting};
use store::values;

use super::parts::Parts;
use super::step::{self, Found, Moved, Step};
use crate::action::{Context, Refusal, Stop};
use crate::rows::{Settlement, SettlementStatus};

const RETURN: &str = "update supply_settlements
set returned_at = $1, version = version + 1,
  request_id = $2, idempotency_key = $3, audit_trace_id = $4, updated_ip = $5, updated_at = $6
where id = $7 and tenant_id = $8 and status = 'completed' and returned_at is null and version = $9";

/// `POST /api/v1/platform/settlements/{id}/return`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// Which settlement.
    pub settlement_id: i64,
}

impl Step for Return {
    const EVENT: &'static str = "supply.settlement.payout.return";
    const TOLD: &'static str = "supply.settlement.payout_return.succeeded";

    fn settlement_id(&self) -> i64 {
        self.settlement_id
    }

    fn allows(&self, _: &Context, found: &Found<'_>, _: Time) -> Result<(), Refusal> {
        step::wants(found.settlement, SettlementStatus::Completed)?;
        match found.settlement.returned_at {
            None => Ok(()),
            Some(_) => Err(step::state_conflict(found.settlement).with("reason", "returned_before")),
        }
    }

    fn moved(&self, settlement: &Settlement, at: Time) -> Result<Moved, Stop> {
        let (id, user) = (ids::Settlement(settlement.id), ids::Supplier(settlement.user_id));
        let journal = posting::payout_return(id, user, step::split(settlement)?)?;
        Ok(Moved {
            status: SettlementStatus::Completed,
            fail_reason: None,
            update: RETURN,
            own: values![at],
            posting: Some((journal, Parts::Return)),
            more: vec![],
            payment_transaction_id: settlement.payment_transaction_id.clone(),
        })
    }
}
