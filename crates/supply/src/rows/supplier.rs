//! `supply_suppliers` (section 5.1): one principal a tenant. The encrypted phone is read by who sends the code.

use kernel::money::Currency;
use store::{Error, Row};

use super::reader::Reader;
use super::words::words;

words! {
    /// Only an active one may write.
    SupplierStatus: "status" {
        /// May write.
        Active = "active",
        /// May not for now.
        Suspended = "suspended",
        /// Gone.
        Closed = "closed",
    }
}

/// The principal that operators of a tenant act for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supplier {
    /// Row id.
    pub id: i64,
    /// Its tenant.
    pub tenant_id: i64,
    /// `iam_users.id`: the `user_id` of all its rows.
    pub user_id: i64,
    /// State.
    pub status: SupplierStatus,
    /// Risk cases that are not closed.
    pub open_risk_cases: i64,
    /// Settlement currency.
    pub currency: Currency,
    /// `138****0000`.
    pub phone_masked: String,
}

impl Supplier {
    /// Columns of the alias `s`, as [`Supplier::read`] expects them.
    pub const COLUMNS: &str =
        "s.id, s.tenant_id, s.user_id, s.status, s.open_risk_cases, s.currency_code, s.phone_masked";

    /// Kind in audit and outbox; its id there is `user_id`.
    pub const KIND: &str = "supplier";

    /// The supplier of a tenant: the select, with the tenant as its only parameter.
    pub const OF_TENANT: &str = "select s.id, s.tenant_id, s.user_id, s.status, s.open_risk_cases, s.currency_code, s.phone_masked from supply_suppliers s where s.tenant_id = $1";

    /// Reads [`Supplier::COLUMNS`].
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(row: &Row) -> Result<Self, Error> {
        Self::next(&mut Reader::new(row))
    }

    /// Reads [`Supplier::COLUMNS`] where others stand behind them.
    ///
    /// # Errors
    /// A damaged row.
    pub fn next(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            id: reader.int()?,
            tenant_id: reader.int()?,
            user_id: reader.int()?,
            status: SupplierStatus::read(reader.text()?)?,
            open_risk_cases: reader.int()?,
            currency: reader.currency()?,
            phone_masked: reader.text()?.to_owned(),
        })
    }

    /// Whether it may not write, or not move money (section 12, row 12).
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        !matches!(self.status, SupplierStatus::Active) || self.open_risk_cases > 0
    }
}
