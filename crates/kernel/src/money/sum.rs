//! What many amounts come to: more than one of them may hold (section 4, rule 2).

use super::amount::{MINOR_DECIMALS, Money};
use super::currency::Currency;
use super::number;

/// A sum of amounts of one currency, in 128 bits: 2^64 amounts can't leave it.
///
/// Prints as [`Money`] does. What is decided about one balance or one settlement is an amount; only what is shown or
/// compared of many rows is a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    count: i128,
    currency: Currency,
}

impl Sum {
    /// From a count of 10^-6 minor units.
    #[must_use]
    pub const fn from_count(count: i128, currency: Currency) -> Self {
        Self { count, currency }
    }

    /// Count of 10^-6 minor units.
    #[must_use]
    pub const fn count(self) -> i128 {
        self.count
    }

    /// Its currency.
    #[must_use]
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Major units without trailing zeros, as [`Money::major`].
    #[must_use]
    pub fn major(self) -> String {
        self.currency.major_of_count(self.count)
    }

    /// Minor units without trailing zeros, as [`Money::minor`].
    #[must_use]
    pub fn minor(self) -> String {
        number::write(self.count, MINOR_DECIMALS)
    }
}

impl From<Money> for Sum {
    fn from(amount: Money) -> Self {
        Self::from_count(amount.count().into(), amount.currency())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_prints_as_an_amount_does_and_goes_on_where_amounts_end() {
        for count in [0, 1, -1, 6_402_801_600, i64::MAX, i64::MIN] {
            let amount = Money::from_count(count, Currency::CNY);
            let sum = Sum::from(amount);
            assert_eq!((sum.major(), sum.minor()), (amount.major(), amount.minor()), "{count}");
        }
        let beyond = Sum::from_count(2 * i128::from(i64::MAX) + 1, Currency::CNY);
        assert_eq!(beyond.minor(), "18446744073709.551615");
        assert_eq!(beyond.major(), "184467440737.09551615");
    }
}
