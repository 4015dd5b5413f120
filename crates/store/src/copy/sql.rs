//! The statements of a copy, made from a table's description. Names are those of our schema files, which
//! need no quotes. Not here: when they run.

use super::canon::sent;
use super::table::{Kind, Table};
use crate::statement::{Query, Write};
use crate::value::Value;

/// Rows in one statement, largest first: few shapes, so that an engine prepares each once.
const GROUPS: [usize; 5] = [256, 64, 16, 4, 1];

/// Values of a key's columns, in its order.
pub(super) type Key = Vec<Value>;

/// Which rows of a table are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Range {
    /// Only behind this one.
    pub(super) after: Option<Key>,
    /// Only up to this one.
    pub(super) to: Option<Key>,
    /// Only where these columns are null or at most so high.
    pub(super) bounds: Vec<(String, i64)>,
}

/// Rows in the order of their keys, text by its bytes.
pub(super) fn read(table: &Table, range: &Range, limit: u32) -> Query {
    let mut values = Vec::new();
    let mut conditions = Vec::new();
    for (sign, key) in [(">", &range.after), ("<=", &range.to)] {
        if let Some(key) = key {
            let first = values.len() + 1;
            let places: Vec<_> = (first..first + key.len()).map(|place| format!("${place}")).collect();
            conditions.push(format!("({}) {sign} ({})", ordered(table).join(", "), places.join(", ")));
            values.extend(key.iter().cloned());
        }
    }
    for (column, bound) in &range.bounds {
        values.push(Value::Int(*bound));
        conditions.push(format!("({column} is null or {column} <= ${})", values.len()));
    }
    let conditions =
        if conditions.is_empty() { String::new() } else { format!(" where {}", conditions.join(" and ")) };
    values.push(Value::Int(limit.into()));
    let sql = format!(
        "select {} from {}{conditions} order by {} limit ${}",
        columns(table),
        table.name,
        ordered(table).join(", "),
        values.len()
    );
    Query::new("copy.read", sql, values)
}

/// The highest key that stands there.
pub(super) fn last(table: &Table) -> Query {
    let down: Vec<_> = ordered(table).into_iter().map(|column| format!("{column} desc")).collect();
    let sql =
        format!("select {} from {} order by {} limit 1", table.key.join(", "), table.name, down.join(", "));
    Query::new("copy.last", sql, Vec::new())
}

/// The highest number of a table.
pub(super) fn bound(table: &Table, number: &str) -> Query {
    Query::new("copy.bound", format!("select coalesce(max({number}), 0) from {}", table.name), Vec::new())
}

/// Puts whole rows there, in the place of what has their keys; of a table that only grows, new ones only.
pub(super) fn put(table: &Table, rows: &[Vec<Value>]) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut rest = rows;
    for size in GROUPS {
        while let Some((group, more)) = rest.split_at_checked(size) {
            writes.push(Write::any("copy.put", insert(table, size), flat(table, group)));
            rest = more;
        }
    }
    writes
}

fn insert(table: &Table, rows: usize) -> String {
    let wide = table.columns.len();
    let tuples: Vec<_> = (0..rows)
        .map(|row| {
            let places: Vec<_> = (1..=wide).map(|place| format!("${}", row * wide + place)).collect();
            format!("({})", places.join(", "))
        })
        .collect();
    let changed: Vec<_> = table
        .columns
        .iter()
        .filter(|column| !table.key.contains(&column.name))
        .map(|column| format!("{0} = excluded.{0}", column.name))
        .collect();
    let conflict = if table.append_only || changed.is_empty() {
        "do nothing".to_owned()
    } else {
        format!("do update set {}", changed.join(", "))
    };
    format!(
        "insert into {} ({}) values {} on conflict ({}) {conflict}",
        table.name,
        columns(table),
        tuples.join(", "),
        table.key.join(", ")
    )
}

fn flat(table: &Table, rows: &[Vec<Value>]) -> Vec<Value> {
    let row = |row: &Vec<Value>| {
        let pairs = table.columns.iter().zip(row);
        pairs.map(|(column, value)| sent(column.kind, value)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(row).collect()
}

/// Points a row of a table at another row of it.
pub(super) fn point(table: &Table, column: &str, value: i64, key: &[Value]) -> Write {
    let mut values = vec![Value::Int(value)];
    let keyed = keyed(table, key, &mut values);
    Write::any("copy.point", format!("update {} set {column} = $1 where {keyed}", table.name), values)
}

/// Takes a row away.
pub(super) fn remove(table: &Table, key: &[Value]) -> Write {
    let mut values = Vec::new();
    let keyed = keyed(table, key, &mut values);
    Write::any("copy.remove", format!("delete from {} where {keyed}", table.name), values)
}

fn keyed(table: &Table, key: &[Value], values: &mut Vec<Value>) -> String {
    let mut conditions = Vec::new();
    for (column, value) in table.key.iter().zip(key) {
        values.push(value.clone());
        conditions.push(format!("{column} = ${}", values.len()));
    }
    conditions.join(" and ")
}

fn columns(table: &Table) -> String {
    let names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
    names.join(", ")
}

/// The key's columns as all engines order them alike.
fn ordered(table: &Table) -> Vec<String> {
    let ordered = |name: &String| {
        let text = table.columns.iter().any(|column| column.name == *name && column.kind == Kind::Text);
        if text { format!("{name} {{bytewise}}") } else { name.clone() }
    };
    table.key.iter().map(ordered).collect()
}
