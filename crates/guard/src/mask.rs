//! Masks for what people may see in part: phones, mail addresses, payout accounts (section 15.3; the shapes of
//! section 12, row 8). What does not have the expected shape shows least. Credentials are never masked, they
//! are left out.

/// Fewest digits of a bank account of which both ends are shown.
const BANK_MIN: usize = 12;

/// A phone number in E.164 (`+8613812340000`) or in its national form: `138****0000`. Of other numbers only
/// the last two digits are shown.
#[must_use]
pub fn phone(number: &str) -> String {
    let digits = digits(number);
    let national = match digits.len() {
        13 => digits.strip_prefix("86").unwrap_or(&digits),
        15 => digits.strip_prefix("0086").unwrap_or(&digits),
        _ => &digits,
    };
    // `+1 415...` has eleven digits, too.
    let foreign = number.trim_start().starts_with('+') && national.len() == digits.len();
    if is_mainland_mobile(national) && !foreign { ends(national, 3, 4) } else { ends(&digits, 0, 2) }
}

/// A mail address: `a***@domain`. One letter before the `@` is not shown, it would be all of it.
#[must_use]
pub fn email(address: &str) -> String {
    let Some((local, domain)) = address.trim().rsplit_once('@') else { return "***".into() };
    let mut letters = local.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(_)) => format!("{first}***@{domain}"),
        _ => format!("***@{domain}"),
    }
}

/// A bank account: `6222****1234` from 12 digits up, else the last two only. Blanks and hyphens don't count.
#[must_use]
pub fn bank(account: &str) -> String {
    let digits = digits(account);
    if digits.len() >= BANK_MIN { ends(&digits, 4, 4) } else { ends(&digits, 0, 2) }
}

/// An Alipay account: a mobile number or a mail address.
#[must_use]
pub fn alipay(account: &str) -> String {
    if account.contains('@') { email(account) } else { phone(account) }
}

/// A `WeChat` account: a mobile number, or an open id (`o` and 27 letters) with four letters at either end.
#[must_use]
pub fn wechat(account: &str) -> String {
    let account = account.trim();
    let letters = account.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if account.len() == 28 && account.starts_with('o') && letters {
        ends(account, 4, 4)
    } else {
        phone(account)
    }
}

/// The digits of a text, as far as it has nothing but digits and what is written between them.
fn digits(text: &str) -> String {
    let text = text.trim();
    let plain: String = text.chars().filter(|c| !matches!(c, ' ' | '-' | '+' | '(' | ')')).collect();
    if plain.bytes().all(|byte| byte.is_ascii_digit()) { plain } else { String::new() }
}

fn is_mainland_mobile(digits: &str) -> bool {
    digits.len() == 11 && matches!(digits.as_bytes(), [b'1', b'3'..=b'9', ..])
}

/// The ends of an ASCII text. At least four letters must stay hidden, or nothing is shown.
fn ends(text: &str, first: usize, last: usize) -> String {
    let shown = text.len().checked_sub(last).filter(|end| *end >= first + 4);
    let parts = shown.and_then(|end| Some((text.get(..first)?, text.get(end..)?)));
    let (front, back) = parts.unwrap_or_default();
    format!("{front}****{back}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_the_specification() {
        assert_eq!(phone("+8613812340000"), "138****0000");
        assert_eq!(phone("138 1234-0000"), "138****0000");
        assert_eq!(email("alice@example.com"), "a***@example.com");
        assert_eq!(bank("6222 0212-3456 7891 234"), "6222****1234");
        assert_eq!(bank("622212341234"), "6222****1234");
        assert_eq!(wechat(&format!("o6_b{}wxyz", "A".repeat(20))), "o6_b****wxyz");
        assert_eq!(alipay("13812340000"), "138****0000");
        assert_eq!(alipay("a.b@example.com"), "a***@example.com");
    }

    #[test]
    fn a_short_or_strange_account_shows_least() {
        assert_eq!(bank("62221234123"), "****23");
        assert_eq!(bank("12"), "****");
        assert_eq!(bank(""), "****");
        assert_eq!(bank("a secret that is no account"), "****");
        assert_eq!(phone("+14155550123"), "****23");
        assert_eq!(phone("12812340000"), "****00");
        assert_eq!(email("a@example.com"), "***@example.com");
        assert_eq!(email("no address"), "***");
        assert_eq!(wechat("öööööööööööööö"), "****");
        assert_eq!(email("é\u{301}x@例.cn"), "é***@例.cn");
    }
}
