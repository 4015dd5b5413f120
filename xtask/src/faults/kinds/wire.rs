//! The network between nodes and database, broken by the proxies on each way.

use std::time::Duration;

use anyhow::Result;
use testkit::proxy::{Armed, Fault, Moment, Proxy, Reach, Rule, Side, Way};

use super::Kind;
use crate::faults::load::{Fired, Load};
use crate::faults::scene::{Played, struck};
use crate::faults::site::Site;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "commit-answer-lost",
        about: "the database commits, the node never hears it",
        play: answer_lost,
    },
    Kind { name: "commit-not-sent", about: "the connection is cut before COMMIT arrives", play: not_sent },
    Kind { name: "commit-late", about: "cut at COMMIT, which arrives later all the same", play: late },
    Kind { name: "black-hole", about: "one node's connections swallow everything", play: black_hole },
    Kind { name: "partition", about: "one node can't reach the database at all", play: partition },
    Kind {
        name: "half-open-node",
        about: "connections end for the database, not for the node",
        play: half_node,
    },
    Kind {
        name: "half-open-database",
        about: "connections end for the node, not for the database",
        play: half_database,
    },
    Kind { name: "delay", about: "every packet takes 40 ms longer", play: delay },
    Kind { name: "throttle", about: "30 kB a second each connection", play: throttle },
    Kind { name: "held", about: "nothing passes for a second, then all of it", play: held },
    Kind { name: "cut-anywhere", about: "connections are cut after some bytes, inside messages", play: cut },
    Kind { name: "all-reset", about: "all connections of all nodes are reset, three times", play: reset },
];

/// How long a fault that needs time stays on.
const LASTING: Duration = Duration::from_secs(2);
/// Longer than every time-out of a node for its database.
const PAST_TIMEOUTS: Duration = Duration::from_millis(3_500);

/// How often a fault has fired, over all ways.
fn count(armed: &[Armed]) -> u64 {
    armed.iter().map(Armed::fired).sum()
}

/// Waits until it has fired `times` times in all.
fn fired(load: &Load, armed: &[Armed], (times, what): (u64, &str)) -> Result<Fired> {
    load.fired(|| {
        let count = count(armed);
        Ok((count >= times).then(|| format!("{count} {what}")))
    })
}

/// On for a while, on all ways.
fn lasting(site: &mut Site, fault: Fault, (times, what): (u64, &str)) -> Result<Played> {
    struck(site, |site, load| {
        let armed = site.everywhere(fault);
        let mut fired = fired(load, &armed, (times, what))?;
        std::thread::park_timeout(LASTING);
        fired.proof = format!("{} {what} in {LASTING:?}", count(&armed));
        site.clear();
        Ok(fired)
    })
}

/// So many times on each way, then no more.
fn limited(site: &mut Site, rule: Rule, what: &str) -> Result<Played> {
    struck(site, |site, load| {
        let armed = site.everywhere(rule);
        let wanted = rule.times * u64::try_from(armed.len())?;
        let fired = fired(load, &armed, (wanted, what))?;
        site.clear();
        Ok(fired)
    })
}

fn answer_lost(site: &mut Site) -> Result<Played> {
    limited(site, Fault::Commit(Moment::After).times(6), "commits whose answer was cut off")
}

fn not_sent(site: &mut Site) -> Result<Played> {
    limited(site, Fault::Commit(Moment::Before).times(6), "commits that never arrived")
}

fn late(site: &mut Site) -> Result<Played> {
    limited(site, Fault::Commit(Moment::Late(Duration::from_millis(700))).times(4), "commits 700 ms late")
}

fn black_hole(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let armed = [site.first_way()?.set(Fault::BlackHole.reaching(Reach::Open))];
        let mut fired = fired(load, &armed, (4, "connections of node 1 swallowed what was sent"))?;
        std::thread::park_timeout(PAST_TIMEOUTS);
        fired.ghosts = usize::try_from(count(&armed))?;
        site.clear();
        Ok(fired)
    })
}

fn partition(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let proxy: &Proxy = site.first_way()?;
        let armed = [proxy.set(Fault::BlackHole)];
        let mut fired =
            fired(load, &armed, (6, "connections of node 1, old and new, swallowed what was sent"))?;
        std::thread::park_timeout(PAST_TIMEOUTS);
        fired.ghosts = usize::try_from(count(&armed))?;
        site.clear();
        Ok(fired)
    })
}

fn half_open(site: &mut Site, gone: Side, what: &str) -> Result<Played> {
    struck(site, |site, load| {
        let armed = site.everywhere(Fault::HalfOpen { gone }.reaching(Reach::Open));
        let mut fired = fired(load, &armed, (6, what))?;
        std::thread::park_timeout(PAST_TIMEOUTS);
        if gone == Side::Client {
            fired.ghosts = usize::try_from(count(&armed))?;
        }
        site.clear();
        Ok(fired)
    })
}

fn half_node(site: &mut Site) -> Result<Played> {
    half_open(site, Side::Server, "connections whose database end was gone, unknown to the node")
}

fn half_database(site: &mut Site) -> Result<Played> {
    half_open(site, Side::Client, "connections whose node was gone, unknown to the database")
}

fn delay(site: &mut Site) -> Result<Played> {
    lasting(site, Fault::Delay { way: Way::Both, by: Duration::from_millis(40) }, (50, "packets 40 ms late"))
}

fn throttle(site: &mut Site) -> Result<Played> {
    lasting(
        site,
        Fault::Throttle { way: Way::Both, bytes_per_second: 30_000 },
        (20, "pieces slowed to 30 kB a second"),
    )
}

fn held(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let armed = site.everywhere(Fault::Hold(Way::Both));
        let fired = fired(load, &armed, (8, "packets held for a second, then passed"))?;
        std::thread::park_timeout(Duration::from_secs(1));
        site.clear();
        Ok(fired)
    })
}

fn cut(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mut armed = Vec::new();
        // Odd numbers, so that a cut falls inside a message.
        for (number, way) in (0..).zip([Way::ToServer, Way::ToClient, Way::ToServer]) {
            let bytes = 1_777 + 911 * number;
            let rule = Fault::CutAfter { way, bytes }.times(5);
            armed.extend(site.ways.get(usize::try_from(number)?).map(|ways| ways.first.set(rule)));
        }
        let fired = fired(load, &armed, (10, "connections cut inside a message"))?;
        site.clear();
        Ok(fired)
    })
}

fn reset(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mut count = 0;
        for _ in 0..2 {
            count += site.ways.iter().map(|ways| ways.first.drop_all()).sum::<usize>();
            load.warm(20)?;
        }
        load.fired(|| {
            let last: usize = site.ways.iter().map(|ways| ways.first.drop_all()).sum();
            Ok((last > 0).then(|| format!("{} connections reset in three strokes", count + last)))
        })
    })
}
