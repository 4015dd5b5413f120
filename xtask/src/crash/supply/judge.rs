//! What must hold after a death: the server starts again, the same request comes again under the same key, and once
//! more. Each rule that does not hold is a sentence; nothing stops at the first.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value as Json;

use super::portrait::{self, Portrait};
use super::stage::{Critical, ITEMS, Stage};
use super::traced::Traced;
use crate::lab::wire::{self, Answer};

/// How long a repeat may take until it is told an end: the dead server's lease (5 s), and a slow machine.
const ENDED_WITHIN: Duration = Duration::from_secs(30);
/// A client's pause before it comes again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a write does when nobody dies.
pub(super) struct Reference {
    pub(super) write: Critical,
    pub(super) before: Portrait,
    pub(super) after: Portrait,
    /// Points and receipts of a run.
    pub(super) places: (u64, u64),
}

/// What a death turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Everything was committed.
    pub(super) committed: bool,
    /// A part was: slices of a batch, the claim of a mount.
    pub(super) begun: bool,
    /// The client had its answer.
    pub(super) told: bool,
}

/// One death under judgement.
struct Case<'a> {
    reference: &'a Reference,
    traced: &'a Traced,
    found: Found,
    wrong: Vec<String>,
}

/// Starts again, asks again, and lists what is wrong.
///
/// # Errors
/// The server does not start, answer or stop: as wrong as anything listed.
pub(super) fn judge(
    stage: &Stage,
    reference: &Reference,
    (name, traced): (&str, &Traced),
) -> Result<(Found, Vec<String>)> {
    let left = stage.portrait(name, &traced.house)?;
    let found = Found { told: !traced.told.is_empty(), ..Found::default() };
    let mut case = Case { reference, traced, found, wrong: Vec::new() };
    case.left(&left);
    let server = stage.start(&traced.house)?;
    let ended = |attempt| ended(&server.address, &stage.request(reference.write, attempt));
    let (again, third) = (ended(2)?, ended(3)?);
    case.again(&again, &third);
    let ledger = stage.ledger(&traced.house)?;
    server.stop()?;
    case.wrong.extend(ledger);
    let after = stage.portrait(name, &traced.house)?;
    let same = after == reference.after;
    let apart = || format!("not as without a death: {}", portrait::differences(&reference.after, &after));
    case.must(same, apart);
    Ok((case.found, case.wrong))
}

/// Sends a request until it is told an end.
fn ended(to: &std::net::SocketAddr, request: &[u8]) -> Result<Answer> {
    let since = Instant::now();
    loop {
        let answer = wire::exchange(*to, request)?;
        let is_end = !matches!(answer.status, 202 | 429 | 503);
        if is_end || since.elapsed() > ENDED_WITHIN {
            return Ok(answer);
        }
        std::thread::park_timeout(AGAIN_AFTER);
    }
}

impl Case<'_> {
    fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }

    /// What a death leaves: all, nothing, or what the form of the write allows; and what was told is true.
    fn left(&mut self, left: &Portrait) {
        let Reference { write, before, after, .. } = self.reference;
        let key = format!("key {}", write.key());
        let but_claim = |line: &&String| !line.starts_with(&key);
        self.found.committed = left == after;
        self.found.begun = left != before && left != after;
        let told = self.found.told;
        self.must(!told || left == after, || {
            format!(
                "the client was told its end, and the rows are not all there: {}",
                portrait::differences(after, left)
            )
        });
        match write {
            Critical::Publish | Critical::Withdraw | Critical::Cancel => {
                let whole = !self.found.begun;
                self.must(whole, || format!("half a write is left: {}", portrait::differences(before, left)));
            }
            Critical::Mount => {
                let without =
                    |portrait: &Portrait| portrait.iter().filter(but_claim).cloned().collect::<Portrait>();
                let whole = !self.found.begun || without(left) == without(before);
                self.must(whole, || {
                    format!("more than a claim is left: {}", portrait::differences(before, left))
                });
            }
            Critical::BatchPrice => self.slices(left),
        }
    }

    /// Each item that has its receipt has its price, its audit row and its event; slices are whole.
    fn slices(&mut self, left: &Portrait) {
        let before = &self.reference.before;
        let repriced = left.difference(before).filter(|line| line.starts_with("package ")).count();
        let received = portrait::count(left, "receipts");
        let of = |line: &str| portrait::count(left, line) - portrait::count(before, line);
        let items = [
            repriced,
            of("outbox supply.package.price_update.succeeded"),
            of("audit supply.package.price.update OK"),
        ];
        let whole = received.is_multiple_of(2) || received == ITEMS;
        self.must(whole && items == [received; 3], || {
            format!("{received} receipts; prices, events and audit rows of items: {items:?}")
        });
    }

    /// The repeat ends it, as the first would have; one more is a replay of that.
    fn again(&mut self, again: &Answer, third: &Answer) {
        let (first, second) = (again.json(), third.json());
        self.must(matches!(again.status, 200 | 201), || format!("the repeat is told {}", shown(again)));
        let replayed = is_replay(&first);
        self.must(!self.found.committed || replayed, || {
            "all was committed, and the repeat is no replay".into()
        });
        let data = |json: &Json| json.get("data").cloned().unwrap_or_default();
        for told in &self.traced.told {
            let (old, new) = (data(told), data(&first));
            self.must(old == new && !old.is_null(), || {
                format!("told {old} before the death, and then {new}")
            });
        }
        let same = third.status == again.status && data(&second) == data(&first) && is_replay(&second);
        self.must(same, || format!("told {} and then {}", shown(again), shown(third)));
    }
}

fn is_replay(json: &Json) -> bool {
    json.get("idempotent_replay") == Some(&Json::Bool(true))
}

fn shown(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.text().chars().take(300).collect::<String>())
}
