//! The built-in issuer, for those who have none of their own: ES256 keys in a folder, access tokens, and
//! the set of public keys (domain specification, section 3.3; RFC 7519, 7517, 7638).
//!
//! Signing is deterministic (RFC 6979): the same grant, instant and id give the same token, and a weak
//! source of randomness can't give the key away.
//!
//! Not here: refresh, revocation and the list of issued tokens, which are rows of the store.

pub mod folder;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::{Digest, Random, Time};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, LineEnding};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::access::{Role, UserType};
use crate::claims::{LIFE_MAX, NAME_MAX};
use crate::keys::{self, Algorithm, Keys, PublicKey};
use crate::scope::Scopes;
use crate::token::Token;

/// Shortest life that can be asked for.
pub const TTL_MIN: Duration = Duration::from_secs(60);
/// Longest life that can be asked for.
pub const TTL_MAX: Duration = LIFE_MAX;
/// The life of a token for which none was asked.
pub const TTL: Duration = Duration::from_secs(900);
/// Most keys of one issuer: one that signs, and retired ones whose tokens still live.
pub const KEYS_MAX: usize = 16;
/// Draws of a private key; each fails once in 2^32, unless the randomness is none.
const DRAWS_MAX: usize = 8;

/// Why there is no key, no issuer or no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the folder can't be used. Only its name is shown.
    #[error("key file {file}: {cause}")]
    File {
        /// The name, without the folder.
        file: String,
        /// What is wrong, and what to do.
        cause: String,
    },
    /// The text is no key.
    #[error(
        "it is not a P-256 private key as PKCS#8 PEM (BEGIN PRIVATE KEY); write one with the token command"
    )]
    Pem,
    /// No private key could be drawn.
    #[error("no private key could be drawn; the source of randomness gives none")]
    Draw,
    /// The folder holds no key, or too many.
    #[error("an issuer has 1 to {KEYS_MAX} keys and {0} were given; remove retired ones")]
    Count(usize),
    /// One key twice.
    #[error("a key of the issuer was given twice; remove one of the files")]
    Twice,
    /// The key that should sign is not there.
    #[error("the issuer has no key {0}; put its file into the folder, or name another")]
    NoSuchKey(String),
    /// The name of the issuer or the audience.
    #[error("issuer and audience must be texts of 1 to {NAME_MAX} visible characters")]
    Name,
    /// A grant that no token should carry.
    #[error("no token for this: {0}")]
    Grant(&'static str),
    /// The encoder failed, which it has no cause to.
    #[error("the token could not be written")]
    Encode,
}

/// A private key. `Debug` shows its public name only; the key is wiped on drop.
#[derive(Clone)]
pub struct IssuerKey {
    key: SigningKey,
    kid: String,
}

impl IssuerKey {
    /// A new key.
    ///
    /// # Errors
    /// [`Error::Draw`].
    pub fn random(random: &dyn Random) -> Result<Self, Error> {
        for _ in 0..DRAWS_MAX {
            let mut bytes = Zeroizing::new([0; 32]);
            random.fill(&mut *bytes);
            if let Ok(key) = SigningKey::from_slice(&*bytes) {
                return Ok(Self::of(key));
            }
        }
        Err(Error::Draw)
    }

    /// Reads PKCS#8 PEM.
    ///
    /// # Errors
    /// [`Error::Pem`].
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        SigningKey::from_pkcs8_pem(pem.trim()).map(Self::of).map_err(|_| Error::Pem)
    }

    /// Writes PKCS#8 PEM.
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub fn to_pem(&self) -> Result<Zeroizing<String>, Error> {
        self.key.to_pkcs8_pem(LineEnding::LF).map_err(|_| Error::Encode)
    }

    /// The key's name: its RFC 7638 thumbprint with SHA-256, 43 characters.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }

    fn of(key: SigningKey) -> Self {
        let kid = thumbprint(key.verifying_key());
        Self { key, kid }
    }
}

impl fmt::Debug for IssuerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IssuerKey({})", self.kid)
    }
}

/// What a token is to say about its bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// `iam_users.id`; positive.
    pub operator_id: i64,
    /// `core_tenants.id`; positive.
    pub tenant_id: i64,
    /// What the person may do at most. [`Role::Admin`] and [`UserType::Platform`] go together.
    pub role: Role,
    /// On which side the person stands.
    pub user_type: UserType,
    /// What the token opens. Wildcards are for the platform's.
    pub scopes: Scopes,
    /// How long it lives, in whole seconds: [`TTL_MIN`] to [`TTL_MAX`].
    pub ttl: Duration,
}

/// A new token, to be shown once.
#[derive(Clone, Debug)]
pub struct Minted {
    /// The token.
    pub token: Token,
    /// Its id, 22 characters.
    pub jti: String,
    /// What is kept of it.
    pub fingerprint: Digest,
    /// `iat` and `nbf`.
    pub issued_at: Time,
    /// `exp`.
    pub expires_at: Time,
}

/// Mints tokens with one key and publishes all of them.
#[derive(Clone, Debug)]
pub struct Issuer {
    name: String,
    audience: String,
    signs: IssuerKey,
    all: Vec<IssuerKey>,
}

