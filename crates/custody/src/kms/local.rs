//! A keyring with the server: versions of one key, each at least 32 random bytes from a file or a variable.
//! Wrapping is AES-256-GCM with alias and version as additional data; the stored bytes are the nonce, then
//! ciphertext and tag. Old versions stay until no row uses them. Not here: the registry of versions in the
//! database (crate `supply`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, ready};
use kernel::Random;
use zeroize::Zeroizing;

use super::{DataKey, Kms, KmsError, Wrapped};
use crate::gcm::{self, KEY_BYTES, NONCE_BYTES, TAG_BYTES};
use crate::material::{Material, Unfit, distinct};

/// Under this label the wrapping key is derived from the material.
const LABEL: &str = "onceseal custody kek v1";
/// First part of the wrap's additional data.
const WRAP: &[u8] = b"onceseal custody dek v1";
/// Characters of an alias at most: the column is `varchar(128)`.
const ALIAS_MAX: usize = 128;
/// Versions at most; each may still be needed by a row, and no more are ever live in practice.
const VERSIONS_MAX: usize = 64;

/// Why a keyring was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// Of the material.
    #[error("key version {version}: {cause}")]
    Material {
        /// Which version.
        version: u32,
        /// What is wrong.
        cause: Unfit,
    },
    /// Two versions hold the same key.
    #[error(transparent)]
    Same(#[from] Unfit),
    /// The alias is not one.
    #[error("a key alias has 1 to {ALIAS_MAX} letters, digits, '-', '_', '.' or '/'; {0:?} is none")]
    Alias(String),
    /// A version is named twice, is 0, or there are too many.
    #[error("key version {0} is 0, named twice or one of more than {VERSIONS_MAX}; number versions from 1")]
    Version(u32),
    /// The current version has no material.
    #[error("the current key version {0} has no key; add it, or name a version that has one")]
    Current(u32),
}

/// Versions of one key. `Debug` shows their numbers.
pub struct LocalKeyring {
    alias: String,
    current: u32,
    keys: BTreeMap<u32, Zeroizing<[u8; KEY_BYTES]>>,
    random: Arc<dyn Random>,
}

impl fmt::Debug for LocalKeyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<_> = self.keys.keys().collect();
        let mut shown = f.debug_struct("LocalKeyring");
        shown
            .field("alias", &self.alias)
            .field("current", &self.current)
            .field("versions", &versions)
            .finish()
    }
}

impl LocalKeyring {
    /// Makes a keyring of checked material; `current` wraps, the others only unwrap.
    ///
    /// # Errors
    /// [`KeyringError`]: the server must not start.
    pub fn new(
        alias: impl Into<String>,
        current: u32,
        materials: Vec<(u32, Material)>,
        random: Arc<dyn Random>,
    ) -> Result<Self, KeyringError> {
        let alias = alias.into();
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if alias.is_empty() || alias.len() > ALIAS_MAX || !alias.chars().all(letter) {
            return Err(KeyringError::Alias(alias));
        }
        distinct(&materials.iter().map(|(_, material)| material).collect::<Vec<_>>())?;
        let mut keys = BTreeMap::new();
        for (version, material) in materials {
            let known = keys.insert(version, material.key(LABEL)).is_some();
            let fits = (1..=i32::MAX.unsigned_abs()).contains(&version);
            if known || !fits || keys.len() > VERSIONS_MAX {
                return Err(KeyringError::Version(version));
            }
        }
        if !keys.contains_key(&current) {
            return Err(KeyringError::Current(current));
        }
        Ok(Self { alias, current, keys, random })
    }

    /// The versions that can be unwrapped, ascending: for a comparison with the registry at start-up.
    pub fn versions(&self) -> impl Iterator<Item = u32> {
        self.keys.keys().copied()
    }

    fn key(&self, version: u32) -> Result<&[u8; KEY_BYTES], KmsError> {
        let unknown = || KmsError::UnknownVersion { alias: self.alias.clone(), version };
        self.keys.get(&version).map(|key| &**key).ok_or_else(unknown)
    }

    fn refused(&self, version: u32) -> KmsError {
        KmsError::Refused { alias: self.alias.clone(), version }
    }

    fn aad(&self, version: u32) -> Vec<u8> {
        gcm::length_prefixed(&[WRAP, self.alias.as_bytes(), version.to_string().as_bytes()])
    }

    fn wrapped(&self, key: &DataKey) -> Result<Wrapped, KmsError> {
        let version = self.current;
        let mut nonce = [0; NONCE_BYTES];
        self.random.fill(&mut nonce);
        let sealed = gcm::seal(self.key(version)?, &nonce, &self.aad(version), key.expose());
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&sealed.map_err(|_| self.refused(version))?);
        Ok(Wrapped { version, bytes })
    }

    fn unwrapped(&self, wrapped: &Wrapped) -> Result<DataKey, KmsError> {
        let version = wrapped.version;
        let key = self.key(version)?;
        let refused = || self.refused(version);
        if wrapped.bytes.len() != NONCE_BYTES + KEY_BYTES + TAG_BYTES {
            return Err(refused());
        }
        let (nonce, sealed) = wrapped.bytes.split_first_chunk::<NONCE_BYTES>().ok_or_else(refused)?;
        let opened = gcm::open(key, nonce, &self.aad(version), sealed).map_err(|_| refused())?;
        let bytes = <&[u8; KEY_BYTES]>::try_from(opened.as_slice()).map_err(|_| refused())?;
        Ok(DataKey::new(*bytes))
    }
}

impl Kms for LocalKeyring {
    fn alias(&self) -> &str {
        &self.alias
    }

    fn current(&self) -> BoxFuture<'_, Result<u32, KmsError>> {
        Box::pin(ready(Ok(self.current)))
    }

    fn wrap<'a>(&'a self, key: &'a DataKey) -> BoxFuture<'a, Result<Wrapped, KmsError>> {
        Box::pin(ready(self.wrapped(key)))
    }

    fn unwrap<'a>(&'a self, wrapped: &'a Wrapped) -> BoxFuture<'a, Result<DataKey, KmsError>> {
        Box::pin(ready(self.unwrapped(wrapped)))
    }
}
