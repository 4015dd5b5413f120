//! Currencies and their exponents (ISO 4217), and the two conversions between major and minor units. Here
//! and nowhere else a power of ten of the exponent appears (section 4, rule 5).

use std::fmt;

use super::amount::{MINOR_DECIMALS, Step};
use super::number::{self, Rounding};

/// A currency of ISO 4217 with its exponent: how many decimals the minor unit is of the major one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency {
    code: &'static str,
    exponent: u32,
}

/// Codes by exponent, as the standard's list one has them. Left out: metals, bond units, test codes, `XXX`,
/// which have no minor unit.
const CODES: [(u32, &[&str]); 4] = [
    (
        0,
        &[
            "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV",
            "XAF", "XOF", "XPF",
        ],
    ),
    (
        2,
        &[
            "AED", "AFN", "ALL", "AMD", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BMD", "BND",
            "BOB", "BOV", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHE", "CHF", "CHW", "CNY",
            "COP", "COU", "CRC", "CUP", "CVE", "CZK", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD",
            "FKP", "GBP", "GEL", "GHS", "GIP", "GMD", "GTQ", "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS",
            "INR", "IRR", "JMD", "KES", "KGS", "KHR", "KPW", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD", "LSL",
            "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MXV", "MYR",
            "MZN", "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "QAR",
            "RON", "RSD", "RUB", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SOS", "SRD", "SSP",
            "STN", "SVC", "SYP", "SZL", "THB", "TJS", "TMT", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "USD",
            "USN", "UYU", "UZS", "VED", "VES", "WST", "XCD", "XCG", "YER", "ZAR", "ZMW", "ZWG",
        ],
    ),
    (3, &["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"]),
    (4, &["CLF", "UYW"]),
];

impl Currency {
    /// Renminbi, two decimals: the default of the supply side (section 4).
    pub const CNY: Self = Self { code: "CNY", exponent: 2 };

    /// The currency of an upper-case code.
    ///
    /// # Errors
    /// [`UnknownCurrency`] for every other text: a code without a known exponent can't be computed with.
    pub fn from_code(code: &str) -> Result<Self, UnknownCurrency> {
        let found = CODES.iter().find_map(|(exponent, codes)| {
            let code = codes.iter().find(|known| **known == code)?;
            Some(Self { code, exponent: *exponent })
        });
        found.ok_or_else(|| UnknownCurrency(code.chars().take(3).collect()))
    }

    /// Three upper-case letters.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.code
    }

    /// Decimals of the minor unit: 2 for CNY, 0 for JPY, 3 for KWD.
    #[must_use]
    pub const fn exponent(self) -> u32 {
        self.exponent
    }

    /// From a major amount, `numerator / denominator`, to a count of 10^-6 minor units that is a multiple
    /// of `step`. The one conversion down; `None` outside of `i64`.
    pub(super) fn count_of_major(self, major: (i128, i128), step: Step, rounding: Rounding) -> Option<i64> {
        let (numerator, denominator) = major;
        let per_major = number::power(self.exponent + MINOR_DECIMALS) / step.units();
        let steps = number::divide(numerator.checked_mul(per_major)?, denominator, rounding);
        i64::try_from(steps.checked_mul(step.units())?).ok()
    }

    /// From a count of 10^-6 minor units to the text of the major amount. The one conversion up.
    pub(super) fn major_of_count(self, count: impl Into<i128>) -> String {
        number::write(count, self.exponent + MINOR_DECIMALS)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

/// A text that is no currency with a minor unit; its first three characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no currency code known here; write one of ISO 4217 in upper case, such as CNY")]
pub struct UnknownCurrency(String);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn exponents_are_those_of_iso_4217() {
        for (code, exponent) in [("CNY", 2), ("USD", 2), ("JPY", 0), ("ISK", 0), ("KWD", 3), ("CLF", 4)] {
            assert_eq!(Currency::from_code(code).map(Currency::exponent), Ok(exponent), "{code}");
        }
        assert_eq!(Currency::from_code("CNY"), Ok(Currency::CNY));
    }

    #[test]
    fn codes_without_a_known_exponent_are_refused() {
        for code in ["", "XXX", "XAU", "XTS", "cny", "CN", "CNYY", " CN", "12\u{661}"] {
            assert!(Currency::from_code(code).is_err(), "{code:?}");
        }
    }

    #[test]
    fn no_code_stands_twice() {
        let all: Vec<_> = CODES.iter().flat_map(|(_, codes)| codes.iter()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|code| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase())));
    }
}
