//! SMS codes for withdrawals and the port to whoever sends them (supply specification, section 12, rows 9
//! and 10).
//!
//! A code is stored nowhere: it is derived from `code_ref` under the SMS key when it is sent, and compared by
//! its keyed hash when it comes back. Five wrong tries, five minutes and single use are the command's
//! (crate `supply`); so are the texts' delivery and its retries (the outbox).

mod development;
mod http;

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::material::{Material, Unfit, distinct, mac};
use crate::payout::ends;

pub use development::{DevelopmentSms, Mode, NotDevelopment, TARGET};
pub use http::{HttpSms, HttpSmsSettings, Repeats};

/// Under this label the key is derived from the material.
const LABEL: &str = "onceseal custody sms v1";
/// Codes there are: six digits.
const CODES: u64 = 1_000_000;
/// Bytes of a `code_ref`: the column is `varchar(64)`, at least 16.
const REF: std::ops::RangeInclusive<usize> = 16..=64;

/// Why no code was made or compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The reference is too short to be unguessable, or too long for its column.
    #[error("a code reference has 16 to 64 characters; make it of at least 96 random bits")]
    Reference,
    /// The key is gone with which the code was made.
    #[error("there is no SMS key of version {0}; restore it until the codes made with it have ended")]
    UnknownVersion(u32),
}

/// Keys are versioned from 1; two at most: the current and the one before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodesError {
    /// Both are the same.
    #[error(transparent)]
    Same(#[from] Unfit),
    /// Version 0, or the same version twice.
    #[error("SMS key version {0} is 0 or named twice; number versions from 1")]
    Version(u32),
}

/// Derives and compares codes.
pub struct SmsCodes {
    /// The current one first.
    keys: Vec<(u32, Zeroizing<[u8; 32]>)>,
}

impl fmt::Debug for SmsCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<_> = self.keys.iter().map(|(version, _)| version).collect();
        f.debug_struct("SmsCodes").field("versions", &versions).finish_non_exhaustive()
    }
}

impl SmsCodes {
    /// Takes the key and, for five minutes after a change, the one before it.
    ///
    /// # Errors
    /// [`CodesError`]: the server must not start.
    pub fn new(current: (u32, &Material), previous: Option<(u32, &Material)>) -> Result<Self, CodesError> {
        let all: Vec<_> = std::iter::once(current).chain(previous).collect();
        distinct(&all.iter().map(|(_, material)| *material).collect::<Vec<_>>())?;
        let mut keys = Vec::new();
        for (version, material) in all {
            let known = keys.iter().any(|(known, _)| *known == version);
            if known || !(1..=i32::MAX.unsigned_abs()).contains(&version) {
                return Err(CodesError::Version(version));
            }
            keys.push((version, material.key(LABEL)));
        }
        Ok(Self { keys })
    }

