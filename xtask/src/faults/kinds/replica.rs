//! A synchronous standby: it dies, waits for it are cancelled, it takes the primary's place. What was
//! acknowledged must be there after a failover.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::Kind;
use crate::faults::load::{Fired, Load};
use crate::faults::scene::{Played, struck};
use crate::faults::site::Site;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "standby-killed",
        about: "the synchronous standby is killed: commits wait, until it is back",
        play: killed,
    },
    Kind {
        name: "primary-killed",
        about: "the primary is killed, the synchronous standby promoted",
        play: failover,
    },
    Kind {
        name: "waits-cancelled",
        about: "waits for a dead standby are cancelled, then the primary dies and the standby, which lacks those commits, is promoted",
        play: cancelled,
    },
];

/// How long the standby is away.
const AWAY: Duration = Duration::from_secs(3);
/// How long waits are cancelled.
const CANCELLING: Duration = Duration::from_secs(2);
const WAITING: &str =
    "select count(*) from pg_stat_activity where usename = 'onceseal' and wait_event = 'SyncRep'";
const CANCEL: &str = "select count(pg_cancel_backend(pid)) from pg_stat_activity where usename = 'onceseal' and wait_event = 'SyncRep'";

/// Kills the standby and waits until commits wait for it.
fn orphaned(site: &mut Site, load: &Load) -> Result<Fired> {
    site.standby.as_mut().context("a standby")?.server.kill9()?;
    load.fired(|| {
        let waiting: u64 = site.ask(WAITING)?.parse()?;
        Ok((waiting >= 4).then(|| format!("{waiting} commits waited for the dead standby")))
    })
}

fn killed(site: &mut Site) -> Result<Played> {
    site.followed()?;
    let played = struck(site, |site, load| {
        let fired = orphaned(site, load)?;
        std::thread::park_timeout(AWAY);
        let standby = site.standby.as_mut().context("a standby")?;
        standby.server.start()?;
        standby.streams(&site.primary)?;
        Ok(fired)
    });
    site.unfollowed()?;
    played
}

/// Promotes the standby, whose nodes find it by themselves.
fn promoted(site: &mut Site, load: &Load, mut fired: Fired) -> Result<Fired> {
    // Where only it has commits, it is dead already.
    site.primary.kill9()?;
    let standby = site.standby.as_ref().context("a standby")?;
    standby.promote()?;
    site.succeeded()?;
    let found = load.fired(|| {
        let sessions = site.ask("select count(*) from pg_stat_activity where usename = 'onceseal'")?;
        Ok((sessions != "0").then(|| format!("{sessions} sessions on the promoted standby")))
    })?;
    fired.proof = format!("{}, primary killed, {}", fired.proof, found.proof);
    Ok(fired)
}

fn failover(site: &mut Site) -> Result<Played> {
    site.followed()?;
    let played = struck(site, |site, load| {
        let fired = load.fired(|| {
            let state = site.ask("select sync_state from pg_stat_replication")?;
            ensure!(state == "sync", "the standby is not synchronous but {state:?}");
            Ok(Some("a synchronous standby".into()))
        })?;
        promoted(site, load, fired)
    })?;
    site.rewayed();
    Ok(played)
}

fn cancelled(site: &mut Site) -> Result<Played> {
    site.followed()?;
    let played = struck(site, |site, load| {
        let mut fired = orphaned(site, load)?;
        let (since, mut count) = (Instant::now(), 0);
        while since.elapsed() < CANCELLING {
            count += site.ask(CANCEL)?.parse::<u64>()?;
        }
        ensure!(count >= 4, "only {count} waits were cancelled");
        fired.proof = format!("{}, {count} waits cancelled", fired.proof);
        // As the machine of the primary fails: what only it had is gone for good.
        site.primary.kill9()?;
        site.standby.as_mut().context("a standby")?.server.start()?;
        promoted(site, load, fired)
    })?;
    site.rewayed();
    Ok(played)
}
