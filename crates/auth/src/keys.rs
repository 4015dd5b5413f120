//! The public keys of an issuer (RFC 7517, RFC 7518 section 6): which of a published set can be used, and
//! the check of a signature. RSA of 2048 to 8192 bits for RS256, P-256 for ES256, nothing else.
//!
//! A key is used with its one algorithm, which is the key's property and never the token's choice
//! (RFC 8725, section 3.1). What can't be used is left out and named in [`Keys::left_out`], as RFC 7517
//! section 5 wants it: issuers publish keys for encryption and newer algorithms beside ours.
//!
//! Not here: where a set comes from ([`jwks`](crate::jwks), [`issuer`](crate::issuer)).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use p256::ecdsa::VerifyingKey;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

use crate::jws::is_kid;
use crate::refusal::Refusal;

/// Longest set that is read, in bytes: [`KEYS_MAX`] keys of the longest kind fit.
pub const SET_MAX: usize = 128 * 1024;
/// Most keys in a set. Issuers publish two or three.
pub const KEYS_MAX: usize = 64;
/// Shortest RSA modulus, in bits (RFC 7518, section 3.3).
const RSA_BITS_MIN: usize = 2048;
/// Longest RSA modulus, in bits: beyond it the check itself becomes a burden.
const RSA_BITS_MAX: usize = 8192;

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
}

impl Algorithm {
    /// The word in `alg`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }

    /// The algorithm of this word; case counts. `None` for every other word, `none` and HS256 among them.
    #[must_use]
    pub fn from_name(text: &str) -> Option<Self> {
        [Self::Rs256, Self::Es256].into_iter().find(|algorithm| algorithm.as_str() == text)
    }
}

/// A key that was checked when it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(Material);

#[derive(Clone, PartialEq, Eq)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// SEC1, uncompressed: 04, x, y.
    P256(Vec<u8>),
}

impl PublicKey {
    /// The one algorithm that this key is for.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self.0 {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
        }
    }

    /// Whether the signature is this key's over these bytes.
    #[must_use]
    pub fn verify(&self, signed: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Material::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }
                .verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
                .is_ok(),
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature).is_ok()
            }
        }
    }

    pub(crate) fn of_p256(key: &VerifyingKey) -> Self {
        Self(Material::P256(key.to_sec1_point(false).as_bytes().to_vec()))
    }

    fn read(jwk: &Map<String, Value>) -> Result<Self, LeftOut> {
        if ["d", "p", "q", "dp", "dq", "qi", "oth", "k"].iter().any(|name| jwk.contains_key(*name)) {
            return Err(LeftOut::Private);
        }
        for_signatures(jwk)?;
        let wanted = match jwk.get("alg") {
            None => None,
            Some(alg) => Some(alg.as_str().and_then(Algorithm::from_name).ok_or(LeftOut::Algorithm)?),
        };
        let key = match jwk.get("kty").and_then(Value::as_str) {
            Some("RSA") => rsa(jwk)?,
            Some("EC") => p256(jwk)?,
            _ => return Err(LeftOut::Kind),
        };
        if wanted.is_some_and(|wanted| wanted != key.algorithm()) {
            return Err(LeftOut::Algorithm);
        }
        Ok(key)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.algorithm().as_str())
    }
}