    /// The version for new codes: the column `key_version`.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.keys.first().map_or(0, |(version, _)| *version)
    }

    /// The six digits of a reference, for the message. Each of the million is equally likely to within
    /// 10^-13.
    ///
    /// # Errors
    /// [`CodeError`].
    pub fn code(&self, version: u32, code_ref: &str) -> Result<SecretString, CodeError> {
        let made = self.mac(version, &[b"code|", code_ref.as_bytes()], code_ref)?;
        let (first, _) = made.split_first_chunk::<8>().ok_or(CodeError::Reference)?;
        Ok(SecretString::from(format!("{:06}", u64::from_be_bytes(*first) % CODES)))
    }

    /// The column `code_hash` of a reference: 64 hex digits.
    ///
    /// # Errors
    /// [`CodeError`].
    pub fn hash(&self, version: u32, code_ref: &str) -> Result<String, CodeError> {
        let code = self.code(version, code_ref)?;
        self.hashed(version, code_ref, code.expose_secret())
    }

    /// Whether a code is the one of the row. In time that does not tell how far it agrees; what is not six
    /// digits is wrong.
    ///
    /// # Errors
    /// [`CodeError`].
    pub fn matches(
        &self,
        version: u32,
        code_ref: &str,
        code_hash: &str,
        given: &SecretString,
    ) -> Result<bool, CodeError> {
        let hashed = self.hashed(version, code_ref, given.expose_secret())?;
        let digits = given.expose_secret().bytes().all(|byte| byte.is_ascii_digit());
        let six = given.expose_secret().len() == 6 && digits;
        Ok(bool::from(hashed.as_bytes().ct_eq(code_hash.as_bytes())) && six)
    }

    fn hashed(&self, version: u32, code_ref: &str, code: &str) -> Result<String, CodeError> {
        let parts = [b"hash|".as_slice(), code_ref.as_bytes(), b"|", code.as_bytes()];
        Ok(hex::encode(self.mac(version, &parts, code_ref)?.as_slice()))
    }

    fn mac(&self, version: u32, parts: &[&[u8]], code_ref: &str) -> Result<Zeroizing<[u8; 32]>, CodeError> {
        // A bar could shift the border between reference and code.
        if !REF.contains(&code_ref.len()) || code_ref.contains('|') {
            return Err(CodeError::Reference);
        }
        let key = self.keys.iter().find(|(known, _)| *known == version);
        let (_, key) = key.ok_or(CodeError::UnknownVersion(version))?;
        Ok(Zeroizing::new(mac(key.as_slice(), parts)))
    }
}

/// A telephone number in E.164. `Debug` shows the masked form.
#[derive(Clone)]
pub struct Phone {
    number: SecretString,
    masked: String,
}

/// Not a number in E.164. It is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a phone number is written like +8613800000000: a plus, the country, 8 to 15 digits in all; correct it"
)]
pub struct NotAPhone;

impl Phone {
    /// Reads E.164.
    ///
    /// # Errors
    /// [`NotAPhone`].
    pub fn parse(text: &str) -> Result<Self, NotAPhone> {
        let text = text.trim();
        let digits = text.strip_prefix('+').ok_or(NotAPhone)?;
        let fits = (8..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        if !fits {
            return Err(NotAPhone);
        }
        let mainland = digits.strip_prefix("86").filter(|national| national.len() == 11);
        let masked = match mainland {
            Some(national) => ends(national, 3, 4),
            // Where the country ends is not known here: few digits are shown.
            None => format!("+{}", ends(digits, 2, 2)),
        };
        Ok(Self { number: SecretString::from(text), masked })
    }

    /// The number, for envelope, fingerprint and sending.
    #[must_use]
    pub const fn secret(&self) -> &SecretString {
        &self.number
    }

    /// How it is shown: the column `phone_masked`, `138****0000`.
    #[must_use]
    pub fn masked(&self) -> &str {
        &self.masked
    }
}

impl fmt::Debug for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phone({})", self.masked)
    }
}

/// A code on its way. `Debug` shows neither number nor code.
#[derive(Clone, Debug)]
pub struct Sms {
    /// The outbox row's id: the idempotency key of the send.
    pub event_id: String,
    /// To whom.
    pub to: Phone,
    /// The six digits.
    pub code: SecretString,
    /// How long it holds.
    pub holds: Duration,
}

/// How a send ended. No text holds the number, the code or a word of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Taken; the other side's id for it, if it gave a plain one.
    Accepted {
        /// Letters, digits, `-`, `_`, `.`.
        receipt: Option<String>,
    },
    /// Not taken and never will be: number or template are wrong.
    Refused {
        /// A fixed sentence.
        cause: &'static str,
    },
    /// Not sent, or sent where repeats are removed: try again.
    Retry {
        /// A fixed sentence.
        cause: &'static str,
        /// Not before.
        after: Option<Duration>,
    },
    /// It may have been sent, and a repeat would be a second message.
    Uncertain {
        /// A fixed sentence.
        cause: &'static str,
    },
}

/// Whoever sends short messages. Called from the outbox, never inside a transaction.
pub trait SmsSender: Send + Sync + fmt::Debug {
    /// One try; when to try again is the outbox's.
    fn send<'a>(&'a self, sms: &'a Sms) -> BoxFuture<'a, Sent>;
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = "sms_0123456789abcdef";

