//! What Vault's answers mean. Its words are compared with known ones and never passed on.

use std::ops::ControlFlow;

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Binding;
use crate::kms::KmsError;
use crate::wire::{Answer, Cause};

/// Key types that encrypt with authenticated data.
const AEAD: [&str; 4] = ["aes128-gcm96", "aes256-gcm96", "chacha20-poly1305", "xchacha20-poly1305"];
/// Words of a version that the key does not use (any more): of decryption and of encryption.
const STALE: [&str; 5] =
    ["too old", "too new", "less than the minimum", "higher than the latest", "minimum encryption"];
/// Words of a ciphertext that is not this key's.
const FOREIGN: [&str; 4] =
    ["authentication failed", "invalid ciphertext", "unable to decrypt", "failed to decrypt"];

/// `data` of `GET keys/<key>`, as far as it matters.
#[derive(Debug, Deserialize)]
pub(super) struct Key {
    #[serde(rename = "type")]
    kind: String,
    latest_version: u32,
    #[serde(default)]
    derived: bool,
    #[serde(default)]
    supports_encryption: bool,
    #[serde(default)]
    supports_decryption: bool,
}

impl Key {
    /// The version that wraps, if the key is one that can be bound so.
    pub(super) fn usable(&self, binding: Binding) -> Result<u32, &'static str> {
        if !self.supports_encryption || !self.supports_decryption || !AEAD.contains(&self.kind.as_str()) {
            return Err("has a key of another type; make one of type aes256-gcm96");
        }
        match (binding, self.derived) {
            (Binding::AssociatedData, true) => Err("has a derived key; bind it by context"),
            (Binding::Context, false) => Err("has a key that is not derived; bind it by associated data"),
            _ if (1..=i32::MAX.unsigned_abs()).contains(&self.latest_version) => Ok(self.latest_version),
            _ => Err("has a key without a version"),
        }
    }
}

/// `data` of encrypt and rewrap.
#[derive(Deserialize)]
pub(super) struct Ciphertext {
    pub(super) ciphertext: String,
}

/// `data` of decrypt, in base64.
#[derive(Deserialize)]
pub(super) struct Plaintext {
    pub(super) plaintext: SecretString,
}

#[derive(Deserialize)]
struct Reply<T> {
    data: T,
}

#[derive(Default, Deserialize)]
struct Errors {
    #[serde(default)]
    errors: Vec<String>,
}

/// Version of `vault:v<version>:…`, in its one spelling.
pub(super) fn version_of(text: &str) -> Option<u32> {
    let (version, rest) = text.strip_prefix("vault:v")?.split_once(':')?;
    let number =
        version.parse::<u32>().ok().filter(|number| (1..=i32::MAX.unsigned_abs()).contains(number))?;
    (number.to_string() == version && !rest.is_empty()).then_some(number)
}

/// The end of one call. The version in the errors is 0: the caller knows it.
pub(super) fn judge<T: DeserializeOwned>(
    alias: &str,
    answer: &Answer,
) -> ControlFlow<Result<T, KmsError>, Cause> {
    let alias = || alias.to_owned();
    let unexpected = |what| KmsError::Unexpected { alias: alias(), what };
    let error = match answer.status {
        200 => match serde_json::from_slice::<Reply<T>>(&answer.body) {
            Ok(reply) => return ControlFlow::Break(Ok(reply.data)),
            Err(_) => unexpected("answers with another body than the transit engine"),
        },
        403 => KmsError::Denied { alias: alias() },
        404 => unexpected("knows no such key or mount"),
        429 => return ControlFlow::Continue(Cause::RateLimited),
        // 412: a node that has not seen our last write yet.
        408 | 412 | 500..=599 => return ControlFlow::Continue(Cause::OutOfOrder),
        300..=399 => unexpected("answers with a redirect, as a standby node does"),
        400 => {
            let said: Errors = serde_json::from_slice(&answer.body).unwrap_or_default();
            let has = |words: &[&str]| {
                said.errors.iter().any(|error| words.iter().any(|word| error.contains(word)))
            };
            if has(&STALE) {
                KmsError::UnknownVersion { alias: alias(), version: 0 }
            } else if has(&FOREIGN) {
                KmsError::Refused { alias: alias(), version: 0 }
            } else {
                unexpected("refuses the request")
            }
        }
        _ => unexpected("answers with a status that the transit engine does not have"),
    };
    ControlFlow::Break(Err(error))
}