impl Issuer {
    /// An issuer of this `iss`, for this `aud`. The last key signs; the others are only published, so that
    /// their tokens stay good (a retired key goes after [`TTL_MAX`]).
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Count`] or [`Error::Twice`].
    pub fn new(name: &str, audience: &str, keys: Vec<IssuerKey>) -> Result<Self, Error> {
        let fine =
            |text: &str| (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        if !fine(name) || !fine(audience) {
            return Err(Error::Name);
        }
        let signs = keys.last().filter(|_| keys.len() <= KEYS_MAX).ok_or(Error::Count(keys.len()))?.clone();
        let issuer = Self { name: name.to_owned(), audience: audience.to_owned(), signs, all: keys };
        issuer.keys()?;
        Ok(issuer)
    }

    /// The same issuer, signing with another of its keys. A new key is published this way before it signs:
    /// every node must know it first.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`].
    pub fn signing_with(self, kid: &str) -> Result<Self, Error> {
        match self.all.iter().find(|key| key.kid == kid) {
            Some(key) => Ok(Self { signs: key.clone(), ..self }),
            None => Err(Error::NoSuchKey(kid.chars().take(64).collect())),
        }
    }

    /// `iss`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `aud`.
    #[must_use]
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// Name of the key that signs.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.signs.kid
    }

    /// The public keys, for a [`Verifier`](crate::Verifier).
    ///
    /// # Errors
    /// [`Error::Twice`], which [`Issuer::new`] has ruled out.
    pub fn keys(&self) -> Result<Arc<Keys>, Error> {
        let named = self.all.iter().map(|key| (key.kid.clone(), PublicKey::of_p256(key.key.verifying_key())));
        Keys::of(named).map(Arc::new).map_err(|_: keys::Error| Error::Twice)
    }

    /// The set of public keys as it is published (`application/jwk-set+json`), in the order of the files.
    #[must_use]
    pub fn jwks(&self) -> String {
        let keys: Vec<Value> = self
            .all
            .iter()
            .map(|key| {
                let (x, y) = coordinates(key.key.verifying_key());
                json!({
                    "kty": "EC", "crv": "P-256", "x": x, "y": y,
                    "kid": key.kid, "use": "sig", "alg": Algorithm::Es256.as_str(),
                })
            })
            .collect();
        json!({ "keys": keys }).to_string()
    }

    /// Mints a token at an instant, cut to whole seconds.
    ///
    /// # Errors
    /// [`Error::Grant`] says what is wrong with the grant.
    pub fn mint(&self, grant: &Grant, now: Time, random: &dyn Random) -> Result<Minted, Error> {
        check(grant)?;
        let mut id = [0; 16];
        random.fill(&mut id);
        let jti = URL_SAFE_NO_PAD.encode(id);
        let issued_at = Time::from_seconds(now.seconds());
        let expires_at = issued_at.plus(grant.ttl);
        let header = json!({"alg": Algorithm::Es256.as_str(), "kid": self.signs.kid, "typ": "JWT"});
        let claims = json!({
            "iss": self.name, "aud": self.audience, "sub": format!("user:{}", grant.operator_id),
            "iat": issued_at.seconds(), "nbf": issued_at.seconds(), "exp": expires_at.seconds(),
            "jti": jti, "tenant_id": grant.tenant_id, "role": grant.role.as_str(),
            "scope": grant.scopes.iter().collect::<Vec<_>>(), "user_type": grant.user_type.as_str(),
            "token_type": "access",
        });
        let token = self.sign(&header, &claims);
        Ok(Minted { fingerprint: token.fingerprint(), token, jti, issued_at, expires_at })
    }

    fn sign(&self, header: &Value, claims: &Value) -> Token {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature: Signature = self.signs.key.sign(signed.as_bytes());
        Token::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes())))
    }
}

fn check(grant: &Grant) -> Result<(), Error> {
    let platform = grant.user_type == UserType::Platform;
    if grant.operator_id <= 0 || grant.tenant_id <= 0 {
        return Err(Error::Grant("operator and tenant must be positive numbers"));
    }
    if !(TTL_MIN..=TTL_MAX).contains(&grant.ttl) || grant.ttl.subsec_nanos() != 0 {
        return Err(Error::Grant("the life must be 60 to 259200 whole seconds"));
    }
    if grant.role == Role::Admin && !platform {
        return Err(Error::Grant("the role admin is for platform staff only"));
    }
    if grant.scopes.have_wildcard() && !platform {
        return Err(Error::Grant("wildcard scopes are for platform staff only"));
    }
    Ok(())
}

/// RFC 7638, section 3: the required members in order, without white space, hashed.
fn thumbprint(key: &VerifyingKey) -> String {
    let (x, y) = coordinates(key);
    let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
    URL_SAFE_NO_PAD.encode(Digest::of(canonical.as_bytes()).as_bytes())
}

fn coordinates(key: &VerifyingKey) -> (String, String) {
    let point = key.to_sec1_point(false);
    // SEC1, uncompressed: one byte, then two coordinates of 32 bytes.
    let (_, both) = point.as_bytes().split_at(1);
    let (x, y) = both.split_at(both.len() / 2);
    (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_key_is_the_one_of_rfc_9449() {
        // Key and `jkt` of RFC 9449, sections 4.1 and 6.1.
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let x = decode("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs");
        let y = decode("9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA");
        let key = VerifyingKey::from_sec1_bytes(&[vec![4], x, y].concat()).unwrap();
        assert_eq!(thumbprint(&key), "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
    }
}
