//! Sessions with the database: ended, too few, taken by strangers, refused.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::proxy::{Fault, Way};

use super::Kind;
use crate::faults::scene::{Played, struck};
use crate::faults::serverlog::shown;
use crate::faults::site::{NODES, SESSIONS_MAX, Site};
use crate::services::postgres::USER;
use crate::services::session::crowd;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "backends-terminated",
        about: "pg_terminate_backend on all sessions, three times",
        play: terminated,
    },
    Kind {
        name: "statements-cancelled",
        about: "pg_cancel_backend on all sessions, again and again",
        play: cancelled,
    },
    Kind { name: "pool-exhausted", about: "one connection a node, each packet 25 ms late", play: exhausted },
    Kind { name: "sessions-taken", about: "strangers take every session that the database has", play: taken },
    Kind { name: "password-changed", about: "the password is another one for a while", play: password },
    Kind {
        name: "read-only",
        about: "default_transaction_read_only on, sessions renewed, then off",
        play: read_only,
    },
    Kind { name: "schema-changed", about: "a column is added and another changes its type", play: schema },
    Kind { name: "serialization-failure", about: "every 7th new event raises 40001", play: serialization },
    Kind {
        name: "statement-timeout",
        about: "every 9th new event takes 3 s inside the database",
        play: statement,
    },
];

/// Sessions of the nodes.
const THEIRS: &str = "usename = 'onceseal' and backend_type = 'client backend'";
/// How long a state that is wrong lasts.
const LASTING: Duration = Duration::from_secs(2);

fn terminated(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mark = site.mark()?;
        let end = format!("select count(pg_terminate_backend(pid)) from pg_stat_activity where {THEIRS}");
        let mut count = 0;
        for _ in 0..2 {
            count += site.ask(&end)?.parse::<u64>()?;
            load.warm(20)?;
        }
        load.fired(|| {
            let all = count + site.ask(&end)?.parse::<u64>()?;
            Ok(Some(format!("{all} sessions ended, {}", shown(&mark.raised(&["57P01"])?))))
        })
    })
}

fn cancelled(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mark = site.mark()?;
        let cancel = format!(
            "select count(pg_cancel_backend(pid)) from pg_stat_activity where {THEIRS} and state = 'active'"
        );
        load.fired(|| {
            site.ask(&cancel)?;
            let raised = mark.raised(&["57014"])?;
            Ok((raised.values().sum::<u64>() >= 12)
                .then(|| format!("statements cancelled: {}", shown(&raised))))
        })
    })
}

fn exhausted(site: &mut Site) -> Result<Played> {
    site.restart_nodes(|_| vec!["--set".into(), "postgres.connections=1".into()])?;
    let played = struck(site, |site, load| {
        site.everywhere(Fault::Delay { way: Way::Both, by: Duration::from_millis(25) });
        let waiting = "no connection to the database became free";
        let mut fired = load.fired(|| {
            let sessions: usize =
                site.ask(&format!("select count(*) from pg_stat_activity where {THEIRS}"))?.parse()?;
            ensure!(sessions <= NODES, "{sessions} sessions of {NODES} nodes with one connection each");
            let refused = site.nodes.iter().map(|node| node.log_counts(waiting)).sum::<Result<usize>>()?;
            Ok((refused > 0).then(|| format!("{sessions} sessions in all, nodes gave up waiting for one")))
        })?;
        std::thread::park_timeout(LASTING);
        site.clear();
        fired.proof.push_str(", slow for 2 s");
        Ok(fired)
    });
    site.restart_nodes(|_| Vec::new())?;
    played
}

fn taken(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mark = site.mark()?;
        // The nodes can't be quicker: they come back when all is taken.
        let in_flight = load.in_flight();
        site.everywhere(Fault::Refuse);
        for ways in &site.ways {
            ways.first.drop_all();
        }
        let strangers = crowd(&site.primary.url("postgres"), SESSIONS_MAX)?;
        site.clear();
        let mut fired = load.fired(|| {
            let raised = mark.raised(&["53300"])?;
            let count = strangers.len();
            Ok((raised.values().sum::<u64>() >= 3)
                .then(|| format!("{count} strangers' sessions, nodes refused: {}", shown(&raised))))
        })?;
        fired.in_flight = in_flight;
        std::thread::park_timeout(LASTING);
        drop(strangers);
        Ok(fired)
    })
}

