//! Locks that others hold: of rows, of tables, in the opposite order, of the same 64 bits of a key.

use std::time::Duration;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use super::Kind;
use crate::faults::ledger::{Delivery, Excuse, Saying};
use crate::faults::load::{Fired, Load};
use crate::faults::scene::{Played, struck, struck_with};
use crate::faults::serverlog::{Mark, shown};
use crate::faults::site::Site;
use crate::services::postgres::USER;
use crate::services::session::Session;

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "rows-locked", about: "a stranger holds the rows of known events", play: rows },
    Kind { name: "table-locked", about: "a stranger holds the table of arrivals", play: table },
    Kind {
        name: "deadlock",
        about: "a stranger locks what the nodes lock, in the opposite order",
        play: deadlock,
    },
    Kind {
        name: "key-collision",
        about: "a stranger holds the advisory lock of keys that are being sent",
        play: collision,
    },
    Kind {
        name: "idle-in-transaction",
        about: "a node stops inside its transaction and is cut off",
        play: idle,
    },
];

/// How long strangers hold something.
const HELD: Duration = Duration::from_secs(2);

/// A stranger in the nodes' database, who may everything.
fn stranger(site: &Site) -> Result<Session> {
    Session::open(&site.primary.admin_url(USER))
}

/// Waits until the nodes met the lock, holds it a while longer, and counts.
fn met(load: &Load, mark: &Mark, what: &str) -> Result<Fired> {
    let mut fired = load.fired(|| {
        let raised = mark.raised(&["55P03"])?;
        Ok((raised.values().sum::<u64>() >= 4).then(String::new))
    })?;
    std::thread::park_timeout(HELD);
    fired.proof = format!("{what}, lock time-outs: {}", shown(&mark.raised(&["55P03"])?));
    Ok(fired)
}

fn rows(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mark = site.mark()?;
        let stranger = stranger(site)?;
        let sql = "begin; with held as (select id from certify_events order by id desc limit 200 for update) select count(*) from held";
        let count = stranger.run(sql)?;
        met(load, &mark, &format!("{count} rows held"))
    })
}

fn table(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mark = site.mark()?;
        let stranger = stranger(site)?;
        stranger.run("begin; lock table certify_arrivals in access exclusive mode")?;
        met(load, &mark, "the table held")
    })
}

/// The nodes write events, then the outbox. The stranger holds the outbox, and waits for the events' table
/// until the nodes that hold it are done, which they can't be. It has time; the nodes are the victims.
fn deadlock(site: &mut Site) -> Result<Played> {
    site.primary.set("deadlock_timeout", "100ms")?;
    let played = struck(site, |site, load| {
        let mark = site.mark()?;
        let mut fired = Fired { proof: String::new(), in_flight: 0, ghosts: 0 };
        for round in 1.. {
            let stranger = stranger(site)?;
            stranger
                .run("set deadlock_timeout = '60s'; begin; lock table outbox in share row exclusive mode")?;
            // Now some nodes wait for the outbox, with the events' table in their hands.
            load.fired(|| Ok((site.ask(WAITING)? != "0").then(String::new)))?;
            let sent =
                stranger.send("lock table certify_events in share row exclusive mode; rollback".into())?;
            fired = load.fired(|| {
                let raised = mark.raised(&["40P01", "55P03"])?;
                Ok((!raised.is_empty()).then(String::new))
            })?;
            sent.end().context("the stranger should have got its locks")?;
            let raised = mark.raised(&["40P01"])?;
            fired.proof = format!("{round} rounds: {}", shown(&raised));
            if raised.values().sum::<u64>() >= 3 {
                break;
            }
            load.warm(10)?;
        }
        Ok(fired)
    });
    site.primary.set("deadlock_timeout", "1s")?;
    played
}

const WAITING: &str = "select count(*) from pg_locks where not granted and relation = 'outbox'::regclass";

/// 64 bits of a key's digest, as the nodes take their locks on.
fn word(reference: &str) -> i64 {
    let mut hasher = Sha256::new();
    for field in [&b"certify_events"[..], &[&[2], reference.as_bytes()].concat()] {
        hasher.update(u64::try_from(field.len()).unwrap_or_default().to_be_bytes());
        hasher.update(field);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    let (first, _) = digest.split_first_chunk().unwrap_or((&[0; 8], &[]));
    i64::from_be_bytes(*first)
}

/// Another key with the same 64 bits, in a transaction that goes nowhere: its holder must be waited for, and
/// whoever waited too long is told to come again.
fn collision(site: &mut Site) -> Result<Played> {
    struck_with(site, Excuse::KeysHeld, |site, load| {
        let stranger = stranger(site)?;
        stranger.run("begin")?;
        // The next changes, and some that are repeated now.
        let next = load.next_change();
        for number in next..next + 60 {
            let event = Delivery::of(number, Saying::Same)?.event;
            stranger.run(&format!("select pg_advisory_xact_lock({})", word(&format!("av_{}", event.id))))?;
        }
        load.fired(|| {
            let busy = load.told("EVENT_IN_PROGRESS");
            Ok((busy >= 20)
                .then(|| format!("60 keys held by a stranger, {busy} deliveries told to come again")))
        })
    })
}

/// The node's next statement doesn't come: the database ends the session, and what it held is free.
fn idle(site: &mut Site) -> Result<Played> {
    use testkit::proxy::{Fault, Reach, Way};
    struck(site, |site, load| {
        let mark = site.mark()?;
        let armed = site.first_way()?.set(Fault::Hold(Way::ToServer).reaching(Reach::Open));
        let fired = load.fired(|| {
            let raised = mark.raised(&["25P03"])?;
            Ok((raised.values().sum::<u64>() >= 2).then(|| {
                format!("{} packets of node 1 held, sessions ended: {}", armed.fired(), shown(&raised))
            }))
        })?;
        site.clear();
        Ok(fired)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_key_is_the_door_s() {
        static TABLE: std::sync::LazyLock<door::RecordTable> = std::sync::LazyLock::new(|| {
            door::RecordTable::new("certify_events", &["ref"], &[], "certify_steps")
        });
        let values = vec![store::Value::Text("av_evt_1".into())];
        let key = door::Key::lasting(&TABLE, values, kernel::Digest::of(b"x"));
        assert_eq!(word("av_evt_1"), key.digest().word());
    }
}
