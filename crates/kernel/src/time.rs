//! Instants in microseconds, and the two things no pure function may take by itself: the time and
//! random bytes.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant: microseconds since 1970-01-01T00:00:00Z. No zone, no leap seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

/// Microseconds that Shanghai's clocks are ahead of UTC, and those of a day.
const SHANGHAI_AHEAD: i64 = 8 * 3600 * 1_000_000;
const DAY: i64 = 24 * 3600 * 1_000_000;

impl Time {
    /// From whole seconds since the epoch, saturating at the ends of the range.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// From microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// This instant moved forward, saturating.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// This instant moved back, saturating.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with whole seconds, as section 8.1 of the AuditVisa specification writes times:
    /// `2026-03-01T09:49:14Z`. An instant outside of the years -9999 to 9999 prints as the nearest end.
    #[must_use]
    pub fn to_rfc3339_seconds(self) -> String {
        Self::from_seconds(self.seconds()).timestamp().to_string()
    }

    /// RFC 3339 in UTC with milliseconds, as the supply API writes times: `2026-03-27T02:03:04.123Z`. Further
    /// digits are cut.
    #[must_use]
    pub fn to_rfc3339_millis(self) -> String {
        format!("{:.3}", Self(self.0 - self.0.rem_euclid(1000)).timestamp())
    }

    /// The day in `Asia/Shanghai` (UTC+8, no summer time) that the instant lies in, `2026-03-27`: the
    /// calendar of daily limits and periods (supply specification, section 0).
    #[must_use]
    pub fn shanghai_day(self) -> String {
        Self(self.0.saturating_add(SHANGHAI_AHEAD)).timestamp().to_string().chars().take(10).collect()
    }

    /// First instant of that day.
    #[must_use]
    pub const fn shanghai_midnight(self) -> Self {
        Self(self.0 - (self.0 + SHANGHAI_AHEAD).rem_euclid(DAY))
    }

    fn timestamp(self) -> jiff::Timestamp {
        let end = if self.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(end)
    }

    /// Reads RFC 3339 with any offset. Fractions beyond microseconds are cut.
    ///
    /// # Errors
    /// The text, when it is not a date and time with an offset.
    pub fn parse_rfc3339(text: &str) -> Result<Self, NotATime> {
        text.parse::<jiff::Timestamp>()
            .map(|stamp| Self(stamp.as_microsecond()))
            .map_err(|_| NotATime(text.chars().take(40).collect()))
    }
}

/// RFC 3339 in UTC with as many fraction digits as needed.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

/// A text that should have been an RFC 3339 time.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a time like 2026-03-01T09:49:14Z")]
pub struct NotATime(String);

/// Where the time comes from. The server has one clock, tests move theirs.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Time;

    /// The instant by which records are judged, where a store shared by many machines shows `shared`. The
    /// store's clock wins over the machine's: machines may disagree. Clocks of tests win over both.
    fn judged(&self, shared: Time) -> Time {
        shared
    }
}

/// Where random bytes come from: claim tokens, keys, salts.
pub trait Random: Send + Sync + fmt::Debug {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_three_digits_and_cut() {
        for (micros, text) in [
            (1_774_576_984_123_999, "2026-03-27T02:03:04.123Z"),
            (1_774_576_984_000_000, "2026-03-27T02:03:04.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Time::from_micros(micros).to_rfc3339_millis(), text);
        }
    }

    #[test]
    fn a_day_in_shanghai_begins_at_four_in_the_afternoon_of_utc() {
        let before = Time::parse_rfc3339("2026-03-26T15:59:59.999999Z").unwrap();
        let begins = Time::parse_rfc3339("2026-03-26T16:00:00Z").unwrap();
        assert_eq!(
            (before.shanghai_day(), begins.shanghai_day()),
            ("2026-03-26".into(), "2026-03-27".into())
        );
        assert_eq!((before.plus(Duration::from_micros(1)).shanghai_midnight(), begins), (begins, begins));
        assert_eq!(begins.plus(Duration::from_secs(86_399)).shanghai_midnight(), begins);
        assert_eq!(before.shanghai_midnight(), begins.minus(Duration::from_secs(86_400)));
    }

    #[test]
    fn seconds_are_written_as_the_specification_writes_them() {
        assert_eq!(Time::from_seconds(1_772_358_554).to_rfc3339_seconds(), "2026-03-01T09:49:14Z");
        assert_eq!(Time::from_micros(1_772_358_554_999_999).to_rfc3339_seconds(), "2026-03-01T09:49:14Z");
        assert_eq!(Time::from_micros(-1).seconds(), -1);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for micros in [0, 1, -1, 1_772_358_554_123_456, 253_402_207_199_999_999] {
            let time = Time::from_micros(micros);
            assert_eq!(Time::parse_rfc3339(&time.to_string()), Ok(time));
        }
    }

    #[test]
    fn impossible_times_are_refused() {
        for text in ["", "2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T10:00:00", "now"] {
            assert!(Time::parse_rfc3339(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_ends_saturate_instead_of_wrapping() {
        let end = Time::from_seconds(i64::MAX);
        assert_eq!(end.plus(Duration::MAX), Time::from_micros(i64::MAX));
        assert_eq!(Time::from_micros(i64::MIN).minus(Duration::from_secs(1)), Time::from_micros(i64::MIN));
        assert!(end.to_rfc3339_seconds().starts_with("9999-"));
        assert_eq!(Time::from_seconds(1).since(Time::from_seconds(2)), Duration::ZERO);
    }
}
