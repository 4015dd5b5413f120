//! `supply_earnings` (section 5.6).

use kernel::Time;
use kernel::money::{Currency, Money};
use serde_json::{Value as Json, json};
use store::{Error, Row};

use super::reader::Reader;
use super::words::words;

words! {
    /// Section 6.5: follows from the parts.
    EarningStatus: "status" {
        /// Held.
        Pending = "pending",
        /// Released.
        Available = "available",
        /// In a settlement.
        Frozen = "frozen",
        /// Paid out, or taken back.
        Withdrawn = "withdrawn",
    }
}

/// Money owed to a supplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earning {
    /// `record_id`.
    pub id: i64,
    /// The supplier's tenant.
    pub tenant_id: i64,
    /// The supplier's principal.
    pub user_id: i64,
    /// The order it came of.
    pub order_id: Option<i64>,
    /// The call it came of.
    pub usage_record_id: Option<i64>,
    /// State.
    pub status: EarningStatus,
    /// Raised by SQL with every change.
    pub version: i64,
    /// Of all amounts.
    pub currency: Currency,
    /// The whole.
    pub amount: Money,
    /// Released and not asked for.
    pub available: Money,
    /// In a settlement.
    pub frozen: Money,
    /// Paid out.
    pub withdrawn: Money,
    /// Taken back.
    pub reversed: Money,
    /// When it was earned.
    pub earned_at: Time,
    /// When its hold ends.
    pub available_at: Time,
}

impl Earning {
    /// Columns of the alias `e`, as [`Earning::read`] expects them.
    pub const COLUMNS: &str = "e.id, e.tenant_id, e.user_id, e.order_id, e.usage_record_id, e.status, e.version, e.currency_code, e.amount, e.available_amount, e.frozen_amount, e.withdrawn_amount, e.reversed_amount, e.earned_at, e.available_at";

    /// Kind in audit and outbox.
    pub const KIND: &str = "supply_earning";

    /// Reads [`Earning::COLUMNS`].
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let (id, tenant_id, user_id) = (reader.int()?, reader.int()?, reader.int()?);
        let (order_id, usage_record_id) = (reader.int_or_null()?, reader.int_or_null()?);
        let (status, version) = (EarningStatus::read(reader.text()?)?, reader.int()?);
        let currency = reader.currency()?;
        Ok(Self {
            id,
            tenant_id,
            user_id,
            order_id,
            usage_record_id,
            status,
            version,
            currency,
            amount: reader.money(currency)?,
            available: reader.money(currency)?,
            frozen: reader.money(currency)?,
            withdrawn: reader.money(currency)?,
            reversed: reader.money(currency)?,
            earned_at: reader.time()?,
            available_at: reader.time()?,
        })
    }

    /// What audit and outbox say of its state.
    #[must_use]
    pub fn state(&self) -> Json {
        json!({ "status": self.status.as_str(), "version": self.version,
            "available_amount_minor": self.available.minor(), "frozen_amount_minor": self.frozen.minor(),
            "withdrawn_amount_minor": self.withdrawn.minor(), "reversed_amount_minor": self.reversed.minor() })
    }
}
