//! Ed25519 keys, key ids and signatures (RFC 8032), each with one accepted spelling.
//!
//! Verification is the strict one: a public key of small order or in a non-canonical encoding is refused when
//! it is read, S at or above the group order is refused when a signature is read, and R of small order is
//! refused while verifying. So one document has one signature, and no key signs everything.
//!
//! What it is not: a store of keys. The periods of keys are in [`crate::jwks`]; where private keys lie is the
//! caller's business.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::KeypairBytes;
use ed25519_dalek::{Signer as _, VerifyingKey};
use pkcs8::der::pem::PemLabel as _;
use pkcs8::pkcs5::{pbes2, scrypt};
use pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use sha2::{Digest as _, Sha256};
use zeroize::{Zeroize as _, Zeroizing};

/// The `alg` of everything signed here (RFC 9864).
pub const ALGORITHM: &str = "Ed25519";

/// scrypt cost of an encrypted key file: N = 2^14, r = 8, p = 1. The most that OpenSSL reads by default.
const SCRYPT: (u8, u32, u32) = (14, 8, 1);

/// The group order L = 2^252 + 27742317777372353535851937790883648493, little-endian (RFC 8032 section 5.1).
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The field prime p = 2^255 − 19, little-endian (RFC 8032 section 5.1).
const PRIME: [u8; 32] = {
    let mut prime = [0xff; 32];
    prime[0] = 0xed;
    prime[31] = 0x7f;
    prime
};

/// Why a key, a key id or a signature was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not the unpadded base64url of 32 bytes.
    #[error("public key is not 43 characters of unpadded base64url; write the 32 bytes so")]
    PublicKeyText,
    /// The bytes name no point of the curve.
    #[error("public key is not a point of the curve; take the key from its owner again")]
    NotAPoint,
    /// The point has another, shorter encoding (RFC 8032 section 5.1.3).
    #[error("public key is not in its canonical encoding; take the key from its owner again")]
    NotCanonical,
    /// The point has small order: signatures under it fit any message.
    #[error("public key is weak (small order) and proves nothing; take the key from its owner again")]
    Weak,
    /// Not the unpadded base64url of 32 bytes.
    #[error("key id is not 43 characters of unpadded base64url; use the RFC 7638 thumbprint")]
    KeyIdText,
    /// Not the unpadded base64url of 64 bytes.
    #[error("signature is not 86 characters of unpadded base64url; only this spelling is accepted")]
    SignatureText,
    /// S is not below the group order (RFC 8032 section 5.1.7).
    #[error("signature is malleated: its S is not below the group order; use the signature as issued")]
    SignatureRange,
    /// The signature does not belong to this message and key.
    #[error("signature does not belong to these bytes and this key")]
    SignatureWrong,
    /// Not a PKCS#8 file with an Ed25519 key.
    #[error("key file is not a PKCS#8 PEM with an Ed25519 key; make one with \"openssl genpkey\"")]
    KeyFile,
    /// The key file is encrypted and no passphrase was given.
    #[error("key file is encrypted; give its passphrase")]
    PassphraseMissing,
    /// The passphrase does not open the file, or the file is damaged.
    #[error("key file can't be decrypted: the passphrase is another one or the file is damaged")]
    PassphraseWrong,
}

impl Error {
    /// The stable name of this refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PublicKeyText => "public_key_text",
            Self::NotAPoint => "public_key_not_a_point",
            Self::NotCanonical => "public_key_not_canonical",
            Self::Weak => "public_key_weak",
            Self::KeyIdText => "key_id_text",
            Self::SignatureText => "signature_text",
            Self::SignatureRange => "signature_malleated",
            Self::SignatureWrong => "signature_wrong",
            Self::KeyFile => "key_file",
            Self::PassphraseMissing => "key_passphrase_missing",
            Self::PassphraseWrong => "key_passphrase_wrong",
        }
    }
}

