//! What owners and viewers see of their accounts (sections 1.1, 5.2, 8.1): one, or a page of them. Plain reads of the
//! tenant's own; nothing of the credential, not its fingerprint either.

use serde::Serialize;
use store::{Error, Query, Row, Store, Value, values};

use super::checked::Kind;
use crate::exact::{Exact, Stamp};
use crate::rows::{Account, AccountStatus, Reader};

/// An account as the API gives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    /// Its id.
    pub account_id: i64,
    /// Provider.
    pub provider: String,
    /// `api_key`, `oauth`.
    pub account_type: String,
    /// As it was given.
    pub account_alias: Option<String>,
    /// Made by the platform, without a part of the secret.
    pub key_id: String,
    /// `pending`, `active`, `suspended`, `disabled`.
    pub status: &'static str,
    /// `low`, `normal`, `high`.
    pub risk_level: String,
    /// 0 to 100.
    pub risk_score: i64,
    /// Unit of the quotas.
    pub quota_unit: &'static str,
    /// What the provider said there is.
    pub total_quota: Exact,
    /// Not committed to packages.
    pub available_quota: Exact,
    /// Committed to packages.
    pub frozen_quota: Exact,
    /// Alert below it.
    pub min_quota_threshold: Option<Exact>,
    /// Whether the last verification passed.
    pub is_verified: bool,
    /// When it passed.
    pub verified_at: Option<Stamp>,
    /// When the provider was asked last.
    pub last_check_at: Option<Stamp>,
    /// Whether the provider's terms allow it.
    pub tos_compliant: bool,
    /// A platform freeze.
    pub is_frozen: bool,
    /// Calls of its orders.
    pub total_requests: i64,
    /// Tokens of these calls.
    pub total_tokens: i64,
    /// What they were charged, in major units.
    pub total_cost: Exact,
    /// The same in minor units.
    pub total_cost_minor: String,
    /// ISO 4217.
    pub currency_code: &'static str,
    /// How many of a hundred went well, cut to two decimals; 0 before the first.
    pub success_rate: Exact,
    /// Raised by every change.
    pub version: i64,
    /// When it was mounted.
    pub created_at: Stamp,
    /// When it was changed.
    pub updated_at: Stamp,
}

impl View {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let account = Account::next(&mut reader)?;
        let (verified_at, last_check_at) = (reader.time_or_null()?, reader.time_or_null()?);
        let (total_requests, total_tokens) = (reader.int()?, reader.int()?);
        let (cost, success_rate) = (reader.money(account.currency)?, Exact::percentage(reader.int()?));
        Ok(Self {
            account_id: account.id,
            provider: account.platform,
            account_type: account.account_type,
            account_alias: account.account_name,
            key_id: account.key_id,
            status: account.status.as_str(),
            risk_level: account.risk_level,
            risk_score: account.risk_score,
            quota_unit: account.unit.as_str(),
            total_quota: account.total.into(),
            available_quota: account.available.into(),
            frozen_quota: account.frozen.into(),
            min_quota_threshold: account.min_quota_threshold.map(Into::into),
            is_verified: account.is_verified,
            verified_at: verified_at.map(Stamp),
            last_check_at: last_check_at.map(Stamp),
            tos_compliant: account.tos_compliant,
            is_frozen: account.is_frozen,
            total_requests,
            total_tokens,
            total_cost: cost.into(),
            total_cost_minor: cost.minor(),
            currency_code: account.currency.code(),
            success_rate,
            version: account.version,
            created_at: Stamp(account.created_at),
            updated_at: Stamp(account.updated_at),
        })
    }
}

/// What [`View::read`] expects.
fn columns() -> String {
    let own =
        "a.verified_at, a.last_check_at, a.total_requests, a.total_tokens, a.total_cost, a.success_rate";
    format!("{}, {own}", Account::COLUMNS)
}

fn query(tenant_id: i64, account_id: i64) -> Query {
    let sql = format!(
        "select {} from supply_accounts a where a.id = $1 and a.tenant_id = $2 and a.deleted_at is null",
        columns()
    );
    Query::new("account.view", sql, values![account_id, tenant_id])
}

/// `GET /api/v1/supply/accounts/{accountId}`; `None` is `SUP_ACC_4041`, also for another tenant's.
///
/// # Errors
/// The store's.
pub async fn get(store: &Store, tenant_id: i64, account_id: i64) -> Result<Option<View>, Error> {
    store.query(query(tenant_id, account_id)).await?.first().map(View::read).transpose()
}

/// Provider, type and `key_id` of a tenant's account, which never change.
///
/// # Errors
/// The store's.
pub async fn kind_of(
    store: &Store,
    tenant_id: i64,
    account_id: i64,
) -> Result<Option<(Kind, String)>, Error> {
    let rows = store.query(query(tenant_id, account_id)).await?;
    let Some(account) = rows.first().map(Account::read).transpose()? else { return Ok(None) };
    let damaged = || Error::Corrupt { table: "supply_accounts", column: "platform".into() };
    let provider = custody::Provider::parse(&account.platform).ok_or_else(damaged)?;
    let account_type = custody::AccountType::parse(&account.account_type).ok_or_else(damaged)?;
    Ok(Some((Kind { provider, account_type }, account.key_id)))
}

/// Whose an account is; for administrators, who act on the object's tenant.
///
/// # Errors
/// The store's.
pub async fn tenant_of(store: &Store, account_id: i64) -> Result<Option<i64>, Error> {
    let sql = "select tenant_id from supply_accounts where id = $1 and deleted_at is null";
    let rows = store.query(Query::new("account.tenant", sql, values![account_id])).await?;
    rows.first().map(|row| Reader::new(row).int()).transpose()
}

/// `GET /api/v1/supply/accounts`: which, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Whose.
    pub tenant_id: i64,
    /// Only in this state.
    pub status: Option<AccountStatus>,
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
        let mut by = values![self.tenant_id];
        let mut condition = "a.tenant_id = $1 and a.deleted_at is null".to_owned();
        let status = self.status.map(|status| ("a.status", Value::from(status.as_str())));
        let provider = self.provider.as_ref().map(|provider| ("a.platform", Value::from(provider)));
        for (column, value) in status.into_iter().chain(provider) {
            by.push(value);
            condition.push_str(&format!(" and {column} = ${}", by.len()));
        }
        let count = format!("select count(*) from supply_accounts a where {condition}");
        let (limit, offset) = (by.len() + 1, by.len() + 2);
        let items = format!(
            "select {} from supply_accounts a where {condition} order by a.id desc limit ${limit} offset ${offset}",
            columns()
        );
        let skipped = i64::from(self.page.saturating_sub(1)) * i64::from(self.page_size);
        let page = [by.clone(), values![i64::from(self.page_size), skipped]].concat();
        let reads = vec![Query::new("account.count", count, by), Query::new("account.page", items, page)];
        let answers = store.queries(reads).await?;
        let damaged = || Error::Corrupt { table: "supply_accounts", column: "answers".into() };
        let [count, items] = answers.as_slice() else { return Err(damaged()) };
        let total = count.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(Page { items: items.iter().map(View::read).collect::<Result<_, _>>()?, total })
    }
}
