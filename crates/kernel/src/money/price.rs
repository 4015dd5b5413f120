//! Prices of tokens, the charge of a call, the escrow of an order, the protected price. Section 4.

use std::fmt;

use super::Error;
use super::amount::{Money, Step};
use super::currency::Currency;
use super::number::{self, Limits, Malformed, Rounding};
use super::quota::Quota;
use super::rate::{RATE_ONE, Rate};

/// Decimals of a price.
const PRICE_DECIMALS: u32 = 6;
/// Largest price in major units per 1,000,000 tokens (section 5.3).
const PRICE_MOST: i64 = 1_000_000;
/// Steps of a price's count in one major unit; tokens a price is for; steps of a quota's count in a unit.
const MILLION: i64 = 1_000_000;

/// A price per 1,000,000 tokens, 0 to 1,000,000 major units: a count of 10^-6 major units. The currency
/// stands beside it, as `currency_code` does in its row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(i64);

impl Price {
    /// Reads major units per 1,000,000 tokens with at most six decimals.
    ///
    /// # Errors
    /// [`Malformed`]; the supply API answers `SUP_PKG_4004`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let written = number::read(text, Limits { decimals: PRICE_DECIMALS, most: PRICE_MOST })?;
        let count = written.digits * number::power(PRICE_DECIMALS - written.decimals);
        i64::try_from(count).map(Self).map_err(|_| Malformed::TooLarge { limit: PRICE_MOST.to_string() })
    }

    /// From a count of 10^-6 major units, as stored.
    ///
    /// # Errors
    /// [`Error::Range`] when it is negative or above 1,000,000 major units.
    pub const fn from_count(count: i64) -> Result<Self, Error> {
        if count < 0 || count > PRICE_MOST * MILLION {
            return Err(Error::Range { what: "price" });
        }
        Ok(Self(count))
    }

    /// Count of 10^-6 major units, as stored.
    #[must_use]
    pub const fn count(self) -> i64 {
        self.0
    }

    /// Major units without trailing zeros: the text of the JSON number.
    #[must_use]
    pub fn text(self) -> String {
        number::write(self.0, PRICE_DECIMALS)
    }

    /// The protected price of this official price: `ceil(official * ratio, 6 decimals)`.
    #[must_use]
    pub fn protected(self, ratio: Rate) -> Self {
        let exact = i128::from(self.0) * i128::from(ratio.count());
        let count = number::divide(exact, RATE_ONE.into(), Rounding::Ceil);
        // The ratio is at most 1, so the result is at most this price.
        i64::try_from(count).map_or(self, Self)
    }

    /// Whether this price may not be asked under `floor` (INV-PKG-003). Zero is below every floor, a price
    /// equal to the floor is not below it.
    #[must_use]
    pub const fn is_below(self, floor: Self) -> bool {
        self.0 == 0 || self.0 < floor.0
    }
}

/// `8.5`.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// What a call used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Of the request.
    pub input: u64,
    /// Of the response.
    pub output: u64,
}

/// The two prices of a package or of an order's snapshot, in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Of 1,000,000 input tokens.
    pub input: Price,
    /// Of 1,000,000 output tokens.
    pub output: Price,
}

impl Prices {
    /// The order's `unit_price`: the larger of the two, the worst case (section 5.4).
    #[must_use]
    pub fn unit(self) -> Price {
        self.input.max(self.output)
    }

    /// What a successful call costs: exact over both directions, then rounded half up once, to 10^-6 minor
    /// units. A failed call costs nothing and is not asked here.
    ///
    /// # Errors
    /// [`Error::Range`] when the charge is beyond `i64`.
    pub fn charge(self, tokens: Tokens, currency: Currency) -> Result<Money, Error> {
        // Each product is below 2^64 * 10^12 < 2^104.
        let product = |count: u64, price: Price| i128::from(count) * i128::from(price.0);
        let sum = product(tokens.input, self.input) + product(tokens.output, self.output);
        let major = (sum, i128::from(MILLION) * i128::from(MILLION));
        amount(currency.count_of_major(major, Step::Micro, Rounding::HalfUp), currency)
    }

    /// What a buyer of `quota` puts into escrow, the order's `total_amount`:
    /// `ceil(quota / 1,000,000 * unit price)` in whole minor units (section 5.4).
    ///
    /// # Errors
    /// [`Error::Range`] when the escrow is beyond `i64`.
    pub fn escrow(self, quota: Quota, currency: Currency) -> Result<Money, Error> {
        let product = i128::from(quota.count()) * i128::from(self.unit().0);
        let million = i128::from(MILLION);
        let major = (product, million * million * million);
        amount(currency.count_of_major(major, Step::Minor, Rounding::Ceil), currency)
    }
}

fn amount(count: Option<i64>, currency: Currency) -> Result<Money, Error> {
    count.map(|count| Money::from_count(count, currency)).ok_or(Error::Range { what: "amount" })
}
