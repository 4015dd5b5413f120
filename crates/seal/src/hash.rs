//! SHA-256 digests in their one spelling, and the run hash.
//!
//! # The run hash, for any language
//!
//! 1. Take the member `run` of `metadata.json`.
//! 2. Write it as RFC 8785 canonical JSON in UTF-8. It holds no floats and no integer beyond ±(2^53 − 1), so
//!    this means: members sorted by UTF-16 code units, no white space, the shortest escapes.
//! 3. SHA-256 of those bytes, written as 64 lower-case hex digits.
//!
//! `v` inside `run` says which members the structure has; it is hashed with the rest, so two versions never
//! share a hash. Lengths and types are JSON's own: `"1"` and `1`, `null` and absent all differ.
//!
//! It is not a keyed hash: it proves equality, not origin. Origin is the signature over `manifest.json`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::jcs;

/// Deepest nesting of a run. Lower than [`crate::json::MAX_DEPTH`], because a run is nested in other files.
pub const MAX_RUN_DEPTH: u32 = 64;

/// A SHA-256 digest. Its only spelling is 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A text that is not 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("SHA-256 is not 64 lower-case hex digits; write it so")]
pub struct DigestError;

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Takes 32 bytes as they are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| DigestError)?;
        // hex reads both cases; one spelling means lower case only.
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(DigestError);
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Why a run has no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run is not an object with an integer member `v` of at least 1.
    #[error("run has no version: give it an integer member \"v\" of at least 1")]
    NoVersion,
    /// The run holds something that may not be signed.
    #[error("run can't be hashed: {0}")]
    Canonical(#[from] jcs::Error),
}

impl Error {
    /// The stable name of this refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoVersion => "run_no_version",
            Self::Canonical(error) => error.code(),
        }
    }
}

/// The hash of a run, by the rule at the head of this module.
///
/// ```
/// let run = serde_json::json!({"v": 1, "amount": "5.00"});
/// assert_eq!(seal::hash::run_hash(&run)?, seal::hash::Digest::of(br#"{"amount":"5.00","v":1}"#));
/// # Ok::<(), seal::hash::Error>(())
/// ```
///
/// # Errors
/// [`Error::NoVersion`], or [`Error::Canonical`] for floats, wide integers and a nesting beyond
/// [`MAX_RUN_DEPTH`].
pub fn run_hash(run: &Value) -> Result<Digest, Error> {
    run_bytes(run).map(|bytes| Digest::of(&bytes))
}

/// The bytes that [`run_hash`] hashes.
pub(crate) fn run_bytes(run: &Value) -> Result<Vec<u8>, Error> {
    if run.get("v").and_then(Value::as_u64).is_none_or(|v| v == 0) {
        return Err(Error::NoVersion);
    }
    Ok(jcs::exact_within(run, MAX_RUN_DEPTH)?)
}
