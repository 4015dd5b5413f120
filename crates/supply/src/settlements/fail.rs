//! The channel will not pay, for good (section 6.4): the total is available again, without a fee.

use kernel::Time;
use ledger::{ids, posting};
use serde_json::{Value as Json, json};
use store::values;

use super::parts::Parts;
use super::step::{self, Found, Moved, Step};
use super::{attempts, fields};
use crate::action::{Context, Refusal, Stop};
use crate::rows::{FailReason, Settlement, SettlementStatus};

const FAIL: &str = "update supply_settlements
set status = 'failed', fail_reason = 'payout_failed', closed_at = $1, version = version + 1,
  request_id = $2, idempotency_key = $3, audit_trace_id = $4, updated_ip = $5, updated_at = $6
where id = $7 and tenant_id = $8 and status = 'processing' and version = $9";

/// `POST /api/v1/platform/settlements/{id}/fail`, and the payout's callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    /// Which settlement.
    pub settlement_id: i64,
    /// The channel's final code, redacted: 1 to 64 characters.
    pub failure_code: String,
}

impl Step for Fail {
    const EVENT: &'static str = "supply.settlement.payout.fail";
    const TOLD: &'static str = "supply.settlement.payout.failed";

    fn settlement_id(&self) -> i64 {
        self.settlement_id
    }

    fn fields(&self) -> Result<(), Refusal> {
        fields::text("failure_code", &self.failure_code, 64)
    }

    fn allows(&self, _: &Context, found: &Found<'_>, _: Time) -> Result<(), Refusal> {
        step::wants(found.settlement, SettlementStatus::Processing)
    }

    fn moved(&self, settlement: &Settlement, at: Time) -> Result<Moved, Stop> {
        let (id, user) = (ids::Settlement(settlement.id), ids::Supplier(settlement.user_id));
        let journal = posting::payout_fail(id, user, settlement.total)?;
        let ended = attempts::ended(settlement.id, attempts::Result::Failed, Some(&self.failure_code), at);
        Ok(Moved {
            status: SettlementStatus::Failed,
            fail_reason: Some(FailReason::PayoutFailed),
            update: FAIL,
            own: values![at],
            posting: Some((journal, Parts::Thaw)),
            more: vec![ended],
            payment_transaction_id: None,
        })
    }

    fn metadata(&self) -> Json {
        json!({ "failure_code": self.failure_code })
    }
}
