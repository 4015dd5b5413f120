//! The envelope: a secret under a data key of its own, the data key wrapped by the key service (supply
//! specification, section 13.1), as one text for one column:
//! `v1.<kek_version>.<wrapped data key>.<nonce>.<ciphertext and tag>`, the last three base64url without
//! padding.
//!
//! The secret is bound to its [`Place`]: moved to another row, table, tenant or platform it does not open.
//! The version of the wrapping key is bound in the wrap only, so a new version rewraps the data key and
//! leaves the secret's ciphertext as it is.
//!
//! Not here: how keys are wrapped ([`crate::kms`]); which rows there are (crate `supply`).

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::Random;
use secrecy::{ExposeSecret, SecretString};

use crate::gcm::{self, KEY_BYTES, NONCE_BYTES, TAG_BYTES};
use crate::kms::{DataKey, Kms, KmsError, Wrapped};

/// What the columns `*_cipher_algo` hold.
pub const CIPHER_ALGO: &str = "AES-256-GCM";
/// Bytes of a secret at most; a credential has up to 4,096, an OAuth client's JSON a little more.
pub const SECRET_MAX: usize = 16 * 1024;
/// Bytes of a stored text at most: the secret in base64, the wrapped key, the rest.
const STORED_MAX: usize = 32 * 1024;
/// Bytes of a wrapped data key at most; key services answer with a few hundred.
const WRAPPED_MAX: usize = 4 * 1024;

/// Where a secret belongs. All four are known before the transaction and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Of the row's tenant.
    pub tenant_id: i64,
    /// The table, for instance `supply_accounts`.
    pub table: &'a str,
    /// What names the row without its database id: `key_id`, `settlement_no`; of a phone the supplier's
    /// user id.
    pub row: &'a str,
    /// The provider, the payout method, or `phone`.
    pub platform: &'a str,
}

impl Place<'_> {
    fn aad(&self) -> Vec<u8> {
        let tenant = self.tenant_id.to_string();
        let parts = [tenant.as_str(), self.table, self.row, self.platform];
        gcm::length_prefixed(&parts.map(str::as_bytes))
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of tenant {}", self.table, self.row, self.tenant_id)
    }
}

/// Why a secret was not sealed or not opened. Never the secret, never its ciphertext.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Empty, or more than [`SECRET_MAX`] bytes.
    #[error("a secret has 1 to {SECRET_MAX} bytes; refuse the input before it is sealed")]
    Length,
    /// The stored text is not of the form.
    #[error("the envelope's {part} is malformed; restore the row from a backup")]
    Malformed {
        /// Which of the five parts.
        part: &'static str,
    },
    /// The tag does not fit: changed, or moved here from another row.
    #[error(
        "the envelope in {place} was changed or belongs elsewhere; mark it broken, send nothing upstream, restore it from a backup"
    )]
    Refused {
        /// Table, row and tenant.
        place: String,
    },
    /// Of the key service.
    #[error(transparent)]
    Kms(#[from] KmsError),
}

/// A stored envelope, taken apart. `Debug` shows the version only.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope {
    wrapped: Wrapped,
    nonce: [u8; NONCE_BYTES],
    sealed: Vec<u8>,
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").field("kek_version", &self.wrapped.version).finish_non_exhaustive()
    }
}

