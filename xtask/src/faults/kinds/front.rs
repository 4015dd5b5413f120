//! The network between senders and nodes: a balancer that sends twice, answers that are lost.

use std::time::Duration;

use anyhow::Result;
use testkit::proxy::{Armed, Fault, Proxy, Rule, Twin, Way};

use super::Kind;
use crate::faults::scene::{Played, struck};
use crate::faults::site::Site;

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "sent-twice", about: "a balancer sends each request twice at once", play: twice },
    Kind {
        name: "sent-again-late",
        about: "a balancer sends each request again when it is being answered",
        play: late,
    },
    Kind { name: "answer-cut", about: "answers to senders are cut inside their head", play: answer },
    Kind { name: "request-cut", about: "requests are cut inside their body", play: request },
];

const LASTING: Duration = Duration::from_secs(2);

/// With a proxy before each node.
fn fronted(site: &mut Site, rule: impl Into<Rule>, (times, what): (u64, &str)) -> Result<Played> {
    let rule = rule.into();
    let fronts: Vec<Proxy> =
        site.nodes.iter().map(|node| Proxy::start(node.address())).collect::<std::io::Result<_>>()?;
    site.places.front(fronts.iter().map(Proxy::address).collect());
    let played = struck(site, |_, load| {
        let in_flight = load.in_flight();
        let armed: Vec<Armed> = fronts.iter().map(|front| front.set(rule)).collect();
        let count = || armed.iter().map(Armed::fired).sum::<u64>();
        let mut fired = load.fired(|| Ok((count() >= times).then(String::new)))?;
        std::thread::park_timeout(LASTING);
        fired.proof = format!("{} {what}", count());
        // Who is cut is not under way any more, but for a moment.
        fired.in_flight = fired.in_flight.max(in_flight);
        fronts.iter().for_each(Proxy::clear);
        Ok(fired)
    });
    site.places.front(Vec::new());
    played
}

fn twice(site: &mut Site) -> Result<Played> {
    fronted(site, Fault::Twice(Twin::AtOnce), (40, "requests sent twice at once"))
}

fn late(site: &mut Site) -> Result<Played> {
    fronted(site, Fault::Twice(Twin::Late), (40, "requests sent again"))
}

fn answer(site: &mut Site) -> Result<Played> {
    fronted(site, Fault::CutAfter { way: Way::ToClient, bytes: 60 }.times(60), (40, "answers cut"))
}

fn request(site: &mut Site) -> Result<Played> {
    fronted(site, Fault::CutAfter { way: Way::ToServer, bytes: 2_000 }.times(60), (40, "requests cut"))
}
