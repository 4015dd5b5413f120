//! The channel paid (section 6.4): the net amount has left the bank, the fee is earned.

use kernel::Time;
use ledger::{ids, posting};
use serde_json::{Value as Json, json};
use store::values;

use super::parts::Parts;
use super::step::{self, Found, Moved, Step};
use super::{attempts, fields};
use crate::action::{Context, Refusal, Stop};
use crate::rows::{Settlement, SettlementStatus};

const COMPLETE: &str = "update supply_settlements
set status = 'completed', payment_transaction_id = $1, paid_at = $2, closed_at = $3, version = version + 1,
  request_id = $4, idempotency_key = $5, audit_trace_id = $6, updated_ip = $7, updated_at = $8
where id = $9 and tenant_id = $10 and status = 'processing' and version = $11";

/// `POST /api/v1/platform/settlements/{id}/complete`, and the payout's callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Which settlement.
    pub settlement_id: i64,
    /// The channel's own number of the payout: 1 to 100 characters.
    pub payment_transaction_id: String,
}

impl Step for Complete {
    const EVENT: &'static str = "supply.settlement.payout.complete";
    const TOLD: &'static str = "supply.settlement.payout.succeeded";

    fn settlement_id(&self) -> i64 {
        self.settlement_id
    }

    fn fields(&self) -> Result<(), Refusal> {
        fields::text("payment_transaction_id", &self.payment_transaction_id, 100)
    }

    fn allows(&self, _: &Context, found: &Found<'_>, _: Time) -> Result<(), Refusal> {
        step::wants(found.settlement, SettlementStatus::Processing)
    }

    fn moved(&self, settlement: &Settlement, at: Time) -> Result<Moved, Stop> {
        let (id, user) = (ids::Settlement(settlement.id), ids::Supplier(settlement.user_id));
        let journal = posting::payout_ok(id, user, step::split(settlement)?)?;
        Ok(Moved {
            status: SettlementStatus::Completed,
            fail_reason: None,
            update: COMPLETE,
            own: values![&self.payment_transaction_id, at, at],
            posting: Some((journal, Parts::Pay)),
            more: vec![attempts::ended(settlement.id, attempts::Result::Succeeded, None, at)],
            payment_transaction_id: Some(self.payment_transaction_id.clone()),
        })
    }

    fn metadata(&self) -> Json {
        json!({ "payment_transaction_id": self.payment_transaction_id })
    }
}