/// Strict base64url of a fixed number of bytes: no padding, no stray bits, no other alphabet.
fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// `a < b` as little-endian numbers.
fn below(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// Name of a public key: its JWK thumbprint (RFC 7638, RFC 8037), 32 bytes. Spelt as unpadded base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 32]);

impl KeyId {
    fn of(public: &[u8; 32]) -> Self {
        let x = URL_SAFE_NO_PAD.encode(public);
        let thumbprint = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        Self(Sha256::digest(thumbprint).into())
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

impl FromStr for KeyId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        decode(text).map(Self).ok_or(Error::KeyIdText)
    }
}

/// An Ed25519 signature: R, then S below the group order; 64 bytes. Spelt as unpadded base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 64]);

impl Signature {
    /// Takes 64 bytes.
    ///
    /// # Errors
    /// [`Error::SignatureRange`] when S is not below the group order.
    pub fn from_bytes(bytes: [u8; 64]) -> Result<Self, Error> {
        let s = bytes.last_chunk::<32>().ok_or(Error::SignatureText)?;
        if !below(s, &ORDER) {
            return Err(Error::SignatureRange);
        }
        Ok(Self(bytes))
    }

    /// The 64 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

impl FromStr for Signature {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        decode(text).ok_or(Error::SignatureText).and_then(Self::from_bytes)
    }
}

/// A public key that was checked while it was read: a point of the curve, canonical, not of small order.
/// Spelt as unpadded base64url of its 32 bytes (the `x` of a JWK).
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    point: VerifyingKey,
    id: KeyId,
}

impl PublicKey {
    /// Takes the 32 bytes of RFC 8032 section 5.1.2.
    ///
    /// # Errors
    /// [`Error::NotAPoint`], [`Error::NotCanonical`] or [`Error::Weak`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, Error> {
        let mut y = *bytes;
        // The top bit is the sign of x, not part of y. With x = 0 it has no meaning, but those two points are
        // of small order and fall to the last check.
        if let Some(top) = y.last_mut() {
            *top &= 0x7f;
        }
        if !below(&y, &PRIME) {
            return Err(Error::NotCanonical);
        }
        let point = VerifyingKey::from_bytes(bytes).map_err(|_| Error::NotAPoint)?;
        if point.is_weak() {
            return Err(Error::Weak);
        }
        Ok(Self { point, id: KeyId::of(bytes) })
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.point.as_bytes()
    }

    /// The key's name.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The key as `SubjectPublicKeyInfo` in PEM, as `openssl pkeyutl -verify -pubin` reads it (RFC 8410).
    ///
    /// # Errors
    /// [`Error::KeyFile`] if the encoder fails, which it has no cause to.
    pub fn to_pem(&self) -> Result<String, Error> {
        self.point.to_public_key_pem(LineEnding::LF).map_err(|_| Error::KeyFile)
    }

    /// Checks a signature over exactly these bytes, strictly.
    ///
    /// ```
    /// use seal::key::{Error, SigningKey};
    ///
    /// let key = SigningKey::from_seed(&[7; 32]);
    /// let signature = key.sign(b"5.00");
    /// assert_eq!(key.public_key().verify(b"5.00", &signature), Ok(()));
    /// assert_eq!(key.public_key().verify(b"9.00", &signature), Err(Error::SignatureWrong));
    /// ```
    ///
    /// # Errors
    /// [`Error::SignatureWrong`].
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), Error> {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.point.verify_strict(message, &signature).map_err(|_| Error::SignatureWrong)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_bytes(&decode(text).ok_or(Error::PublicKeyText)?)
    }
}

/// Fresh random bytes for one encrypted key file. Never use a pair twice.
#[derive(Clone, Copy)]
pub struct FileSalt {
    /// Salt of the key derivation.
    pub salt: [u8; 16],
    /// Initialisation vector of AES-256-CBC.
    pub iv: [u8; 16],
}

