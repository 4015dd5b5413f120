//! The published set of public keys (RFC 7517, RFC 8037), each with its period.
//!
//! Beside the registered members, a key carries three of ours:
//!
//! | member | value |
//! | --- | --- |
//! | `onceseal:status` | `announced`, `active` or `retired`; absent: `retired` if `onceseal:retired_at` is there, else `active` |
//! | `onceseal:not_before` | Unix seconds from which the key may sign; optional |
//! | `onceseal:retired_at` | Unix seconds since which it signs no more; exactly on retired keys |
//!
//! Retired keys stay in the set, or old certificates would lose their signer. Reading is strict: another kind
//! of key, an unknown member, a `kid` that is not the thumbprint, a key twice are refused, and so is a private
//! key. What it is not: a store, and no judge of times; there is no clock here.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::jcs;
use crate::json;
use crate::key::{self, ALGORITHM, KeyId, PublicKey};

/// Most keys in one set.
pub const MAX_KEYS: usize = 1024;

/// Longest set that is read, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Where a key stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Published ahead of its first signature.
    Announced,
    /// Signs new certificates.
    Active,
    /// Signs no more. What carries its signature may be old, or forged with a stolen key and dated back.
    Retired {
        /// Unix seconds since when.
        at: i64,
    },
}

impl Status {
    /// The word in `onceseal:status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::Active => "active",
            Self::Retired { .. } => "retired",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One public key and its period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: PublicKey,
    /// Where it stands.
    pub status: Status,
    /// Unix seconds from which it may sign, if that was stated.
    pub not_before: Option<i64>,
}

/// Why a set was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// More than [`MAX_BYTES`] or [`MAX_KEYS`].
    #[error("key set is too large; the most are {MAX_KEYS} keys in {MAX_BYTES} bytes")]
    TooLarge,
    /// Not strict JSON.
    #[error("key set can't be read: {0}")]
    Json(#[from] json::Error),
    /// Not `{"keys":[...]}`, or a key with a missing, unknown or mistyped member.
    #[error("key set has another form: {what}; write {{\"keys\":[...]}} with Ed25519 keys")]
    Form {
        /// What was found.
        what: String,
    },
    /// A key has the member `d`.
    #[error("key set holds a private key (member \"d\"); remove it and replace the key, it is no secret now")]
    Private,
    /// A key can't be used.
    #[error("key {position} of the set: {cause}")]
    Key {
        /// Position in the set, from 0.
        position: usize,
        /// What is wrong with it.
        cause: key::Error,
    },
    /// `kid` is not the key's thumbprint.
    #[error("key {position} of the set has a kid that is not its RFC 7638 thumbprint; write the thumbprint")]
    KeyId {
        /// Position in the set, from 0.
        position: usize,
    },
    /// A key stands in the set twice.
    #[error("key {0} stands in the set twice; remove one")]
    Twice(KeyId),
}

impl Error {
    /// The stable name of this refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "jwks_too_large",
            Self::Json(error) => error.code(),
            Self::Form { .. } => "jwks_form",
            Self::Private => "jwks_private_key",
            Self::Key { cause, .. } => cause.code(),
            Self::KeyId { .. } => "jwks_kid",
            Self::Twice(_) => "jwks_twice",
        }
    }
}

/// A set of public keys, no key twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jwks(Vec<Entry>);

/// A key as the set spells it. Fields stand in canonical order (RFC 8785).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jwk {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
    crv: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    kty: String,
    #[serde(rename = "onceseal:not_before", default, skip_serializing_if = "Option::is_none")]
    not_before: Option<i64>,
    #[serde(rename = "onceseal:retired_at", default, skip_serializing_if = "Option::is_none")]
    retired_at: Option<i64>,
    #[serde(rename = "onceseal:status", default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    purpose: Option<String>,
    x: String,
}

#[derive(Serialize)]
struct Set {
    keys: Vec<Jwk>,
}