/// Why a published key is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOut {
    /// Not an object.
    #[error("it is not an object")]
    Form,
    /// No `kid` of 1 to 128 visible ASCII characters; nothing could name the key.
    #[error("it has no kid of 1 to 128 visible characters")]
    KeyId,
    /// Private or symmetric members: what is published is no secret, so the key is worth nothing.
    #[error("it shows a private or symmetric key; the issuer must replace it")]
    Private,
    /// `use` or `key_ops` say that it is not for signatures.
    #[error("it is not for signatures (use, key_ops)")]
    Use,
    /// Neither RSA nor EC.
    #[error("its kty is neither RSA nor EC")]
    Kind,
    /// `alg` is another than the key's one of RS256 and ES256.
    #[error("its alg is not RS256 on RSA or ES256 on P-256")]
    Algorithm,
    /// A modulus that is short, long or not in its one spelling.
    #[error("its modulus is not of {RSA_BITS_MIN} to {RSA_BITS_MAX} bits in its shortest spelling")]
    Modulus,
    /// A modulus with the mark of CVE-2017-15361 (ROCA), which can be factored.
    #[error(
        "its modulus comes from a generator that is known to be broken (ROCA); the issuer must replace it"
    )]
    Roca,
    /// An exponent that is even, small or huge.
    #[error("its exponent is not an odd number from 65537 to 2^33 - 1")]
    Exponent,
    /// Another curve, or a point that is not on it.
    #[error("it is not a point on P-256")]
    Point,
}

/// Why a whole set is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Longer than [`SET_MAX`], or more than [`KEYS_MAX`] keys.
    #[error("the key set is too large; at most {KEYS_MAX} keys in {SET_MAX} bytes are read")]
    TooLarge,
    /// Not strict JSON.
    #[error("the key set can't be read: {0}")]
    Json(#[from] seal::json::Error),
    /// Not an object with a list `keys`.
    #[error("the key set is not an object with a list \"keys\"; compare the address")]
    Form,
    /// One name for two usable keys.
    #[error("two keys of the set have the same kid; the issuer must rename one")]
    Twice,
    /// Not one usable key.
    #[error("the key set has no key that can be used; RS256 with 2048 bits or more and ES256 can")]
    Empty,
}

/// Usable keys by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    by_kid: BTreeMap<String, Arc<PublicKey>>,
    left_out: Vec<(usize, LeftOut)>,
}

impl Keys {
    /// Reads a set (`application/jwk-set+json`).
    ///
    /// # Errors
    /// [`Error`]; a set of which nothing can be used is one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > SET_MAX {
            return Err(Error::TooLarge);
        }
        let set = seal::json::parse(bytes)?;
        let listed = set.get("keys").and_then(Value::as_array).ok_or(Error::Form)?;
        if listed.len() > KEYS_MAX {
            return Err(Error::TooLarge);
        }
        let mut keys = Self { by_kid: BTreeMap::new(), left_out: Vec::new() };
        for (position, jwk) in listed.iter().enumerate() {
            match named(jwk) {
                Ok((kid, key)) => keys.add(kid, key)?,
                Err(cause) => keys.left_out.push((position, cause)),
            }
        }
        if keys.by_kid.is_empty() { Err(Error::Empty) } else { Ok(keys) }
    }

    pub(crate) fn of(named: impl IntoIterator<Item = (String, PublicKey)>) -> Result<Self, Error> {
        let mut keys = Self { by_kid: BTreeMap::new(), left_out: Vec::new() };
        for (kid, key) in named {
            keys.add(kid, key)?;
        }
        Ok(keys)
    }

    fn add(&mut self, kid: String, key: PublicKey) -> Result<(), Error> {
        match self.by_kid.insert(kid, Arc::new(key)) {
            None => Ok(()),
            Some(_) => Err(Error::Twice),
        }
    }

    /// The key of this name.
    #[must_use]
    pub fn get(&self, kid: &str) -> Option<&Arc<PublicKey>> {
        self.by_kid.get(kid)
    }

    /// The names of all usable keys, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_kid.keys().map(String::as_str)
    }

    /// What stood in the set and can't be used: position from 0, and why.
    #[must_use]
    pub fn left_out(&self) -> &[(usize, LeftOut)] {
        &self.left_out
    }
}

/// Where a [`Verifier`](crate::Verifier) looks for the key that a token names.
pub trait KeyRing: Send + Sync {
    /// The key of this name; `None` when the issuer has none.
    fn find<'a>(&'a self, kid: &'a str) -> BoxFuture<'a, Result<Option<Arc<PublicKey>>, Refusal>>;
}

