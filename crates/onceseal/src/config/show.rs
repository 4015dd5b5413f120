//! The effective settings back as text, each with where it came from. Secrets are places here, so there is
//! nothing to hide but what somebody put into an address.

use serde_json::{Value as Json, json};
use toml::{Table, Value};

use super::layer::Origin;
use super::load::Loaded;

/// One effective setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Dotted name.
    pub setting: String,
    /// Its value in TOML.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
    /// For a secret: whether its place can be read now.
    pub secret: Option<bool>,
}

impl Line {
    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        let value = serde_json::to_value(&self.value).unwrap_or(Json::Null);
        json!({
            "setting": self.setting, "value": value, "from": self.origin.to_string(), "secret_found": self.secret,
        })
    }
}

/// All effective settings, in the order of their definition.
#[must_use]
pub fn lines(loaded: &Loaded) -> Vec<Line> {
    let table = Table::try_from(&loaded.config).unwrap_or_default();
    let mut lines = Vec::new();
    flatten(loaded, "", &Value::Table(table), &mut lines);
    lines
}

fn flatten(loaded: &Loaded, path: &str, value: &Value, lines: &mut Vec<Line>) {
    match value {
        Value::Table(table) if !table.is_empty() && secret_place(table).is_none() => {
            for (key, inner) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(loaded, &path, inner, lines);
            }
        }
        // An empty section says nothing.
        Value::Table(table) if table.is_empty() => {}
        value => lines.push(Line {
            setting: path.to_owned(),
            value: value.clone(),
            origin: loaded.layers.origin(path),
            secret: found(value),
        }),
    }
}

/// Whether all the secrets of a value are where it says; `None` for a value without secrets.
fn found(value: &Value) -> Option<bool> {
    match value {
        Value::Table(table) => secret_place(table),
        Value::Array(list) if !list.is_empty() => {
            let places: Option<Vec<bool>> =
                list.iter().map(|one| one.as_table().and_then(secret_place)).collect();
            Some(places?.into_iter().all(|there| there))
        }
        _ => None,
    }
}

fn secret_place(table: &Table) -> Option<bool> {
    let mut entries = table.iter();
    let (key, place) = entries.next().filter(|_| table.len() == 1)?;
    let place = place.as_str()?;
    match key.as_str() {
        "env" => Some(std::env::var_os(place).is_some()),
        "file" => Some(std::path::Path::new(place).is_file()),
        _ => None,
    }
}
