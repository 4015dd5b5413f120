//! Values of a row, without an engine.

use kernel::{Digest, Time};

use crate::error::Error;

/// One value in or out. Booleans travel as 0 and 1, JSON as text. Times and money have kinds of their
/// own, since a statement may reach the engine without its parameters' types; an engine without types for
/// them gives them back as integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL null.
    Null,
    /// Integers, booleans.
    Int(i64),
    /// An instant.
    Time(Time),
    /// Money: a count of 10^-6 minor units.
    Money(i64),
    /// Text and JSON.
    Text(String),
    /// Raw bytes.
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<u16> for Value {
    fn from(value: u16) -> Self {
        Self::Int(value.into())
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Int(value.into())
    }
}
impl From<Time> for Value {
    fn from(value: Time) -> Self {
        Self::Time(value)
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}
impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}
impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}
impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(value.to_vec())
    }
}
impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}
impl<const N: usize> From<[u8; N]> for Value {
    fn from(value: [u8; N]) -> Self {
        Self::Bytes(value.to_vec())
    }
}
impl From<Digest> for Value {
    fn from(value: Digest) -> Self {
        Self::Bytes(value.as_bytes().to_vec())
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A list of [`Value`]s from anything that converts: `values![id, "text", None::<i64>]`.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::Value::from($value)),*] };
}

/// One row of an answer: values in the order of the statement's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    statement: &'static str,
    values: Vec<Value>,
}

impl Row {
    pub(crate) const fn new(statement: &'static str, values: Vec<Value>) -> Self {
        Self { statement, values }
    }

    /// All values.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    fn corrupt(&self, column: usize) -> Error {
        Error::Corrupt { table: self.statement, column: column.to_string() }
    }

    /// The integer at `column`, null as `None`; an instant as its microseconds, money as its count.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the column is missing or of another kind.
    pub fn int_or_null(&self, column: usize) -> Result<Option<i64>, Error> {
        match self.values.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Time(value)) => Ok(Some(value.micros())),
            Some(Value::Money(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.corrupt(column)),
        }
    }

    /// The integer at `column`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it is missing, null or of another kind.
    pub fn int(&self, column: usize) -> Result<i64, Error> {
        self.int_or_null(column)?.ok_or_else(|| self.corrupt(column))
    }

    /// What `{sum X}` gave at `column`: a sum of amounts, in 10^-6 of their unit, which may pass what one amount holds.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it is missing or no such sum.
    pub fn sum(&self, column: usize) -> Result<i128, Error> {
        let part = |text: &str| text.parse::<i128>().map_err(|_| self.corrupt(column));
        let text = self.text(column)?;
        match text.split_once(' ') {
            // The halves of a count (SQLite).
            Some((high, low)) => Ok((part(high)? << 32) + part(low)?),
            // A decimal with all its six digits (PostgreSQL).
            None => part(&text.replace('.', "")),
        }
    }

    /// The truth value at `column`.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn flag(&self, column: usize) -> Result<bool, Error> {
        Ok(self.int(column)? != 0)
    }

    /// The instant at `column`.
    ///
    /// # Errors
    /// As [`Row::int`].
    pub fn time(&self, column: usize) -> Result<Time, Error> {
        Ok(Time::from_micros(self.int(column)?))
    }

    /// The instant at `column`, null as `None`.
    ///
    /// # Errors
    /// As [`Row::int_or_null`].
    pub fn time_or_null(&self, column: usize) -> Result<Option<Time>, Error> {
        Ok(self.int_or_null(column)?.map(Time::from_micros))
    }

    /// The text at `column`, null as `None`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the column is missing or of another kind.
    pub fn text_or_null(&self, column: usize) -> Result<Option<&str>, Error> {
        match self.values.get(column) {
            Some(Value::Text(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.corrupt(column)),
        }
    }

    /// The text at `column`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it is missing, null or of another kind.
    pub fn text(&self, column: usize) -> Result<&str, Error> {
        self.text_or_null(column)?.ok_or_else(|| self.corrupt(column))
    }

    /// The bytes at `column`, null as `None`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the column is missing or of another kind.
    pub fn bytes_or_null(&self, column: usize) -> Result<Option<&[u8]>, Error> {
        match self.values.get(column) {
            Some(Value::Bytes(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.corrupt(column)),
        }
    }

    /// The bytes at `column`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they are missing, null or of another kind.
    pub fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        self.bytes_or_null(column)?.ok_or_else(|| self.corrupt(column))
    }

    /// The 32-byte digest at `column`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it is not 32 bytes.
    pub fn digest(&self, column: usize) -> Result<Digest, Error> {
        Digest::from_slice(self.bytes(column)?).ok_or_else(|| self.corrupt(column))
    }
}
