//! Is there a credential in the address? Section 14 of the supply specification (FI-007, M-016): asked of every
//! request before routing and before authentication, with or without a right header.
//!
//! Works on the raw bytes, since a parser that drops a bad pair hides the key in it. The verdict names a
//! parameter from a closed list or a place, never a part of the request, so it can be audited as it is.
//!
//! Not here: the answer (401 `QUERY_KEY_NOT_ALLOWED`, 400 `SUP_COM_4002`), the audit row, the two counters,
//! and keeping the query out of the access log. A path with a credential in it (`KeyIn` with `path`) must stay
//! out of the log, too.

use std::borrow::Cow;
use std::ops::ControlFlow;

use unicode_normalization::UnicodeNormalization as _;

use crate::decode::{Step, base64};
use crate::scan::Scanner;

/// Longest target that is read in full, in bytes: twice what servers commonly take. Of a longer one the start
/// is searched, and if nothing is found there it is malformed.
pub const TARGET_MAX: usize = 64 * 1024;

/// Rounds of percent-decoding (section 14: "up to three times").
const ROUNDS: usize = 3;

/// Canonical names that are refused, whatever their value (section 14).
pub const FORBIDDEN: [&str; 38] = [
    "key",
    "apikey",
    "xapikey",
    "xgoogapikey",
    "appkey",
    "apisecret",
    "apipassword",
    "appsecret",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "secretid",
    "secret",
    "clientsecret",
    "ak",
    "sk",
    "token",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authtoken",
    "apitoken",
    "sessiontoken",
    "bearer",
    "bearertoken",
    "auth",
    "authorization",
    "xauthtoken",
    "password",
    "passwd",
    "pwd",
    "credential",
    "credentials",
    "credentialinput",
    "subscriptionkey",
    "jwt",
    "signature",
    "sig",
];

/// `canonical_name` of a credential that was recognised by its value, in a parameter with an innocent name or
/// without one.
pub const BY_VALUE: &str = "value";
/// `canonical_name` of a user name or password in an absolute-form target.
pub const USERINFO: &str = "userinfo";
/// `canonical_name` of a credential that is a part of the path.
pub const PATH: &str = "path";

/// What is to be done with a request, by its target alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing to object to.
    Clean,
    /// A credential: 401 `QUERY_KEY_NOT_ALLOWED`.
    KeyIn {
        /// The parameter's canonical name, one of [`FORBIDDEN`]; or [`BY_VALUE`], [`USERINFO`], [`PATH`].
        canonical_name: &'static str,
    },
    /// Bad percent-encoding, bytes that aren't UTF-8, a bare `;` or `#`, or too long, and no credential
    /// found: 400 `SUP_COM_4002`.
    Malformed,
}

/// Judges a raw request target: origin form (`/path?query`), absolute form or authority form (RFC 9112
/// section 3.2).
#[must_use]
pub fn judge(target: &[u8], scanner: &Scanner) -> Judgement {
    let read = target.get(..TARGET_MAX).unwrap_or(target);
    let (before, query) = match read.iter().position(|byte| matches!(byte, b'?' | b'#')) {
        Some(place) => (read.get(..place).unwrap_or_default(), read.get(place + 1..).unwrap_or_default()),
        None => (read, &[][..]),
    };
    let (authority, path) = split(before);
    if let ControlFlow::Break(canonical_name) = seek(authority, path, query, scanner) {
        return Judgement::KeyIn { canonical_name };
    }
    let fragment = read.contains(&b'#');
    if fragment || read.len() < target.len() || !is_well_formed(query) {
        return Judgement::Malformed;
    }
    Judgement::Clean
}

/// Whether a parameter's name, still encoded, is one of [`FORBIDDEN`].
#[must_use]
pub fn is_forbidden_name(name: &str) -> bool {
    forbidden(name.as_bytes()).is_some()
}

/// Authority and path of a target without its query. Origin form has no authority.
fn split(before: &[u8]) -> (&[u8], &[u8]) {
    if before.starts_with(b"/") {
        return (&[], before);
    }
    let scheme = memchr::memmem::find(before, b"://").map_or(0, |place| place + 3);
    let rest = before.get(scheme..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    (rest.get(..end).unwrap_or_default(), rest.get(end..).unwrap_or_default())
}

fn seek(authority: &[u8], path: &[u8], query: &[u8], scanner: &Scanner) -> ControlFlow<&'static str> {
    if authority.contains(&b'@') {
        return ControlFlow::Break(USERINFO);
    }
    for pair in query.split(|byte| matches!(byte, b'&' | b';' | b'#')) {
        seek_pair(pair, scanner)?;
    }
    for segment in path.split(|byte| *byte == b'/') {
        for pair in segment.split(|byte| *byte == b';').skip(1) {
            seek_pair(pair, scanner)?;
        }
    }
    // Only full shapes count here: a word such as `lgw_` may well be a part of a path.
    if scanner.find(path).is_some() { ControlFlow::Break(PATH) } else { ControlFlow::Continue(()) }
}

