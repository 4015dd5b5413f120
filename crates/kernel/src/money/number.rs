//! Decimal texts and exact division. The grammar is section 4, rule 2, of the supply specification:
//! `^(0|[1-9][0-9]*)(\.[0-9]+)?$`, the same for a JSON number and a JSON string.

/// Largest whole part that is computed with, in digits. Every limit of this module is far below; a longer
/// text is too large, whatever it says.
const WHOLE_DIGITS_MAX: usize = 20;

/// Why a text is not a quantity. No variant repeats the text: an amount field may hold a pasted secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Nothing there.
    #[error("the number is empty; write digits")]
    Empty,
    /// A sign, ASCII or Unicode, also before a zero.
    #[error("the number has a sign; write it without one")]
    Sign,
    /// NaN or infinity.
    #[error("the number is not finite; write digits")]
    NotFinite,
    /// An exponent such as `1e2`.
    #[error("the number has an exponent; write all its digits")]
    Exponent,
    /// `01`, `00.5`.
    #[error("the number has leading zeros; write it without them")]
    LeadingZero,
    /// `.5`, `5.`, `.`.
    #[error("digits are missing on one side of the decimal point; write a digit on each side or no point")]
    BarePoint,
    /// Any other character: blanks, commas, letters, digits of other scripts.
    #[error("character {position} of the number is not an ASCII digit; write digits and at most one point")]
    Character {
        /// Counted from 1.
        position: usize,
    },
    /// More decimals than the field takes, counted as written: `1.000` has three.
    #[error("the number has more than {allowed} decimals; shorten it")]
    Decimals {
        /// How many may stand there.
        allowed: u32,
    },
    /// Over the limit.
    #[error("the number is above {limit}; write a smaller one")]
    TooLarge {
        /// Largest value that is taken, in the unit of the text.
        limit: String,
    },
}

impl Malformed {
    /// The broken rule in one stable word, for `details.fields[].rule` (section 9.5).
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Sign => "sign",
            Self::NotFinite => "not_finite",
            Self::Exponent => "exponent",
            Self::LeadingZero => "leading_zero",
            Self::BarePoint => "bare_point",
            Self::Character { .. } => "character",
            Self::Decimals { .. } => "decimals",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

/// An exact non-negative number as written: `digits` / 10^`decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) digits: i128,
    pub(super) decimals: u32,
}

/// What a field takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most decimals that may be written, at most 10.
    pub(super) decimals: u32,
    /// Largest value, in whole units, at most 10^12.
    pub(super) most: i64,
}

/// Reads a text. Time grows with its length, memory does not.
///
/// # Errors
/// [`Malformed`]; grammar before decimals before size.
pub(super) fn read(text: &str, limits: Limits) -> Result<Written, Malformed> {
    let (whole, fraction) = shape(text)?;
    let allowed = limits.decimals;
    let decimals = u32::try_from(fraction.len()).map_err(|_| Malformed::Decimals { allowed })?;
    if decimals > allowed {
        return Err(Malformed::Decimals { allowed });
    }
    let too_large = || Malformed::TooLarge { limit: limits.most.to_string() };
    if whole.len() > WHOLE_DIGITS_MAX {
        return Err(too_large());
    }
    let digit = |sum: i128, byte: u8| sum * 10 + i128::from(byte - b'0');
    let digits = whole.bytes().chain(fraction.bytes()).fold(0, digit);
    if digits > i128::from(limits.most) * power(decimals) {
        return Err(too_large());
    }
    Ok(Written { digits, decimals })
}

/// Splits a text that keeps the grammar into its digits before and behind the point.
fn shape(text: &str) -> Result<(&str, &str), Malformed> {
    if text.is_empty() {
        return Err(Malformed::Empty);
    }
    if text.starts_with(['+', '-', '\u{2212}']) {
        return Err(Malformed::Sign);
    }
    if ["nan", "inf", "infinity"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Err(Malformed::NotFinite);
    }
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(left, right)| (left, Some(right)));
    let stray = |part: &str| part.chars().position(|c| !c.is_ascii_digit());
    if let Some(at) = stray(whole) {
        return Err(foreign(text, at));
    }
    if let Some(at) = fraction.and_then(stray) {
        return Err(foreign(text, whole.len() + 1 + at));
    }
    if whole.is_empty() || fraction == Some("") {
        return Err(Malformed::BarePoint);
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return Err(Malformed::LeadingZero);
    }
    Ok((whole, fraction.unwrap_or("")))
}

/// Names the character that does not belong, counted from 0.
fn foreign(text: &str, at: usize) -> Malformed {
    let mut around = text.chars().skip(at.saturating_sub(1));
    let before = if at == 0 { None } else { around.next() };
    let digit_before = before.is_some_and(|c| c.is_ascii_digit());
    if digit_before && around.next().is_some_and(|c| c.eq_ignore_ascii_case(&'e')) {
        return Malformed::Exponent;
    }
    Malformed::Character { position: at + 1 }
}

