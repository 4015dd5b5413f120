//! Section 4: charge, fee, escrow; and how amounts are written.

/// A minor unit, in counts of 10^-6.
pub(in crate::ledger) const MINOR: i128 = 1_000_000;

/// `a / b`, rounded half up; `a` is not below zero.
pub(super) const fn half_up(a: i128, b: i128) -> i128 {
    (2 * a + b) / (2 * b)
}

const fn ceil(a: i128, b: i128) -> i128 {
    (a + b - 1) / b
}

/// `charge_major = (in * price_in + out * price_out) / 10^6`, `charge = round_half_up(charge_major * 100, 6)`.
/// A price counts 10^-6 major units: of the sum 10^-12 are major, 10^-10 minor, and 10^-4 are 10^-6 minor.
pub(super) fn charge(tokens: (u64, u64), prices: (i128, i128)) -> i128 {
    half_up(i128::from(tokens.0) * prices.0 + i128::from(tokens.1) * prices.1, 10_000)
}

/// 15 of a hundred.
pub(super) const fn platform_fee(charge: i128) -> i128 {
    half_up(charge * 15, 100)
}

/// 1 of a hundred, in whole minor units.
pub(super) const fn withdraw_fee(total: i128) -> i128 {
    half_up(total / MINOR, 100) * MINOR
}

/// `ceil(quota / 10^6 * unit_price * 100)` in whole minor units; quota and price count 10^-6.
pub(super) const fn escrow(quota: i128, price: i128) -> i128 {
    ceil(quota * price * 100, MINOR * MINOR * MINOR) * MINOR
}

/// An amount in minor units, as answers write it.
pub(in crate::ledger) fn minor(count: i128) -> String {
    let (whole, rest) = (count.abs() / MINOR, count.abs() % MINOR);
    let sign = if count < 0 { "-" } else { "" };
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{rest:06}").trim_end_matches('0').to_owned()
}

/// Reads what [`minor`] writes.
pub(super) fn read_minor(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let rest: i128 = format!("{rest:0<6}").parse().ok()?;
    Some(sign * (whole.parse::<i128>().ok()? * MINOR + rest))
}

/// Reads an amount in major units with at most two decimals; without sign, exponent or leading zeros.
pub(super) fn read_major(text: &str) -> Option<i128> {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits(whole) && (whole == "0" || !whole.starts_with('0'));
    if !plain || rest.is_some_and(|rest| !digits(rest) || rest.len() > 2) {
        return None;
    }
    let cents: i128 = format!("{:0<2}", rest.unwrap_or("")).parse().ok()?;
    Some((whole.parse::<i128>().ok()? * 100 + cents) * MINOR)
}

/// First instant of the day in Shanghai, which is eight hours ahead of UTC all year.
pub(super) const fn midnight(micros: i64) -> i64 {
    const DAY: i64 = 86_400_000_000;
    const AHEAD: i64 = 28_800_000_000;
    (micros + AHEAD).div_euclid(DAY) * DAY - AHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_section_4_come_out() {
        let prices = (8_000_000, 32_000_000);
        let charges = [charge((2_000_000, 1_500_000), prices), charge((1234, 567), prices)];
        assert_eq!(charges.map(minor), ["6400", "2.8016"]);
        assert_eq!(minor(charges.iter().map(|charge| platform_fee(*charge)).sum()), "960.42024");
        assert_eq!(minor(escrow(5_000_000 * MINOR, 32_000_000)), "16000");
        assert_eq!([3333, 50, 49].map(|total| withdraw_fee(total * MINOR) / MINOR), [33, 1, 0]);
    }

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for text in ["0", "0.000001", "-12.5", "7", "100.00002"] {
            assert_eq!(read_minor(text).map(minor).as_deref(), Some(text));
        }
        assert_eq!([read_major("10"), read_major("0.5")], [Some(1000 * MINOR), Some(50 * MINOR)]);
        for text in ["", "01", "1.", ".5", "1.001", "-1", "1e3", "+1", " 1"] {
            assert_eq!(read_major(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_begins_at_four_in_the_afternoon_of_utc() {
        let sixteen = 1_774_540_800_000_000;
        assert_eq!([midnight(sixteen), midnight(sixteen - 1)], [sixteen, sixteen - 86_400_000_000]);
    }
}
