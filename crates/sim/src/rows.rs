//! Which rows a statement locks. Reads say so with the tokens `{for_update}` and `{skip_locked alias}`, and the
//! first column of such a read is the row's number; an update that names its row by number locks it. And numbers
//! that are taken before the commit, as from a sequence (`{next_id table}`).

use store::{Error, Query, Row, Value, Write};

use crate::locks::Subject;

/// How a read locks what it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Locking {
    /// Not at all.
    None,
    /// Waits for rows that another session has.
    Wait(String),
    /// Leaves them out.
    Skip(String),
}

impl Locking {
    /// From a statement's text.
    pub(crate) fn of(sql: &str) -> Self {
        let words = || sql.split_ascii_whitespace();
        if sql.contains("{for_update}") {
            let table = words().skip_while(|word| *word != "from").nth(1);
            return Self::Wait(table.unwrap_or_default().to_owned());
        }
        let Some((_, rest)) = sql.split_once("{skip_locked ") else { return Self::None };
        let alias = rest.split('}').next().unwrap_or_default();
        let table = words().zip(words().skip(1)).find(|(_, after)| *after == alias);
        Self::Skip(table.map_or(alias, |(table, _)| table).to_owned())
    }
}

/// What to lock for a row.
pub(crate) fn subject(table: &str, row: &Row) -> Result<Subject, Error> {
    Ok(Subject::Row(table.to_owned(), row.int(0)?))
}

/// The row that a write waits for until its holder is through: the one that an update names by its number.
pub(crate) fn touched(write: &Write) -> Option<Subject> {
    let table = write.sql.strip_prefix("update ")?.split_ascii_whitespace().next()?;
    let (_, condition) = write.sql.split_once("where id = $")?;
    let digits = condition.split(|letter: char| !letter.is_ascii_digit()).next()?;
    let place: usize = digits.parse().ok()?;
    match write.values.get(place.checked_sub(1)?)? {
        Value::Int(id) => Some(Subject::Row(table.to_owned(), *id)),
        _ => None,
    }
}

/// The read with numbers where it asks for the next ones of its tables; `None` where it asks for none. Such a
/// read has no other parameters.
pub(crate) fn numbered(
    query: &Query,
    mut next: impl FnMut(&str) -> Result<i64, Error>,
) -> Option<Result<Query, Error>> {
    const TOKEN: &str = "{next_id ";
    if !query.sql.contains(TOKEN) || !query.values.is_empty() {
        return None;
    }
    let mut pieces = query.sql.split(TOKEN);
    let (mut sql, mut values) = (pieces.next().unwrap_or_default().to_owned(), Vec::new());
    for piece in pieces {
        let (table, rest) = piece.split_once('}')?;
        match next(table) {
            Ok(number) => values.push(Value::Int(number)),
            Err(error) => return Some(Err(error)),
        }
        sql.push_str(&format!("${}{rest}", values.len()));
    }
    Some(Ok(Query::new(query.name, sql, values)))
}

#[cfg(test)]
mod tests {
    use store::values;

    use super::*;

    #[test]
    fn a_read_locks_the_table_that_it_names() {
        let wait = "select id, status from outbox_deliveries where id = $1 {for_update}";
        assert_eq!(Locking::of(wait), Locking::Wait("outbox_deliveries".into()));
        let skip =
            "select d.id from outbox_deliveries d\ncross join outbox o where d.id = $1\n{skip_locked d}";
        assert_eq!(Locking::of(skip), Locking::Skip("outbox_deliveries".into()));
        assert_eq!(Locking::of("select 1"), Locking::None);
    }

    #[test]
    fn an_update_locks_the_row_that_it_names_and_no_other_write_does() {
        let set = Write::one(
            "set",
            "update accounts\nset balance = $1 where id = $2 and version = $3",
            values![5_i64, 7_i64, 1_i64],
        );
        assert_eq!(touched(&set), Some(Subject::Row("accounts".into(), 7)));
        let insert = Write::one("insert", "insert into accounts (id) values ($1)", values![7_i64]);
        let sweep =
            Write::any("sweep", "update accounts set balance = $1 where balance < $2", values![5_i64, 7_i64]);
        assert_eq!((touched(&insert), touched(&sweep)), (None, None));
    }

    #[test]
    fn numbers_are_drawn_one_a_token() {
        let query = Query::new("next", "select {next_id a} as one, {next_id b} as two", vec![]);
        let drawn = numbered(&query, |table| Ok(if table == "a" { 4 } else { 9 })).unwrap().unwrap();
        assert_eq!((&*drawn.sql, drawn.values), ("select $1 as one, $2 as two", values![4_i64, 9_i64]));
        assert!(numbered(&Query::new("plain", "select 1", vec![]), |_| Ok(1)).is_none());
    }
}
