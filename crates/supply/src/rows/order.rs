//! `supply_orders` (section 5.4).

use kernel::Time;
use kernel::money::{Currency, Money, Price, Quota, QuotaUnit};
use serde_json::{Value as Json, json};
use store::{Error, Row};

use super::reader::Reader;
use super::words::words;

words! {
    /// Section 6.3.
    OrderStatus: "status" {
        /// Not paid.
        Pending = "pending",
        /// Paid, not used.
        Paid = "paid",
        /// In use.
        Using = "using",
        /// Over.
        Expired = "expired",
        /// Given back.
        Refunded = "refunded",
    }
}

/// A buyer's purchase from one package.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Row id.
    pub id: i64,
    /// `ORD` + day + 12.
    pub order_no: String,
    /// The supplier's tenant.
    pub tenant_id: i64,
    /// Who bought.
    pub buyer_user_id: i64,
    /// The buyer's tenant.
    pub buyer_tenant_id: i64,
    /// The package's account.
    pub supply_account_id: i64,
    /// The supplier's principal.
    pub supplier_user_id: i64,
    /// The package.
    pub supply_package_id: i64,
    /// Provider, as it was.
    pub platform: String,
    /// Model, as it was.
    pub model: String,
    /// State.
    pub status: OrderStatus,
    /// Raised by SQL with every change.
    pub version: i64,
    /// Unit of quotas.
    pub unit: QuotaUnit,
    /// Of all amounts.
    pub currency: Currency,
    /// Bought.
    pub quota: Quota,
    /// Used.
    pub used: Quota,
    /// `quota - used`.
    pub remaining: Quota,
    /// Price snapshot.
    pub price_input: Price,
    /// Price snapshot.
    pub price_output: Price,
    /// The escrow.
    pub total: Money,
    /// Fees so far.
    pub platform_fee: Money,
    /// The supplier's part so far.
    pub supplier_earnings: Money,
    /// End of validity, once paid.
    pub expired_at: Option<Time>,
    /// When it was made.
    pub created_at: Time,
}

impl Order {
    /// Columns of the alias `o`, as [`Order::read`] expects them.
    pub const COLUMNS: &str = "o.id, o.order_no, o.tenant_id, o.buyer_user_id, o.buyer_tenant_id, o.supply_account_id, o.supplier_user_id, o.supply_package_id, o.platform, o.model, o.status, o.version, o.quota_unit, o.currency_code, o.quota_amount, o.used_quota, o.remaining_quota, o.price_per_1m_input, o.price_per_1m_output, o.total_amount, o.platform_fee, o.supplier_earnings, o.expired_at, o.created_at";

    /// Kind in audit and outbox.
    pub const KIND: &str = "supply_order";

    /// Reads [`Order::COLUMNS`].
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let (id, order_no, tenant_id) = (reader.int()?, reader.text()?.to_owned(), reader.int()?);
        let (buyer_user_id, buyer_tenant_id) = (reader.int()?, reader.int()?);
        let (supply_account_id, supplier_user_id) = (reader.int()?, reader.int()?);
        let (supply_package_id, platform) = (reader.int()?, reader.text()?.to_owned());
        let (model, status, version) =
            (reader.text()?.to_owned(), OrderStatus::read(reader.text()?)?, reader.int()?);
        let (unit, currency) = (reader.unit()?, reader.currency()?);
        Ok(Self {
            id,
            order_no,
            tenant_id,
            buyer_user_id,
            buyer_tenant_id,
            supply_account_id,
            supplier_user_id,
            supply_package_id,
            platform,
            model,
            status,
            version,
            unit,
            currency,
            quota: reader.quota(unit)?,
            used: reader.quota(unit)?,
            remaining: reader.quota(unit)?,
            price_input: reader.price()?,
            price_output: reader.price()?,
            total: reader.money(currency)?,
            platform_fee: reader.money(currency)?,
            supplier_earnings: reader.money(currency)?,
            expired_at: reader.time_or_null()?,
            created_at: reader.time()?,
        })
    }

    /// What audit and outbox say of its state.
    #[must_use]
    pub fn state(&self) -> Json {
        json!({ "status": self.status.as_str(), "version": self.version })
    }
}
