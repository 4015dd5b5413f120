//! Strict reading of JSON: webhook bodies and files under verification.
//!
//! Accepted is I-JSON (RFC 7493): UTF-8 without byte order mark, no member name twice in one object at any
//! depth, one value and nothing behind it. Two readers that treat a repeated name differently see two
//! documents, so a repeated name is an error here and not a choice. It is not a schema check, and it does not
//! refuse noncharacters such as U+FFFF, which real senders pass on.
//!
//! One pass over `serde_json`'s reader builds the value and checks it; nothing is parsed twice.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Deepest nesting of arrays and objects that is read. A scalar has depth 0, `[]` has depth 1.
pub const MAX_DEPTH: u32 = 128;

/// Longest part of a repeated member name that an error repeats, in characters.
const NAME_SHOWN: usize = 64;

/// At this magnitude `serde_json` turns an integer literal into a float: 2^63.
const FLOAT_FROM: f64 = 9_223_372_036_854_775_808.0;

/// Why bytes were refused as JSON. Lines and columns count from 1, columns in bytes; offsets count from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not UTF-8 (RFC 8259 section 8.1).
    #[error("JSON is not UTF-8 from byte {offset} on; send it as UTF-8")]
    NotUtf8 {
        /// First byte that is not part of a character.
        offset: usize,
    },
    /// The text starts with U+FEFF (RFC 8259 section 8.1).
    #[error("JSON starts with a byte order mark; send it without")]
    ByteOrderMark,
    /// The text breaks JSON's grammar, or holds a lone surrogate or a number beyond a double.
    #[error("JSON can't be read at line {line}, column {column}: {what}; send one complete JSON text")]
    Syntax {
        /// The reader's own words.
        what: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// Something other than white space follows the value.
    #[error("JSON is followed by more text at line {line}, column {column}; send one value only")]
    Trailing {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// A member name stands twice in one object (RFC 7493 section 2.3).
    #[error("member {name:?} stands twice in one object, seen at line {line}, column {column}; send it once")]
    DuplicateName {
        /// The name, cut to 64 characters.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`].
    #[error("JSON is nested deeper than {MAX_DEPTH} at line {line}, column {column}; send it flatter")]
    TooDeep {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// An integer literal does not fit 64 bits and would have lost digits as a float.
    #[error("integer at byte {offset} does not fit 64 bits; send it as a string")]
    WideInteger {
        /// First byte of the literal.
        offset: usize,
    },
}

impl Error {
    /// The stable name of this refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "json_not_utf8",
            Self::ByteOrderMark => "json_byte_order_mark",
            Self::Syntax { .. } => "json_syntax",
            Self::Trailing { .. } => "json_trailing",
            Self::DuplicateName { .. } => "json_duplicate_name",
            Self::TooDeep { .. } => "json_too_deep",
            Self::WideInteger { .. } => "json_wide_integer",
        }
    }
}

/// Reads one JSON text strictly. Integers stay integers (`i64` or `u64`), never by way of a float.
///
/// The length is the caller's to limit.
///
/// ```
/// let event = seal::json::parse(br#"{"id":"evt_1","amount":9007199254740993}"#)?;
/// assert_eq!(event["amount"].as_u64(), Some(9_007_199_254_740_993));
/// assert_eq!(seal::json::parse(br#"{"a":1,"a":2}"#).unwrap_err().code(), "json_duplicate_name");
/// # Ok::<(), seal::json::Error>(())
/// ```
///
/// # Errors
/// [`Error`] names what is wrong and where.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    let text = std::str::from_utf8(bytes).map_err(|e| Error::NotUtf8 { offset: e.valid_up_to() })?;
    if text.starts_with('\u{feff}') {
        return Err(Error::ByteOrderMark);
    }
    let notes = Notes::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    // The seed below counts the depth itself and stops at MAX_DEPTH.
    reader.disable_recursion_limit();
    let value = Node { depth: 0, notes: &notes }
        .deserialize(&mut reader)
        .map_err(|e| notes.fault.take().map_or_else(|| syntax(&e), |fault| fault.at(&e)))?;
    reader.end().map_err(|e| Error::Trailing { line: e.line(), column: e.column() })?;
    if notes.huge.get()
        && let Some(offset) = first_wide_integer(text)
    {
        return Err(Error::WideInteger { offset });
    }
    Ok(value)
}

fn syntax(error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let what = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    Error::Syntax { what, line, column }
}

/// What the seed saw and `serde_json`'s error type can't carry.
#[derive(Default)]
struct Notes {
    fault: Cell<Option<Fault>>,
    /// A float of at least 2^63 was read: it may have been an integer literal.
    huge: Cell<bool>,
}

enum Fault {
    Duplicate(String),
    Deep,
}

impl Fault {
    fn at(self, error: &serde_json::Error) -> Error {
        let (line, column) = (error.line(), error.column());
        match self {
            Self::Duplicate(name) => Error::DuplicateName { name, line, column },
            Self::Deep => Error::TooDeep { line, column },
        }
    }
}

#[derive(Clone, Copy)]
struct Node<'a> {
    depth: u32,
    notes: &'a Notes,
}

impl Node<'_> {
    /// The seed for what stands inside, or the refusal to go deeper.
    fn inside<E: de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            self.notes.fault.set(Some(Fault::Deep));
            return Err(E::custom("too deep"));
        }
        Ok(Self { depth: self.depth.saturating_add(1), ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        if value.abs() >= FLOAT_FROM {
            self.notes.huge.set(true);
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match object.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(members.next_value_seed(inside)?);
                }
                Entry::Occupied(taken) => {
                    let shown = taken.key().chars().take(NAME_SHOWN).collect();
                    self.notes.fault.set(Some(Fault::Duplicate(shown)));
                    return Err(de::Error::custom("duplicate name"));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

/// Finds an integer literal that fits neither `i64` nor `u64`. `text` is JSON that has been read already; this
/// second look happens only when a float of at least 2^63 turned up, because the reader tells `1e30` and
/// `1000000000000000000000000000000` apart no longer.
fn first_wide_integer(text: &str) -> Option<usize> {
    let mut rest = text.bytes().enumerate().peekable();
    let mut in_string = false;
    while let Some((start, byte)) = rest.next() {
        match byte {
            b'\\' if in_string => {
                rest.next();
            }
            b'"' => in_string = !in_string,
            b'-' | b'0'..=b'9' if !in_string => {
                let mut end = start.saturating_add(1);
                while rest
                    .next_if(|(_, b)| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                    .is_some()
                {
                    end = end.saturating_add(1);
                }
                let literal = text.get(start..end)?;
                let integer = !literal.contains(['.', 'e', 'E']);
                if integer && literal.parse::<i64>().is_err() && literal.parse::<u64>().is_err() {
                    return Some(start);
                }
            }
            _ => {}
        }
    }
    None
}
