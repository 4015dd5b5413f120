//! Walks a JSON value leaf by leaf, each with its path and written so that the words around a value are seen
//! together with it. Not here: what is done with a leaf (`judge`).

use serde_json::Value;

/// Deepest nesting that is walked: as deep as JSON is read anywhere in the house.
const DEPTH_MAX: usize = 128;

/// Longest name that is shown in a path, in bytes.
const NAME_SHOWN: usize = 40;

/// The value is nested deeper than anything that was read.
pub(crate) struct TooDeep;

/// Where a leaf stands: names of members, numbers of items.
pub(crate) struct Path<'v>(Vec<Segment<'v>>);

#[derive(Clone, Copy)]
enum Segment<'v> {
    Name(&'v str),
    Item(usize),
}

/// A value without parts, or an empty one.
pub(crate) struct Leaf<'v> {
    pub(crate) path: &'v Path<'v>,
    pub(crate) value: &'v Value,
}

impl Path<'_> {
    /// Whether this is the path of an RFC 6901 pointer without escapes.
    pub(crate) fn is(&self, pointer: &str) -> bool {
        let mut parts = pointer.split('/').skip(1);
        let same = self.0.iter().all(|segment| match (segment, parts.next()) {
            (Segment::Name(name), Some(part)) => *name == part,
            (Segment::Item(item), Some(part)) => part == item.to_string(),
            (_, None) => false,
        });
        same && parts.next().is_none()
    }

    /// The path as text. A name that is long, has unusual characters or fails the test may be a secret that
    /// became a name, and is `?`.
    pub(crate) fn shown(&self, is_name: impl Fn(&str) -> bool) -> String {
        let mut shown = String::new();
        for segment in &self.0 {
            shown.push('/');
            match segment {
                Segment::Item(item) => shown.push_str(&item.to_string()),
                Segment::Name(name) => {
                    let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
                    let fine = name.len() <= NAME_SHOWN && name.bytes().all(usual) && is_name(name);
                    shown.push_str(if fine { name } else { "?" });
                }
            }
        }
        shown
    }
}

impl Leaf<'_> {
    /// Writes `"name":"value",`, the name being the nearest one. Strings stand as they are, without escapes:
    /// this text is only looked at.
    pub(crate) fn write(&self, text: &mut Vec<u8>) {
        let name = self.path.0.iter().rev().find_map(|segment| match segment {
            Segment::Name(name) => Some(*name),
            Segment::Item(_) => None,
        });
        text.push(b'"');
        if let Some(name) = name {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b"\":\"");
        }
        match self.value {
            Value::String(string) => text.extend_from_slice(string.as_bytes()),
            Value::Number(number) => text.extend_from_slice(number.to_string().as_bytes()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
        }
        text.extend_from_slice(b"\",");
    }
}

/// Calls `on` with every leaf, and with every member and item that has parts, for its name.
pub(crate) fn each(value: &Value, on: &mut impl FnMut(&Leaf<'_>)) -> Result<(), TooDeep> {
    inner(value, &mut Path(Vec::new()), on)
}

fn inner<'v>(value: &'v Value, path: &mut Path<'v>, on: &mut impl FnMut(&Leaf<'_>)) -> Result<(), TooDeep> {
    if path.0.len() > DEPTH_MAX {
        return Err(TooDeep);
    }
    on(&Leaf { path, value });
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                path.0.push(Segment::Name(name));
                inner(value, path, on)?;
                path.0.pop();
            }
        }
        Value::Array(items) => {
            for (item, value) in items.iter().enumerate() {
                path.0.push(Segment::Item(item));
                inner(value, path, on)?;
                path.0.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}
