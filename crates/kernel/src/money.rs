//! Exact money, prices, rates and quotas. No float, not even while reading or printing.
//!
//! Everything is an `i64` count of a fixed small step, intermediate values are `i128` and checked:
//!
//! | type | one step of the count is | largest |
//! |---|---|---|
//! | [`Money`] | 10^-6 of the currency's minor unit | what `i64` holds; read from outside: 10^10 major units |
//! | [`Price`] | 10^-6 of a major unit, per 1,000,000 tokens | 1,000,000 |
//! | [`Quota`] | 10^-6 of its unit | 10^12 |
//! | [`Rate`] | 10^-9 | 1 |
//!
//! The counts are what the store keeps (`NUMERIC(20,6)`, or an integer). Texts are read as they stand
//! between the commas of the JSON, never by way of a double. Source: supply specification, section 4.
//!
//! Modules in reading order: `number` (decimal texts and division), `currency` (codes and exponents),
//! `amount`, `sum` (of many amounts, in `i128`), `rate`, `quota`, `price` (with the charge of a call and the escrow
//! of an order).
//!
//! Not here: which amounts a business rule allows (crate `supply`), double entry (crate `ledger`).

mod amount;
mod currency;
mod number;
mod price;
mod quota;
mod rate;
mod sum;

pub use amount::{Money, Step};
pub use currency::{Currency, UnknownCurrency};
pub use number::Malformed;
pub use price::{Price, Prices, Tokens};
pub use quota::{Quota, QuotaUnit, UnknownUnit};
pub use rate::Rate;
pub use sum::Sum;

#[cfg(test)]
mod tests;

/// Why an exact result can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two amounts of different currencies met. There is no exchange; the supply API answers
    /// `SUP_COM_4003` (section 4, rule 6).
    #[error("{left} and {right} don't mix; use amounts of one currency")]
    Currencies {
        /// Of the first amount.
        left: Currency,
        /// Of the second amount.
        right: Currency,
    },
    /// Two quotas of different units met.
    #[error("a quota in {left} and one in {right} don't mix; use quotas of one unit")]
    Units {
        /// Of the first quota.
        left: QuotaUnit,
        /// Of the second quota.
        right: QuotaUnit,
    },
    /// The result or the stored value is outside of what its type may hold.
    #[error("the {what} leaves the range of its type; use smaller figures")]
    Range {
        /// Which quantity: `amount`, `price`, `quota`, `rate`.
        what: &'static str,
    },
}
