//! The nodes themselves: paused, killed, stopped, without room or right to write.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;

use super::Kind;
use crate::faults::load::{Fired, Load};
use crate::faults::mounts::Mounted;
use crate::faults::scene::{Played, struck};
use crate::faults::site::{NODES, Site};
use crate::lab::nodes::Node;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "node-paused",
        about: "a node stands still for longer than all time-outs, and goes on",
        play: paused,
    },
    Kind { name: "nodes-killed", about: "kill -9 of one node after the other", play: killed },
    Kind { name: "all-nodes-killed", about: "kill -9 of all nodes in one moment", play: all_killed },
    Kind { name: "nodes-stopped", about: "one node after the other is stopped in order", play: stopped },
    Kind { name: "node-disk-full", about: "no space left for a node's files", play: full },
    Kind { name: "node-read-only", about: "a node may not write its files", play: read_only },
];

/// Longer than idle, answer and statement time-outs of the nodes' sessions.
const STILL: Duration = Duration::from_millis(4_500);
/// Size of a node's small disk in MiB.
const SMALL: u32 = 48;

fn paused(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let node = site.nodes.node(0);
        let id = node.pid()?;
        node.signal(Signal::SIGSTOP)?;
        let fired = load.fired(|| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
            let still = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
            Ok(still.then(|| format!("node 1 (program {id}) stood still for {STILL:?}")))
        });
        std::thread::park_timeout(STILL);
        node.signal(Signal::SIGCONT)?;
        fired
    })
}

/// Ends each node under load, starts it again, and proves that it is another program.
fn replaced(site: &Site, load: &Load, how: &str, end: impl Fn(usize) -> Result<()>) -> Result<Fired> {
    let mut proof = Vec::new();
    let mut in_flight = usize::MAX;
    for number in 0..NODES {
        load.warm(10)?;
        let node = site.nodes.node(number);
        let before = node.pid()?;
        in_flight = in_flight.min(load.in_flight());
        end(number)?;
        site.start_node(node, |_| {})?;
        let after = node.pid()?;
        ensure!(before != after, "node {} is still program {before}", number + 1);
        proof.push(format!("{before} -> {after}"));
    }
    Ok(Fired { proof: format!("{how}: {}", proof.join(", ")), in_flight, ghosts: 0 })
}

fn killed(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        replaced(site, load, "nodes killed", |number| {
            site.nodes.node(number).kill9();
            Ok(())
        })
    })
}

fn stopped(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| replaced(site, load, "nodes stopped", |number| site.nodes.node(number).stop()))
}

fn all_killed(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let in_flight = load.in_flight();
        let before: Vec<u32> = site.nodes.iter().map(Node::pid).collect::<Result<_>>()?;
        site.nodes.iter().for_each(Node::kill9);
        for node in site.nodes.iter() {
            site.start_node(node, |_| {})?;
        }
        let mut fired = load.fired(|| Ok(Some(format!("programs {before:?} killed at once"))))?;
        fired.in_flight = in_flight;
        Ok(fired)
    })
}

/// With another folder of files for the first node, that is broken and mended.
fn shelved(
    site: &mut Site,
    mounted: impl FnOnce(&Site) -> Result<Mounted>,
    broken: impl FnOnce(&Site, &Load, &Mounted) -> Result<Fired>,
) -> Result<Played> {
    let node = site.nodes.node(0);
    node.stop()?;
    let mount = mounted(site)?;
    site.start_node(site.nodes.node(0), |_| {})?;
    let played = struck(site, |site, load| broken(site, load, &mount));
    site.nodes.node(0).stop()?;
    drop(mount);
    site.start_node(site.nodes.node(0), |_| {})?;
    played
}

fn full(site: &mut Site) -> Result<Played> {
    let mounted = |site: &Site| Mounted::small(&site.nodes.node(0).house.deliveries(), SMALL);
    shelved(site, mounted, |site, load, mount| {
        let filler = mount.fill()?;
        let fired = refused(site, load, "No space left");
        std::fs::remove_file(filler)?;
        fired
    })
}

fn read_only(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let mount = Mounted::read_only(&site.nodes.node(0).house.deliveries())?;
        let fired = refused(site, load, "Read-only file system");
        drop(mount);
        fired
    })
}

/// Waits until the first node said so of its files; a while longer.
fn refused(site: &Site, load: &Load, words: &str) -> Result<Fired> {
    let node = site.nodes.node(0);
    let before = node.log_counts(words)?;
    let fired = load.fired(|| {
        let count = node.log_counts(words)?.saturating_sub(before);
        Ok((count >= 3).then(|| format!("node 1 said {count} times: {words}")))
    });
    std::thread::park_timeout(Duration::from_secs(1));
    fired.context("node 1 should have said so")
}