/// A private key. Its `Debug` shows the key id alone; its memory is wiped when it is dropped.
pub struct SigningKey {
    inner: ed25519_dalek::SigningKey,
    public: PublicKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.public.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Makes the key of a 32-byte seed (RFC 8032 section 5.1.5). The seed is the caller's randomness.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let inner = ed25519_dalek::SigningKey::from_bytes(seed);
        let point = inner.verifying_key();
        let id = KeyId::of(point.as_bytes());
        Self { inner, public: PublicKey { point, id } }
    }

    /// The public half, to publish and to verify with.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.public.clone()
    }

    /// The key's name.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.public.id
    }

    /// The public half, for those who only look.
    pub(crate) const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs exactly these bytes. Deterministic: same key and bytes, same signature.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.inner.sign(message).to_bytes())
    }

    /// Reads an unencrypted PKCS#8 file (`-----BEGIN PRIVATE KEY-----`, RFC 8410).
    ///
    /// # Errors
    /// [`Error::PassphraseMissing`] for an encrypted file, [`Error::KeyFile`] for anything else unreadable.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        if pem.contains(EncryptedPrivateKeyInfoRef::PEM_LABEL) {
            return Err(Error::PassphraseMissing);
        }
        Self::from_pair(KeypairBytes::from_pkcs8_pem(pem).map_err(|_| Error::KeyFile)?)
    }

    /// Reads an encrypted PKCS#8 file (`-----BEGIN ENCRYPTED PRIVATE KEY-----`, PBES2).
    ///
    /// # Errors
    /// [`Error::KeyFile`] when the file is not an encrypted one, [`Error::PassphraseWrong`] when it does not
    /// open.
    pub fn from_encrypted_pem(pem: &str, passphrase: &[u8]) -> Result<Self, Error> {
        if !pem.contains(EncryptedPrivateKeyInfoRef::PEM_LABEL) {
            return Err(Error::KeyFile);
        }
        let pair =
            KeypairBytes::from_pkcs8_encrypted_pem(pem, passphrase).map_err(|_| Error::PassphraseWrong)?;
        Self::from_pair(pair)
    }

    /// Writes an unencrypted PKCS#8 file, as `openssl genpkey -algorithm ed25519` does.
    ///
    /// # Errors
    /// [`Error::KeyFile`] if the encoder fails, which it has no cause to.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, Error> {
        self.with_pair(|pair| pair.to_pkcs8_pem(LineEnding::LF)).map_err(|_| Error::KeyFile)
    }

    /// Writes an encrypted PKCS#8 file: PBES2 with scrypt and AES-256-CBC, which OpenSSL reads.
    ///
    /// # Errors
    /// [`Error::KeyFile`] if the encoder fails, which it has no cause to.
    pub fn to_encrypted_pem(&self, passphrase: &[u8], random: FileSalt) -> Result<Zeroizing<String>, Error> {
        let (log_n, r, p) = SCRYPT;
        let cost = scrypt::Params::new(log_n, r, p).map_err(|_| Error::KeyFile)?;
        let scheme = pbes2::Parameters::generate_scrypt_aes256cbc(cost, &random.salt, random.iv)
            .map_err(|_| Error::KeyFile)?;
        let plain = self.with_pair(KeypairBytes::to_pkcs8_der).map_err(|_| Error::KeyFile)?;
        PrivateKeyInfoRef::try_from(plain.as_bytes())
            .and_then(|key| key.encrypt_with_params(scheme, passphrase))
            .map_err(|_| Error::KeyFile)?
            .to_pem(EncryptedPrivateKeyInfoRef::PEM_LABEL, LineEnding::LF)
            .map_err(|_| Error::KeyFile)
    }

    /// The key of a file. A file of version 2 also names the public key; it must be the right one.
    fn from_pair(mut pair: KeypairBytes) -> Result<Self, Error> {
        let key = Self::from_seed(&pair.secret_key);
        pair.secret_key.zeroize();
        match &pair.public_key {
            Some(public) if public.to_bytes() != *key.public.as_bytes() => Err(Error::KeyFile),
            _ => Ok(key),
        }
    }

    /// Lends the seed to an encoder and wipes it afterwards. Version 1 of PKCS#8, without the public key:
    /// what OpenSSL writes (RFC 8410 section 7).
    fn with_pair<T>(&self, encode: impl FnOnce(&KeypairBytes) -> T) -> T {
        let mut pair = KeypairBytes { secret_key: self.inner.to_bytes(), public_key: None };
        let encoded = encode(&pair);
        pair.secret_key.zeroize();
        encoded
    }
}