impl Jwks {
    /// Makes a set.
    ///
    /// # Errors
    /// [`Error::Twice`] or [`Error::TooLarge`].
    pub fn new(entries: Vec<Entry>) -> Result<Self, Error> {
        if entries.len() > MAX_KEYS {
            return Err(Error::TooLarge);
        }
        let mut ids: Vec<KeyId> = entries.iter().map(|e| e.key.id()).collect();
        ids.sort_unstable();
        match ids.array_windows().find(|[a, b]| a == b) {
            Some([id, _]) => Err(Error::Twice(*id)),
            None => Ok(Self(entries)),
        }
    }

    /// The keys, in the set's order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// The key of this name.
    #[must_use]
    pub fn find(&self, id: KeyId) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key.id() == id)
    }

    /// Reads a set (`application/jwk-set+json`).
    ///
    /// ```
    /// use seal::{jwks::{Entry, Jwks, Status}, key::SigningKey};
    ///
    /// let key = SigningKey::from_seed(&[7; 32]).public_key();
    /// let set = Jwks::new(vec![Entry { key, status: Status::Active, not_before: Some(1_767_225_600) }])?;
    /// assert_eq!(Jwks::parse(&set.to_json()?)?, set);
    /// # Ok::<(), seal::jwks::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error`] says which key and what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_BYTES {
            return Err(Error::TooLarge);
        }
        let Value::Object(mut set) = json::parse(bytes)? else {
            return Err(Error::Form { what: "not an object".to_owned() });
        };
        let keys = set.remove("keys");
        let Some(Value::Array(keys)) = keys.filter(|_| set.is_empty()) else {
            return Err(Error::Form { what: "not one member \"keys\" with a list".to_owned() });
        };
        if keys.len() > MAX_KEYS {
            return Err(Error::TooLarge);
        }
        let entries =
            keys.into_iter().enumerate().map(|(at, value)| entry(at, value)).collect::<Result<_, _>>()?;
        Self::new(entries)
    }

    /// Writes the set as canonical JSON.
    ///
    /// # Errors
    /// [`Error::Form`] if the encoder fails, which it has no cause to.
    pub fn to_json(&self) -> Result<Vec<u8>, Error> {
        let set = Set { keys: self.0.iter().map(jwk).collect() };
        jcs::declared(&set).map_err(|e| Error::Form { what: e.to_string() })
    }
}

fn jwk(entry: &Entry) -> Jwk {
    Jwk {
        alg: Some(ALGORITHM.to_owned()),
        crv: "Ed25519".to_owned(),
        kid: Some(entry.key.id().to_string()),
        kty: "OKP".to_owned(),
        not_before: entry.not_before,
        retired_at: match entry.status {
            Status::Retired { at } => Some(at),
            Status::Announced | Status::Active => None,
        },
        status: Some(entry.status.as_str().to_owned()),
        purpose: Some("sig".to_owned()),
        x: entry.key.to_string(),
    }
}

fn entry(position: usize, value: Value) -> Result<Entry, Error> {
    let form = |what: &str| Error::Form { what: format!("key {position}: {what}") };
    let members = value.as_object().ok_or_else(|| form("not an object"))?;
    if members.contains_key("d") {
        return Err(Error::Private);
    }
    let jwk: Jwk = serde_json::from_value(value).map_err(|e| form(&e.to_string()))?;
    if jwk.kty != "OKP" || jwk.crv != "Ed25519" {
        return Err(form("not kty \"OKP\" with crv \"Ed25519\""));
    }
    // RFC 9864 replaced "EdDSA"; sets of before it are still about.
    if jwk.alg.as_deref().is_some_and(|alg| alg != ALGORITHM && alg != "EdDSA") {
        return Err(form("alg is not \"Ed25519\""));
    }
    if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
        return Err(form("use is not \"sig\""));
    }
    let key: PublicKey = jwk.x.parse().map_err(|cause| Error::Key { position, cause })?;
    if jwk.kid.is_some_and(|kid| kid != key.id().to_string()) {
        return Err(Error::KeyId { position });
    }
    let status = match (jwk.status.as_deref(), jwk.retired_at) {
        (Some("retired") | None, Some(at)) => Status::Retired { at },
        (Some("active") | None, None) => Status::Active,
        (Some("announced"), None) => Status::Announced,
        _ => return Err(form("onceseal:status and onceseal:retired_at don't fit each other")),
    };
    Ok(Entry { key, status, not_before: jwk.not_before })
}