impl Envelope {
    /// Reads the text of the column. Only the one spelling that [`Envelope::stored`] writes is taken.
    ///
    /// # Errors
    /// [`EnvelopeError::Malformed`], naming the part.
    pub fn parse(stored: &str) -> Result<Self, EnvelopeError> {
        let malformed = |part| EnvelopeError::Malformed { part };
        if stored.len() > STORED_MAX {
            return Err(malformed("length"));
        }
        let mut parts = stored.split('.');
        let mut next = |part| parts.next().ok_or(EnvelopeError::Malformed { part });
        if next("format")? != "v1" {
            return Err(malformed("format"));
        }
        let version = version(next("key version")?).ok_or(malformed("key version"))?;
        let bytes = |text: &str, part| URL_SAFE_NO_PAD.decode(text).map_err(|_| malformed(part));
        let wrapped = bytes(next("data key")?, "data key")?;
        let nonce = bytes(next("nonce")?, "nonce")?.try_into().map_err(|_| malformed("nonce"))?;
        let sealed = bytes(next("ciphertext")?, "ciphertext")?;
        if wrapped.is_empty() || wrapped.len() > WRAPPED_MAX {
            return Err(malformed("data key"));
        }
        // An empty secret is never sealed.
        if sealed.len() <= TAG_BYTES || parts.next().is_some() {
            return Err(malformed("ciphertext"));
        }
        Ok(Self { wrapped: Wrapped { version, bytes: wrapped }, nonce, sealed })
    }

    /// The text for the column. It is no secret under a good key, and no page or log shows it either.
    #[must_use]
    pub fn stored(&self) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (wrapped, nonce, sealed) = (text(&self.wrapped.bytes), text(&self.nonce), text(&self.sealed));
        format!("v1.{}.{wrapped}.{nonce}.{sealed}", self.wrapped.version)
    }

    /// Version of the key that wraps the data key: the column `*_key_version`.
    #[must_use]
    pub const fn kek_version(&self) -> u32 {
        self.wrapped.version
    }
}

/// 1 to 2^31-1 in its one spelling: the column is a 32-bit integer.
fn version(text: &str) -> Option<u32> {
    let number = text.parse::<u32>().ok().filter(|number| (1..=i32::MAX.unsigned_abs()).contains(number))?;
    (number.to_string() == text).then_some(number)
}

/// What a write puts into the columns of section 5.0.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Column `encrypted_credentials`, `*_cipher`.
    pub envelope: String,
    /// Column `*_cipher_algo`.
    pub cipher_algo: &'static str,
    /// Column `*_kms_key_alias`.
    pub kms_key_alias: String,
    /// Column `*_key_version`.
    pub key_version: u32,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Sealed");
        shown.field("alias", &self.kms_key_alias).field("version", &self.key_version).finish_non_exhaustive()
    }
}

/// Seals, opens and rewraps. Calls a key service, so never inside a transaction.
#[derive(Clone, Debug)]
pub struct Custody {
    kms: Arc<dyn Kms>,
    earlier: Vec<Arc<dyn Kms>>,
    random: Arc<dyn Random>,
}

impl Custody {
    /// New secrets are sealed under `kms`.
    #[must_use]
    pub const fn new(kms: Arc<dyn Kms>, random: Arc<dyn Random>) -> Self {
        Self { kms, earlier: Vec::new(), random }
    }

    /// Adds a key service that only opens and is rewrapped from: a move from one service to another.
    #[must_use]
    pub fn with_earlier(mut self, kms: Arc<dyn Kms>) -> Self {
        self.earlier.push(kms);
        self
    }

    /// The key service under which new secrets are sealed.
    #[must_use]
    pub fn kms(&self) -> &Arc<dyn Kms> {
        &self.kms
    }

    /// Seals under a fresh data key.
    ///
    /// # Errors
    /// [`EnvelopeError::Length`], or the key service's.
    pub async fn seal(&self, place: &Place<'_>, secret: &SecretString) -> Result<Sealed, EnvelopeError> {
        let secret = secret.expose_secret().as_bytes();
        if secret.is_empty() || secret.len() > SECRET_MAX {
            return Err(EnvelopeError::Length);
        }
        let mut key = DataKey::new([0; KEY_BYTES]);
        self.random.fill(key.expose_mut());
        let mut nonce = [0; NONCE_BYTES];
        self.random.fill(&mut nonce);
        let sealed = gcm::seal(key.expose(), &nonce, &place.aad(), secret).map_err(|_| refused(place))?;
        let wrapped = self.kms.wrap(&key).await?;
        Ok(self.columns(&Envelope { wrapped, nonce, sealed }))
    }

