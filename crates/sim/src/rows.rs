//! Which rows a read locks. Statements say so with the tokens `{for_update}` and `{skip_locked alias}`; the
//! first column of such a read is the row's number.

use store::{Error, Row};

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

#[cfg(test)]
mod tests {
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
}
