//! `supply_settlements` (section 5.7). The encrypted payout account is read by who pays.

use kernel::Time;
use kernel::money::{Currency, Money};
use serde_json::{Value as Json, json};
use store::{Error, Row};

use super::reader::Reader;
use super::words::words;

words! {
    /// Section 6.4.
    SettlementStatus: "status" {
        /// Asked for.
        Pending = "pending",
        /// On its way.
        Processing = "processing",
        /// Paid.
        Completed = "completed",
        /// Not paid; `fail_reason` says why.
        Failed = "failed",
    }
}

words! {
    /// Why a settlement failed.
    FailReason: "fail_reason" {
        /// By the supplier.
        Cancelled = "cancelled",
        /// By the platform's risk control.
        RiskRejected = "risk_rejected",
        /// By the payment channel.
        PayoutFailed = "payout_failed",
    }
}

/// One withdrawal and its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// `settlement_id`.
    pub id: i64,
    /// `STL` + day + 12.
    pub settlement_no: String,
    /// The supplier's tenant.
    pub tenant_id: i64,
    /// The supplier's principal.
    pub user_id: i64,
    /// State.
    pub status: SettlementStatus,
    /// Set if and only if failed.
    pub fail_reason: Option<FailReason>,
    /// Raised by SQL with every change.
    pub version: i64,
    /// Of all amounts.
    pub currency: Currency,
    /// `fee + net`.
    pub total: Money,
    /// The platform's, on success.
    pub fee: Money,
    /// Paid out, on success.
    pub net: Money,
    /// `bank`, `alipay`, `wechat`.
    pub payment_method: String,
    /// As it is shown.
    pub payment_account_masked: String,
    /// The channel's own number of the payout.
    pub payment_transaction_id: Option<String>,
    /// When it became processing.
    pub processing_at: Option<Time>,
    /// When the bank sent it back.
    pub returned_at: Option<Time>,
    /// When it was asked for.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
}

impl Settlement {
    /// Columns of the alias `t`, as [`Settlement::read`] expects them.
    pub const COLUMNS: &str = "t.id, t.settlement_no, t.tenant_id, t.user_id, t.status, t.fail_reason, t.version, t.currency_code, t.total_amount, t.fee_amount, t.net_amount, t.payment_method, t.payment_account_masked, t.payment_transaction_id, t.processing_at, t.returned_at, t.created_at, t.updated_at";

    /// Kind in audit and outbox.
    pub const KIND: &str = "supply_settlement";

    /// Reads [`Settlement::COLUMNS`].
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(row: &Row) -> Result<Self, Error> {
        Self::next(&mut Reader::new(row))
    }

    /// Reads [`Settlement::COLUMNS`] where others stand after them.
    ///
    /// # Errors
    /// A damaged row.
    pub fn next(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (id, settlement_no) = (reader.int()?, reader.text()?.to_owned());
        let (tenant_id, user_id) = (reader.int()?, reader.int()?);
        let status = SettlementStatus::read(reader.text()?)?;
        let fail_reason = reader.text_or_null()?.map(FailReason::read).transpose()?;
        let (version, currency) = (reader.int()?, reader.currency()?);
        Ok(Self {
            id,
            settlement_no,
            tenant_id,
            user_id,
            status,
            fail_reason,
            version,
            currency,
            total: reader.money(currency)?,
            fee: reader.money(currency)?,
            net: reader.money(currency)?,
            payment_method: reader.text()?.to_owned(),
            payment_account_masked: reader.text()?.to_owned(),
            payment_transaction_id: reader.text_or_null()?.map(ToOwned::to_owned),
            processing_at: reader.time_or_null()?,
            returned_at: reader.time_or_null()?,
            created_at: reader.time()?,
            updated_at: reader.time()?,
        })
    }

    /// What audit and outbox say of its state.
    #[must_use]
    pub fn state(&self) -> Json {
        match self.fail_reason {
            Some(reason) => {
                json!({ "status": self.status.as_str(), "version": self.version, "fail_reason": reason.as_str() })
            }
            None => json!({ "status": self.status.as_str(), "version": self.version }),
        }
    }
}
