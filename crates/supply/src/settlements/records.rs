//! What a supplier earned, row by row (section 8.4, operation 20).

use serde::Serialize;
use store::{Error, Row, Store, Value};

use super::period::Period;
use super::view::{Page, Select};
use crate::exact::{Exact, Stamp};
use crate::rows::{EarningStatus, Reader};

const COLUMNS: &str = "e.id, e.user_id,
  (select max(i.settlement_id) from supply_settlement_items i where i.earning_id = e.id),
  e.earnings_type, e.currency_code, e.amount, e.status, e.description, e.earned_at, e.available_at";

/// An earning as the API gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Its id.
    pub record_id: i64,
    /// The supplier's principal.
    pub user_id: i64,
    /// The last settlement that took a part of it.
    pub settlement_id: Option<i64>,
    /// `usage`, `bonus`, `refund`.
    pub earnings_type: String,
    /// Major units; below zero for a refund.
    pub amount: Exact,
    /// Minor units.
    pub amount_minor: String,
    /// ISO 4217.
    pub currency_code: &'static str,
    /// `pending`, `available`, `frozen`, `withdrawn`.
    pub status: &'static str,
    /// What it is for.
    pub description: String,
    /// When it was earned.
    pub earned_at: Stamp,
    /// When its hold ends.
    pub available_at: Stamp,
}

impl Record {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let (record_id, user_id, settlement_id) = (reader.int()?, reader.int()?, reader.int_or_null()?);
        let (earnings_type, currency) = (reader.text()?.to_owned(), reader.currency()?);
        let amount = reader.money(currency)?;
        Ok(Self {
            record_id,
            user_id,
            settlement_id,
            earnings_type,
            amount: amount.into(),
            amount_minor: amount.minor(),
            currency_code: currency.code(),
            status: EarningStatus::read(reader.text()?)?.as_str(),
            description: reader.text()?.to_owned(),
            earned_at: Stamp(reader.time()?),
            available_at: Stamp(reader.time()?),
        })
    }
}

/// `GET /api/v1/supply/earnings/records`: which, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// Whose.
    pub tenant_id: i64,
    /// Only what was earned in these days.
    pub period: Option<Period>,
    /// Only in this state.
    pub status: Option<EarningStatus>,
    /// From 1.
    pub page: u32,
    /// 1 to 200; the edge refuses others.
    pub page_size: u32,
}

impl Records {
    /// Those earned last come first.
    ///
    /// # Errors
    /// The store's.
    pub async fn page(&self, store: &Store) -> Result<Page<Record>, Error> {
        let status = self.status.map(|status| ("e.status = ", Value::from(status.as_str())));
        let days = self.period.iter().flat_map(|period| {
            [("e.earned_at >= ", Value::Time(period.from)), ("e.earned_at < ", Value::Time(period.to))]
        });
        let select = Select {
            columns: COLUMNS.to_owned(),
            // One supplier a tenant: by its principal, which the index begins with.
            from: "supply_earnings e join supply_suppliers s on s.user_id = e.user_id where s.tenant_id = ",
            order: "e.earned_at desc, e.id desc",
            tenant_id: self.tenant_id,
            conditions: status.into_iter().chain(days).collect(),
        };
        select.page(store, (self.page, self.page_size), Record::read).await
    }
}