    /// Opens what the row's columns hold: `alias` is `*_kms_key_alias`.
    ///
    /// # Errors
    /// [`EnvelopeError`]: malformed, refused, or the key service's.
    pub async fn open(
        &self,
        place: &Place<'_>,
        alias: &str,
        stored: &str,
    ) -> Result<SecretString, EnvelopeError> {
        let envelope = Envelope::parse(stored)?;
        let key = self.service(alias)?.unwrap(&envelope.wrapped).await?;
        let text = gcm::open(key.expose(), &envelope.nonce, &place.aad(), &envelope.sealed)
            .map_err(|_| refused(place))?;
        // Only text was sealed; the check costs no copy of it.
        let text = std::str::from_utf8(&text).map_err(|_| refused(place))?;
        Ok(SecretString::from(text))
    }

    /// Wraps the data key anew under the current service and version; the secret's ciphertext stays as it
    /// is and the secret is not seen. `None` if the row is there already.
    ///
    /// # Errors
    /// [`EnvelopeError`]: malformed, or the key service's. Nothing is to be written then.
    pub async fn rewrap(&self, alias: &str, stored: &str) -> Result<Option<Sealed>, EnvelopeError> {
        let mut envelope = Envelope::parse(stored)?;
        let service = self.service(alias)?;
        envelope.wrapped = if alias == self.kms.alias() {
            if envelope.kek_version() == self.kms.current().await? {
                return Ok(None);
            }
            service.rewrap(&envelope.wrapped).await?
        } else {
            let key = service.unwrap(&envelope.wrapped).await?;
            self.kms.wrap(&key).await?
        };
        Ok(Some(self.columns(&envelope)))
    }

    fn columns(&self, envelope: &Envelope) -> Sealed {
        Sealed {
            envelope: envelope.stored(),
            cipher_algo: CIPHER_ALGO,
            kms_key_alias: self.kms.alias().to_owned(),
            key_version: envelope.kek_version(),
        }
    }

    fn service(&self, alias: &str) -> Result<&dyn Kms, KmsError> {
        let mut all = std::iter::once(&self.kms).chain(&self.earlier);
        let found = all.find(|kms| kms.alias() == alias).map(AsRef::as_ref);
        found.ok_or_else(|| KmsError::UnknownAlias { alias: alias.to_owned() })
    }
}

fn refused(place: &Place<'_>) -> EnvelopeError {
    EnvelopeError::Refused { place: place.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_spelling_is_read() {
        let text = URL_SAFE_NO_PAD.encode([9; 17]);
        let nonce = URL_SAFE_NO_PAD.encode([1; 12]);
        let good = format!("v1.7.AAEC.{nonce}.{text}");
        let envelope = Envelope::parse(&good).unwrap();
        assert_eq!((envelope.kek_version(), envelope.stored()), (7, good.clone()));
        let cases = [
            (good.replace("v1", "v2"), "format"),
            (good.replace(".7.", ".07."), "key version"),
            (good.replace(".7.", ".0."), "key version"),
            (good.replace(".7.", ".+7."), "key version"),
            (good.replace(".7.", ".2147483648."), "key version"),
            (good.replace("AAEC", ""), "data key"),
            (good.replace("AAEC", "AAE="), "data key"),
            (good.replace("AAEC", &"A".repeat(8000)), "data key"),
            (good.replace(&nonce, "AAEC"), "nonce"),
            (good.replace(&text, &URL_SAFE_NO_PAD.encode([9; 16])), "ciphertext"),
            (format!("{good}."), "ciphertext"),
            (format!("{good}="), "ciphertext"),
            ("A".repeat(STORED_MAX + 1), "length"),
            ("v1.7".into(), "data key"),
        ];
        for (stored, part) in cases {
            assert_eq!(Envelope::parse(&stored), Err(EnvelopeError::Malformed { part }), "{stored:.60}");
        }
    }
}
