//! The places that settings come from, laid over each other: file, then environment, then flags. Not here:
//! what a setting means.

use std::collections::BTreeMap;
use std::fmt;

use toml::{Table, Value};

/// Environment variables with this in front and `__` inside are settings.
const PREFIX: &str = "ONCESEAL_";

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File,
    /// This environment variable.
    Environment(String),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File => f.write_str("file"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// Settings from several places; later ones win.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// What is set, merged.
    pub table: Table,
    origins: BTreeMap<String, Origin>,
}

impl Layers {
    /// Lays the content of a file over what is there.
    pub fn file(&mut self, table: Table) {
        self.lay(&[], table);
    }

    fn lay(&mut self, above: &[String], table: Table) {
        for (key, value) in table {
            let mut path = above.to_vec();
            path.push(key);
            match value {
                Value::Table(inner) if !inner.is_empty() => self.lay(&path, inner),
                value => self.put(&path, value, Origin::File),
            }
        }
    }

    /// Lays variables `ONCESEAL_SECTION__KEY` over what is there, in the order of their names. `typed` says
    /// whether a path holds a text, so that `1` can be one.
    pub fn environment(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
        typed: impl Fn(&str) -> Hint,
    ) {
        let mut settings: Vec<_> = variables
            .filter_map(|(name, text)| {
                let path = name.strip_prefix(PREFIX)?.to_lowercase();
                path.contains("__").then_some((path, name, text))
            })
            .collect();
        settings.sort();
        for (path, name, text) in settings {
            let path: Vec<String> = path.split("__").map(str::to_owned).collect();
            let value = value(&text, typed(&path.join(".")));
            self.put(&path, value, Origin::Environment(name));
        }
    }

    /// Lays one `section.key=value` over what is there.
    ///
    /// # Errors
    /// The text has no `=` or no key.
    pub fn flag(
        &mut self,
        flag: &'static str,
        setting: &str,
        typed: impl Fn(&str) -> Hint,
    ) -> Result<(), String> {
        let wrong = || format!("{flag} wants section.key=value");
        let (path, text) = setting.split_once('=').ok_or_else(wrong)?;
        let keys: Vec<String> = path.trim().split('.').map(|key| key.trim().to_owned()).collect();
        if keys.len() < 2 || keys.iter().any(String::is_empty) {
            return Err(wrong());
        }
        self.put(&keys, value(text, typed(&keys.join("."))), Origin::Flag(flag));
        Ok(())
    }

    fn put(&mut self, path: &[String], value: Value, origin: Origin) {
        let joined = path.join(".");
        let below = format!("{joined}.");
        self.origins.retain(|known, _| *known != joined && !known.starts_with(&below));
        self.origins.insert(joined, origin);
        let Some((last, sections)) = path.split_last() else { return };
        let mut table = &mut self.table;
        for section in sections {
            let entry = table.entry(section.clone()).or_insert_with(|| Value::Table(Table::new()));
            if !entry.is_table() {
                *entry = Value::Table(Table::new());
            }
            let Value::Table(inner) = entry else { return };
            table = inner;
        }
        table.insert(last.clone(), value);
    }

    /// Where the value at a path came from; a part of a table or list has its whole's origin.
    #[must_use]
    pub fn origin(&self, path: &str) -> Origin {
        let mut path = path;
        loop {
            if let Some(origin) = self.origins.get(path) {
                return origin.clone();
            }
            match path.rsplit_once('.') {
                Some((whole, _)) => path = whole,
                None => return Origin::Default,
            }
        }
    }
}

/// What a path holds, as far as the defaults tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A text: nothing is read into it.
    Text,
    /// Something else, or unknown.
    Any,
}

/// A value from a variable or flag: TOML where it is TOML, else the text itself.
fn value(text: &str, hint: Hint) -> Value {
    let quoted = text.starts_with('"') || text.starts_with('\'');
    if hint == Hint::Text && !quoted {
        return Value::String(text.to_owned());
    }
    let parsed = format!("v = {text}").parse::<Table>().ok();
    // A line break could have smuggled a second setting in.
    let parsed = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("v"));
    match parsed {
        Some(Value::Datetime(_)) | None => Value::String(text.to_owned()),
        Some(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_places_win_key_by_key() {
        let mut layers = Layers::default();
        layers.file("[a]\nx = 1\ny = 1\nz = 1".parse().unwrap());
        let variables = [("ONCESEAL_A__Y".to_owned(), "2".to_owned()), ("ONCESEAL_A__Z".into(), "2".into())];
        layers.environment(variables.into_iter(), |_| Hint::Any);
        layers.flag("--set", "a.z=3", |_| Hint::Any).unwrap();
        assert_eq!(layers.table, "[a]\nx = 1\ny = 2\nz = 3".parse().unwrap());
        assert_eq!(layers.origin("a.x"), Origin::File);
        assert_eq!(layers.origin("a.y"), Origin::Environment("ONCESEAL_A__Y".into()));
        assert_eq!(layers.origin("a.z"), Origin::Flag("--set"));
    }

    #[test]
    fn a_text_stays_a_text_and_lists_can_be_given() {
        assert_eq!(value("1", Hint::Text), Value::String("1".into()));
        assert_eq!(value("2s", Hint::Any), Value::String("2s".into()));
        assert_eq!(value("2026-01-01", Hint::Any), Value::String("2026-01-01".into()));
        assert_eq!(value("[1]", Hint::Any), Value::Array(vec![Value::Integer(1)]));
        assert_eq!(value("1\nb = 2", Hint::Any), Value::String("1\nb = 2".into()));
    }

    #[test]
    fn a_flag_without_section_is_refused() {
        for text in ["", "a=1", "a.b", ".b=1", "a.=1"] {
            assert!(Layers::default().flag("--set", text, |_| Hint::Any).is_err(), "{text}");
        }
    }
}
