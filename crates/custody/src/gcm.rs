//! AES-256-GCM with a 96-bit nonce and a 128-bit tag (NIST SP 800-38D), by the `aes-gcm` crate, whose key
//! schedule is wiped on drop. Not here: which key, and what is bound as additional data.

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use zeroize::Zeroizing;

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;
/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 12;
/// Bytes of a tag.
pub(crate) const TAG_BYTES: usize = 16;

/// The tag does not fit: another key, other additional data, or a changed text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Ciphertext and tag.
pub(crate) fn seal(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    text: &[u8],
) -> Result<Vec<u8>, Refused> {
    Aes256Gcm::new(key.into()).encrypt(nonce.into(), Payload { msg: text, aad }).map_err(|_| Refused)
}

/// The text, if nothing was changed.
pub(crate) fn open(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Refused> {
    let text = Aes256Gcm::new(key.into()).decrypt(nonce.into(), Payload { msg: sealed, aad });
    text.map(Zeroizing::new).map_err(|_| Refused)
}

/// Each part behind its length in bytes, 32 bits big endian: no two lists of parts give the same bytes.
pub(crate) fn length_prefixed(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        // A part beyond 4 GiB is cut off by no caller: names and numbers only.
        bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_test_case_is_reproduced() {
        // Test case 16 of "The Galois/Counter Mode of Operation" (McGrew and Viega, 2005), AES-256.
        let hex = |text: &str| hex::decode(text).unwrap();
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let nonce = hex("cafebabefacedbaddecaf888");
        let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let text = hex(concat!(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525",
            "b16aedf5aa0de657ba637b39",
        ));
        let sealed = seal(&key.try_into().unwrap(), &nonce.clone().try_into().unwrap(), &aad, &text).unwrap();
        let expected = concat!(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838",
            "c5f61e6393ba7a0abcc9f662",
            "76fc6ece0f4e1768cddf8853bb2d551b",
        );
        assert_eq!(hex::encode(sealed), expected);
    }

    #[test]
    fn no_shift_between_parts_gives_the_same_bytes() {
        assert_ne!(length_prefixed(&[b"ab", b"c"]), length_prefixed(&[b"a", b"bc"]));
        assert_ne!(length_prefixed(&[b"a", b""]), length_prefixed(&[b"", b"a"]));
        assert_eq!(length_prefixed(&[b"ab"]), [0, 0, 0, 2, b'a', b'b']);
    }
}
