//! JSON objects as texts: taken apart without reading their members, and put together without touching a byte
//! of them.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserializer as _, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

/// What stands for an answer that can't be written, which none of this crate's is.
const UNWRITTEN: &str = "{}";

/// The members of an object in their order, each as its text. A name that stands twice comes twice.
pub(crate) fn members(text: &str) -> Result<Vec<(String, &RawValue)>, serde_json::Error> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader.deserialize_map(Members)?;
    reader.end()?;
    Ok(members)
}

/// One member's value on its way out.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Part<'a> {
    /// As it stands, byte for byte.
    Raw(&'a RawValue),
    Text(&'a str),
    Flag(bool),
    Whole(u64),
    Object(Object<'a>),
    Details(&'a Map<String, Json>),
}

/// An object on its way out, in the order of putting.
pub(crate) struct Object<'a>(Vec<(&'a str, Part<'a>)>);

impl<'a> Object<'a> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn with(mut self, name: &'a str, part: Part<'a>) -> Self {
        self.0.push((name, part));
        self
    }

    pub(crate) fn text(self, name: &'a str, text: &'a str) -> Self {
        self.with(name, Part::Text(text))
    }

    /// With a member only where there is a value for it.
    pub(crate) fn maybe(self, name: &'a str, part: Option<Part<'a>>) -> Self {
        match part {
            Some(part) => self.with(name, part),
            None => self,
        }
    }

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| UNWRITTEN.into())
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, part) in &self.0 {
            map.serialize_entry(name, part)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_go_through_byte_for_byte() {
        let stored =
            r#"{ "data" : {"b": 1.10,"a":9007199254740993.000000000000000001, "b":[ ] } ,"x":"\u00e9"}"#;
        let members = members(stored).unwrap();
        let object = members.iter().fold(Object::new().text("request_id", "r"), |object, (name, raw)| {
            object.with(name, Part::Raw(raw))
        });
        let written = r#"{"request_id":"r","data":{"b": 1.10,"a":9007199254740993.000000000000000001, "b":[ ] },"x":"\u00e9"}"#;
        assert_eq!(object.write(), written);
    }

    #[test]
    fn only_one_whole_object_has_members() {
        for text in ["", "[]", "1", "{", "{}{}", "{} x", r#"{"a":}"#, "null"] {
            assert!(members(text).is_err(), "{text}");
        }
        assert!(members(" {} ").unwrap().is_empty());
    }
}
