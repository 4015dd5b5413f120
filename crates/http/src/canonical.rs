//! A JSON body, read strictly: UTF-8 only, one value, no name twice, bounded in size and depth, numbers as
//! text. And its canonical text (section 7.2): names in the order of code points, no white space, strings
//! minimally escaped, numbers in plain decimal. The syntax is `serde_json`'s own.
//!
//! Not here: which members a request may have ([`fields`](crate::fields)).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::Deserialize as _;
use serde_json::value::RawValue;

use crate::number::{Exponents, Number, Unfit};
use crate::text::members;

/// Deepest nesting that any caller may allow: reading is recursive.
pub const DEPTH_MAX: usize = 64;

/// Bounds of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Size in bytes.
    pub bytes: usize,
    /// Nested arrays and objects, at most [`DEPTH_MAX`]. A scalar has depth 0.
    pub depth: usize,
    /// What becomes of exponents.
    pub exponents: Exponents,
}

impl Default for Bounds {
    /// 64 KiB (section 7.3); 16 deep, where the deepest request needs 3; exponents are expanded.
    fn default() -> Self {
        Self { bytes: 64 * 1024, depth: 16, exponents: Exponents::Expanded }
    }
}

/// Why a body is not taken. No content of it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Longer than the bound.
    #[error("the body is larger than {limit} bytes; send a smaller one")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("the body is not UTF-8 at byte {offset}; encode it as UTF-8")]
    NotUtf8 {
        /// First byte that is wrong.
        offset: usize,
    },
    /// Starts with a byte order mark (RFC 8259, section 8.1).
    #[error("the body starts with a byte order mark; send it without")]
    ByteOrderMark,
    /// Not JSON.
    #[error("the body is not JSON at line {line}, column {column}; send one JSON value")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// The character U+0000, which some stores can't keep in a text.
    #[error("a string of the body has the character U+0000; leave it out")]
    NullCharacter,
    /// A text that is no text: half of a surrogate pair.
    #[error("a string of the body has an escape that stands for no character; send the character")]
    NoCharacter,
    /// A name twice in one object.
    #[error("the body has a name twice in one object; send it once")]
    DuplicateName,
    /// Nested deeper than the bound.
    #[error("the body is nested deeper than {limit}; send it flatter")]
    TooDeep {
        /// The bound.
        limit: usize,
    },
    /// A number.
    #[error(transparent)]
    Number(#[from] Unfit),
}

impl Unreadable {
    /// Short word for `details.reason`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::ByteOrderMark => "byte_order_mark",
            Self::Syntax { .. } | Self::NoCharacter => "not_json",
            Self::NullCharacter => "null_character",
            Self::DuplicateName => "duplicate_name",
            Self::TooDeep { .. } => "too_deep",
            Self::Number(Unfit::Exponent) => "exponent",
            Self::Number(Unfit::TooLong) => "number_too_long",
        }
    }
}

/// A JSON value without floats.
#[derive(Clone, PartialEq, Eq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number, as text.
    Number(Number),
    /// A string, unescaped.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object, by name in the order of code points.
    Object(BTreeMap<String, Self>),
}

/// Shows the kind only: a body may hold a credential.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl Node {
    /// What a request without a body says: `{}` (section 7.2).
    #[must_use]
    pub const fn empty() -> Self {
        Self::Object(BTreeMap::new())
    }

    /// The kind in JSON's words.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The canonical text.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Self::Number(number) => out.push_str(number.plain()),
            Self::Text(text) => quote(text, out),
            Self::List(list) => {
                out.push('[');
                for (place, node) in list.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    node.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (place, (name, node)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    quote(name, out);
                    out.push(':');
                    node.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// A JSON string with no escape that it doesn't need. A text can always be written.
fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// Reads a body. An empty one is `{}`; white space alone is not JSON.
///
/// # Errors
/// [`Unreadable`] says what is wrong with it.
pub fn read(bytes: &[u8], bounds: &Bounds) -> Result<Node, Unreadable> {
    if bytes.len() > bounds.bytes {
        return Err(Unreadable::TooLarge { limit: bounds.bytes });
    }
    if bytes.is_empty() {
        return Ok(Node::empty());
    }
    let text = std::str::from_utf8(bytes).map_err(|e| Unreadable::NotUtf8 { offset: e.valid_up_to() })?;
    if text.starts_with('\u{feff}') {
        return Err(Unreadable::ByteOrderMark);
    }
    // The whole is skipped through once, without recursion: after this only the meaning of what stands there
    // can be wrong, not its syntax.
    let syntax = |e: serde_json::Error| Unreadable::Syntax { line: e.line(), column: e.column() };
    let mut reader = serde_json::Deserializer::from_str(text);
    let whole = <&RawValue>::deserialize(&mut reader).map_err(syntax)?;
    reader.end().map_err(syntax)?;
    node(whole.get(), 0, bounds)
}

fn node(text: &str, depth: usize, bounds: &Bounds) -> Result<Node, Unreadable> {
    let first = text.bytes().next().unwrap_or(b' ');
    let limit = bounds.depth.min(DEPTH_MAX);
    if matches!(first, b'{' | b'[') && depth >= limit {
        return Err(Unreadable::TooDeep { limit });
    }
    let broken = |_| Unreadable::NoCharacter;
    match first {
        b'{' => {
            let mut object = BTreeMap::new();
            for (name, raw) in members(text).map_err(broken)? {
                match object.entry(name) {
                    Entry::Vacant(place) => place.insert(node(raw.get(), depth + 1, bounds)?),
                    Entry::Occupied(_) => return Err(Unreadable::DuplicateName),
                };
            }
            Ok(Node::Object(object))
        }
        b'[' => {
            let list: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
            let nodes = list.into_iter().map(|raw| node(raw.get(), depth + 1, bounds));
            Ok(Node::List(nodes.collect::<Result<_, _>>()?))
        }
        b'"' => {
            let text: String = serde_json::from_str(text).map_err(broken)?;
            if text.contains('\0') { Err(Unreadable::NullCharacter) } else { Ok(Node::Text(text)) }
        }
        b't' => Ok(Node::Flag(true)),
        b'f' => Ok(Node::Flag(false)),
        b'n' => Ok(Node::Null),
        _ => Ok(Node::Number(Number::of(text, bounds.exponents)?)),
    }
}
