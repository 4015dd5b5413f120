//! Canonical JSON, RFC 8785 (JCS): the one spelling that is hashed and signed.
//!
//! Two writers. [`to_vec`] is the whole RFC, by the library `serde_json_canonicalizer`. [`exact`] writes the
//! subset that is allowed under a signature: no float and no integer beyond ±(2^53 − 1), which other
//! languages would round. In that subset the RFC comes down to member order and string escapes, so one walk
//! checks and writes; strings are still written by `serde_json`. It exists because sealing needs it many
//! times faster than the library, and a property test holds both to the same bytes.
//!
//! What it is not: a reader. Text comes in through [`crate::json`], which refuses repeated names.

use std::cmp::Ordering;

use serde::Serialize;
use serde_json::{Number, Value};

use crate::json::MAX_DEPTH;

/// Largest integer magnitude that every reader of JSON keeps exactly: 2^53 − 1 (RFC 7493 section 2.2).
pub const MAX_EXACT: u64 = 9_007_199_254_740_991;

/// Why a value has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The value is not JSON: NaN, an infinity, or an object with names that aren't strings.
    #[error("value has no canonical JSON: {what}; give a value that JSON can hold")]
    NotJson {
        /// The library's own words.
        what: String,
    },
    /// A float stands where only exact numbers may.
    #[error("number at {path:?} is a float; write it as a string or an integer")]
    Float {
        /// JSON pointer (RFC 6901) to the number.
        path: String,
    },
    /// An integer lies beyond ±(2^53 − 1).
    #[error("integer at {path:?} is beyond 2^53 - 1; write it as a string")]
    WideInteger {
        /// JSON pointer (RFC 6901) to the number.
        path: String,
    },
    /// Arrays and objects are nested deeper than allowed.
    #[error("value is nested deeper than {limit}; make it flatter")]
    TooDeep {
        /// Deepest nesting allowed here.
        limit: u32,
    },
}

impl Error {
    /// The stable name of this refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "jcs_not_json",
            Self::Float { .. } => "jcs_float",
            Self::WideInteger { .. } => "jcs_wide_integer",
            Self::TooDeep { .. } => "jcs_too_deep",
        }
    }

    /// The same error, seen from one level further out.
    fn under(mut self, step: &str) -> Self {
        if let Self::Float { path } | Self::WideInteger { path } = &mut self {
            let escaped = step.replace('~', "~0").replace('/', "~1");
            path.insert_str(0, &escaped);
            path.insert(0, '/');
        }
        self
    }
}

/// Writes any serialisable value as canonical JSON (RFC 8785, whole, floats as ECMAScript prints them).
///
/// ```
/// let bytes = seal::jcs::to_vec(&serde_json::json!({"b": 56.0, "a": [1e21]}))?;
/// assert_eq!(bytes, br#"{"a":[1e+21],"b":56}"#);
/// # Ok::<(), seal::jcs::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotJson`] when the value holds NaN, an infinity or names that aren't strings.
pub fn to_vec<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json_canonicalizer::to_vec(value).map_err(|e| Error::NotJson { what: e.to_string() })
}

/// Writes a value as canonical JSON and refuses what may not stand under a signature: floats, and integers
/// beyond ±[`MAX_EXACT`]. Equal to [`to_vec`] where it succeeds.
///
/// # Errors
/// [`Error`] with the JSON pointer of the offending number, or [`Error::TooDeep`] beyond
/// [`crate::json::MAX_DEPTH`].
pub fn exact(value: &Value) -> Result<Vec<u8>, Error> {
    exact_within(value, MAX_DEPTH)
}

/// [`exact`] for anything serialisable.
///
/// # Errors
/// As [`exact`], and [`Error::NotJson`] when the value can't become JSON.
pub fn to_vec_exact<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let value = serde_json::to_value(value).map_err(|e| Error::NotJson { what: e.to_string() })?;
    exact(&value)
}

/// [`exact`] with a limit of its own for the nesting.
pub(crate) fn exact_within(value: &Value, limit: u32) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(512);
    Exact { out: &mut out, limit }.value(value, 0)?;
    Ok(out)
}

/// Writes a value whose fields are declared in canonical order and hold only strings, integers and lists.
pub(crate) fn declared<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|e| Error::NotJson { what: e.to_string() })
}

/// Joins members that are canonical JSON already into one object. The names must come in canonical order.
pub(crate) fn join(members: &[(&str, &[u8])]) -> Vec<u8> {
    debug_assert!(members.is_sorted_by(|a, b| a.0 < b.0), "names are constants in canonical order");
    let size =
        members.iter().map(|(name, value)| name.len().saturating_add(value.len()).saturating_add(4)).sum();
    let mut out = Vec::with_capacity(size);
    for (at, (name, value)) in members.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"{\"" } else { b",\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value);
    }
    out.push(b'}');
    out
}

struct Exact<'a> {
    out: &'a mut Vec<u8>,
    limit: u32,
}

impl Exact<'_> {
    fn value(&mut self, value: &Value, depth: u32) -> Result<(), Error> {
        match value {
            Value::Null => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Number(number) => self.number(number)?,
            Value::String(text) => self.string(text)?,
            Value::Array(items) => {
                let depth = self.deeper(depth)?;
                self.out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.value(item, depth).map_err(|e| e.under(&at.to_string()))?;
                }
                self.out.push(b']');
            }
            Value::Object(members) => self.object(members, depth)?,
        }
        Ok(())
    }

    fn object(&mut self, members: &serde_json::Map<String, Value>, depth: u32) -> Result<(), Error> {
        let depth = self.deeper(depth)?;
        let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
        sorted.sort_unstable_by(|a, b| utf16_order(a.0, b.0));
        self.out.push(b'{');
        for (at, (name, value)) in sorted.into_iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.string(name)?;
            self.out.push(b':');
            self.value(value, depth).map_err(|e| e.under(name))?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn deeper(&self, depth: u32) -> Result<u32, Error> {
        if depth >= self.limit {
            return Err(Error::TooDeep { limit: self.limit });
        }
        Ok(depth.saturating_add(1))
    }

    fn number(&mut self, number: &Number) -> Result<(), Error> {
        let magnitude = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
        match magnitude {
            Some(magnitude) if magnitude <= MAX_EXACT => {
                self.out.extend_from_slice(number.to_string().as_bytes());
                Ok(())
            }
            Some(_) => Err(Error::WideInteger { path: String::new() }),
            None => Err(Error::Float { path: String::new() }),
        }
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        // serde_json escapes exactly what RFC 8785 section 3.2.2.2 names, in the same spelling.
        serde_json::to_writer(&mut *self.out, text).map_err(|e| Error::NotJson { what: e.to_string() })
    }
}

/// Order of member names: by UTF-16 code units (RFC 8785 section 3.2.3). For ASCII, bytes give the same order,
/// and comparing them is cheaper.
fn utf16_order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.as_bytes().cmp(b.as_bytes());
    }
    a.encode_utf16().cmp(b.encode_utf16())
}
