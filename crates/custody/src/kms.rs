//! The port to a key service that wraps data keys, and its implementations.
//!
//! [`local`]: a keyring in files or variables. Its keys are with the server, so it protects copies of the
//! database and not against whoever has the server. [`vault`]: the transit engine of HashiCorp Vault over
//! HTTP; the wrapping key never leaves it.
//!
//! Calls go over the network: never inside a transaction.

pub mod local;
pub mod vault;

use std::fmt;

use futures::future::BoxFuture;
use zeroize::Zeroizing;

use crate::gcm::KEY_BYTES;
use crate::wire::Cause;

pub use local::LocalKeyring;
pub use vault::Vault;

/// A key for one secret. `Debug` shows nothing; the memory is wiped on drop.
pub struct DataKey(Zeroizing<[u8; KEY_BYTES]>);

impl DataKey {
    /// Takes 32 bytes.
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the place that computes with them.
    #[must_use]
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    pub(crate) fn expose_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(hidden)")
    }
}

/// A wrapped data key: what is stored. `Debug` shows the version only.
#[derive(Clone, PartialEq, Eq)]
pub struct Wrapped {
    /// Version of the wrapping key, from 1.
    pub version: u32,
    /// As the service gave it.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrapped").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Why a key service did not wrap or unwrap. Never a key, never the service's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KmsError {
    /// No service of that alias is configured.
    #[error("no key service {alias:?} is configured; add it as an earlier one until its rows are rewrapped")]
    UnknownAlias {
        /// Of the row.
        alias: String,
    },
    /// The service has no such version (any more).
    #[error("key {alias:?} has no version {version}; restore that version, rows still need it")]
    UnknownVersion {
        /// Of the key.
        alias: String,
        /// Of the row.
        version: u32,
    },
    /// The wrapped key is not one of this key's: changed, or another key under the same name.
    #[error(
        "key {alias:?} version {version} does not open this wrapped data key; it was changed, or the service holds another key"
    )]
    Refused {
        /// Of the key.
        alias: String,
        /// Of the wrapping key.
        version: u32,
    },
    /// The service does not let us.
    #[error("the key service denies the use of {alias:?}; check the token and its policy")]
    Denied {
        /// Of the key.
        alias: String,
    },
    /// No answer in time, or none that stood for one. It may be tried again.
    #[error("the key service for {alias:?} is out of reach ({cause}); try again later")]
    Unreachable {
        /// Of the key.
        alias: String,
        /// Which kind of failure.
        cause: Cause,
    },
    /// An answer that is none of the documented ones, or a key of the wrong kind.
    #[error("the key service for {alias:?} {what}; check its address and the key's settings")]
    Unexpected {
        /// Of the key.
        alias: String,
        /// What was wrong with it.
        what: &'static str,
    },
}

impl KmsError {
    /// Whether the same call may succeed later without anybody changing a thing.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

/// A service that keeps wrapping keys in versions.
pub trait Kms: Send + Sync + fmt::Debug {
    /// The key's name: the columns `*_kms_key_alias`.
    fn alias(&self) -> &str;

    /// The version that wraps now.
    fn current(&self) -> BoxFuture<'_, Result<u32, KmsError>>;

    /// Wraps under the current version.
    fn wrap<'a>(&'a self, key: &'a DataKey) -> BoxFuture<'a, Result<Wrapped, KmsError>>;

    /// Unwraps what any version wrapped.
    fn unwrap<'a>(&'a self, wrapped: &'a Wrapped) -> BoxFuture<'a, Result<DataKey, KmsError>>;

    /// Wraps under the current version what an earlier one wrapped.
    fn rewrap<'a>(&'a self, wrapped: &'a Wrapped) -> BoxFuture<'a, Result<Wrapped, KmsError>> {
        Box::pin(async move {
            let key = self.unwrap(wrapped).await?;
            self.wrap(&key).await
        })
    }
}
