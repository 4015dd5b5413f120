//! Keyed fingerprints of secrets: the columns `*_fingerprint`, by which a credential that is mounted twice is
//! found without being decrypted. `hex(HMAC-SHA256(pepper, platform | account_type | normalised secret))`
//! (supply specification, section 13.1): not a plain hash, since short secrets could be guessed. The pepper
//! is its own key. No response shows a fingerprint. Not here: the look-up (crate `supply`).

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::format::{AccountType, Provider};
use crate::material::{Material, Unfit, distinct, mac};
use crate::payout::Method;

/// Under this label the key is derived from the material.
const LABEL: &str = "onceseal custody pepper v1";

/// What kind of secret it is: the same text as another kind has another fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An upstream credential.
    Credential {
        /// Whose.
        provider: Provider,
        /// Of which type.
        account_type: AccountType,
    },
    /// A payout account, normalised ([`crate::payout::Account`]).
    Payout {
        /// By which it is paid.
        method: Method,
    },
    /// A telephone number in E.164.
    Phone,
}

impl Subject {
    /// `platform` and `account_type`. Both are fixed words without `|`, so the joined text is unambiguous.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Credential { provider, account_type } => (provider.as_str(), account_type.as_str()),
            Self::Payout { method } => (method.as_str(), "payout_account"),
            Self::Phone => ("phone", "e164"),
        }
    }
}

/// 64 lower-case hex digits. `Debug` shows none of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The text for the column.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares with a stored text without telling by time how far they agree.
    #[must_use]
    pub fn matches(&self, stored: &str) -> bool {
        self.0.as_bytes().ct_eq(stored.as_bytes()).into()
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(hidden)")
    }
}

/// Makes fingerprints under the current pepper; during a change of pepper the one before is accepted, too.
pub struct Fingerprints {
    current: Zeroizing<[u8; 32]>,
    previous: Option<Zeroizing<[u8; 32]>>,
}

impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fingerprints").field("peppers", &(1 + usize::from(self.previous.is_some()))).finish()
    }
}

impl Fingerprints {
    /// Takes the pepper and, while rows are being rewritten, the one before it.
    ///
    /// # Errors
    /// [`Unfit::Same`] if both are the same.
    pub fn new(current: &Material, previous: Option<&Material>) -> Result<Self, Unfit> {
        let all: Vec<&Material> = std::iter::once(current).chain(previous).collect();
        distinct(&all)?;
        Ok(Self { current: current.key(LABEL), previous: previous.map(|material| material.key(LABEL)) })
    }

    /// For a new row.
    #[must_use]
    pub fn of(&self, subject: Subject, secret: &SecretString) -> Fingerprint {
        under(&self.current, subject, secret)
    }

    /// All under which the secret may be stored, the current one first: look for each of them.
    #[must_use]
    pub fn all(&self, subject: Subject, secret: &SecretString) -> Vec<Fingerprint> {
        let peppers = std::iter::once(&self.current).chain(&self.previous);
        peppers.map(|pepper| under(pepper, subject, secret)).collect()
    }
}

fn under(pepper: &[u8; 32], subject: Subject, secret: &SecretString) -> Fingerprint {
    let (platform, kind) = subject.words();
    // Normalised: only outer white space is taken off.
    let secret = secret.expose_secret().trim();
    let parts = [platform.as_bytes(), b"|", kind.as_bytes(), b"|", secret.as_bytes()];
    Fingerprint(hex::encode(mac(pepper, &parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pepper(seed: u8) -> Material {
        let bytes: Vec<u8> = (0..32u8).map(|n| n.wrapping_mul(n).wrapping_mul(37) ^ seed ^ n << 3).collect();
        Material::from_bytes(format!("pepper {seed}"), &bytes).unwrap()
    }

    const KEY: Subject =
        Subject::Credential { provider: Provider::Openai, account_type: AccountType::ApiKey };

    #[test]
    fn it_is_the_documented_hmac() {
        let secret = SecretString::from(" sk-CANARY-0123456789abcdef\n");
        let fingerprints = Fingerprints::new(&pepper(1), None).unwrap();
        let key = pepper(1).key(LABEL);
        let expected = mac(key.as_slice(), &[b"openai|api_key|sk-CANARY-0123456789abcdef"]);
        let made = fingerprints.of(KEY, &secret);
        assert_eq!(made.as_str(), hex::encode(expected));
        assert!(made.matches(&hex::encode(expected)) && !made.matches(&hex::encode(expected)[1..]));
        assert!(!format!("{made:?} {fingerprints:?}").contains(&made.as_str()[..8]));
    }

    #[test]
    fn kind_platform_and_pepper_all_change_it() {
        let secret = SecretString::from("13800000000");
        let fingerprints = Fingerprints::new(&pepper(1), None).unwrap();
        let oauth = Subject::Credential { provider: Provider::Openai, account_type: AccountType::Oauth };
        let subjects = [
            KEY,
            oauth,
            Subject::Phone,
            Subject::Payout { method: Method::Alipay },
            Subject::Payout { method: Method::Wechat },
        ];
        let mut made: Vec<_> = subjects.iter().map(|subject| fingerprints.of(*subject, &secret)).collect();
        made.push(Fingerprints::new(&pepper(2), None).unwrap().of(KEY, &secret));
        for (place, one) in made.iter().enumerate() {
            assert!(!made[place + 1..].contains(one), "{place}");
        }
    }

    #[test]
    fn two_peppers_are_accepted_and_must_differ() {
        let secret = SecretString::from("sk-CANARY-0123456789abcdef");
        let old = Fingerprints::new(&pepper(1), None).unwrap().of(KEY, &secret);
        let both = Fingerprints::new(&pepper(2), Some(&pepper(1))).unwrap();
        assert_eq!(both.all(KEY, &secret), [both.of(KEY, &secret), old]);
        assert!(matches!(Fingerprints::new(&pepper(1), Some(&pepper(1))), Err(Unfit::Same { .. })));
    }
}
