//! Payout accounts: their shapes by method, their one spelling, and how they are shown (supply specification,
//! sections 12 row 8 and 15.3). The number itself is personal: it goes into an envelope at once and only the
//! payout worker opens it. Not here: paying.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// Bytes of the input at most (section 8.4, operation 22).
const INPUT_MAX: usize = 100;
/// Digits from which a bank number is shown with four at each end.
const LONG_BANK: usize = 12;

/// By which a withdrawal is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// A bank card or account.
    Bank,
    /// An Alipay login: mobile number or e-mail address.
    Alipay,
    /// A WeChat openid, or a mobile number.
    Wechat,
}

impl Method {
    /// All, in the order of the specification.
    pub const ALL: [Self; 3] = [Self::Bank, Self::Alipay, Self::Wechat];

    /// The word of the API and of the column `payment_method`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bank => "bank",
            Self::Alipay => "alipay",
            Self::Wechat => "wechat",
        }
    }

    /// Reads the word of the API.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == word)
    }
}

/// An account that is none of its method (`SUP_SET_4002`). The text is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("payment_account must be {}; correct it", self.rule())]
pub struct NotAnAccount(Method);

impl NotAnAccount {
    /// What the method takes.
    #[must_use]
    pub const fn rule(self) -> &'static str {
        match self.0 {
            Method::Bank => "8 to 30 digits",
            Method::Alipay => "a mainland mobile number or an e-mail address",
            Method::Wechat => "an openid or a mainland mobile number",
        }
    }
}

/// A payout account in its one spelling. `Debug` shows the masked form.
#[derive(Clone)]
pub struct Account {
    method: Method,
    text: SecretString,
    masked: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("method", &self.method).field("masked", &self.masked).finish()
    }
}

impl Account {
    /// Checks the shape and brings it into one spelling: no blanks and hyphens in a bank number, no outer
    /// white space and a lower-case domain in the others.
    ///
    /// # Errors
    /// [`NotAnAccount`].
    pub fn parse(method: Method, input: &SecretString) -> Result<Self, NotAnAccount> {
        let input = input.expose_secret();
        let wrong = NotAnAccount(method);
        if input.len() > INPUT_MAX {
            return Err(wrong);
        }
        let trimmed = input.trim();
        let (text, masked) = match method {
            Method::Bank => bank(input).ok_or(wrong)?,
            Method::Alipay => mobile(trimmed).or_else(|| mail(trimmed)).ok_or(wrong)?,
            Method::Wechat => mobile(trimmed).or_else(|| openid(trimmed)).ok_or(wrong)?,
        };
        Ok(Self { method, text: SecretString::from(text), masked })
    }

    /// By which it is paid.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The account, for envelope, fingerprint and payment.
    #[must_use]
    pub const fn secret(&self) -> &SecretString {
        &self.text
    }

    /// How it is shown: column `payment_account_masked`.
    #[must_use]
    pub fn masked(&self) -> &str {
        &self.masked
    }
}

type Shown = (String, String);

fn bank(input: &str) -> Option<Shown> {
    let digits: String = input.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    let fits = (8..=30).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !fits {
        return None;
    }
    let masked = if digits.len() >= LONG_BANK {
        ends(&digits, 4, 4)
    } else {
        // Four at each end would be nearly all of it.
        ends(&digits, 0, 2)
    };
    Some((digits, masked))
}

fn mobile(text: &str) -> Option<Shown> {
    let bytes = text.as_bytes();
    let fits = bytes.len() == 11
        && bytes.starts_with(b"1")
        && matches!(bytes.get(1), Some(b'3'..=b'9'))
        && bytes.iter().all(u8::is_ascii_digit);
    fits.then(|| (text.to_owned(), ends(text, 3, 4)))
}

fn mail(text: &str) -> Option<Shown> {
    let (local, domain) = text.rsplit_once('@')?;
    let domain = domain.to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let local_fits = (1..=64).contains(&local.len())
        && local.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~.-".contains(&byte))
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..");
    if !local_fits || !domain.contains('.') || !domain.split('.').all(label) {
        return None;
    }
    let first = local.get(..1)?;
    let masked = format!("{first}***@{domain}");
    Some((format!("{local}@{domain}"), masked))
}

/// `o` and 27 of the URL alphabet: a WeChat openid.
fn openid(text: &str) -> Option<Shown> {
    let rest = text.strip_prefix('o')?;
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (rest.len() == 27 && rest.bytes().all(letter)).then(|| (text.to_owned(), ends(text, 4, 4)))
}

/// The ends of an ASCII text, four stars between them, whatever is left out.
pub(crate) fn ends(text: &str, front: usize, back: usize) -> String {
    let front = text.get(..front).unwrap_or_default();
    let back = text.len().checked_sub(back).and_then(|start| text.get(start..)).unwrap_or_default();
    format!("{front}****{back}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: Method, text: &str) -> Result<Account, NotAnAccount> {
        Account::parse(method, &SecretString::from(text))
    }

    #[test]
    fn each_method_takes_its_shapes_and_masks_them() {
        let openid = "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o";
        let cases = [
            (Method::Bank, "6222 0212-3456 1234", "6222021234561234", "6222****1234"),
            (Method::Bank, "622202123412", "622202123412", "6222****3412"),
            (Method::Bank, "62220212341", "62220212341", "****41"),
            (Method::Bank, "12345678", "12345678", "****78"),
            (Method::Alipay, " 13800000000 ", "13800000000", "138****0000"),
            (Method::Alipay, "anna.b@Example.COM", "anna.b@example.com", "a***@example.com"),
            (Method::Wechat, "19912345678", "19912345678", "199****5678"),
            (Method::Wechat, openid, openid, "oUpF****eS6o"),
        ];
        for (method, input, text, masked) in cases {
            let account = parse(method, input).unwrap();
            assert_eq!((account.secret().expose_secret(), account.masked()), (text, masked), "{input}");
        }
    }

    #[test]
    fn what_is_none_of_the_method_is_refused_without_being_repeated() {
        let cases = [
            (Method::Bank, "1234567"),
            (Method::Bank, "1234567890123456789012345678901"),
            (Method::Bank, "6222x02123456123"),
            (Method::Bank, "６２２２０２１２３４５６"),
            (Method::Alipay, "12800000000"),
            (Method::Alipay, "1380000000"),
            (Method::Alipay, "+8613800000000"),
            (Method::Alipay, "a@b"),
            (Method::Alipay, "a b@example.com"),
            (Method::Alipay, "@example.com"),
            (Method::Alipay, "a@-example.com"),
            (Method::Alipay, "a\r\n@example.com"),
            (Method::Wechat, "oUpF8uMuAJO_M2pxb1Q9zNjWeS6"),
            (Method::Wechat, "xUpF8uMuAJO_M2pxb1Q9zNjWeS6o"),
            (Method::Wechat, "anna@example.com"),
        ];
        for (method, input) in cases {
            let error = parse(method, input).unwrap_err();
            assert!(!format!("{error} {error:?}").contains(input), "{input}");
        }
        assert!(parse(Method::Bank, &format!("12345678{}", " ".repeat(93))).is_err());
    }

    #[test]
    fn only_the_masked_form_is_shown() {
        let account = parse(Method::Bank, "6222021234561234").unwrap();
        assert_eq!(format!("{account:?}"), r#"Account { method: Bank, masked: "6222****1234" }"#);
        for method in Method::ALL {
            assert_eq!(Method::parse(method.as_str()), Some(method));
        }
        assert_eq!(Method::parse("Bank"), None);
    }
}
