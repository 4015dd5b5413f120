//! Threads that send the plan: all sends of a change leave at the same instant, each over a connection of
//! its own; several changes are under way at once. A sender that was not cut may be one that comes again
//! until it is told 2xx ([`Sending::tries`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value as Json;

use super::plan::{Change, Plan};
use crate::lab::event::{self, Event};
use crate::lab::wire::{self, Cut};

/// Changes under way at once: with eight sends an event, some 64 to 128 connections.
const AT_ONCE: usize = 8;
/// A sender's pause before it comes again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// What every answer of a change must name alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Links {
    /// Page, archive, JSON.
    pub(crate) urls: [String; 3],
    /// Run hash and signature.
    pub(crate) proof: [String; 2],
}

/// How one send ended.
#[derive(Debug)]
pub(crate) struct Told {
    /// The event's id.
    pub(crate) event: String,
    pub(crate) cut: Cut,
    /// HTTP status of a whole answer; `None` where there was none.
    pub(crate) status: Option<u16>,
    /// Why there was none, though nothing was cut here.
    pub(crate) broken: Option<String>,
    pub(crate) links: Option<Links>,
    /// How often it was sent: more than once where the sender came again.
    pub(crate) tries: usize,
}

/// Where sends go, and how stubborn their senders are.
pub(crate) trait Sending: Sync {
    /// Where a change's send number `number` goes at its try number `again`, from 0.
    fn address(&self, number: usize, again: usize) -> SocketAddr;

    /// How often a sender that was not cut sends, until it is told 2xx.
    fn tries(&self) -> usize;
}

impl Sending for SocketAddr {
    fn address(&self, _: usize, _: usize) -> SocketAddr {
        *self
    }

    fn tries(&self) -> usize {
        1
    }
}

impl Told {
    /// A whole 2xx answer was read: the sender will not come again.
    pub(crate) fn acknowledged(&self) -> bool {
        self.status.is_some_and(|status| status / 100 == 2)
    }
}

/// Sends everything.
///
/// # Errors
/// A request can't be made; broken connections are results, not errors.
pub(crate) fn all(plan: &Plan, to: &impl Sending) -> anyhow::Result<Vec<Told>> {
    let next = AtomicUsize::new(0);
    let told = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    let worker = || {
        while let Some(change) = plan.changes.get(next.fetch_add(1, Ordering::Relaxed)) {
            match one(change, to) {
                Ok(sent) => told.lock().unwrap_or_else(PoisonError::into_inner).extend(sent),
                Err(cause) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(worker);
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(cause) => Err(cause),
        None => Ok(told.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// All sends of one change, at once.
fn one(change: &Change, to: &impl Sending) -> anyhow::Result<Vec<Told>> {
    let cuts =
        || change.events.iter().zip(&change.cuts).flat_map(|(event, cuts)| cuts.map(|cut| (event, cut)));
    let together = Barrier::new(cuts().count());
    std::thread::scope(|scope| {
        let running: Vec<_> = cuts()
            .enumerate()
            .map(|(number, (event, cut))| {
                let together = &together;
                scope.spawn(move || {
                    let request = event::delivery(event, crate::lab::now());
                    together.wait();
                    Ok(carried(event, (number, cut), &request?, to))
                })
            })
            .collect();
        let ended = running.into_iter().map(|thread| thread.join().ok().context("a sending thread panicked"));
        ended.map(|told| told.and_then(|told| told)).collect()
    })
}

/// One send to its end; the last answer counts.
fn carried(event: &Event, (number, cut): (usize, Cut), request: &[u8], to: &impl Sending) -> Told {
    let mut again = 0;
    loop {
        let told = told(event.id.clone(), cut, wire::send(to.address(number, again), request, cut));
        again += 1;
        if told.acknowledged() || cut != Cut::Never || again >= to.tries() {
            return Told { tries: again, ..told };
        }
        std::thread::park_timeout(AGAIN_AFTER);
    }
}

fn told(event: String, cut: Cut, end: anyhow::Result<Option<wire::Answer>>) -> Told {
    let (status, broken, links) = match end {
        Ok(answer) => {
            let links = answer.as_ref().and_then(|answer| links(&answer.json()));
            (answer.map(|answer| answer.status), None, links)
        }
        Err(cause) => (None, Some(format!("{cause:#}")), None),
    };
    Told { event, cut, status, broken, links, tries: 1 }
}

fn links(answer: &Json) -> Option<Links> {
    let text = |name: &str| answer.get(name)?.as_str().map(ToOwned::to_owned);
    Some(Links {
        urls: [text("html_url")?, text("zip_url")?, text("json_url")?],
        proof: [text("run_hash")?, text("signature")?],
    })
}

/// One line for people.
pub(crate) fn summary(told: &[Told], took: Duration) -> String {
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for one in told {
        let end = match (&one.status, one.cut, &one.broken) {
            (Some(status), ..) => status.to_string(),
            (None, Cut::Never, _) => "broken".into(),
            (None, ..) => "cut".into(),
        };
        *answers.entry(end).or_default() += 1;
    }
    let answers: Vec<_> = answers.into_iter().map(|(end, count)| format!("{count} {end}")).collect();
    format!("{} sends in {} ms: {}", told.len(), took.as_millis(), answers.join(", "))
}
