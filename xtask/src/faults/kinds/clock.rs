//! The clock of one node, set forward and back while it runs.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::Kind;
use crate::faults::ledger::Excuse;
use crate::faults::scene::{Played, struck_with};
use crate::faults::site::Site;
use crate::lab::clock;

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "clock-ahead", about: "the clock of one node jumps 25 hours ahead, and back", play: ahead },
    Kind {
        name: "clock-behind",
        about: "the clock of one node jumps one hour back, and forth",
        play: behind,
    },
];

/// How long the wrong clock is worked with.
const WRONG: Duration = Duration::from_secs(2);
/// How long a node may take to see that its clock has jumped.
const SEEN_WITHIN: Duration = Duration::from_secs(8);

fn ahead(site: &mut Site) -> Result<Played> {
    jumped(site, 25 * 3600)
}

fn behind(site: &mut Site) -> Result<Played> {
    jumped(site, -3600)
}

fn jumped(site: &mut Site, seconds: i64) -> Result<Played> {
    let library = clock::faketime()?;
    let told = site.folder.join("clock");
    std::fs::write(&told, "+0")?;
    site.nodes.node(0).stop()?;
    site.start_node(site.nodes.node(0), |command| {
        clock::follow(command, &library, &told);
    })?;
    let pid = site.nodes.node(0).pid()?;
    let played = struck_with(site, Excuse::ClockJumps, |site, load| {
        std::fs::write(&told, format!("{seconds:+}"))?;
        let node = site.nodes.node(0);
        let apart = format!("{} s away", seconds.abs());
        let near = format!("{} s away", seconds.abs() - 1);
        let mut fired = load.fired(|| {
            let answer = node.get("/readyz")?.text();
            Ok((answer.contains(&apart) || answer.contains(&near)).then(String::new))
        })?;
        // It goes by the database's clock: what is signed now is taken.
        let mut taken = 0;
        while !load.probe(node.address(), SEEN_WITHIN)? {
            taken += 1;
            ensure!(taken < 20, "node 1 takes nothing with its clock {seconds} s away");
        }
        std::thread::park_timeout(WRONG);
        let refused = load.told("SIG_STALE") + load.told("SIG_FUTURE");
        fired.proof = format!(
            "node 1 said that its clock is {apart}, and took events; {refused} were refused by their age before it saw"
        );
        std::fs::write(&told, "+0")?;
        Ok(fired)
    });
    site.nodes.node(0).stop()?;
    clock::sweep(pid);
    site.start_node(site.nodes.node(0), |_| {})?;
    played.context("a clock that jumps")
}
