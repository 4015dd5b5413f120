//! The store, read past the program that wrote it: plain SQL on a read-only connection, or PostgreSQL's own
//! client. Works beside a running server and after a kill.

use std::collections::BTreeMap;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags, Row};

use super::house::House;
use crate::services::psql::Psql;

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
    /// SHA-256 of the body of the arrival that became the result, in hexadecimal.
    pub(crate) payload_hash: String,
    /// What every answer of the event carries.
    pub(crate) outcome: Option<String>,
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

/// All that judges look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    /// By their id at the sender.
    pub(crate) events: BTreeMap<String, Recorded>,
    pub(crate) certificates: Vec<Certificate>,
    /// Of new certificates only.
    pub(crate) announcements: Vec<Announced>,
}

impl Records {
    /// What the file in a house's folder holds.
    ///
    /// # Errors
    /// The store can't be read.
    pub(crate) fn of(house: &House) -> anyhow::Result<Self> {
        let store = house.store()?;
        Ok(Self {
            events: events(&store)?,
            certificates: certificates(&store)?,
            announcements: announcements(&store)?,
        })
    }

    /// What a PostgreSQL database holds.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn at(database: &Psql) -> anyhow::Result<Self> {
        Self::within(database, "true")
    }

    /// What a PostgreSQL database holds of the events that fulfil a condition on `certify_events`.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn within(database: &Psql, condition: &str) -> anyhow::Result<Self> {
        let mut records = Self::default();
        let events = format!(
            "select json_build_array(event_id, id, ref, status, certificate_event, \
             (select count(*) from certify_arrivals a where a.event = e.id), encode(payload_hash, 'hex'), \
             response_body::text) from certify_events e where {condition}"
        );
        for line in database.ask(&events)?.lines() {
            let (event_id, id, reference, status, certificate_event, arrivals, payload_hash, outcome) =
                serde_json::from_str(line).context("an event's row")?;
            let recorded =
                Recorded { id, reference, status, certificate_event, arrivals, payload_hash, outcome };
            records.events.insert(event_id, recorded);
        }
        let certificates = format!(
            "select json_build_array(c.event, c.slug, encode(c.html_hash, 'hex'), \
             encode(c.zip_hash, 'hex'), encode(c.json_hash, 'hex'), encode(c.run_hash, 'hex')) \
             from certify_certificates c join certify_events e on e.id = c.event where {condition} order by c.event"
        );
        for line in database.ask(&certificates)?.lines() {
            let (event, slug, html, zip, json, run_hash) =
                serde_json::from_str(line).context("a certificate's row")?;
            records.certificates.push(Certificate { event, slug, hashes: [html, zip, json], run_hash });
        }
        let announcements = ANNOUNCEMENTS.replace(COLUMNS, &format!("json_build_array({COLUMNS})")).replace(
            "order by",
            &format!("and o.object_id in (select ref from certify_events where {condition}) order by"),
        );
        for line in database.ask(&announcements)?.lines() {
            let (reference, channel, status) = serde_json::from_str(line).context("an announcement's row")?;
            records.announcements.push(Announced { reference, channel, status });
        }
        Ok(records)
    }
}

/// Reference, channel, status.
const COLUMNS: &str = "o.object_id, d.destination, d.status";
const ANNOUNCEMENTS: &str = "select o.object_id, d.destination, d.status from outbox o \
     join outbox_deliveries d on d.outbox_id = o.id \
     where o.event_name = 'certify.certificate.issue.succeeded' order by d.id";

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
               (select count(*) from certify_arrivals a where a.event = e.id), lower(hex(payload_hash)), \
               response_body from certify_events e";
    let event = |row: &Row<'_>| {
        let recorded = Recorded {
            id: row.get(1)?,
            reference: row.get(2)?,
            status: row.get(3)?,
            certificate_event: row.get(4)?,
            arrivals: row.get::<_, i64>(5)?.try_into().unwrap_or_default(),
            payload_hash: row.get(6)?,
            outcome: row.get(7)?,
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
    let announced =
        |row: &Row<'_>| Ok(Announced { reference: row.get(0)?, channel: row.get(1)?, status: row.get(2)? });
    Ok(store.prepare(ANNOUNCEMENTS)?.query_map([], announced)?.collect::<Result<_, _>>()?)
}
