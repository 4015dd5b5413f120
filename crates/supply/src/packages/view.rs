//! What owners and viewers see of their packages (sections 5.3, 8.2): one, or a page of them. Plain reads of the
//! tenant's own; statistics are not part of it.

use serde::Serialize;
use store::{Error, Query, Row, Store, Value, values};

use crate::exact::{Exact, Stamp};
use crate::rows::{Package, PackageStatus, Reader};

/// A package as the API gives it. `supply_account_id` is the mounted account, never the supplier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    /// Its id.
    pub package_id: i64,
    /// The mounted account.
    pub supply_account_id: i64,
    /// The supplier's principal.
    pub user_id: i64,
    /// Provider.
    pub platform: String,
    /// Model.
    pub model: String,
    /// Unit of the quotas: `token`, `request`, `credit`.
    pub quota_unit: &'static str,
    /// `available + reserved + sold`.
    pub total_quota: Exact,
    /// May still be bought.
    pub available_quota: Exact,
    /// In orders that are paid.
    pub sold_quota: Exact,
    /// In orders that are not.
    pub reserved_quota: Exact,
    /// Major units per 1,000,000 input tokens.
    pub price_per_1m_input: Exact,
    /// Major units per 1,000,000 output tokens.
    pub price_per_1m_output: Exact,
    /// What a price is for.
    pub price_unit: &'static str,
    /// ISO 4217.
    pub currency_code: &'static str,
    /// Least that may be bought.
    pub min_purchase: Exact,
    /// Days from its first publication.
    pub valid_days: i64,
    /// First publication.
    pub start_at: Option<Stamp>,
    /// End of validity.
    pub end_at: Option<Stamp>,
    /// `draft`, `active`, `paused`, `sold_out`, `expired`.
    pub status: &'static str,
    /// `unlisted`, `validity_ended`.
    pub close_reason: Option<String>,
    /// A platform freeze.
    pub platform_frozen: bool,
    /// Calls at once.
    pub max_concurrent: i64,
    /// Calls a minute.
    pub rate_limit_rpm: i64,
    /// What it was cloned from.
    pub cloned_from_id: Option<i64>,
    /// Raised by every change.
    pub version: i64,
    /// When it was made.
    pub created_at: Stamp,
    /// When it was changed.
    pub updated_at: Stamp,
}

impl View {
    pub(super) fn of(package: &Package, cloned_from_id: Option<i64>) -> Self {
        Self {
            package_id: package.id,
            supply_account_id: package.supply_account_id,
            user_id: package.user_id,
            platform: package.platform.clone(),
            model: package.model.clone(),
            quota_unit: package.unit.as_str(),
            total_quota: package.total.into(),
            available_quota: package.available.into(),
            sold_quota: package.sold.into(),
            reserved_quota: package.reserved.into(),
            price_per_1m_input: package.price_input.into(),
            price_per_1m_output: package.price_output.into(),
            price_unit: "per_1m_tokens",
            currency_code: package.currency.code(),
            min_purchase: package.min_purchase.into(),
            valid_days: package.valid_days,
            start_at: package.start_at.map(Stamp),
            end_at: package.end_at.map(Stamp),
            status: package.status.as_str(),
            close_reason: package.close_reason.clone(),
            platform_frozen: package.platform_frozen,
            max_concurrent: package.max_concurrent,
            rate_limit_rpm: package.rate_limit_rpm,
            cloned_from_id,
            version: package.version,
            created_at: Stamp(package.created_at),
            updated_at: Stamp(package.updated_at),
        }
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let (package, cloned_from_id) = read(row)?;
        Ok(Self::of(&package, cloned_from_id))
    }
}

/// A package of a tenant, with what it was cloned from.
pub(super) fn query(tenant_id: i64, package_id: i64) -> Query {
    let sql = format!(
        "select {}, p.cloned_from_id from supply_packages p where p.id = $1 and p.tenant_id = $2",
        Package::COLUMNS
    );
    Query::new("package.view", sql, values![package_id, tenant_id])
}

/// Reads a row of [`query`].
pub(super) fn read(row: &Row) -> Result<(Package, Option<i64>), Error> {
    let mut reader = Reader::new(row);
    Ok((Package::next(&mut reader)?, reader.int_or_null()?))
}

/// `GET /api/v1/supply/packages/{packageId}`; `None` is `SUP_PKG_4041`, also for another tenant's.
///
/// # Errors
/// The store's.
pub async fn get(store: &Store, tenant_id: i64, package_id: i64) -> Result<Option<View>, Error> {
    let rows = store.query(query(tenant_id, package_id)).await?;
    rows.first().map(View::read).transpose()
}

/// `GET /api/v1/supply/packages`: which, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Whose.
    pub tenant_id: i64,
    /// Only in this state.
    pub status: Option<PackageStatus>,
    /// Only of this provider.
    pub provider: Option<String>,
    /// From 1.
    pub page: u32,
    /// 1 to 200; the edge refuses others.
    pub page_size: u32,
}

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The newest first.
    pub items: Vec<View>,
    /// On all pages.
    pub total: i64,
}

impl List {
    /// Both reads see the same state.
    ///
    /// # Errors
    /// The store's.
    pub async fn page(&self, store: &Store) -> Result<Page, Error> {
        let (condition, by) = self.condition();
        let count = format!("select count(*) from supply_packages p where {condition}");
        let (limit, offset) = (by.len() + 1, by.len() + 2);
        let items = format!(
            "select {}, p.cloned_from_id from supply_packages p where {condition}
             order by p.id desc limit ${limit} offset ${offset}",
            Package::COLUMNS
        );
        let skipped = i64::from(self.page.saturating_sub(1)) * i64::from(self.page_size);
        let page = [by.clone(), values![i64::from(self.page_size), skipped]].concat();
        let reads = vec![Query::new("package.count", count, by), Query::new("package.page", items, page)];
        let answers = store.queries(reads).await?;
        let [count, items] = answers.as_slice() else { return Err(super::found::damaged()) };
        let total = count.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(Page { items: items.iter().map(View::read).collect::<Result<_, _>>()?, total })
    }

    fn condition(&self) -> (String, Vec<Value>) {
        let mut by = values![self.tenant_id];
        let mut condition = "p.tenant_id = $1".to_owned();
        let status = self.status.map(|status| ("p.status", Value::from(status.as_str())));
        let provider = self.provider.as_ref().map(|provider| ("p.platform", Value::from(provider)));
        for (column, value) in status.into_iter().chain(provider) {
            by.push(value);
            condition.push_str(&format!(" and {column} = ${}", by.len()));
        }
        (condition, by)
    }
}
