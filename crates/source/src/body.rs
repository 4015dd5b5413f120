//! From bytes to a JSON object, strictly, and the fields taken out of it by moving.
//! Not here: which fields a sender has.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{Mode, Rejection};

/// Last second of the year 9999, the latest time that RFC 3339 can write.
pub(crate) const MAX_TIME: i64 = 253_402_300_799;

/// Parses a body that must be a JSON object.
pub(crate) fn object(bytes: &[u8]) -> Result<Map<String, Value>, Rejection> {
    if bytes.is_empty() {
        return Err(Rejection::body("BODY_EMPTY", "the body is empty", "请求体为空"));
    }
    match parse(bytes)? {
        Value::Object(map) => Ok(map),
        _ => Err(Rejection::body(
            "BODY_NOT_OBJECT",
            "the body is valid JSON but not an object",
            "请求体是 JSON，但不是对象",
        )),
    }
}

fn parse(bytes: &[u8]) -> Result<Value, Rejection> {
    use seal::json::Error;
    seal::json::parse(bytes).map_err(|error| match error {
        Error::NotUtf8 { .. } => {
            Rejection::body("BODY_NOT_UTF8", "the body is not UTF-8", "请求体不是 UTF-8")
        }
        Error::TooDeep { .. } => {
            Rejection::body("BODY_TOO_DEEP", "the body is nested too deeply", "请求体嵌套过深")
        }
        Error::DuplicateName { .. } => Rejection::body(
            "BODY_DUPLICATE_NAME",
            "a name stands twice in one object of the body",
            "请求体中有对象含重复的字段名",
        ),
        Error::WideInteger { .. } => Rejection::body(
            "FIELD_INVALID",
            "the body has an integer that does not fit 64 bits",
            "请求体含超出 64 位的整数",
        ),
        _ => Rejection::body("BODY_NOT_JSON", "the body is not JSON", "请求体不是有效的 JSON"),
    })
}

/// Whether a text may be an id: 1 to 255 characters, no control characters, no outer white space.
pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 4 * 255
        && text.chars().count() <= 255
        && text.trim().len() == text.len()
        && !text.chars().any(char::is_control)
}

/// Checks an id that came as text.
pub(crate) fn id(text: &str, place: &str) -> Result<String, Rejection> {
    if is_id(text) { Ok(text.to_owned()) } else { Err(Rejection::id_invalid(place)) }
}

/// Takes the event's id out of an object.
pub(crate) fn take_id(map: &mut Map<String, Value>, name: &str) -> Result<String, Rejection> {
    match map.remove(name) {
        None | Some(Value::Null) => Err(Rejection::id_missing(name)),
        Some(Value::String(text)) if is_id(&text) => Ok(text),
        Some(_) => Err(Rejection::id_invalid(name)),
    }
}

/// Takes the sender's type; absent is `unstated`.
pub(crate) fn take_kind(map: &mut Map<String, Value>, name: &str) -> Result<String, Rejection> {
    match map.remove(name) {
        None | Some(Value::Null) => Ok("unstated".into()),
        Some(Value::String(text)) if is_id(&text) => Ok(text),
        Some(_) => Err(Rejection::field(name, "a text of 1 to 255 characters")),
    }
}

/// Takes a text that is only carried along: another type than text, or an empty one, counts as absent.
pub(crate) fn take_text(map: &mut Map<String, Value>, name: &str) -> Option<String> {
    match map.remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Takes an id of another object: text, or an expanded object with an `id`.
pub(crate) fn take_ref(map: &mut Map<String, Value>, name: &str) -> Option<String> {
    match map.remove(name)? {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Object(mut inner) => take_text(&mut inner, "id"),
        _ => None,
    }
}

/// Takes an inner object, or an empty one.
pub(crate) fn take_map(map: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match map.remove(name) {
        Some(Value::Object(inner)) => inner,
        _ => Map::new(),
    }
}

/// Takes the first element of a list of objects, or an empty object.
pub(crate) fn take_first(map: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match map.remove(name) {
        Some(Value::Array(list)) => match list.into_iter().next() {
            Some(Value::Object(inner)) => inner,
            _ => Map::new(),
        },
        _ => Map::new(),
    }
}

/// Takes text that decides something (a status): absent or null is `None`, another type is refused.
pub(crate) fn take_word(map: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Rejection> {
    match map.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if is_id(&text) => Ok(Some(text)),
        Some(_) => Err(Rejection::field(name, "a text of 1 to 255 characters")),
    }
}

/// An amount in the smallest unit: an integer of 64 bits, or absent.
pub(crate) fn amount(value: Option<&Value>, name: &str) -> Result<Option<i64>, Rejection> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(amount) => Ok(Some(amount)),
            None => Err(Rejection::field(name, "an integer in the currency's smallest unit")),
        },
    }
}

/// A currency code: 3 to 8 ASCII letters or digits, given back in lower case.
pub(crate) fn currency(value: Option<Value>, name: &str) -> Result<Option<String>, Rejection> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(mut text))
            if (3..=8).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric()) =>
        {
            text.make_ascii_lowercase();
            Ok(Some(text))
        }
        Some(_) => Err(Rejection::field(name, "a currency code")),
    }
}

/// Unix seconds from the year 1970 to 9999, or absent.
pub(crate) fn unix_time(value: Option<&Value>, name: &str) -> Result<Option<i64>, Rejection> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(time) if (0..=MAX_TIME).contains(&time) => Ok(Some(time)),
            _ => Err(Rejection::field(name, "Unix seconds, an integer from 0 to 253402300799")),
        },
    }
}

/// A mode flag: `true` is live, `false` is test, absent is unstated, all else is refused.
pub(crate) fn live_flag(value: Option<&Value>, name: &str) -> Result<Mode, Rejection> {
    match value {
        None => Ok(Mode::Unstated),
        Some(Value::Bool(true)) => Ok(Mode::Live),
        Some(Value::Bool(false)) => Ok(Mode::Test),
        Some(_) => Err(Rejection::field(name, "true or false")),
    }
}

/// Metadata: text to text; what is not text is left out.
pub(crate) fn metadata(map: Map<String, Value>) -> BTreeMap<String, String> {
    map.into_iter()
        .filter_map(|(name, value)| match value {
            Value::String(text) => Some((name, text)),
            _ => None,
        })
        .collect()
}

/// Adds a field to the fingerprint's input unless it is absent.
pub(crate) fn keep(stable: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        stable.insert(name.into(), value.into());
    }
}
