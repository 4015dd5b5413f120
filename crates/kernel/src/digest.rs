//! SHA-256 over fields with their lengths, so that `("ab", "c")` and `("a", "bc")` differ.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// 32 bytes of SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Stands for "not known": the fingerprint of a record that came from elsewhere. No input hashes to it.
    pub const UNKNOWN: Self = Self([0; 32]);

    /// SHA-256 of the bytes as they are.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// SHA-256 over the fields, each behind its length as eight big-endian bytes.
    #[must_use]
    pub fn of_fields(fields: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for field in fields {
            hasher.update((field.len() as u64).to_be_bytes());
            hasher.update(field);
        }
        Self(hasher.finalize().into())
    }

    /// From 32 bytes as stored; `None` for another length.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// From 64 lower-case hex digits as stored; `None` for anything else.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        let digest = Self(bytes);
        (digest.to_hex() == text).then_some(digest)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight bytes as a signed integer: narrow enough for an index or a lock, never an
    /// identity by itself.
    #[must_use]
    pub fn word(&self) -> i64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        i64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// 64 lower-case hex digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// What makes two submissions under one key "the same": a digest of the fields that count.
pub type Fingerprint = Digest;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cannot_be_shifted_into_each_other() {
        let differ = |left: &[&[u8]], right: &[&[u8]]| {
            assert_ne!(Digest::of_fields(left), Digest::of_fields(right), "{left:?} {right:?}");
        };
        differ(&[b"ab", b"c"], &[b"a", b"bc"]);
        differ(&[b"", b"x"], &[b"x", b""]);
        differ(&[b"x"], &[b"x", b""]);
        differ(&[], &[b""]);
    }

    #[test]
    fn a_stored_digest_of_another_length_is_not_one() {
        assert_eq!(Digest::from_slice(&[0; 31]), None);
        assert_eq!(Digest::from_slice(Digest::of(b"x").as_bytes()), Some(Digest::of(b"x")));
    }

    #[test]
    fn a_digest_in_hex_is_read_back_and_nothing_else_is() {
        let digest = Digest::of(b"x");
        let hex = digest.to_hex();
        assert_eq!(Digest::from_hex(&hex), Some(digest));
        for other in [&hex[1..], &hex.to_uppercase(), &format!("{hex}0"), "", &hex.replace('a', "g")] {
            assert_eq!(Digest::from_hex(other), None, "{other}");
        }
    }
}
