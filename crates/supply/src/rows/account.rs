//! `supply_accounts` (section 5.2). The envelope of the credential is not read here: only who opens it names
//! that column.

use kernel::Time;
use kernel::money::{Currency, Quota, QuotaUnit};
use serde_json::{Value as Json, json};
use store::{Error, Row};

use super::reader::Reader;
use super::words::words;

words! {
    /// Section 6.1. Deleted is a mark beside it.
    AccountStatus: "status" {
        /// Mounted.
        Pending = "pending",
        /// In use.
        Active = "active",
        /// Out of use by its owner.
        Suspended = "suspended",
        /// Out of use by the platform.
        Disabled = "disabled",
    }
}

/// One mounted upstream credential.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// `account_id`.
    pub id: i64,
    /// The supplier's tenant.
    pub tenant_id: i64,
    /// The supplier's principal.
    pub user_id: i64,
    /// Provider.
    pub platform: String,
    /// `api_key`, `oauth`.
    pub account_type: String,
    /// `account_alias`.
    pub account_name: Option<String>,
    /// Random, without a part of the secret.
    pub key_id: String,
    /// State.
    pub status: AccountStatus,
    /// Raised by SQL with every change.
    pub version: i64,
    /// `low`, `normal`, `high`.
    pub risk_level: String,
    /// 0 to 100.
    pub risk_score: i64,
    /// Unit of all quotas.
    pub unit: QuotaUnit,
    /// Of costs.
    pub currency: Currency,
    /// What the provider said there is.
    pub total: Quota,
    /// Not committed to packages.
    pub available: Quota,
    /// Committed to packages.
    pub frozen: Quota,
    /// Alert below it.
    pub min_quota_threshold: Option<Quota>,
    /// Whether the last verification passed.
    pub is_verified: bool,
    /// Whether the provider's terms allow it.
    pub tos_compliant: bool,
    /// A platform freeze.
    pub is_frozen: bool,
    /// When it was mounted.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
}

impl Account {
    /// Columns of the alias `a`, as [`Account::read`] expects them.
    pub const COLUMNS: &str = "a.id, a.tenant_id, a.user_id, a.platform, a.account_type, a.account_name, a.key_id, a.status, a.version, a.risk_level, a.risk_score, a.quota_unit, a.currency_code, a.total_quota, a.available_quota, a.frozen_quota, a.min_quota_threshold, a.is_verified, a.tos_compliant, a.is_frozen, a.created_at, a.updated_at";

    /// Kind in audit and outbox.
    pub const KIND: &str = "supply_account";

    /// Reads [`Account::COLUMNS`].
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(row: &Row) -> Result<Self, Error> {
        Self::next(&mut Reader::new(row))
    }

    /// Reads [`Account::COLUMNS`] where others stand around them.
    ///
    /// # Errors
    /// A damaged row.
    pub fn next(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (id, tenant_id, user_id) = (reader.int()?, reader.int()?, reader.int()?);
        let (platform, account_type) = (reader.text()?.to_owned(), reader.text()?.to_owned());
        let account_name = reader.text_or_null()?.map(ToOwned::to_owned);
        let key_id = reader.text()?.to_owned();
        let (status, version) = (AccountStatus::read(reader.text()?)?, reader.int()?);
        let (risk_level, risk_score) = (reader.text()?.to_owned(), reader.int()?);
        let (unit, currency) = (reader.unit()?, reader.currency()?);
        let (total, available, frozen) = (reader.quota(unit)?, reader.quota(unit)?, reader.quota(unit)?);
        let threshold = reader.int_or_null()?;
        let damaged = |_| Error::Corrupt { table: "supply_accounts", column: "min_quota_threshold".into() };
        Ok(Self {
            id,
            tenant_id,
            user_id,
            platform,
            account_type,
            account_name,
            key_id,
            status,
            version,
            risk_level,
            risk_score,
            unit,
            currency,
            total,
            available,
            frozen,
            min_quota_threshold: threshold
                .map(|count| Quota::from_count(count, QuotaUnit::Credit))
                .transpose()
                .map_err(damaged)?,
            is_verified: reader.flag()?,
            tos_compliant: reader.flag()?,
            is_frozen: reader.flag()?,
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
