//! The database server itself: stopped and started in all ways.

use std::time::Duration;

use anyhow::Result;

use super::Kind;
use crate::faults::load::{Fired, Load};
use crate::faults::scene::{Played, struck};
use crate::faults::site::Site;
use crate::services::postgres::{Postgres, Stop};

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "database-stopped", about: "the database is stopped in order and started", play: fast },
    Kind {
        name: "database-stopped-at-once",
        about: "the database is stopped without order and recovers",
        play: immediate,
    },
    Kind { name: "database-killed", about: "kill -9 of the whole database, which recovers", play: killed },
    Kind {
        name: "backend-killed",
        about: "kill -9 of one session's process: all others are thrown out",
        play: crashed,
    },
    Kind { name: "database-down", about: "the database is away for four seconds", play: down },
];

/// Ends it, starts it, and tells what that was.
fn ended(
    site: &mut Site,
    how: &str,
    end: impl FnOnce(&mut Postgres) -> Result<()>,
    away: Duration,
) -> Result<Played> {
    struck(site, |site, load| {
        let before = site.primary.id();
        let in_flight = load.in_flight();
        end(&mut site.primary)?;
        std::thread::park_timeout(away);
        site.primary.start()?;
        restarted(site, load, (before, how), in_flight)
    })
}

fn restarted(
    site: &Site,
    load: &Load,
    (before, how): (Option<u32>, &str),
    in_flight: usize,
) -> Result<Fired> {
    let after = site.primary.id();
    let mut fired = load.fired(|| {
        let changed = before != after && before.is_some();
        Ok(changed.then(|| format!("{how}, program {} is now {}", before.unwrap_or(0), after.unwrap_or(0))))
    })?;
    // Under way when it went.
    fired.in_flight = in_flight;
    Ok(fired)
}

fn fast(site: &mut Site) -> Result<Played> {
    ended(site, "stopped in order", |it| it.stop(Stop::Fast), Duration::ZERO)
}

fn immediate(site: &mut Site) -> Result<Played> {
    ended(site, "stopped without order", |it| it.stop(Stop::Immediate), Duration::ZERO)
}

fn killed(site: &mut Site) -> Result<Played> {
    ended(site, "killed with all its sessions", Postgres::kill9, Duration::ZERO)
}

fn down(site: &mut Site) -> Result<Played> {
    ended(site, "away for 4 s", |it| it.stop(Stop::Fast), Duration::from_secs(4))
}

/// PostgreSQL takes the death of one session for damaged shared memory: it ends all and recovers.
fn crashed(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mark = site.mark()?;
        let in_flight = load.in_flight();
        let victim: i32 =
            site.ask("select pid from pg_stat_activity where usename = 'onceseal' limit 1")?.parse()?;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(victim), nix::sys::signal::Signal::SIGKILL)?;
        let mut fired = load.fired(|| {
            let recovered = mark.since()?.contains("all server processes terminated; reinitializing");
            Ok(recovered.then(|| format!("session {victim} killed, all others ended by the database")))
        })?;
        fired.in_flight = in_flight;
        Ok(fired)
    })
}
