//! A table as an engine describes it: what a copy needs to read, compare and write its rows. Not here: how
//! an engine is asked (each driver's own), what is done with it.

use std::collections::BTreeSet;

use crate::error::Error;

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// In the order of the schema file.
    pub columns: Vec<Column>,
    /// Columns of the primary key, in its order.
    pub key: Vec<String>,
    /// Whose rows must be there first.
    pub parents: Vec<Parent>,
    /// Whether the schema itself keeps rows from being changed and deleted.
    pub append_only: bool,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether the engine counts it on by itself, from a counter that a copy must set.
    pub counted: bool,
}

/// One column of a foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Column of the child.
    pub column: String,
    /// The parent.
    pub table: String,
    /// Column of the parent.
    pub to: String,
}

/// What a column holds. An engine with fewer kinds names the one that it stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers.
    Int,
    /// Truth values.
    Flag,
    /// Money.
    Money,
    /// Instants.
    Time,
    /// Text, and JSON that is kept byte for byte.
    Text,
    /// JSON of which only the meaning is kept.
    Json,
    /// An address.
    Inet,
    /// Bytes.
    Bytes,
    /// None of ours.
    Other,
}

impl Kind {
    /// The kind as the plainer engine stores it.
    const fn stored(self) -> Self {
        match self {
            Self::Int | Self::Flag | Self::Money | Self::Time => Self::Int,
            Self::Text | Self::Json | Self::Inet => Self::Text,
            Self::Bytes => Self::Bytes,
            Self::Other => Self::Other,
        }
    }

    /// The one that says more, where both can stand for the same.
    fn finer(self, other: Self) -> Option<Self> {
        match (self.stored(), other.stored()) {
            (Self::Other, _) | (_, Self::Other) => None,
            _ if self == other => Some(self),
            (one, two) if one != two => None,
            (plain, _) if self == plain => Some(other),
            (plain, _) if other == plain => Some(self),
            _ => None,
        }
    }
}

impl Table {
    /// Position of a column.
    pub(super) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|found| found.name == column)
    }

    /// Positions of the key's columns.
    pub(super) fn key_positions(&self) -> Vec<usize> {
        self.key.iter().filter_map(|name| self.position(name)).collect()
    }

    /// The key's column, where it is one and counted in numbers: its rows then have an order of birth.
    pub(super) fn number(&self) -> Option<&str> {
        match self.key.as_slice() {
            [one] => {
                let column = self.columns.iter().find(|column| column.name == *one)?;
                (column.kind == Kind::Int).then_some(one.as_str())
            }
            _ => None,
        }
    }

    /// Columns that point at another row of the table by its number.
    pub(super) fn own_parents(&self) -> impl Iterator<Item = usize> + '_ {
        self.parents
            .iter()
            .filter(|parent| parent.table == self.name && Some(parent.to.as_str()) == self.number())
            .filter_map(|parent| self.position(&parent.column))
    }
}

/// Tables of both sides as one, parents first: each column with the finer of its two kinds.
///
/// # Errors
/// [`Error::Setup`] when the sides differ, with the first difference.
pub(super) fn joined(source: &[Table], target: &[Table]) -> Result<Vec<Table>, Error> {
    let names = |tables: &[Table]| tables.iter().map(|table| table.name.clone()).collect::<BTreeSet<_>>();
    let (here, there) = (names(source), names(target));
    if let Some(name) = here.symmetric_difference(&there).next() {
        let side = if here.contains(name) { "source" } else { "target" };
        return Err(differ(&format!("only the {side} has the table {name}")));
    }
    let pairs = target
        .iter()
        .filter_map(|table| source.iter().find(|other| other.name == table.name).map(|other| (other, table)));
    let tables = pairs.map(|(source, target)| join(source, target)).collect::<Result<Vec<_>, _>>()?;
    parents_first(tables)
}

/// One table of both sides as one.
///
/// # Errors
/// As [`joined`].
pub(super) fn join(source: &Table, target: &Table) -> Result<Table, Error> {
    let name = &target.name;
    let columns = target.columns.iter().map(|column| {
        let other = source.columns.iter().find(|other| other.name == column.name);
        let other = other.ok_or_else(|| differ(&format!("only the target has {name}.{}", column.name)))?;
        let kind = column.kind.finer(other.kind);
        let kind = kind.ok_or_else(|| differ(&format!("{name}.{} is of two kinds", column.name)))?;
        Ok(Column { name: column.name.clone(), kind, counted: column.counted })
    });
    let columns = columns.collect::<Result<Vec<_>, Error>>()?;
    if let Some(more) = source.columns.iter().find(|column| target.position(&column.name).is_none()) {
        return Err(differ(&format!("only the source has {name}.{}", more.name)));
    }
    if source.key != target.key || target.key.is_empty() {
        return Err(differ(&format!("{name} has another primary key, or none")));
    }
    Ok(Table {
        name: name.clone(),
        columns,
        key: target.key.clone(),
        parents: target.parents.clone(),
        append_only: source.append_only || target.append_only,
    })
}

fn parents_first(mut rest: Vec<Table>) -> Result<Vec<Table>, Error> {
    let mut ordered: Vec<Table> = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let stands = |table: &Table| {
            table.parents.iter().all(|parent| {
                parent.table == table.name || ordered.iter().any(|done| done.name == parent.table)
            })
        };
        let Some(at) = rest.iter().position(stands) else {
            let names: Vec<_> = rest.iter().map(|table| table.name.as_str()).collect();
            return Err(differ(&format!("{} point at one another", names.join(", "))));
        };
        ordered.push(rest.remove(at));
    }
    Ok(ordered)
}

fn differ(what: &str) -> Error {
    Error::Setup(format!(
        "source and target are not of one schema: {what}; bring both up with the same program (`onceseal migrate up`)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, kind: Kind, parent: Option<&str>) -> Table {
        let column = |name: &str, kind| Column { name: name.into(), kind, counted: false };
        Table {
            name: name.into(),
            columns: vec![column("id", Kind::Int), column("value", kind)],
            key: vec!["id".into()],
            parents: parent
                .iter()
                .map(|of| Parent { column: "value".into(), table: (*of).into(), to: "id".into() })
                .collect(),
            append_only: false,
        }
    }

    #[test]
    fn parents_come_before_their_children_whatever_their_names() {
        let side = || {
            vec![
                table("a", Kind::Int, Some("b")),
                table("b", Kind::Int, Some("c")),
                table("c", Kind::Int, Some("c")),
            ]
        };
        let names: Vec<_> = joined(&side(), &side()).unwrap().into_iter().map(|table| table.name).collect();
        assert_eq!(names, ["c", "b", "a"]);
    }

    #[test]
    fn of_two_kinds_for_one_column_the_finer_counts() {
        for (kind, stored) in [(Kind::Time, Kind::Int), (Kind::Json, Kind::Text), (Kind::Bytes, Kind::Bytes)]
        {
            let both = joined(&[table("a", stored, None)], &[table("a", kind, None)]).unwrap();
            assert_eq!(both[0].columns[1].kind, kind);
        }
    }

    #[test]
    fn what_only_one_side_has_is_named() {
        let (a, b) = (table("a", Kind::Int, None), table("b", Kind::Int, None));
        let cause = joined(&[a.clone(), b], std::slice::from_ref(&a)).unwrap_err().to_string();
        assert!(cause.contains("only the source has the table b"), "{cause}");
        let cause = joined(&[a], &[table("a", Kind::Bytes, None)]).unwrap_err().to_string();
        assert!(cause.contains("a.value is of two kinds"), "{cause}");
    }
}
