//! The tables and the one transaction a delivery takes.
//!
//! One connection, prepared statements cached, WAL with `synchronous = FULL`:
//! what a careful team sets. No group commit; that is the point of comparison.

use std::path::Path;

use hmac::Hmac;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sha2::Sha256;

use crate::answer::Answer;
use crate::event::Event;

/// Statements kept prepared: more than there are.
const STATEMENTS: usize = 32;

/// The database behind the receiver.
pub(crate) struct Store {
    connection: Connection,
    /// Signs what a certified event's answer carries.
    key: Hmac<Sha256>,
}

impl Store {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// The file can't be opened or isn't a database.
    pub(crate) fn open(path: &Path, key: Hmac<Sha256>) -> rusqlite::Result<Store> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "pragma journal_mode = wal;
             pragma synchronous = full;
             pragma foreign_keys = on;
             pragma temp_store = memory;
             pragma cache_size = -65536;
             pragma busy_timeout = 5000;",
        )?;
        connection.execute_batch(include_str!("schema.sql"))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Store { connection, key })
    }

    /// Records one delivery, durably, and says what the sender gets.
    ///
    /// # Errors
    /// The database failed; nothing of this delivery is kept.
    pub(crate) fn record(&mut self, event: &Event) -> anyhow::Result<Answer> {
        let answer = Answer::first(event, &self.key);
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let answer = match insert_event(&tx, event, &answer)? {
            Some(row) => {
                first_rows(&tx, row, event, &answer)?;
                answer
            }
            None => repeat_rows(&tx, event)?,
        };
        tx.commit()?;
        Ok(answer)
    }
}

/// The row's number, or `None` when the event is known.
fn insert_event(tx: &Transaction<'_>, event: &Event, answer: &Answer) -> anyhow::Result<Option<i64>> {
    let outcome = serde_json::to_string(answer)?;
    let at = event.received_at.as_second();
    let row = tx
        .prepare_cached(
            "insert into events (source, event_id, kind, payload_hash, status, outcome, arrivals, created_at, updated_at)
             values (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?7)
             on conflict (source, event_id) do nothing
             returning id",
        )?
        .query_row(
            params![event.source, event.id, event.kind, event.payload_hash, answer.status, outcome, at],
            |row| row.get(0),
        )
        .optional()?;
    Ok(row)
}

/// What stands beside the event row after a first delivery.
fn first_rows(tx: &Transaction<'_>, row: i64, event: &Event, answer: &Answer) -> rusqlite::Result<()> {
    let at = event.received_at.as_second();
    insert_arrival(tx, row, event, "not_found")?;
    for status in ["received", "processed"] {
        tx.prepare_cached("insert into states (event, status, at) values (?1, ?2, ?3)")?
            .execute(params![row, status, at])?;
    }
    insert_audit(tx, row, event, answer)?;
    let (Some(html), Some(zip)) = (&answer.html_url, &answer.zip_url) else { return Ok(()) };
    let body = format!("{}\n{}\n{html}\n{zip}", answer.event_id, answer.reference);
    tx.prepare_cached("insert into outbox (event, channel, body, created_at) values (?1, 'log', ?2, ?3)")?
        .execute(params![row, body, at])?;
    Ok(())
}

/// Records a further arrival and returns the stored answer as a repeat gets it.
fn repeat_rows(tx: &Transaction<'_>, event: &Event) -> anyhow::Result<Answer> {
    let (row, arrivals, outcome): (i64, i64, String) = tx
        .prepare_cached(
            "update events set arrivals = arrivals + 1, updated_at = ?3
             where source = ?1 and event_id = ?2
             returning id, arrivals, outcome",
        )?
        .query_row(params![event.source, event.id, event.received_at.as_second()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    insert_arrival(tx, row, event, "processed")?;
    let answer = serde_json::from_str::<Answer>(&outcome)?.repeated(arrivals);
    insert_audit(tx, row, event, &answer)?;
    Ok(answer)
}

fn insert_arrival(tx: &Transaction<'_>, row: i64, event: &Event, met: &str) -> rusqlite::Result<usize> {
    tx.prepare_cached("insert into arrivals (event, payload_hash, met, received_at) values (?1, ?2, ?3, ?4)")?
        .execute(params![row, event.payload_hash, met, event.received_at.as_second()])
}

fn insert_audit(tx: &Transaction<'_>, row: i64, event: &Event, answer: &Answer) -> rusqlite::Result<usize> {
    let (signature_state, announcement_state) = match (&answer.signature, answer.duplicate) {
        (Some(_), false) => ("signed", "queued"),
        (Some(_), true) => ("signed", "not_repeated"),
        (None, _) => ("none", "none"),
    };
    tx.prepare_cached(
        "insert into audit (event, event_id, ref, sid, payload_hash, run_hash, signature_state, announcement_state, action, at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        row,
        event.id,
        answer.reference,
        answer.sid,
        event.payload_hash,
        answer.run_hash,
        signature_state,
        announcement_state,
        answer.status,
        event.received_at.as_second()
    ])
}

#[cfg(test)]
mod tests {
    use hmac::KeyInit;
    use jiff::Timestamp;

    use super::*;

    const CHECKOUT: &[u8] = include_bytes!("../../checkout.session.completed.paid.json");

    fn store(folder: &tempfile::TempDir) -> Store {
        let key = Hmac::new_from_slice(b"test key").unwrap();
        Store::open(&folder.path().join("naive.db"), key).unwrap()
    }

    fn checkout() -> Event {
        let at = Timestamp::from_second(1_767_225_040).unwrap();
        Event::parse("stripe".to_owned(), CHECKOUT, at).unwrap()
    }

    fn rows(store: &Store, table: &str) -> i64 {
        let sql = format!("select count(*) from {table}");
        store.connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_first_delivery_writes_every_row_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(&folder);
        let answer = store.record(&checkout()).unwrap();
        assert_eq!(answer.status, "processed");
        let counts = ["events", "arrivals", "states", "audit", "outbox"].map(|table| rows(&store, table));
        assert_eq!(counts, [1, 1, 2, 1, 1]);
    }

    #[test]
    fn a_repeat_gets_the_first_links_and_announces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(&folder);
        let first = store.record(&checkout()).unwrap();
        let repeat = store.record(&checkout()).unwrap();
        assert_eq!((repeat.status.as_str(), repeat.arrivals), ("duplicate_reused", 2));
        assert_eq!(repeat.html_url, first.html_url);
        assert_eq!((rows(&store, "arrivals"), rows(&store, "outbox")), (2, 1));
    }

    #[test]
    fn the_answer_has_the_size_and_fields_of_the_bare_one() {
        let folder = tempfile::tempdir().unwrap();
        let answer = serde_json::to_string(&store(&folder).record(&checkout()).unwrap()).unwrap();
        let fixed = include_str!("../../answer.json");
        let fields = |text: &str| {
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
            object.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(fields(&answer), fields(fixed));
        assert_eq!(answer.len(), fixed.len());
    }
}
