//! `supply_packages` (section 5.3).

use kernel::Time;
use kernel::money::{Currency, Price, Quota, QuotaUnit};
use serde_json::{Value as Json, json};
use store::{Error, Row};

use super::reader::Reader;
use super::words::words;

words! {
    /// Section 6.2.
    PackageStatus: "status" {
        /// Not offered yet.
        Draft = "draft",
        /// Offered.
        Active = "active",
        /// Not offered for now; orders go on.
        Paused = "paused",
        /// Nothing left; only the system sets and leaves it.
        SoldOut = "sold_out",
        /// Over, for good.
        Expired = "expired",
    }
}

/// An offer of quota on one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// `package_id`.
    pub id: i64,
    /// The supplier's tenant.
    pub tenant_id: i64,
    /// The mounted account.
    pub supply_account_id: i64,
    /// The supplier's principal.
    pub user_id: i64,
    /// Provider.
    pub platform: String,
    /// Model.
    pub model: String,
    /// State.
    pub status: PackageStatus,
    /// Raised by SQL with every change.
    pub version: i64,
    /// Unit of all quotas.
    pub unit: QuotaUnit,
    /// Of the prices.
    pub currency: Currency,
    /// `total = available + reserved + sold`.
    pub total: Quota,
    /// May still be bought.
    pub available: Quota,
    /// In orders that are not paid.
    pub reserved: Quota,
    /// In orders that are.
    pub sold: Quota,
    /// Least that may be bought.
    pub min_purchase: Quota,
    /// Of 1,000,000 input tokens.
    pub price_input: Price,
    /// Of 1,000,000 output tokens.
    pub price_output: Price,
    /// Days that it lives from its first publication.
    pub valid_days: i64,
    /// First publication.
    pub start_at: Option<Time>,
    /// End of validity.
    pub end_at: Option<Time>,
    /// `unlisted`, `validity_ended`.
    pub close_reason: Option<String>,
    /// A platform freeze.
    pub platform_frozen: bool,
    /// Calls at once.
    pub max_concurrent: i64,
    /// Calls a minute.
    pub rate_limit_rpm: i64,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
}

impl Package {
    /// Columns of the alias `p`, as [`Package::read`] expects them.
    pub const COLUMNS: &str = "p.id, p.tenant_id, p.supply_account_id, p.user_id, p.platform, p.model, p.status, p.version, p.quota_unit, p.currency_code, p.total_quota, p.available_quota, p.reserved_quota, p.sold_quota, p.min_purchase, p.price_per_1m_input, p.price_per_1m_output, p.valid_days, p.start_at, p.end_at, p.close_reason, p.platform_frozen, p.max_concurrent, p.rate_limit_rpm, p.created_at, p.updated_at";

    /// Kind in audit and outbox.
    pub const KIND: &str = "supply_package";

    /// Reads [`Package::COLUMNS`].
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(row: &Row) -> Result<Self, Error> {
        Self::next(&mut Reader::new(row))
    }

    /// Reads [`Package::COLUMNS`] where others stand around them.
    ///
    /// # Errors
    /// A damaged row.
    pub fn next(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (id, tenant_id, supply_account_id) = (reader.int()?, reader.int()?, reader.int()?);
        let (user_id, platform, model) =
            (reader.int()?, reader.text()?.to_owned(), reader.text()?.to_owned());
        let (status, version) = (PackageStatus::read(reader.text()?)?, reader.int()?);
        let (unit, currency) = (reader.unit()?, reader.currency()?);
        Ok(Self {
            id,
            tenant_id,
            supply_account_id,
            user_id,
            platform,
            model,
            status,
            version,
            unit,
            currency,
            total: reader.quota(unit)?,
            available: reader.quota(unit)?,
            reserved: reader.quota(unit)?,
            sold: reader.quota(unit)?,
            min_purchase: reader.quota(unit)?,
            price_input: reader.price()?,
            price_output: reader.price()?,
            valid_days: reader.int()?,
            start_at: reader.time_or_null()?,
            end_at: reader.time_or_null()?,
            close_reason: reader.text_or_null()?.map(ToOwned::to_owned),
            platform_frozen: reader.flag()?,
            max_concurrent: reader.int()?,
            rate_limit_rpm: reader.int()?,
            created_at: reader.time()?,
            updated_at: reader.time()?,
        })
    }

    /// What audit and outbox say of its state.
    #[must_use]
    pub fn state(&self) -> Json {
        json!({ "status": self.status.as_str(), "version": self.version })
    }
}
