//! The tables of the current schema, read back from the server's catalogue.

use crate::copy::{Column, Kind, Parent, Table};
use crate::error::Error;
use crate::statement::{Query, Write};
use crate::value::Row;

const COLUMNS: &str =
    "select c.relname::text, a.attname::text, format_type(a.atttypid, null), a.attidentity <> ''
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
order by c.oid, a.attnum";
const KEYS: &str = "select c.relname::text, a.attname::text
from pg_index i join pg_class c on c.oid = i.indrelid
cross join lateral unnest(i.indkey::int2[]) with ordinality k (attnum, n)
join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
where c.relnamespace = current_schema()::regnamespace and i.indisprimary
order by c.oid, k.n";
const PARENTS: &str = "select c.relname::text, a.attname::text, p.relname::text, b.attname::text
from pg_constraint f join pg_class c on c.oid = f.conrelid join pg_class p on p.oid = f.confrelid
cross join lateral unnest(f.conkey, f.confkey) k (here, there)
join pg_attribute a on a.attrelid = c.oid and a.attnum = k.here
join pg_attribute b on b.attrelid = p.oid and b.attnum = k.there
where c.relnamespace = current_schema()::regnamespace and f.contype = 'f'
order by f.oid, a.attnum";
const APPEND_ONLY: &str = "select c.relname::text
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where c.relnamespace = current_schema()::regnamespace and p.proname = 'onceseal_append_only'";

/// What to ask.
pub(super) fn queries() -> Vec<Query> {
    [
        ("layout.columns", COLUMNS),
        ("layout.keys", KEYS),
        ("layout.parents", PARENTS),
        ("layout.append_only", APPEND_ONLY),
    ]
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
    let [columns, keys, parents, append_only] = answers else { return Ok(tables) };
    for row in columns {
        let (table, column) = (row.text(0)?, row.text(1)?);
        let kind = kind(row.text(2)?);
        let column = Column { name: column.to_owned(), kind, counted: row.flag(3)? };
        match tables.last_mut().filter(|last| last.name == table) {
            Some(last) => last.columns.push(column),
            None => tables.push(Table {
                name: table.to_owned(),
                columns: vec![column],
                key: Vec::new(),
                parents: Vec::new(),
                append_only: false,
            }),
        }
    }
    let mut of = |name: &str, change: &dyn Fn(&mut Table)| {
        tables.iter_mut().filter(|table| table.name == name).for_each(change);
    };
    for row in keys {
        let column = row.text(1)?.to_owned();
        of(row.text(0)?, &|table| table.key.push(column.clone()));
    }
    for row in parents {
        let parent = Parent {
            column: row.text(1)?.to_owned(),
            table: row.text(2)?.to_owned(),
            to: row.text(3)?.to_owned(),
        };
        of(row.text(0)?, &|table| table.parents.push(parent.clone()));
    }
    for row in append_only {
        of(row.text(0)?, &|table| table.append_only = true);
    }
    Ok(tables)
}

fn kind(name: &str) -> Kind {
    match name {
        "bigint" | "integer" | "smallint" => Kind::Int,
        "boolean" => Kind::Flag,
        "numeric" => Kind::Money,
        "timestamp with time zone" => Kind::Time,
        "text" | "json" | "character varying" | "character" => Kind::Text,
        "jsonb" => Kind::Json,
        "inet" => Kind::Inet,
        "bytea" => Kind::Bytes,
        _ => Kind::Other,
    }
}

/// Sets the counter of a table's key behind the highest one that stands there.
pub(super) fn count_on(table: &Table) -> Option<Write> {
    let column = &table.columns.iter().find(|column| column.counted)?.name;
    let name = &table.name;
    let sql = format!(
        "select setval(pg_get_serial_sequence('{name}', '{column}'), coalesce(max({column}), 1), max({column}) is not null) from {name}"
    );
    Some(Write::any("copy.count_on", sql, vec![]))
}
