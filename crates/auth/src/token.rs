//! An access token in clear: never shown, wiped when dropped, known elsewhere by its fingerprint.
//! Not here: what is in it (`jws`, [`claims`](crate::claims)), or whether it is good.

use std::fmt;

use kernel::Digest;
use zeroize::Zeroizing;

/// Longest token, in bytes: 64 scopes of 64 characters and the rest fit; headers of more are nobody's.
pub const TOKEN_MAX: usize = 8 * 1024;

/// A token. `Debug` shows none of it, there is no `Display`, and the memory is wiped on drop.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// Takes a text as it came; nothing is checked yet.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text, for the one who is to use it, and for whoever computes with it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is kept of it: SHA-256 over header and payload, without the signature. Anyone can turn an ES256
    /// signature `(r, s)` into `(r, n - s)`, which is as good; under a digest of the whole text, a revoked
    /// token would come back that way as one that was never revoked.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        let signed = self.0.rsplit_once('.').map_or(self.0.as_str(), |(signed, _)| signed);
        Digest::of(signed.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}
