//! What makes two requests the same (section 7.2, `payload_hash`): HMAC-SHA256 over method, path and
//! canonical body, under a secret that rotates. Keyed, since a short body could be guessed from its plain
//! hash; an unkeyed digest tells payloads apart in locks, where it is never stored.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use kernel::{Digest, Fingerprint};
use secrecy::{ExposeSecret, SecretSlice};
use sha2::Sha256;

use crate::canonical::Node;
use crate::path::ApiPath;

/// Shortest secret, in bytes: as long as the hash (RFC 2104, section 3).
pub const SECRET_MIN: usize = 32;
/// Most former secrets. A rotation needs one; more than a few are never taken away again.
pub const FORMER_MAX: usize = 4;

/// Why secrets are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Shorter than [`SECRET_MIN`].
    #[error("a secret for fingerprints has {length} bytes; give it at least {SECRET_MIN} random ones")]
    Short {
        /// Its length.
        length: usize,
    },
    /// The same bytes stand for two versions.
    #[error("two secrets for fingerprints are the same; give each version its own")]
    Same,
    /// More former ones than [`FORMER_MAX`].
    #[error("there are {count} former secrets for fingerprints; keep at most {FORMER_MAX}")]
    Many {
        /// How many.
        count: usize,
    },
}

/// What makes two requests the same. The form that the crate `supply` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Under the current secret; it is kept.
    pub fingerprint: Fingerprint,
    /// Under the secrets of before a rotation.
    pub former: Vec<Fingerprint>,
    /// Without a secret; for locks only.
    pub unkeyed: Digest,
}

/// Makes fingerprints under the current secret and the former ones. A former secret is given for 72 h after a
/// rotation, the longest life of a key.
#[derive(Clone)]
pub struct Fingerprints {
    current: Hmac<Sha256>,
    former: Vec<Hmac<Sha256>>,
}

impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fingerprints").field("former", &self.former.len()).finish_non_exhaustive()
    }
}

impl Fingerprints {
    /// Takes the current secret and those of before.
    ///
    /// # Errors
    /// [`Unfit`] when one is short, two are the same, or there are too many.
    pub fn new(current: &SecretSlice<u8>, former: &[SecretSlice<u8>]) -> Result<Self, Unfit> {
        if former.len() > FORMER_MAX {
            return Err(Unfit::Many { count: former.len() });
        }
        let mut all: Vec<&[u8]> =
            std::iter::once(current).chain(former).map(ExposeSecret::expose_secret).collect();
        all.sort_unstable();
        all.dedup();
        if all.len() <= former.len() {
            return Err(Unfit::Same);
        }
        let former = former.iter().map(start).collect::<Result<_, _>>()?;
        Ok(Self { current: start(current)?, former })
    }

    /// Of a request. `method` is the method's word, upper case.
    #[must_use]
    pub fn of(&self, method: &str, path: &ApiPath, body: &Node) -> Payload {
        let text = format!("{method}\n{path}\n{}", body.canonical());
        let tag = |state: &Hmac<Sha256>| tag(state, text.as_bytes());
        Payload {
            fingerprint: tag(&self.current),
            former: self.former.iter().map(tag).collect(),
            unkeyed: Digest::of(text.as_bytes()),
        }
    }
}

fn start(secret: &SecretSlice<u8>) -> Result<Hmac<Sha256>, Unfit> {
    let bytes = secret.expose_secret();
    let short = Unfit::Short { length: bytes.len() };
    if bytes.len() < SECRET_MIN {
        return Err(short);
    }
    Hmac::new_from_slice(bytes).map_err(|_| short)
}

fn tag(state: &Hmac<Sha256>, text: &[u8]) -> Fingerprint {
    let bytes = state.clone().chain_update(text).finalize().into_bytes();
    // A tag always has the length of a digest; the type doesn't say so.
    Fingerprint::from_slice(&bytes).unwrap_or(Fingerprint::of(&bytes))
}
