//! An amount of one currency. Additions and comparisons refuse another currency instead of ordering it
//! somehow, so there is no `+` and no `<`.

use std::cmp::Ordering;
use std::fmt;

use super::Error;
use super::currency::Currency;
use super::number::{self, Limits, Malformed, Rounding};
use super::rate::{RATE_ONE, Rate};

/// Decimals of a minor unit that are kept (`NUMERIC(20,6)`, `amount_unit = 'minor'`).
pub(super) const MINOR_DECIMALS: u32 = 6;
/// Steps of the count in one minor unit.
const MINOR: i64 = 1_000_000;
/// Largest amount that is taken from outside, in major units (section 4, rule 2).
const MAJOR_MOST: i64 = 10_000_000_000;
/// Largest amount that is taken in minor units: 10^18 steps of the count, as [`MAJOR_MOST`] of CNY.
const MINOR_MOST: i64 = 1_000_000_000_000;

/// To what an amount is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Whole minor units: settlements and escrows (section 4, rule 4).
    Minor,
    /// 10^-6 of a minor unit: usage, earnings, platform fees.
    Micro,
}

impl Step {
    /// Steps of the count in one of these.
    pub(super) const fn units(self) -> i128 {
        match self {
            Self::Minor => MINOR as i128,
            Self::Micro => 1,
        }
    }
}

/// An exact, signed amount: a count of 10^-6 minor units, and its currency.
///
/// `Money::from_count(1_234_000_000, Currency::CNY)` is 1234 fen, 12.34 CNY.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    count: i64,
    currency: Currency,
}

impl Money {
    /// From a count of 10^-6 minor units, as stored.
    #[must_use]
    pub const fn from_count(count: i64, currency: Currency) -> Self {
        Self { count, currency }
    }

    /// Nothing.
    #[must_use]
    pub const fn zero(currency: Currency) -> Self {
        Self::from_count(0, currency)
    }

    /// Reads major units, the token of a JSON number or the content of a JSON string, with at most
    /// `decimals` decimals: [`Currency::exponent`] of them for a withdrawal or a top-up, six more where
    /// fractions of a minor unit count. A larger `decimals` is taken as that.
    ///
    /// # Errors
    /// [`Malformed`] as section 4, rule 2 has it: at most 10^10, and no more than `i64` holds.
    pub fn parse_major(text: &str, currency: Currency, decimals: u32) -> Result<Self, Malformed> {
        let decimals = decimals.min(currency.exponent() + MINOR_DECIMALS);
        let written = number::read(text, Limits { decimals, most: MAJOR_MOST })?;
        let major = (written.digits, number::power(written.decimals));
        // The decimals were limited, so nothing is left to round.
        let count = currency.count_of_major(major, Step::Micro, Rounding::Floor);
        let count = count.ok_or_else(|| Malformed::TooLarge { limit: currency.major_of_count(i64::MAX) })?;
        Ok(Self { count, currency })
    }

    /// Reads minor units with at most six decimals: the form of `x_amount_minor`.
    ///
    /// # Errors
    /// [`Malformed`]; at most 10^12 minor units.
    pub fn parse_minor(text: &str, currency: Currency) -> Result<Self, Malformed> {
        let limits = Limits { decimals: MINOR_DECIMALS, most: MINOR_MOST };
        let written = number::read(text, limits)?;
        let count = written.digits * number::power(MINOR_DECIMALS - written.decimals);
        let count = i64::try_from(count)
            .map_err(|_| Malformed::TooLarge { limit: number::write(i64::MAX, MINOR_DECIMALS) })?;
        Ok(Self { count, currency })
    }

    /// Count of 10^-6 minor units, as stored.
    #[must_use]
    pub const fn count(self) -> i64 {
        self.count
    }

    /// Its currency.
    #[must_use]
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Major units without trailing zeros, the text of `x_amount`'s JSON number: `64.028016`, `50`.
    #[must_use]
    pub fn major(self) -> String {
        self.currency.major_of_count(self.count)
    }

