//! The store, read past the program that wrote it: plain SQL on a read-only connection. Works beside a
//! running server and after a kill.

use std::collections::BTreeMap;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags, Row};

use super::house::House;

/// One event's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Row of the event.
    pub(crate) id: i64,
    /// `av_...`
    pub(crate) reference: String,
    /// State, as the specification's section 6.
    pub(crate) status: String,
    /// The event whose certificate it points at.
    pub(crate) certificate_event: Option<i64>,
    /// Arrivals on record.
    pub(crate) arrivals: u64,
}

/// One certificate's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Row of the event that it was issued for.
    pub(crate) event: i64,
    /// Name of its files.
    pub(crate) slug: String,
    /// SHA-256 of page, archive and JSON, in hexadecimal.
    pub(crate) hashes: [String; 3],
    /// In hexadecimal.
    pub(crate) run_hash: String,
}

/// One announcement's way to one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// The event's reference.
    pub(crate) reference: String,
    /// `log` or `telegram`.
    pub(crate) channel: String,
    /// `pending`, `sending`, `delivered`, `refused`, `uncertain` or `dead`.
    pub(crate) status: String,
}

impl House {
    /// A read-only connection to the store.
    ///
    /// # Errors
    /// There is no store.
    pub(crate) fn store(&self) -> anyhow::Result<Connection> {
        let path = self.data().join("state.db");
        // Not SQLITE_OPEN_READ_ONLY: after a kill the reader has to set up the WAL's index.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Connection::open_with_flags(path, flags).context("opening the store")?;
        store.execute_batch("pragma query_only = 1; pragma wal_autocheckpoint = 0")?;
        Ok(store)
    }
}

/// All events by their id at the sender.
///
/// # Errors
/// The store can't be read.
pub(crate) fn events(store: &Connection) -> anyhow::Result<BTreeMap<String, Recorded>> {
    let sql = "select event_id, id, ref, status, certificate_event, \
               (select count(*) from certify_arrivals a where a.event = e.id) from certify_events e";
    let event = |row: &Row<'_>| {
        let recorded = Recorded {
            id: row.get(1)?,
            reference: row.get(2)?,
            status: row.get(3)?,
            certificate_event: row.get(4)?,
            arrivals: row.get::<_, i64>(5)?.try_into().unwrap_or_default(),
        };
        Ok((row.get(0)?, recorded))
    };
    Ok(store.prepare(sql)?.query_map([], event)?.collect::<Result<_, _>>()?)
}

/// All certificates.
///
/// # Errors
/// The store can't be read.
pub(crate) fn certificates(store: &Connection) -> anyhow::Result<Vec<Certificate>> {
    let sql = "select event, slug, lower(hex(html_hash)), lower(hex(zip_hash)), lower(hex(json_hash)), \
               lower(hex(run_hash)) from certify_certificates order by event";
    let certificate = |row: &Row<'_>| {
        Ok(Certificate {
            event: row.get(0)?,
            slug: row.get(1)?,
            hashes: [row.get(2)?, row.get(3)?, row.get(4)?],
            run_hash: row.get(5)?,
        })
    };
    Ok(store.prepare(sql)?.query_map([], certificate)?.collect::<Result<_, _>>()?)
}

/// All announcements of new certificates.
///
/// # Errors
/// The store can't be read.
pub(crate) fn announcements(store: &Connection) -> anyhow::Result<Vec<Announced>> {
    let sql = "select o.object_id, d.destination, d.status from outbox o \
               join outbox_deliveries d on d.outbox_id = o.id \
               where o.event_name = 'certify.certificate.issue.succeeded' order by d.id";
    let announced =
        |row: &Row<'_>| Ok(Announced { reference: row.get(0)?, channel: row.get(1)?, status: row.get(2)? });
    Ok(store.prepare(sql)?.query_map([], announced)?.collect::<Result<_, _>>()?)
}
