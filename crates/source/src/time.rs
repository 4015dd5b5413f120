//! Times in bodies: strict RFC 3339, and Alipay's own form.

use jiff::Timestamp;

use crate::body::MAX_TIME;

/// Unix seconds of an RFC 3339 time (section 5.6): capital `T` and `Z`, seconds to 59, at most 9 digits of
/// fraction (cut off). A leap second is refused: it can't be written back.
pub(crate) fn rfc3339(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (stamp, rest) = bytes.split_at_checked(19)?;
    if !matches_shape(stamp, b"dddd-dd-ddTdd:dd:dd") || stamp.get(17) == Some(&b'6') {
        return None;
    }
    let zone = match rest.split_first() {
        Some((b'.', fraction)) => {
            let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
            if !(1..=9).contains(&digits) {
                return None;
            }
            fraction.get(digits..)?
        }
        _ => rest,
    };
    let numeric = matches_shape(zone, b"+dd:dd") || matches_shape(zone, b"-dd:dd");
    if zone != b"Z"
        && !(numeric && zone.get(1..3)? <= b"23".as_slice() && zone.get(4..6)? <= b"59".as_slice())
    {
        return None;
    }
    let seconds = text.parse::<Timestamp>().ok()?.as_nanosecond().div_euclid(1_000_000_000);
    i64::try_from(seconds).ok().filter(|seconds| (0..=MAX_TIME).contains(seconds))
}

/// Unix seconds of Alipay's `yyyy-MM-dd HH:mm:ss[.fff]`, which is Beijing time (UTC+8, no summer time).
pub(crate) fn beijing(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once(' ')?;
    rfc3339(&format!("{date}T{clock}+08:00"))
}

fn matches_shape(bytes: &[u8], shape: &[u8]) -> bool {
    bytes.len() == shape.len()
        && bytes.iter().zip(shape).all(|(b, s)| if *s == b'd' { b.is_ascii_digit() } else { b == s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_times_are_read_and_odd_ones_refused() {
        assert_eq!(rfc3339("2026-01-01T00:00:12.051Z"), Some(1_767_225_612));
        assert_eq!(rfc3339("2026-01-01T08:00:00+08:00"), Some(1_767_225_600));
        assert_eq!(beijing("2026-01-01 08:00:05"), Some(1_767_225_605));
        for odd in [
            "2016-12-31T23:59:60Z",
            "2026-01-01T10:00:60Z",
            "2026-02-30T00:00:00Z",
            "2026-01-01T00:00:07.Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00.1234567891Z",
            "1969-12-31T23:59:59Z",
            "2026-01-01T00:00:00",
            "",
        ] {
            assert_eq!(rfc3339(odd), None, "{odd}");
        }
    }
}
