//! A row as text that does not depend on the engine it was read from: what a copy compares and hashes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use kernel::{Digest, Time};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::table::{Kind, Table};
use crate::value::Value;

/// The whole row; every value ends where its length says, so that no two rows have one text.
pub(super) fn row(table: &Table, values: &[Value]) -> Vec<u8> {
    let mut text = Vec::with_capacity(values.len() * 16);
    for (column, value) in table.columns.iter().zip(values) {
        write(column.kind, value, &mut text);
    }
    text
}

/// The key's columns alone.
pub(super) fn key(table: &Table, positions: &[usize], values: &[Value]) -> Vec<u8> {
    let mut text = Vec::with_capacity(positions.len() * 16);
    for position in positions {
        if let (Some(column), Some(value)) = (table.columns.get(*position), values.get(*position)) {
            write(column.kind, value, &mut text);
        }
    }
    text
}

fn write(kind: Kind, value: &Value, text: &mut Vec<u8>) {
    match (kind, value) {
        (_, Value::Null) => text.push(b'n'),
        (_, Value::Int(int) | Value::Money(int)) => number(*int, text),
        (_, Value::Time(time)) => number(time.micros(), text),
        (Kind::Json, Value::Text(json)) => match serde_json::from_str(json) {
            Ok(json) => sized(b'j', sorted(&json).to_string().as_bytes(), text),
            Err(_) => sized(b't', json.as_bytes(), text),
        },
        (Kind::Inet, Value::Text(address)) => match address.parse::<IpAddr>() {
            Ok(address) => sized(b't', address.to_string().as_bytes(), text),
            Err(_) => sized(b't', address.as_bytes(), text),
        },
        (_, Value::Text(content)) => sized(b't', content.as_bytes(), text),
        (_, Value::Bytes(bytes)) => sized(b'b', bytes, text),
    }
}

fn number(int: i64, text: &mut Vec<u8>) {
    text.push(b'i');
    text.extend(int.to_string().as_bytes());
    text.push(b';');
}

fn sized(mark: u8, content: &[u8], text: &mut Vec<u8>) {
    text.push(mark);
    text.extend(content.len().to_string().as_bytes());
    text.push(b':');
    text.extend(content);
}

/// The same with the names of all objects in one order.
fn sorted(json: &Json) -> Json {
    match json {
        Json::Object(members) => {
            let members: BTreeMap<&String, Json> =
                members.iter().map(|(name, member)| (name, sorted(member))).collect();
            Json::Object(members.into_iter().map(|(name, member)| (name.clone(), member)).collect())
        }
        Json::Array(items) => Json::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// A value as the target takes it: the kinds that the plainer engine does not tell apart are named.
pub(super) fn sent(kind: Kind, value: &Value) -> Value {
    match (kind, value) {
        (Kind::Time, Value::Int(micros)) => Value::Time(Time::from_micros(*micros)),
        (Kind::Money, Value::Int(count)) => Value::Money(*count),
        (_, value) => value.clone(),
    }
}

/// All rows of one side, in the order of their keys: how many, and one hash over their texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    rows: u64,
    hash: Sha256,
}

impl Running {
    pub(super) fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        self.hash.update((row.len() as u64).to_be_bytes());
        self.hash.update(row);
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn end(self) -> Side {
        let hash = Digest::from_slice(&self.hash.finalize()).unwrap_or(Digest::UNKNOWN);
        Side { rows: self.rows, hash }
    }
}

/// What was read of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// How many rows.
    pub rows: u64,
    /// SHA-256 over the canonical texts of the rows, in the order of their keys.
    pub hash: Digest,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: Kind, value: impl Into<Value>) -> Vec<u8> {
        let mut text = Vec::new();
        write(kind, &value.into(), &mut text);
        text
    }

    #[test]
    fn what_the_engines_write_differently_is_one_text() {
        assert_eq!(text(Kind::Time, 5_i64), text(Kind::Time, Time::from_micros(5)));
        assert_eq!(
            text(Kind::Json, r#"{"b":1,"a":[{"d":null,"c":2}]}"#),
            text(Kind::Json, r#"{"a": [{"c": 2, "d": null}], "b": 1}"#)
        );
        assert_eq!(text(Kind::Inet, "2001:db8:0::1"), text(Kind::Inet, "2001:db8::1"));
        assert_eq!(text(Kind::Flag, true), text(Kind::Flag, 1_i64));
    }

    #[test]
    fn json_that_is_kept_byte_for_byte_is_compared_so() {
        assert_ne!(text(Kind::Text, r#"{"a":1}"#), text(Kind::Text, r#"{"a": 1}"#));
    }

    #[test]
    fn two_rows_never_share_a_text() {
        let pairs = [("ab", "c"), ("a", "bc"), ("", "abc"), ("a2:b", "c")];
        let texts: std::collections::BTreeSet<Vec<u8>> = pairs
            .iter()
            .map(|(one, two)| [text(Kind::Text, *one), text(Kind::Text, *two)].concat())
            .collect();
        assert_eq!(texts.len(), pairs.len());
        assert_ne!(text(Kind::Int, 1_i64), text(Kind::Text, "1"));
        assert_ne!(text(Kind::Text, Value::Null), text(Kind::Text, "n"));
        assert_ne!(text(Kind::Text, Value::Null), text(Kind::Text, ""));
    }
}
