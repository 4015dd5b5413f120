//! JSON numbers as text: never a float, so that no digit is lost and equal numbers have one spelling.

use std::fmt;

/// Most digits of a number's plain spelling. Every double has fewer; more are an attempt to make a small text
/// large.
pub const PLAIN_MAX: usize = 512;

/// What becomes of `1e3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponents {
    /// It is `1000`.
    Expanded,
    /// It is refused, wherever it stands.
    Refused,
}

/// Why a number is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It has an exponent.
    #[error("a number has an exponent; write it out")]
    Exponent,
    /// Its plain spelling has more digits than [`PLAIN_MAX`].
    #[error("a number has more than {PLAIN_MAX} digits; send fewer")]
    TooLong,
}

/// A number: as it was sent, and in plain decimal.
#[derive(Clone, PartialEq, Eq)]
pub struct Number {
    text: String,
    plain: String,
}

/// Shows nothing: a number may be a code that nobody else must read.
impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Number")
    }
}

impl Number {
    /// From a literal that a JSON reader has passed.
    pub(crate) fn of(literal: &str, exponents: Exponents) -> Result<Self, Unfit> {
        if exponents == Exponents::Refused && literal.contains(['e', 'E']) {
            return Err(Unfit::Exponent);
        }
        Ok(Self { text: literal.to_owned(), plain: plain(literal).ok_or(Unfit::TooLong)? })
    }

    /// As it was sent.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// In plain decimal, without trailing zeros of a fraction and without `-0`: the canonical spelling
    /// (section 7.2).
    #[must_use]
    pub fn plain(&self) -> &str {
        &self.plain
    }
}

/// The plain spelling of a literal; `None` when it is too long.
fn plain(literal: &str) -> Option<String> {
    let (sign, unsigned) = literal.strip_prefix('-').map_or(("", literal), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    let leading = all.len() - digits.len();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return Some("0".into());
    }
    // Where the point stands, counted from the first digit that is not zero.
    let point = width(whole.len())? + exponent.parse::<i32>().ok().map(i64::from)? - width(leading)?;
    let length = width(digits.len())?;
    if point.max(length) - point.min(0) > width(PLAIN_MAX)? {
        return None;
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    Some(if point <= 0 {
        format!("{sign}0.{}{digits}", zeros(-point))
    } else if point >= length {
        format!("{sign}{digits}{}", zeros(point - length))
    } else {
        let (whole, fraction) = digits.split_at(usize::try_from(point).ok()?);
        format!("{sign}{whole}.{fraction}")
    })
}

fn width(count: usize) -> Option<i64> {
    i64::try_from(count).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_one_spelling() {
        let table: [(&str, &[&str]); 9] = [
            ("0", &["0", "-0", "0.0", "-0.000", "0e5", "0E-999999999999", "-0e99999999999"]),
            ("10", &["10", "10.0", "10.000", "1e1", "1E+1", "100e-1", "0.1e2"]),
            ("-10", &["-10", "-10.0", "-1e1"]),
            ("0.5", &["0.5", "0.50", "5e-1", "0.05e1", "50e-2"]),
            ("0.00012", &["0.00012", "1.2e-4", "0.000120"]),
            ("1234.5", &["1234.5", "1.2345e3", "12345e-1"]),
            ("100", &["100", "1e2", "1.00e2"]),
            ("9007199254740993", &["9007199254740993", "9007199254740993.0"]),
            ("0.1000000000000000055511151231257827", &["0.10000000000000000555111512312578270"]),
        ];
        for (expected, spellings) in table {
            for spelling in spellings {
                assert_eq!(plain(spelling).as_deref(), Some(expected), "{spelling}");
            }
        }
    }

    #[test]
    fn a_small_text_does_not_become_a_large_one() {
        assert_eq!(plain("1e511").map(|text| text.len()), Some(512));
        for literal in ["1e512", "1e999999999", "1e-999999999", "-1e99999999999999999999", "1e-513"] {
            assert_eq!(plain(literal), None, "{literal}");
        }
        assert_eq!(plain(&"1".repeat(513)), None);
        assert_eq!(plain(&format!("1.{}", "0".repeat(60_000))).as_deref(), Some("1"));
    }

    #[test]
    fn an_exponent_is_refused_where_the_caller_says_so() {
        assert_eq!(Number::of("1e3", Exponents::Refused), Err(Unfit::Exponent));
        let number = Number::of("1.0e3", Exponents::Expanded).unwrap();
        assert_eq!((number.text(), number.plain()), ("1.0e3", "1000"));
        assert_eq!(format!("{number:?}"), "Number");
    }
}
