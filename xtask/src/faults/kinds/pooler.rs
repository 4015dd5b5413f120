//! PgBouncer in transaction mode between the nodes and the database.

use std::time::Duration;

use anyhow::Result;

use super::Kind;
use crate::faults::load::{Fired, Load};
use crate::faults::scene::{Played, struck};
use crate::faults::serverlog::shown;
use crate::faults::site::Site;
use crate::services::pgbouncer::{Options, PgBouncer};
use crate::services::postgres::USER;
use crate::services::psql::Psql;

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "pooler-restarted", about: "kill -9 of the pooler, three times", play: restarted },
    Kind {
        name: "pooler-sessions-ended",
        about: "the pooler's sessions with the database are terminated",
        play: ended,
    },
    Kind { name: "pooler-paused", about: "the pooler is paused for three seconds", play: paused },
    Kind { name: "pooler-too-small", about: "the pooler has one session for all nodes", play: small },
];

const PAUSE: Duration = Duration::from_secs(3);

/// With a pooler on the way of all nodes.
fn pooled(
    site: &mut Site,
    options: &Options,
    strike: impl FnOnce(&mut Site, &Load, &mut PgBouncer) -> Result<Fired>,
) -> Result<Played> {
    let mut pooler = PgBouncer::launch(&site.primary, options)?;
    site.ways.iter().for_each(|ways| ways.first.point_at(pooler.address()));
    site.restart_nodes(|_| vec!["--set".into(), "postgres.mode=unnamed".into()])?;
    let played = struck(site, |site, load| strike(site, load, &mut pooler));
    site.ways.iter().for_each(|ways| ways.first.point_at(site.primary.address()));
    site.restart_nodes(|_| Vec::new())?;
    played
}

fn restarted(site: &mut Site) -> Result<Played> {
    pooled(site, &Options::default(), |_, load, pooler| {
        let mut fired = Fired { proof: String::new(), in_flight: usize::MAX, ghosts: 0 };
        for round in 1..=3 {
            load.warm(20)?;
            let in_flight = load.in_flight();
            pooler.restart()?;
            fired = Fired { proof: format!("the pooler was killed {round} times"), in_flight, ghosts: 0 };
        }
        Ok(fired)
    })
}

fn ended(site: &mut Site) -> Result<Played> {
    pooled(site, &Options::default(), |site, load, _| {
        let mark = site.mark()?;
        load.fired(|| {
            site.ask(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'onceseal'",
            )?;
            let raised = mark.raised(&["57P01"])?;
            Ok((raised.values().sum::<u64>() >= 8).then(|| format!("sessions ended: {}", shown(&raised))))
        })
    })
}

fn paused(site: &mut Site) -> Result<Played> {
    pooled(site, &Options::default(), |_, load, pooler| {
        let console = Psql::at(&pooler.console_url())?;
        console.ask(&format!("pause {USER}"))?;
        let mut fired = load.fired(|| {
            let pools = console.ask("show pools")?;
            let waiting = waiting(&pools);
            Ok((waiting > 0).then(|| format!("{waiting} of the nodes' connections waited for {PAUSE:?}")))
        });
        std::thread::park_timeout(PAUSE);
        console.ask(&format!("resume {USER}"))?;
        if let Ok(fired) = &mut fired {
            fired.proof.push_str(", then it went on");
        }
        fired
    })
}

fn small(site: &mut Site) -> Result<Played> {
    let options = Options { pool_size: 1, ..Options::default() };
    pooled(site, &options, |_, load, pooler| {
        let console = Psql::at(&pooler.console_url())?;
        load.fired(|| {
            let waiting = waiting(&console.ask("show pools")?);
            Ok((waiting >= 4)
                .then(|| format!("{waiting} of the nodes' connections waited for the one session")))
        })
    })
}

/// Clients that wait, in `show pools`: database, user, active, waiting, and so on.
fn waiting(pools: &str) -> u64 {
    let line = pools.lines().find(|line| line.starts_with(&format!("{USER}|{USER}|")));
    line.and_then(|line| line.split('|').nth(3)?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_clients_are_the_fourth_column() {
        assert_eq!(waiting("pgbouncer|pgbouncer|1|0|0\nonceseal|onceseal|3|7|0|1"), 7);
        assert_eq!(waiting(""), 0);
    }
}
