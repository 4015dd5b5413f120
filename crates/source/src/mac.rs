//! HMAC-SHA256 under several live secrets, compared in constant time.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::Rejection;

/// The keyed start states of all live secrets; the keys themselves are not kept.
pub(crate) struct MacKeys(Vec<Hmac<Sha256>>);

impl MacKeys {
    /// One state a key.
    pub(crate) fn new<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, String> {
        let states = keys
            .into_iter()
            .map(|key| Hmac::new_from_slice(key).map_err(|_| "a secret can't be used as a key".to_owned()))
            .collect::<Result<Vec<_>, _>>()?;
        if states.is_empty() { Err("it has no secret; set at least one".into()) } else { Ok(Self(states)) }
    }

    /// Any candidate under any key. All pairs are compared, whichever matches.
    pub(crate) fn verify(&self, parts: &[&[u8]], candidates: &[[u8; 32]]) -> Result<(), Rejection> {
        let mut found = Choice::from(0);
        for state in &self.0 {
            let mac = tag(state.clone(), parts);
            for candidate in candidates {
                found |= mac.ct_eq(candidate);
            }
        }
        if bool::from(found) { Ok(()) } else { Err(Rejection::mismatch()) }
    }

    /// The MAC under the first key, for a sender.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.0.first().map_or([0; 32], |state| tag(state.clone(), parts))
    }
}

fn tag(mut state: Hmac<Sha256>, parts: &[&[u8]]) -> [u8; 32] {
    for part in parts {
        state.update(part);
    }
    state.finalize().into_bytes().into()
}
