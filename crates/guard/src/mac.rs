//! HMAC-SHA256 under one key with a purpose in front, so that one key serves several purposes.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The keyed start state of one purpose; the key itself is not kept.
#[derive(Clone)]
pub(crate) struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// The state after the purpose. Purposes are constants and none is the start of another.
    pub(crate) fn new(key: &[u8; 32], purpose: &'static str) -> Self {
        // A key of any length is taken, so the zero key below is never used; the type doesn't say so.
        let state = Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&[0; 64].into()));
        Self(state.chain_update(purpose))
    }

    /// The tag of some bytes.
    pub(crate) fn tag(&self, bytes: &[u8]) -> [u8; 32] {
        self.0.clone().chain_update(bytes).finalize().into_bytes().into()
    }
}