    fn material(seed: u8) -> Material {
        let bytes: Vec<u8> = (0..32u8).map(|n| n.wrapping_mul(n).wrapping_mul(29) ^ seed ^ n << 3).collect();
        Material::from_bytes(format!("sms {seed}"), &bytes).unwrap()
    }

    fn codes() -> SmsCodes {
        SmsCodes::new((2, &material(2)), Some((1, &material(1)))).unwrap()
    }

    #[test]
    fn a_code_is_six_digits_that_its_reference_and_key_make() {
        let codes = codes();
        let code = codes.code(2, REFERENCE).unwrap();
        assert!(code.expose_secret().len() == 6 && code.expose_secret().bytes().all(|b| b.is_ascii_digit()));
        assert_eq!(codes.code(2, REFERENCE).unwrap().expose_secret(), code.expose_secret());
        let others = [codes.code(1, REFERENCE).unwrap(), codes.code(2, "sms_0123456789abcdeg").unwrap()];
        assert!(others.iter().all(|other| other.expose_secret() != code.expose_secret()));
        let many: std::collections::HashSet<String> = (0..1000)
            .map(|n| codes.code(2, &format!("{REFERENCE}{n}")).unwrap().expose_secret().to_owned())
            .collect();
        assert!(many.len() > 990, "{}", many.len());
    }

    #[test]
    fn only_the_code_of_the_row_matches() {
        let codes = codes();
        let code = codes.code(2, REFERENCE).unwrap();
        let hash = codes.hash(2, REFERENCE).unwrap();
        let matches = |version, reference: &str, given: &str| {
            codes.matches(version, reference, &hash, &SecretString::from(given))
        };
        assert_eq!(hash.len(), 64);
        assert_eq!(matches(2, REFERENCE, code.expose_secret()), Ok(true));
        let next = (code.expose_secret().parse::<u32>().unwrap() + 1) % 1_000_000;
        for given in [format!("{next:06}"), String::new(), " 123456".into(), "١٢٣٤٥٦".into()] {
            assert_eq!(matches(2, REFERENCE, &given), Ok(false), "{given}");
        }
        assert_eq!(matches(1, REFERENCE, code.expose_secret()), Ok(false));
        assert_eq!(matches(2, "sms_0123456789abcdeg", code.expose_secret()), Ok(false));
        assert_eq!(matches(3, REFERENCE, code.expose_secret()), Err(CodeError::UnknownVersion(3)));
        assert_eq!(matches(2, "short", code.expose_secret()), Err(CodeError::Reference));
        assert_eq!(matches(2, "sms_0123456789|bcdef", code.expose_secret()), Err(CodeError::Reference));
    }

    #[test]
    fn keys_have_two_versions_and_two_values() {
        let (one, two) = (material(1), material(2));
        assert_eq!(codes().current(), 2);
        assert_eq!(format!("{:?}", codes()), "SmsCodes { versions: [2, 1], .. }");
        assert_eq!(SmsCodes::new((1, &one), Some((1, &two))).unwrap_err(), CodesError::Version(1));
        assert_eq!(SmsCodes::new((0, &one), None).unwrap_err(), CodesError::Version(0));
        assert!(matches!(SmsCodes::new((2, &one), Some((1, &one))), Err(CodesError::Same(_))));
    }

    #[test]
    fn phones_are_e164_and_shown_masked() {
        let phone = Phone::parse(" +8613800000000 ").unwrap();
        assert_eq!((phone.secret().expose_secret(), phone.masked()), ("+8613800000000", "138****0000"));
        assert_eq!(format!("{phone:?}"), "Phone(138****0000)");
        assert_eq!(Phone::parse("+4915112345678").unwrap().masked(), "+49****78");
        for text in ["", "13800000000", "+0123456789", "+8613800000000000", "+1234567", "+86138x0000000"] {
            assert!(Phone::parse(text).is_err(), "{text}");
        }
    }
}
