//! Reads a row's columns one after another, so that no position is ever written as a number.

use kernel::Time;
use kernel::money::{Currency, Money, Price, Quota, QuotaUnit, Sum};
use store::{Error, Row};

/// A row and the next column to be read.
#[derive(Debug)]
pub struct Reader<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Reader<'a> {
    /// At the row's first column.
    #[must_use]
    pub const fn new(row: &'a Row) -> Self {
        Self { row, next: 0 }
    }

    /// At a later column.
    #[must_use]
    pub const fn after(row: &'a Row, columns: usize) -> Self {
        Self { row, next: columns }
    }

    const fn column(&mut self) -> usize {
        let column = self.next;
        self.next += 1;
        column
    }

    /// An integer.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it is missing, null or of another kind.
    pub fn int(&mut self) -> Result<i64, Error> {
        let column = self.column();
        self.row.int(column)
    }

    /// An integer, null as `None`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it is of another kind.
    pub fn int_or_null(&mut self) -> Result<Option<i64>, Error> {
        let column = self.column();
        self.row.int_or_null(column)
    }

    /// A truth.
    ///
    /// # Errors
    /// As [`Reader::int`].
    pub fn flag(&mut self) -> Result<bool, Error> {
        let column = self.column();
        self.row.flag(column)
    }

    /// A text.
    ///
    /// # Errors
    /// As [`Reader::int`].
    pub fn text(&mut self) -> Result<&'a str, Error> {
        let column = self.column();
        self.row.text(column)
    }

    /// A text, null as `None`.
    ///
    /// # Errors
    /// As [`Reader::int_or_null`].
    pub fn text_or_null(&mut self) -> Result<Option<&'a str>, Error> {
        let column = self.column();
        self.row.text_or_null(column)
    }

    /// An instant.
    ///
    /// # Errors
    /// As [`Reader::int`].
    pub fn time(&mut self) -> Result<Time, Error> {
        let column = self.column();
        self.row.time(column)
    }

    /// An instant, null as `None`.
    ///
    /// # Errors
    /// As [`Reader::int_or_null`].
    pub fn time_or_null(&mut self) -> Result<Option<Time>, Error> {
        let column = self.column();
        self.row.time_or_null(column)
    }

    /// An amount in a currency that was read before it.
    ///
    /// # Errors
    /// As [`Reader::int`].
    pub fn money(&mut self, currency: Currency) -> Result<Money, Error> {
        Ok(Money::from_count(self.int()?, currency))
    }

    /// What `{sum X}` gave of amounts in a currency that was read before it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it is missing or no such sum.
    pub fn sum(&mut self, currency: Currency) -> Result<Sum, Error> {
        let column = self.column();
        Ok(Sum::from_count(self.row.sum(column)?, currency))
    }

    /// A price per 1,000,000 tokens.
    ///
    /// # Errors
    /// As [`Reader::int`]; also when it is out of range.
    pub fn price(&mut self) -> Result<Price, Error> {
        Price::from_count(self.int()?).map_err(|_| self.corrupt("price"))
    }

    /// A quota in a unit that was read before it.
    ///
    /// # Errors
    /// As [`Reader::int`]; also when it is out of range.
    pub fn quota(&mut self, unit: QuotaUnit) -> Result<Quota, Error> {
        Quota::from_count(self.int()?, unit).map_err(|_| self.corrupt("quota"))
    }

    /// A currency code.
    ///
    /// # Errors
    /// As [`Reader::int`]; also when it is no code.
    pub fn currency(&mut self) -> Result<Currency, Error> {
        Currency::from_code(self.text()?).map_err(|_| self.corrupt("currency_code"))
    }

    /// A unit of quotas.
    ///
    /// # Errors
    /// As [`Reader::int`]; also when it is no unit.
    pub fn unit(&mut self) -> Result<QuotaUnit, Error> {
        QuotaUnit::parse(self.text()?).map_err(|_| self.corrupt("quota_unit"))
    }

    fn corrupt(&self, column: &'static str) -> Error {
        Error::Corrupt { table: "supply", column: format!("{column}, the {}th", self.next) }
    }
}
