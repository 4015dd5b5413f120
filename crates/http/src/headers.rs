//! What a request says of itself: `X-Request-Id`, `Idempotency-Key` (section 7.2, SEC-05), W3C `traceparent`.
//! Everything here comes from outside and is checked before it is kept, logged or echoed.

use std::fmt;

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use kernel::Random;
use sfv::{Item, Parser};
use uuid::Uuid;

use crate::code::{Code, KEY_INVALID, KEY_MISSING, REQUEST_ID_INVALID, REQUEST_ID_MISSING};

/// Id of one attempt.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// What all attempts of one operation share.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Shortest and longest key, in bytes, without quotes.
pub const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=128;
/// Longest `traceparent` that is looked at; version 00 has 55 bytes, later ones may have more.
const TRACEPARENT_MAX: usize = 128;
/// Bytes of a UUID in its canonical form.
const UUID_TEXT: usize = 36;

/// Whether a route demands both ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A critical write: both, and right.
    Required,
    /// A key that is there counts as on a critical write. A request id that is not a UUID is replaced.
    Optional,
}

/// What a request says of itself, checked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Of this attempt: a UUID in lower case, the client's or a new one.
    pub request_id: String,
    /// What deduplicates, if it came with a key.
    pub key: Option<IdempotencyKey>,
    /// Where it belongs to in the client's trace.
    pub trace: Option<Trace>,
}

impl Asked {
    /// The trace's id, or the request's where none came.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        self.trace.as_ref().map_or(&self.request_id, Trace::id)
    }
}

/// A key, unquoted. Case counts, every byte counts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey {
    text: String,
    echo: HeaderValue,
}

/// Shows the length only: whoever knows a key may ask for its result.
impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({} bytes)", self.text.len())
    }
}

impl IdempotencyKey {
    /// The text that names the record.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The header for the echo: the key alone, quoted if it came quoted.
    #[must_use]
    pub const fn echo(&self) -> &HeaderValue {
        &self.echo
    }

    /// From a header's value. One in double quotes is a Structured Field string (RFC 9651, section 3.3.3;
    /// parameters are ignored), everything else is the key as it stands: most clients send it bare.
    #[must_use]
    pub fn of(sent: &HeaderValue) -> Option<Self> {
        let bytes = sent.as_bytes().trim_ascii();
        let is_quoted = bytes.starts_with(b"\"");
        let text = if is_quoted {
            let item: Item = Parser::new(bytes).parse().ok()?;
            item.bare_item.as_string()?.as_str().to_owned()
        } else {
            std::str::from_utf8(bytes).ok()?.to_owned()
        };
        let fit = KEY_BYTES.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !fit {
            return None;
        }
        // Parameters and blanks are not the key's: whatever they say goes back to nobody.
        let echo = if is_quoted {
            format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
        } else {
            text.clone()
        };
        Some(Self { echo: HeaderValue::try_from(echo).ok()?, text })
    }
}

/// A right `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    id: String,
    echo: HeaderValue,
}

impl Trace {
    /// The trace's id: 32 hex digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The header for the echo: its four known fields.
    #[must_use]
    pub const fn echo(&self) -> &HeaderValue {
        &self.echo
    }

    /// Version, 32 hex digits, 16 hex digits, flags, all in lower case, neither id zero (W3C Trace Context,
    /// section 3.2). Version `ff` is forbidden; a later version than 00 may say more behind the flags.
    #[must_use]
    pub fn of(sent: &HeaderValue) -> Option<Self> {
        let text = sent.to_str().ok().filter(|text| text.len() <= TRACEPARENT_MAX)?;
        let hex = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        let mut parts = text.splitn(5, '-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let right = hex(version, 2)
            && version != "ff"
            && (hex(trace, 32) && !zero(trace))
            && (hex(span, 16) && !zero(span))
            && hex(flags, 2)
            && (parts.next().is_none() || version != "00");
        if !right {
            return None;
        }
        let echo = HeaderValue::try_from(format!("{version}-{trace}-{span}-{flags}")).ok()?;
        Some(Self { id: trace.to_owned(), echo })
    }
}

/// The id of a request that brings none, or none that can be used: whoever stands around the layer puts it into the
/// request's extensions, so that all of one request has one id.
#[derive(Clone, Debug)]
pub struct Spare(pub String);

/// A request that is refused for its headers, with an id to answer under all the same.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What could be read; never a key.
    pub asked: Asked,
    /// Why.
    pub code: Code,
}

/// Reads the headers of a request. A wrong `traceparent` is left out; it never refuses a request (W3C Trace
/// Context, section 4.2).
///
/// # Errors
/// [`Refused`] with one of the codes of section 7.2: a header is missing where it is needed, has another form,
/// or stands there twice. The request's id is looked at first.
pub fn read(headers: &HeaderMap, need: Need, random: &dyn Random) -> Result<Asked, Box<Refused>> {
    read_or(headers, need, || made(random))
}

/// As [`read`], with an id of the caller's for a request that brings none.
pub(crate) fn read_or(
    headers: &HeaderMap,
    need: Need,
    spare: impl FnOnce() -> String,
) -> Result<Asked, Box<Refused>> {
    let trace = only(headers, &TRACEPARENT).ok().flatten().and_then(Trace::of);
    let given = match only(headers, &REQUEST_ID) {
        Ok(None) => Err(REQUEST_ID_MISSING),
        Ok(Some(value)) => request_id(value).ok_or(REQUEST_ID_INVALID),
        Err(Twice) => Err(REQUEST_ID_INVALID),
    };
    let key = match (only(headers, &IDEMPOTENCY_KEY), need) {
        (Ok(None), Need::Required) => Err(KEY_MISSING),
        (Ok(None), Need::Optional) => Ok(None),
        (Ok(Some(value)), _) => IdempotencyKey::of(value).map(Some).ok_or(KEY_INVALID),
        (Err(Twice), _) => Err(KEY_INVALID),
    };
    let refused = match (&given, &key, need) {
        (Err(code), _, Need::Required) | (_, Err(code), _) => Some(*code),
        _ => None,
    };
    let request_id = given.unwrap_or_else(|_| spare());
    match refused {
        Some(code) => Err(Box::new(Refused { asked: Asked { request_id, key: None, trace }, code })),
        None => Ok(Asked { request_id, key: key.unwrap_or_default(), trace }),
    }
}

struct Twice;

/// The value of a header that may stand there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Twice> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(Twice) } else { Ok(first) }
}

/// A UUID of the form 8-4-4-4-12, any case, not nil; in lower case.
#[must_use]
pub fn request_id(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok().filter(|text| text.len() == UUID_TEXT)?;
    Uuid::try_parse(text).ok().filter(|id| !id.is_nil()).map(|id| id.to_string())
}

/// A new id.
#[must_use]
pub fn made(random: &dyn Random) -> String {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
