//! Reading header fields and the times in them, strictly.
//! Not here: what a header means; that is each sender's.

use crate::{Delivery, Rejection};

/// Longest header value that is looked at, in bytes.
pub(crate) const MAX_HEADER: usize = 8 * 1024;

/// The value of a header that may occur once: outer spaces and tabs off, `None` when absent or empty.
///
/// # Errors
/// Several lines of that name, over 8 KiB, or bytes outside visible ASCII and space.
pub(crate) fn one<'a>(delivery: &Delivery<'a>, name: &str) -> Result<Option<&'a str>, Rejection> {
    let mut lines = delivery.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
    let Some((_, value)) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Rejection::malformed(&format!("several {name} lines"), &format!("出现多个 {name} 头")));
    }
    if value.len() > MAX_HEADER {
        return Err(Rejection::malformed(
            &format!("{name} is longer than 8 KiB"),
            &format!("{name} 超过 8 KiB"),
        ));
    }
    if !value.iter().all(|b| matches!(b, b'\t' | b' '..=b'~')) {
        return Err(Rejection::malformed(
            &format!("{name} has bytes outside ASCII"),
            &format!("{name} 含非 ASCII 字符"),
        ));
    }
    let text = std::str::from_utf8(value).unwrap_or_default().trim_matches([' ', '\t']);
    Ok(if text.is_empty() { None } else { Some(text) })
}

/// As [`one`], and the header must be there.
pub(crate) fn required<'a>(delivery: &Delivery<'a>, name: &str) -> Result<&'a str, Rejection> {
    one(delivery, name)?.ok_or_else(|| Rejection::missing(name))
}

/// Unix seconds written as ASCII digits and nothing else. Up to 18 digits, so sums can't overflow.
pub(crate) fn seconds(text: &str) -> Result<i64, Rejection> {
    let digits = !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<i64>() {
        Ok(seconds) if digits => Ok(seconds),
        _ => Err(Rejection::malformed(
            "its time is not Unix seconds in decimal digits",
            "时间不是十进制的 Unix 秒",
        )),
    }
}

/// The signed time against now; both sides, limit included.
pub(crate) fn fresh(signed: i64, now: i64, tolerance: i64) -> Result<(), Rejection> {
    let age = now.saturating_sub(signed);
    if age > tolerance {
        return Err(Rejection::stale(age, tolerance));
    }
    if age < -tolerance {
        return Err(Rejection::future(age.saturating_neg(), tolerance));
    }
    Ok(())
}

/// The time and the candidate MACs of a header such as `t=…,v1=…,v1=…`.
pub(crate) struct Elements<'a> {
    /// The time as written; it is part of the signed bytes.
    pub(crate) time_text: &'a str,
    /// The time in Unix seconds.
    pub(crate) time: i64,
    /// The decoded candidates; those that are not 64 lower-case hex digits are left out.
    pub(crate) macs: Vec<[u8; 32]>,
}

/// The names that matter in such a header.
pub(crate) struct Shape {
    pub(crate) separator: char,
    pub(crate) time: &'static str,
    pub(crate) mac: &'static str,
}

/// Splits such a header. Other names are skipped, so no weaker scheme can be asked for.
pub(crate) fn elements<'a>(value: &'a str, shape: &Shape) -> Result<Elements<'a>, Rejection> {
    let mut time_text = None;
    let mut macs = Vec::new();
    let mut named = Candidates::None;
    for element in value.split(shape.separator) {
        let Some((name, content)) = element.split_once('=') else { continue };
        if name == shape.time {
            if time_text.replace(content).is_some() {
                return Err(Rejection::malformed("it has two times", "含有两个时间"));
            }
        } else if name == shape.mac {
            named = Candidates::Some;
            macs.extend(hex_mac(content));
        }
    }
    let Some(time_text) = time_text else {
        return Err(Rejection::malformed("it has no time", "缺少时间"));
    };
    let time = seconds(time_text)?;
    if macs.is_empty() {
        return Err(match named {
            Candidates::None => {
                let (label, zh) = (format!("it has no {}", shape.mac), format!("缺少 {}", shape.mac));
                Rejection::malformed(&label, &zh)
            }
            Candidates::Some => {
                Rejection::malformed("no MAC has 64 lower-case hex digits", "没有 64 位小写十六进制的签名")
            }
        });
    }
    Ok(Elements { time_text, time, macs })
}

enum Candidates {
    None,
    Some,
}

/// A MAC of exactly 64 lower-case hexadecimal digits.
pub(crate) fn hex_mac(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || text.bytes().any(|b| b.is_ascii_uppercase()) {
        return None;
    }
    let mut mac = [0; 32];
    hex::decode_to_slice(text, &mut mac).ok()?;
    Some(mac)
}
