//! A row that each table takes, and what must differ in a second one: `rows.txt` says how it is written.

use store::dialect::Dialect;

/// A column and what stands in it.
pub(super) type Value = (&'static str, &'static str);

/// A row that is there from the start, and the values by which a second one is new.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) table: &'static str,
    values: Vec<Value>,
    fresh: Vec<Value>,
}

/// Every row, in the order of the file.
pub(super) fn all() -> Vec<Row> {
    let blocks = include_str!("rows.txt").trim().split("\n\n").skip(1);
    blocks
        .map(|block| {
            let (table, rest) = block.split_once('\n').unwrap();
            let (values, fresh) = rest.split_once("\n  * ").unwrap_or((rest, ""));
            Row { table, values: parsed(values), fresh: parsed(fresh) }
        })
        .collect()
}

/// The row of `table`: the last one, since those before it are there for others to point at.
pub(super) fn of(table: &str) -> Row {
    all().into_iter().rfind(|row| row.table == table).unwrap_or_else(|| panic!("no row of {table}"))
}

/// `column value; column value;`
pub(super) fn parsed(text: &'static str) -> Vec<Value> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.split_once(' ').unwrap_or_else(|| panic!("no value: {part}"))).collect()
}

impl Row {
    /// Whether it is only there for others to point at.
    pub(super) fn is_fixture(&self) -> bool {
        ["core_tenants", "iam_users", "auth_api_keys"].contains(&self.table)
    }

    /// Writes the row that is there from the start.
    pub(super) fn insert(&self, dialect: Dialect) -> String {
        self.with(dialect, &self.values)
    }

    /// Writes a second row, with other values in some columns; `=` stands for the first row's.
    pub(super) fn second(&self, dialect: Dialect, other: &[Value]) -> String {
        let first = |column: &str| find(&self.values, column);
        let mut values: Vec<Value> = self.values.clone();
        values.retain(|(column, _)| *column != "id");
        values.extend(other.iter().filter(|(column, _)| first(column).is_none()));
        for (column, value) in &mut values {
            match find(other, column).or_else(|| find(&self.fresh, column)) {
                Some("=") => *value = first(column).unwrap(),
                Some(another) => *value = another,
                None => {}
            }
        }
        self.with(dialect, &values)
    }

    /// Writes a second row that says nothing of `column`.
    pub(super) fn second_without(&self, dialect: Dialect, column: &str) -> String {
        let mut less = self.clone();
        less.values.retain(|(name, _)| *name != column);
        less.fresh.retain(|(name, _)| *name != column);
        less.second(dialect, &[])
    }

    fn with(&self, dialect: Dialect, values: &[Value]) -> String {
        let columns: Vec<_> = values.iter().map(|(column, _)| *column).collect();
        let values: Vec<_> = values.iter().map(|(_, value)| literal(dialect, value)).collect();
        format!("insert into {} ({}) values ({})", self.table, columns.join(", "), values.join(", "))
    }
}

fn find(values: &[Value], column: &str) -> Option<&'static str> {
    values.iter().find(|(name, _)| *name == column).map(|(_, value)| *value)
}

fn literal(dialect: Dialect, value: &str) -> String {
    let (sign, rest) = value.split_at(1);
    match (sign, dialect) {
        ("@", Dialect::Sqlite) => format!("{rest}000000"),
        ("@", Dialect::Postgres) => format!("to_timestamp({rest})"),
        ("#", _) => format!("'{}'", rest.repeat(64)),
        ("&", Dialect::Sqlite) => format!("x'{}'", rest.repeat(32)),
        ("&", Dialect::Postgres) => format!("'\\x{}'::bytea", rest.repeat(32)),
        _ => dialect.render(value).into_owned(),
    }
}
