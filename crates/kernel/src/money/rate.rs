//! A rate between nothing and all, as an exact decimal (section 23: "rates are exact decimals").

use std::fmt;

use super::number::{self, Limits, Malformed};

/// Decimals of a rate.
const RATE_DECIMALS: u32 = 9;
/// The count of the rate 1.
pub(super) const RATE_ONE: i64 = 1_000_000_000;

/// A part of a whole, 0 to 1: a count of 10^-9. The platform's fee (0.15), the fee of a withdrawal (0.01),
/// the protected price's ratio (0.80).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(i64);

impl Rate {
    /// All of it.
    pub const ONE: Self = Self(RATE_ONE);

    /// So many hundredths, at most all of it: `percent(15)` is 0.15.
    #[must_use]
    pub const fn percent(percent: u8) -> Self {
        let percent = if percent > 100 { 100 } else { percent };
        Self(percent as i64 * (RATE_ONE / 100))
    }

    /// Reads a decimal such as `0.15`, at most 1, with at most nine decimals.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let written = number::read(text, Limits { decimals: RATE_DECIMALS, most: 1 })?;
        let count = written.digits * number::power(RATE_DECIMALS - written.decimals);
        i64::try_from(count).map(Self).map_err(|_| Malformed::TooLarge { limit: "1".to_owned() })
    }

    /// Count of 10^-9, 0 to 10^9.
    #[must_use]
    pub const fn count(self) -> i64 {
        self.0
    }
}

/// `0.15`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number::write(self.0, RATE_DECIMALS))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_that_many_hundredths() {
        assert_eq!(Rate::parse("0.15"), Ok(Rate::percent(15)));
        assert_eq!((Rate::percent(100), Rate::percent(101)), (Rate::ONE, Rate::ONE));
    }

    #[test]
    fn a_rate_is_an_exact_part_of_one() {
        for (text, count) in [("0", 0), ("0.15", 150_000_000), ("0.000000001", 1), ("1.00", RATE_ONE)] {
            assert_eq!(Rate::parse(text).map(Rate::count), Ok(count), "{text}");
        }
        for (text, rule) in [("1.000000001", "too_large"), ("0.0000000001", "decimals"), ("15%", "character")]
        {
            assert_eq!(Rate::parse(text).map_err(|refused| refused.rule()), Err(rule), "{text}");
        }
    }
}
