//! The tables of the file, read back from its own catalogue.

use crate::copy::{Column, Kind, Parent, Table};
use crate::error::Error;
use crate::statement::Query;
use crate::value::Row;

const COLUMNS: &str =
    "select m.name, p.name, lower(p.type), p.pk from sqlite_schema m join pragma_table_info(m.name) p
where m.type = 'table' and m.name not like 'sqlite\\_%' escape '\\' order by m.rowid, p.cid";
const PARENTS: &str = "select m.name, f.\"from\", f.\"table\", f.\"to\" from sqlite_schema m
join pragma_foreign_key_list(m.name) f where m.type = 'table' order by m.rowid, f.id, f.seq";
const APPEND_ONLY: &str =
    "select tbl_name from sqlite_schema where type = 'trigger' and name = tbl_name || '_no_update'";

/// What to ask.
pub(super) fn queries() -> Vec<Query> {
    [("layout.columns", COLUMNS), ("layout.parents", PARENTS), ("layout.append_only", APPEND_ONLY)]
        .into_iter()
        .map(|(name, sql)| Query::new(name, sql, vec![]))
        .collect()
}

/// The tables in the answers.
///
/// # Errors
/// [`Error::Corrupt`] when an answer is not as it was asked for.
pub(super) fn read(answers: &[Vec<Row>]) -> Result<Vec<Table>, Error> {
    let mut tables: Vec<Table> = Vec::new();
    let mut keys: Vec<(i64, String)> = Vec::new();
    let [columns, parents, append_only] = answers else { return Ok(tables) };
    for row in columns {
        let (table, column) = (row.text(0)?, row.text(1)?);
        let kind = kind(row.text(2)?);
        let column = Column { name: column.to_owned(), kind, counted: false };
        if tables.last().is_none_or(|last| last.name != table) {
            keys.clear();
            tables.push(Table {
                name: table.to_owned(),
                columns: Vec::new(),
                key: Vec::new(),
                parents: Vec::new(),
                append_only: false,
            });
        }
        if row.int(3)? > 0 {
            keys.push((row.int(3)?, column.name.clone()));
            keys.sort();
        }
        if let Some(last) = tables.last_mut() {
            last.columns.push(column);
            last.key = keys.iter().map(|(_, name)| name.clone()).collect();
        }
    }
    for row in parents {
        let parent = Parent {
            column: row.text(1)?.to_owned(),
            table: row.text(2)?.to_owned(),
            to: row.text(3)?.to_owned(),
        };
        let child = row.text(0)?;
        tables
            .iter_mut()
            .filter(|table| table.name == child)
            .for_each(|table| table.parents.push(parent.clone()));
    }
    for row in append_only {
        let name = row.text(0)?;
        tables.iter_mut().filter(|table| table.name == name).for_each(|table| table.append_only = true);
    }
    Ok(tables)
}

fn kind(declared: &str) -> Kind {
    match declared {
        "integer" => Kind::Int,
        "text" => Kind::Text,
        "blob" => Kind::Bytes,
        _ => Kind::Other,
    }
}