/// `count` / 10^`scale` without trailing zeros and without a bare point: a JSON number's text.
pub(super) fn write(count: impl Into<i128>, scale: u32) -> String {
    let count = count.into();
    let sign = if count < 0 { "-" } else { "" };
    let base = power(scale).unsigned_abs();
    let magnitude = count.unsigned_abs();
    let (whole, rest) = (magnitude / base, magnitude % base);
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{rest:0width$}", width = scale as usize);
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

/// 10^`exponent`. No caller goes beyond 18.
pub(super) fn power(exponent: u32) -> i128 {
    10_i128.saturating_pow(exponent)
}

/// What becomes of a remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest; a half goes away from zero, as PostgreSQL's `round(numeric)`.
    HalfUp,
    /// Up, towards positive infinity.
    Ceil,
    /// Down, towards negative infinity.
    Floor,
}

/// `numerator / denominator`, the latter positive.
pub(super) fn divide(numerator: i128, denominator: i128, rounding: Rounding) -> i128 {
    let floor = numerator.div_euclid(denominator);
    let rest = numerator.rem_euclid(denominator);
    let other = denominator - rest;
    let up = match rounding {
        Rounding::Floor => false,
        Rounding::Ceil => rest > 0,
        Rounding::HalfUp if numerator < 0 => rest > other,
        Rounding::HalfUp => rest >= other,
    };
    floor + i128::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { decimals: 2, most: 10_000_000_000 };

    #[test]
    fn every_breach_of_the_grammar_has_its_own_name() {
        let table = [
            ("empty", ["", "", "", ""]),
            ("sign", ["-1", "+1", "\u{2212}1", "-0"]),
            ("not_finite", ["NaN", "nan", "Infinity", "inf"]),
            ("exponent", ["1e2", "1E2", "1e400", "1.5e-3"]),
            ("leading_zero", ["01", "00", "00.5", "007"]),
            ("bare_point", [".5", "5.", ".", ".00"]),
            ("character", ["1,00", " 1.00", "\u{ff11}.00", "1.00 "]),
            ("character", ["e5", "0x10", "1.2.3", "1_000"]),
            ("character", ["null", "true", "1\u{0}", "1.e5"]),
            ("decimals", ["1.000", "0.001", "0.00000000000000000001", "10000000001.000"]),
            ("too_large", ["10000000000.01", "9223372036854775807", "9223372036854775808", "10000000001"]),
        ];
        for (rule, texts) in table {
            for text in texts {
                let refused = read(text, LIMITS).expect_err(text);
                assert_eq!(refused.rule(), rule, "{text:?}: {refused}");
            }
        }
    }

    #[test]
    fn the_character_is_counted_from_one_and_not_repeated() {
        assert_eq!(read("1,00", LIMITS), Err(Malformed::Character { position: 2 }));
        assert_eq!(read("12.3\u{ff14}", LIMITS), Err(Malformed::Character { position: 5 }));
        assert!(!read("sk-secret", LIMITS).expect_err("letters").to_string().contains("sk"));
    }

    #[test]
    fn a_very_long_number_is_refused_without_being_computed() {
        let nines = "9".repeat(100_000);
        assert_eq!(read(&nines, LIMITS).expect_err("huge").rule(), "too_large");
        assert_eq!(read(&format!("0.{nines}"), LIMITS).expect_err("long").rule(), "decimals");
        assert_eq!(read(&"0".repeat(100_000), LIMITS), Err(Malformed::LeadingZero));
    }

    #[test]
    fn what_is_allowed_is_read_exactly() {
        for (text, digits, decimals) in
            [("0", 0, 0), ("0.00", 0, 2), ("0.29", 29, 2), ("10000000000.00", 1_000_000_000_000, 2)]
        {
            assert_eq!(read(text, LIMITS), Ok(Written { digits, decimals }), "{text}");
        }
    }

    #[test]
    fn halves_go_away_from_zero_and_nothing_else_does() {
        use Rounding::{Ceil, Floor, HalfUp};
        let table = [
            (5, HalfUp, 1),
            (4, HalfUp, 0),
            (-4, HalfUp, 0),
            (-5, HalfUp, -1),
            (-6, HalfUp, -1),
            (15, HalfUp, 2),
            (1, Ceil, 1),
            (10, Ceil, 1),
            (-1, Ceil, 0),
            (9, Floor, 0),
            (-1, Floor, -1),
        ];
        for (numerator, rounding, result) in table {
            assert_eq!(divide(numerator, 10, rounding), result, "{numerator} {rounding:?}");
        }
        assert_eq!(divide(i128::MAX, 3, HalfUp), i128::MAX / 3);
        assert_eq!(divide(i128::MAX, i128::MAX, HalfUp), 1);
    }

    #[test]
    fn the_ends_are_printed_whole() {
        assert_eq!(write(i64::MIN, 6), "-9223372036854.775808");
        assert_eq!(write(i64::MAX, 0), "9223372036854775807");
        assert_eq!(write(-1, 8), "-0.00000001");
        assert_eq!(write(0, 8), "0");
    }
}
