//! What owners and the platform see of settlements (section 8.4, operations 22 and 25): one, or a page of them.
//! Plain reads of the tenant's own; the payout account is masked.

use serde::Serialize;
use store::{Error, Query, Row, Store, Value, values};

use crate::exact::{Exact, Stamp};
use crate::rows::{FailReason, Reader, Settlement, SettlementStatus};

/// Columns behind [`Settlement::COLUMNS`].
const MORE: &str =
    "t.paid_at, t.period_start, t.period_end, t.total_orders, t.total_usage_records, t.closed_at";

/// A settlement as the API gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// Its id.
    pub settlement_id: i64,
    /// `STL` + day + 12.
    pub settlement_no: String,
    /// `pending`, `processing`, `completed`, `failed`.
    pub status: &'static str,
    /// `cancelled`, `risk_rejected`, `payout_failed`, where it failed.
    pub fail_reason: Option<&'static str>,
    /// Major units.
    pub total_amount: Exact,
    /// Minor units.
    pub total_amount_minor: String,
    /// Major units.
    pub fee_amount: Exact,
    /// Minor units.
    pub fee_amount_minor: String,
    /// Major units.
    pub net_amount: Exact,
    /// Minor units.
    pub net_amount_minor: String,
    /// ISO 4217.
    pub currency_code: &'static str,
    /// `bank`, `alipay`, `wechat`.
    pub payment_method: String,
    /// `138****0000`.
    pub payment_account_masked: String,
    /// The channel's own number, once paid.
    pub payment_transaction_id: Option<String>,
    /// First day on which it was earned, in Shanghai.
    pub period_start: String,
    /// Last day on which it was earned.
    pub period_end: String,
    /// Orders that it was earned with.
    pub total_orders: i64,
    /// Calls that it was earned with.
    pub total_usage_records: i64,
    /// When its payout began.
    pub processing_at: Option<Stamp>,
    /// When it was paid.
    pub paid_at: Option<Stamp>,
    /// When it ended.
    pub closed_at: Option<Stamp>,
    /// When the bank sent it back.
    pub returned_at: Option<Stamp>,
    /// Raised with every change.
    pub version: i64,
    /// When it was asked for.
    pub created_at: Stamp,
    /// When it was changed.
    pub updated_at: Stamp,
}

impl View {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let found = Settlement::next(&mut reader)?;
        let paid_at = reader.time_or_null()?.map(Stamp);
        let (period_start, period_end) = (reader.text()?.to_owned(), reader.text()?.to_owned());
        let (total_orders, total_usage_records) = (reader.int()?, reader.int()?);
        let closed_at = reader.time_or_null()?.map(Stamp);
        Ok(Self {
            settlement_id: found.id,
            settlement_no: found.settlement_no,
            status: found.status.as_str(),
            fail_reason: found.fail_reason.map(FailReason::as_str),
            total_amount: found.total.into(),
            total_amount_minor: found.total.minor(),
            fee_amount: found.fee.into(),
            fee_amount_minor: found.fee.minor(),
            net_amount: found.net.into(),
            net_amount_minor: found.net.minor(),
            currency_code: found.currency.code(),
            payment_method: found.payment_method,
            payment_account_masked: found.payment_account_masked,
            payment_transaction_id: found.payment_transaction_id,
            period_start,
            period_end,
            total_orders,
            total_usage_records,
            processing_at: found.processing_at.map(Stamp),
            paid_at,
            closed_at,
            returned_at: found.returned_at.map(Stamp),
            version: found.version,
            created_at: Stamp(found.created_at),
            updated_at: Stamp(found.updated_at),
        })
    }
}

/// `GET /api/v1/supply/settlements/{settlementId}`; `None` is `SUP_SET_4041`, also for another tenant's.
///
/// # Errors
/// The store's.
pub async fn get(store: &Store, tenant_id: i64, settlement_id: i64) -> Result<Option<View>, Error> {
    let sql = format!(
        "select {}, {MORE} from supply_settlements t where t.id = $1 and t.tenant_id = $2",
        Settlement::COLUMNS
    );
    let rows = store.query(Query::new("settlement.view", sql, values![settlement_id, tenant_id])).await?;
    rows.first().map(View::read).transpose()
}

/// `GET /api/v1/supply/settlements`: which, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Whose.
    pub tenant_id: i64,
    /// Only in this state.
    pub status: Option<SettlementStatus>,
    /// From 1.
    pub page: u32,
    /// 1 to 200; the edge refuses others.
    pub page_size: u32,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The newest first.
    pub items: Vec<T>,
    /// On all pages.
    pub total: i64,
}

impl List {
    /// Count and page are of the same state.
    ///
    /// # Errors
    /// The store's.
    pub async fn page(&self, store: &Store) -> Result<Page<View>, Error> {
        let status = self.status.map(|status| ("t.status = ", Value::from(status.as_str())));
        let select = Select {
            columns: format!("{}, {MORE}", Settlement::COLUMNS),
            from: "supply_settlements t where t.tenant_id = ",
            order: "t.created_at desc, t.id desc",
            tenant_id: self.tenant_id,
            conditions: status.into_iter().collect(),
        };
        select.page(store, (self.page, self.page_size), View::read).await
    }
}

/// The reads behind a page of a tenant's rows.
pub(super) struct Select {
    pub(super) columns: String,
    /// Ends where the tenant's parameter stands.
    pub(super) from: &'static str,
    pub(super) order: &'static str,
    pub(super) tenant_id: i64,
    /// Each ends where its parameter stands.
    pub(super) conditions: Vec<(&'static str, Value)>,
}

impl Select {
    pub(super) async fn page<T>(
        self,
        store: &Store,
        (page, size): (u32, u32),
        read: fn(&Row) -> Result<T, Error>,
    ) -> Result<Page<T>, Error> {
        let mut by = values![self.tenant_id];
        let mut matching = format!("{}$1", self.from);
        for (condition, value) in self.conditions {
            by.push(value);
            matching.push_str(&format!(" and {condition}${}", by.len()));
        }
        let count = format!("select count(*) from {matching}");
        let (limit, offset) = (by.len() + 1, by.len() + 2);
        let (columns, order) = (self.columns, self.order);
        let items =
            format!("select {columns} from {matching} order by {order} limit ${limit} offset ${offset}");
        let skipped = i64::from(page.saturating_sub(1)) * i64::from(size);
        let window = [by.clone(), values![i64::from(size), skipped]].concat();
        let reads = vec![Query::new("page.count", count, by), Query::new("page.items", items, window)];
        let answers = store.queries(reads).await?;
        let [count, items] = answers.as_slice() else {
            return Err(Error::Corrupt { table: "page", column: "answers".into() });
        };
        let total = count.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(Page { items: items.iter().map(read).collect::<Result<_, _>>()?, total })
    }
}
