//! Risk control takes a withdrawal back before its payout has begun (section 6.4).

use kernel::Time;
use ledger::{ids, posting};
use serde_json::{Value as Json, json};
use store::values;

use super::fields;
use super::parts::Parts;
use super::step::{self, Found, Moved, Step};
use crate::action::{Context, Refusal, Stop};
use crate::rows::{FailReason, Settlement, SettlementStatus};

const REJECT: &str = "update supply_settlements
set status = 'failed', fail_reason = 'risk_rejected', closed_at = $1, version = version + 1,
  request_id = $2, idempotency_key = $3, audit_trace_id = $4, updated_ip = $5, updated_at = $6
where id = $7 and tenant_id = $8 and status = 'pending' and version = $9";

/// `POST /api/v1/platform/settlements/{id}/reject`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Which settlement.
    pub settlement_id: i64,
    /// Why, for the audit: 1 to 200 characters, no secret.
    pub reason: String,
}

impl Step for Reject {
    const EVENT: &'static str = "supply.settlement.risk_reject";
    const TOLD: &'static str = "supply.settlement.risk_reject.succeeded";

    fn settlement_id(&self) -> i64 {
        self.settlement_id
    }

    fn fields(&self) -> Result<(), Refusal> {
        fields::text("reason", &self.reason, 200)
    }

    fn allows(&self, _: &Context, found: &Found<'_>, _: Time) -> Result<(), Refusal> {
        step::wants(found.settlement, SettlementStatus::Pending)
    }

    fn moved(&self, settlement: &Settlement, at: Time) -> Result<Moved, Stop> {
        let (id, user) = (ids::Settlement(settlement.id), ids::Supplier(settlement.user_id));
        let journal = posting::cancel(id, user, settlement.total)?;
        Ok(Moved {
            status: SettlementStatus::Failed,
            fail_reason: Some(FailReason::RiskRejected),
            update: REJECT,
            own: values![at],
            posting: Some((journal, Parts::Thaw)),
            more: vec![],
            payment_transaction_id: None,
        })
    }

    fn metadata(&self) -> Json {
        json!({ "reason": self.reason })
    }
}
