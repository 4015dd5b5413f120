//! Quota: tokens, requests or credits.

use std::cmp::Ordering;
use std::fmt;

use super::Error;
use super::number::{self, Limits, Malformed};

/// Decimals that are kept (`NUMERIC(20,6)`).
const QUOTA_DECIMALS: u32 = 6;
/// Steps of the count in one unit.
const UNIT: i64 = 1_000_000;
/// Largest quota, in units: 10^18 steps, as the largest amount of section 4, rule 2.
const UNITS_MOST: i64 = 1_000_000_000_000;

/// What a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaUnit {
    /// Tokens of a model; whole.
    Token,
    /// Calls; whole.
    Request,
    /// Credits; up to six decimals.
    Credit,
}

impl QuotaUnit {
    /// The unit of a stored or sent word.
    ///
    /// # Errors
    /// [`UnknownUnit`].
    pub fn parse(word: &str) -> Result<Self, UnknownUnit> {
        match word {
            "token" => Ok(Self::Token),
            "request" => Ok(Self::Request),
            "credit" => Ok(Self::Credit),
            _ => Err(UnknownUnit),
        }
    }

    /// The word of `quota_unit`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Request => "request",
            Self::Credit => "credit",
        }
    }

    /// How many decimals a quota of this unit may have.
    #[must_use]
    pub const fn decimals(self) -> u32 {
        match self {
            Self::Token | Self::Request => 0,
            Self::Credit => QUOTA_DECIMALS,
        }
    }
}

impl fmt::Display for QuotaUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no quota unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no quota unit; write token, request or credit")]
pub struct UnknownUnit;

/// A non-negative count of 10^-6 units, and the unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    count: i64,
    unit: QuotaUnit,
}

impl Quota {
    /// Reads units as written in JSON.
    ///
    /// # Errors
    /// [`Malformed`]: decimals where the unit is whole (also `5.0`), more than six, above 10^12.
    pub fn parse(text: &str, unit: QuotaUnit) -> Result<Self, Malformed> {
        let written = number::read(text, Limits { decimals: unit.decimals(), most: UNITS_MOST })?;
        let count = written.digits * number::power(QUOTA_DECIMALS - written.decimals);
        let count = i64::try_from(count);
        let count = count.map_err(|_| Malformed::TooLarge { limit: UNITS_MOST.to_string() })?;
        Ok(Self { count, unit })
    }

    /// From a count of 10^-6 units, as stored.
    ///
    /// # Errors
    /// [`Error::Range`] when it is negative, above 10^12 units, or a fraction of a whole unit.
    pub const fn from_count(count: i64, unit: QuotaUnit) -> Result<Self, Error> {
        let whole = count % UNIT == 0 || matches!(unit, QuotaUnit::Credit);
        if count < 0 || count > UNITS_MOST * UNIT || !whole {
            return Err(Error::Range { what: "quota" });
        }
        Ok(Self { count, unit })
    }

    /// Whole units, such as a call's tokens.
    ///
    /// # Errors
    /// [`Error::Range`] above 10^12.
    pub fn whole(units: u64, unit: QuotaUnit) -> Result<Self, Error> {
        let count = i64::try_from(units).ok().and_then(|units| units.checked_mul(UNIT));
        Self::from_count(count.ok_or(Error::Range { what: "quota" })?, unit)
    }

    /// Count of 10^-6 units, as stored.
    #[must_use]
    pub const fn count(self) -> i64 {
        self.count
    }

    /// What is counted.
    #[must_use]
    pub const fn unit(self) -> QuotaUnit {
        self.unit
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.count == 0
    }

    /// Units without trailing zeros: the text of the JSON number.
    #[must_use]
    pub fn text(self) -> String {
        number::write(self.count, QUOTA_DECIMALS)
    }

    /// Both together.
    ///
    /// # Errors
    /// [`Error::Units`], [`Error::Range`].
    pub fn plus(self, other: Self) -> Result<Self, Error> {
        self.same(other)?;
        Self::from_count(self.count.saturating_add(other.count), self.unit)
    }

    /// This without the other.
    ///
    /// # Errors
    /// [`Error::Units`]; [`Error::Range`] when the other is larger.
    pub fn minus(self, other: Self) -> Result<Self, Error> {
        self.same(other)?;
        Self::from_count(self.count.saturating_sub(other.count), self.unit)
    }

    /// Which of the two is larger.
    ///
    /// # Errors
    /// [`Error::Units`].
    pub fn compare(self, other: Self) -> Result<Ordering, Error> {
        self.same(other)?;
        Ok(self.count.cmp(&other.count))
    }

    fn same(self, other: Self) -> Result<(), Error> {
        let (left, right) = (self.unit, other.unit);
        if left == right { Ok(()) } else { Err(Error::Units { left, right }) }
    }
}

/// `5000000 token`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.text(), self.unit)
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use QuotaUnit::{Credit, Request, Token};

    #[test]
    fn tokens_and_requests_are_whole_and_credits_have_six_decimals() {
        for (text, unit, rule) in [
            ("5.0", Token, Some("decimals")),
            ("0.5", Request, Some("decimals")),
            ("0.5", Credit, None),
            ("0.0000001", Credit, Some("decimals")),
            ("1000000000000", Token, None),
            ("1000000000001", Token, Some("too_large")),
        ] {
            assert_eq!(Quota::parse(text, unit).err().map(|refused| refused.rule()), rule, "{text} {unit}");
        }
    }

    #[test]
    fn a_stored_count_is_judged_too() {
        assert!(Quota::from_count(-1, Credit).is_err());
        assert!(Quota::from_count(1, Token).is_err());
        assert!(Quota::from_count(1, Credit).is_ok());
        assert!(Quota::from_count(i64::MAX, Credit).is_err());
        assert!(Quota::whole(u64::MAX, Token).is_err());
    }

    #[test]
    fn units_do_not_mix_and_nothing_falls_below_zero() {
        let (two, three) = (Quota::whole(2, Token).unwrap(), Quota::whole(3, Token).unwrap());
        assert_eq!(three.minus(two).unwrap().text(), "1");
        assert_eq!(two.minus(three), Err(Error::Range { what: "quota" }));
        let credit = Quota::parse("2", Credit).unwrap();
        assert_eq!(two.plus(credit), Err(Error::Units { left: Token, right: Credit }));
        assert!(two.compare(credit).is_err());
    }
}
