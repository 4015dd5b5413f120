//! Is this token genuine, for us, and alive: form, key, signature, claims, in this order. Nothing of the
//! payload is read before the signature was found right.
//!
//! Not here: the token's status ([`status`](crate::status)), and what it opens ([`access`](crate::access)).

use std::fmt;
use std::sync::Arc;

use kernel::{Digest, Time};

use crate::access::Principal;
use crate::claims::Claims;
use crate::jws::Jws;
use crate::keys::KeyRing;
use crate::refusal::Refusal;
use crate::token::Token;

/// Checks tokens of one issuer for one audience.
#[derive(Clone)]
pub struct Verifier {
    issuer: String,
    audience: String,
    ring: Arc<dyn KeyRing>,
}

/// A genuine token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// What it says.
    pub claims: Claims,
    /// What the token service keeps of it.
    pub fingerprint: Digest,
}

impl Verified {
    /// Who calls with it.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal::new(&self.claims, self.fingerprint)
    }
}

impl Verifier {
    /// For tokens with exactly this `iss` and this `aud` among theirs, signed with a key of this ring.
    #[must_use]
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>, ring: Arc<dyn KeyRing>) -> Self {
        Self { issuer: issuer.into(), audience: audience.into(), ring }
    }

    /// Checks a token at an instant.
    ///
    /// # Errors
    /// The [`Refusal`] of the first check that it does not pass.
    pub async fn verify(&self, token: &Token, now: Time) -> Result<Verified, Refusal> {
        let jws = Jws::read(token)?;
        let key = self.ring.find(&jws.kid).await?.ok_or(Refusal::KeyUnknown)?;
        if key.algorithm() != jws.algorithm {
            return Err(Refusal::Algorithm);
        }
        if !key.verify(jws.signed, &jws.signature) {
            return Err(Refusal::Signature);
        }
        let claims = Claims::read(&jws.payload()?)?;
        claims.judge(&self.issuer, &self.audience, now)?;
        Ok(Verified { claims, fingerprint: token.fingerprint() })
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}
