//! Calendar days in Shanghai, both ends inclusive (section 8.4, operation 18).

use std::time::Duration;

use kernel::Time;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Days that are looked at when none are named, and the most that may be.
const USUAL: u32 = 30;
const MOST: u64 = 366;

/// Days from the first to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// `2026-03-01`.
    pub start: String,
    /// `2026-03-30`, which is part of it.
    pub end: String,
    /// First instant.
    pub from: Time,
    /// First instant that is not part of it.
    pub to: Time,
}

/// Why two texts are no period: for `SUP_COM_4001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPeriod {
    /// Name of the parameter.
    pub field: &'static str,
    /// The broken rule: `date`, `order`, `span`.
    pub rule: &'static str,
}

impl Period {
    /// Reads `start_date` and `end_date`; the last 30 days until today where none are named.
    ///
    /// # Errors
    /// [`NotAPeriod`]: not a date, an end before the start, more than 366 days.
    pub fn read(start: Option<&str>, end: Option<&str>, now: Time) -> Result<Self, NotAPeriod> {
        let wrong = |field, rule| NotAPeriod { field, rule };
        let named = |text: Option<&str>, field| {
            text.map(|text| midnight(text).ok_or_else(|| wrong(field, "date"))).transpose()
        };
        let (from, last) = (named(start, "start_date")?, named(end, "end_date")?);
        let last = last.unwrap_or_else(|| now.shanghai_midnight());
        let from = from.unwrap_or_else(|| last.minus(DAY * (USUAL - 1)));
        if last < from {
            return Err(wrong("end_date", "order"));
        }
        if last.since(from).as_secs() / DAY.as_secs() >= MOST {
            return Err(wrong("end_date", "span"));
        }
        Ok(Self { start: from.shanghai_day(), end: last.shanghai_day(), from, to: last.plus(DAY) })
    }
}

fn midnight(day: &str) -> Option<Time> {
    let shape = day.len() == 10
        && day.bytes().zip(0..).all(|(byte, place): (u8, usize)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shape {
        return None;
    }
    Time::parse_rfc3339(&format!("{day}T00:00:00+08:00")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        start: Option<&str>,
        end: Option<&str>,
    ) -> Result<(String, String), (&'static str, &'static str)> {
        // Already the 27th in Shanghai.
        let now = Time::parse_rfc3339("2026-03-26T16:00:00Z").unwrap();
        let period = Period::read(start, end, now);
        period.map(|it| (it.start, it.end)).map_err(|it| (it.field, it.rule))
    }

    #[test]
    fn both_days_count_and_thirty_are_the_usual() {
        let days = |start: &str, end: &str| Ok((start.into(), end.into()));
        assert_eq!(read(None, None), days("2026-02-26", "2026-03-27"));
        assert_eq!(read(Some("2026-03-01"), None), days("2026-03-01", "2026-03-27"));
        assert_eq!(read(None, Some("2026-03-01")), days("2026-01-31", "2026-03-01"));
        assert_eq!(read(Some("2025-03-02"), Some("2026-03-02")), days("2025-03-02", "2026-03-02"));
        let day = Period::read(Some("2026-03-27"), Some("2026-03-27"), Time::from_seconds(0)).unwrap();
        assert_eq!(
            (day.from, day.to.since(day.from)),
            (Time::parse_rfc3339("2026-03-26T16:00:00Z").unwrap(), DAY)
        );
    }

    #[test]
    fn what_is_no_period_says_why() {
        assert_eq!(read(Some("2026-02-30"), None), Err(("start_date", "date")));
        assert_eq!(read(None, Some("20260301")), Err(("end_date", "date")));
        assert_eq!(read(Some("2026-3-1"), None), Err(("start_date", "date")));
        assert_eq!(read(Some("2026-03-02"), Some("2026-03-01")), Err(("end_date", "order")));
        assert_eq!(read(Some("2025-03-01"), Some("2026-03-02")), Err(("end_date", "span")));
    }
}