fn password(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mark = site.mark()?;
        // A digest of it, taken back afterwards, so that it is in no log.
        let kept = site.ask(&format!("select rolpassword from pg_authid where rolname = '{USER}'"))?;
        site.ask(&format!("alter role {USER} password 'another'"))?;
        site.ask(&format!("select count(pg_terminate_backend(pid)) from pg_stat_activity where {THEIRS}"))?;
        let fired = load.fired(|| {
            let raised = mark.raised(&["28P01"])?;
            Ok((raised.values().sum::<u64>() >= 3).then(|| format!("log-ins refused: {}", shown(&raised))))
        });
        std::thread::park_timeout(LASTING);
        site.ask(&format!("alter role {USER} password '{kept}'"))?;
        fired
    })
}

fn read_only(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        site.primary.set("default_transaction_read_only", "on")?;
        let end = format!("select count(pg_terminate_backend(pid)) from pg_stat_activity where {THEIRS}");
        let in_flight = load.in_flight();
        site.ask(&end)?;
        let since = Instant::now();
        let mut fired = load.fired(|| {
            let refused = site.nodes.iter().filter(|node| !node.is_ready()).count();
            Ok((refused == NODES && since.elapsed() > LASTING).then(|| {
                format!("the database was read-only for {LASTING:?}, {refused} nodes said not ready")
            }))
        });
        site.primary.set("default_transaction_read_only", "off")?;
        if let Ok(fired) = &mut fired {
            fired.in_flight = in_flight;
        }
        fired
    })
}

fn schema(site: &mut Site) -> Result<Played> {
    let played = struck(site, |site, load| {
        let mark = site.mark()?;
        site.ask(
            "set lock_timeout = '5s'; alter table certify_events add column later int; \
                  alter table certify_arrivals alter column differs type varchar(40)",
        )?;
        load.fired(|| {
            let raised = mark.raised(&["0A000"])?;
            Ok((raised.values().sum::<u64>() >= 3)
                .then(|| format!("cached plans refused: {}", shown(&raised))))
        })
    });
    site.ask(
        "alter table certify_events drop column if exists later; \
              alter table certify_arrivals alter column differs type text",
    )?;
    played
}

/// Something that every n-th new event runs into.
fn trigger(site: &mut Site, (every, body): (u32, &str), code: &str) -> Result<Played> {
    let make = format!(
        "create sequence lab_strokes; grant usage on sequence lab_strokes to {USER}; \
         create function lab_stroke() returns trigger language plpgsql as $$ begin \
         if nextval('lab_strokes') % {every} = 0 then {body} end if; return new; end $$; \
         create trigger lab_stroke before insert on certify_events for each row execute function lab_stroke()"
    );
    let played = struck(site, |site, load| {
        let mark = site.mark()?;
        site.ask(&make)?;
        let fired = load.fired(|| {
            let raised = mark.raised(&[code])?;
            Ok((raised.values().sum::<u64>() >= 8)
                .then(|| format!("raised in the middle: {}", shown(&raised))))
        });
        site.ask("drop trigger lab_stroke on certify_events")?;
        fired
    });
    site.ask(
        "drop trigger if exists lab_stroke on certify_events; drop function if exists lab_stroke; \
              drop sequence if exists lab_strokes",
    )?;
    played
}

fn serialization(site: &mut Site) -> Result<Played> {
    let body = "raise exception 'could not serialize access' using errcode = '40001';";
    trigger(site, (7, body), "40001")
}

fn statement(site: &mut Site) -> Result<Played> {
    trigger(site, (9, "perform pg_sleep(3);"), "57014")
}