fn seek_pair(pair: &[u8], scanner: &Scanner) -> ControlFlow<&'static str> {
    let equals = pair.iter().position(|byte| *byte == b'=');
    let name = pair.get(..equals.unwrap_or(pair.len())).unwrap_or_default();
    let value = equals.and_then(|place| pair.get(place + 1..)).unwrap_or_default();
    if let Some(known) = forbidden(name) {
        return ControlFlow::Break(known);
    }
    // A key may stand where the name stands: `?sk-...`.
    if [name, value].iter().any(|text| !text.is_empty() && has_credential(text, scanner)) {
        return ControlFlow::Break(BY_VALUE);
    }
    ControlFlow::Continue(())
}

/// The forbidden name that an encoded name stands for after any number of rounds.
fn forbidden(name: &[u8]) -> Option<&'static str> {
    let mut plain = Cow::Borrowed(name);
    for round in 0..=ROUNDS {
        let canonical = canonical(&String::from_utf8_lossy(&plain));
        if let Some(known) = FORBIDDEN.iter().find(|known| **known == canonical) {
            return Some(known);
        }
        plain = match Step::Percent.undo(&plain) {
            Some(next) if round < ROUNDS => Cow::Owned(next),
            _ => return None,
        };
    }
    None
}

/// A decoded name as section 14 compares it. Full case folding is lower case plus `ß`, as far as the result
/// can be ASCII. Controls and all white space go the way of `_`, `-`, `.` and the space, since some parsers end
/// or trim a name there; so does an encoded `=`, with what is behind it.
fn canonical(name: &str) -> String {
    let name = name.trim_start_matches('?');
    let folded = name.nfkc().flat_map(char::to_lowercase).filter(|c| !is_invisible(*c));
    let mut canonical = String::new();
    for c in folded.take_while(|c| !matches!(c, '[' | '=')) {
        match c {
            '_' | '-' | '.' | '+' => {}
            c if c.is_whitespace() || c.is_control() => {}
            'ß' => canonical.push_str("ss"),
            c => canonical.push(c),
        }
        if canonical.len() > NAME_MAX {
            break;
        }
    }
    canonical
}

/// Longer names than the longest forbidden one are not built up.
const NAME_MAX: usize = 32;

/// Characters without a shape of their own (Unicode's `Default_Ignorable_Code_Point`).
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a value is a credential: raw, percent-decoded, or as base64 of either alphabet at any length.
fn has_credential(value: &[u8], scanner: &Scanner) -> bool {
    let mut plain = Cow::Borrowed(value);
    for round in 0..=ROUNDS {
        if is_credential(&plain, scanner) {
            return true;
        }
        let letters = plain.trim_ascii().strip_suffix(b"==").or_else(|| plain.strip_suffix(b"="));
        let letters = letters.unwrap_or(&plain);
        if base64(letters).is_some_and(|decoded| is_credential(&decoded, scanner)) {
            return true;
        }
        plain = match Step::Percent.undo(&plain) {
            Some(next) if round < ROUNDS => Cow::Owned(next),
            _ => return false,
        };
    }
    false
}

fn is_credential(text: &[u8], scanner: &Scanner) -> bool {
    // The plus sign is a space in a query, and a letter in base64.
    let mut spaced = Cow::Borrowed(text);
    if text.contains(&b'+') {
        spaced = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect::<Vec<u8>>().into();
    }
    let words = spaced.trim_ascii();
    let bearer = words.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"bearer "));
    (bearer && words.get(7..).is_some_and(|rest| !rest.trim_ascii().is_empty()))
        || words.starts_with(b"lgw_")
        || scanner.find(text).is_some()
        || (matches!(spaced, Cow::Owned(_)) && scanner.find(&spaced).is_some())
}

/// Whether every percent sign of a raw query starts an octet, no `;` stands bare, and the octets are UTF-8.
fn is_well_formed(query: &[u8]) -> bool {
    let mut octets = query.iter();
    while let Some(byte) = octets.next() {
        let good = match byte {
            b'%' => {
                [octets.next(), octets.next()].iter().all(|digit| digit.is_some_and(u8::is_ascii_hexdigit))
            }
            b';' => false,
            _ => true,
        };
        if !good {
            return false;
        }
    }
    let plain = Step::Percent.undo(query).map_or(Cow::Borrowed(query), Cow::Owned);
    std::str::from_utf8(&plain).is_ok()
}
