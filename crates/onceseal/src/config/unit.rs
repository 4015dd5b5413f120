//! Durations and sizes as people write them: `2s`, `15m`, `256KiB`. A number without a unit is refused:
//! `300` once meant seconds in one place and milliseconds in another.

use std::fmt;
use std::time::Duration;

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Units of durations with their milliseconds, largest first.
const SPANS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
/// Units of sizes with their bytes, largest first.
const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A duration with a unit: `ms`, `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A size with a unit: `B`, `KiB`, `MiB` or `GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Span {
    /// Whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        written(f, u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX), &SPANS)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        written(f, self.0, &SIZES)
    }
}

/// Writes a count in the largest unit that divides it.
fn written(f: &mut fmt::Formatter<'_>, count: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = units.iter().find(|(_, one)| count != 0 && count.is_multiple_of(*one));
    match fits.or(units.last()) {
        Some((unit, one)) => write!(f, "{}{unit}", count / one),
        None => write!(f, "{count}"),
    }
}

/// Reads digits and a unit; `None` for anything else and for what does not fit.
fn read(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(end);
    let (_, one) = units.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*one)
}

struct Reader {
    units: &'static [(&'static str, u64)],
    expected: &'static str,
}

impl Visitor<'_> for Reader {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u64, E> {
        if let Ok(number) = text.parse::<i64>() {
            return self.visit_i64(number);
        }
        read(text, self.units).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<u64, E> {
        Err(E::custom(format_args!("the number {number} has no unit; write {}", self.expected)))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "a duration in quotes with its unit (ms, s, m, h, d), such as \"300s\"";
        let millis = from.deserialize_any(Reader { units: &SPANS, expected })?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "a size in quotes with its unit (B, KiB, MiB, GiB), such as \"256KiB\"";
        let bytes = from.deserialize_any(Reader { units: &SIZES, expected })?;
        // A whole number in TOML is signed; a larger size is a mistake anyway.
        i64::try_from(bytes).map_err(|_| D::Error::custom("the size is too large"))?;
        Ok(Self(bytes))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_written_as_they_are_read() {
        for text in ["1ms", "2s", "15m", "4h", "400d", "0ms"] {
            let millis = read(text, &SPANS).unwrap();
            assert_eq!(Span(Duration::from_millis(millis)).to_string(), text);
        }
        for text in ["1B", "256KiB", "24MiB", "2GiB"] {
            assert_eq!(Size(read(text, &SIZES).unwrap()).to_string(), text);
        }
    }

    #[test]
    fn numbers_without_a_known_unit_are_refused() {
        for text in ["", "2", "s", "-2s", "2 s", "2S", "1.5s", "99999999999999999999s", "300000000000000000d"]
        {
            assert_eq!(read(text, &SPANS), None, "{text}");
        }
    }
}