    /// Minor units without trailing zeros, the content of `x_amount_minor`: `6402.8016`, `5000`.
    #[must_use]
    pub fn minor(self) -> String {
        number::write(self.count, MINOR_DECIMALS)
    }

    /// Both together.
    ///
    /// # Errors
    /// [`Error::Currencies`], [`Error::Range`].
    pub fn plus(self, other: Self) -> Result<Self, Error> {
        self.same(other)?;
        self.with(self.count.checked_add(other.count))
    }

    /// This without the other; below zero when the other is larger.
    ///
    /// # Errors
    /// [`Error::Currencies`], [`Error::Range`].
    pub fn minus(self, other: Self) -> Result<Self, Error> {
        self.same(other)?;
        self.with(self.count.checked_sub(other.count))
    }

    /// The sum, computed in 128 bits; zero of `currency` for no amounts. Only the result must fit.
    ///
    /// # Errors
    /// [`Error::Currencies`] for an amount that is not in `currency`, [`Error::Range`].
    pub fn sum(currency: Currency, amounts: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let zero = Self::zero(currency);
        let mut sum = 0_i128;
        for amount in amounts {
            zero.same(amount)?;
            sum = sum.saturating_add(i128::from(amount.count));
        }
        zero.with(i64::try_from(sum).ok())
    }

    /// Which of the two is larger.
    ///
    /// # Errors
    /// [`Error::Currencies`].
    pub fn compare(self, other: Self) -> Result<Ordering, Error> {
        self.same(other)?;
        Ok(self.count.cmp(&other.count))
    }

    /// Whether this is more than `limit`.
    ///
    /// # Errors
    /// [`Error::Currencies`].
    pub fn exceeds(self, limit: Self) -> Result<bool, Error> {
        Ok(self.compare(limit)?.is_gt())
    }

    /// The smaller of the two.
    ///
    /// # Errors
    /// [`Error::Currencies`].
    pub fn least(self, other: Self) -> Result<Self, Error> {
        Ok(if self.exceeds(other)? { other } else { self })
    }

    /// Below zero, zero, or above.
    #[must_use]
    pub fn sign(self) -> Ordering {
        self.count.cmp(&0)
    }

    /// Whether no fraction of a minor unit is in it.
    #[must_use]
    pub const fn is_whole_minor(self) -> bool {
        self.count % MINOR == 0
    }

    /// Whole minor units, rounded down: what of a balance may be withdrawn (section 11.3). The least
    /// `i64` stays where it is.
    #[must_use]
    pub const fn floor_to_minor(self) -> Self {
        let floor = self.count.saturating_sub(self.count.rem_euclid(MINOR));
        Self::from_count(floor, self.currency)
    }

    /// Rounded half up (away from zero).
    ///
    /// # Errors
    /// [`Error::Range`] at the very ends.
    pub fn round_half_up(self, step: Step) -> Result<Self, Error> {
        self.share(Rate::ONE, step)
    }

    /// The part `rate` of it, rounded half up once: the platform's fee of a charge with [`Step::Micro`],
    /// the fee of a withdrawal with [`Step::Minor`] (section 4).
    ///
    /// # Errors
    /// [`Error::Range`], which only rounding up at the very end can reach.
    pub fn share(self, rate: Rate, step: Step) -> Result<Self, Error> {
        // At most 2^63 * 10^9: far inside of 128 bits.
        let exact = i128::from(self.count) * i128::from(rate.count());
        let steps = number::divide(exact, i128::from(RATE_ONE) * step.units(), Rounding::HalfUp);
        self.with(i64::try_from(steps * step.units()).ok())
    }

    fn with(self, count: Option<i64>) -> Result<Self, Error> {
        count.map(|count| Self { count, ..self }).ok_or(Error::Range { what: "amount" })
    }

    fn same(self, other: Self) -> Result<(), Error> {
        let (left, right) = (self.currency, other.currency);
        if left == right { Ok(()) } else { Err(Error::Currencies { left, right }) }
    }
}

/// `64.028016 CNY`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.major(), self.currency)
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