impl KeyRing for Keys {
    fn find<'a>(&'a self, kid: &'a str) -> BoxFuture<'a, Result<Option<Arc<PublicKey>>, Refusal>> {
        ready(Ok(self.get(kid).cloned())).boxed()
    }
}

fn named(jwk: &Value) -> Result<(String, PublicKey), LeftOut> {
    let jwk = jwk.as_object().ok_or(LeftOut::Form)?;
    let key = PublicKey::read(jwk)?;
    let kid = jwk.get("kid").and_then(Value::as_str).filter(|kid| is_kid(kid)).ok_or(LeftOut::KeyId)?;
    Ok((kid.to_owned(), key))
}

/// `use` and `key_ops` (RFC 7517, sections 4.2 and 4.3): absent, or for checking signatures.
fn for_signatures(jwk: &Map<String, Value>) -> Result<(), LeftOut> {
    let of_use = jwk.get("use").is_none_or(|purpose| purpose == "sig");
    let of_ops = jwk
        .get("key_ops")
        .is_none_or(|ops| ops.as_array().is_some_and(|ops| ops.iter().any(|op| op == "verify")));
    if of_use && of_ops { Ok(()) } else { Err(LeftOut::Use) }
}

fn bytes(jwk: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?).ok()
}

fn rsa(jwk: &Map<String, Value>) -> Result<PublicKey, LeftOut> {
    let modulus = bytes(jwk, "n").ok_or(LeftOut::Modulus)?;
    // RFC 7518, section 6.3.1.1: no zero octets in front. An even modulus is no product of two odd primes.
    let (Some(first), Some(last)) = (modulus.first(), modulus.last()) else { return Err(LeftOut::Modulus) };
    let unused = usize::try_from(first.leading_zeros()).unwrap_or(8);
    let bits = (modulus.len() * 8).saturating_sub(unused);
    if *first == 0 || last % 2 == 0 || !(RSA_BITS_MIN..=RSA_BITS_MAX).contains(&bits) {
        return Err(LeftOut::Modulus);
    }
    if is_roca(&modulus) {
        return Err(LeftOut::Roca);
    }
    let exponent = bytes(jwk, "e").ok_or(LeftOut::Exponent)?;
    // The bounds are ring's and, below, FIPS 186-5's.
    let value = match exponent.as_slice() {
        [] | [0, ..] => 0,
        digits if digits.len() <= 5 => digits.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)),
        _ => 0,
    };
    if value % 2 == 0 || !(65_537..1 << 33).contains(&value) {
        return Err(LeftOut::Exponent);
    }
    Ok(PublicKey(Material::Rsa { modulus, exponent }))
}

/// Whether a modulus is of the form that the broken generator gives: a power of 65537 modulo every one of
/// these primes (Nemec and others, "The Return of Coppersmith's Attack", 2017). About one sound modulus in
/// 2^28 looks like that, too.
fn is_roca(modulus: &[u8]) -> bool {
    const PRIMES: [u32; 17] = [11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157];
    PRIMES.into_iter().all(|prime| {
        let rest = modulus.iter().fold(0, |rest, byte| (rest * 256 + u32::from(*byte)) % prime);
        let powers = std::iter::successors(Some(1), |power| Some(power * 65_537 % prime));
        // The powers repeat after at most prime - 1 steps (Fermat).
        powers.take(prime as usize).any(|power| power == rest)
    })
}

fn p256(jwk: &Map<String, Value>) -> Result<PublicKey, LeftOut> {
    let coordinate = |name| bytes(jwk, name).filter(|bytes| bytes.len() == 32).ok_or(LeftOut::Point);
    if jwk.get("crv").and_then(Value::as_str) != Some("P-256") {
        return Err(LeftOut::Point);
    }
    let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
    VerifyingKey::from_sec1_bytes(&point).map_err(|_| LeftOut::Point)?;
    Ok(PublicKey(Material::P256(point)))
}
