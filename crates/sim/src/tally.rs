//! How much was done: steps, submissions, mishaps, and how often each branch of the door's table of answers
//! was taken.

use std::cell::RefCell;
use std::sync::Once;

use door::branch::{Branch, TARGET};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use crate::market::OUTCOMES;
use crate::mishap::Mishap;

/// What runs did, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Seeds.
    pub seeds: u64,
    /// Steps of all seeds.
    pub steps: u64,
    /// Submissions of clients.
    pub submissions: u64,
    /// Seeds that were runs with AuditVisa.
    pub certified: u64,
    /// Seeds that were runs with the supply side.
    pub traded: u64,
    /// By outcome of the supply side, in the order of [`OUTCOMES`].
    pub(crate) outcomes: Vec<u64>,
    /// By kind of mishap.
    pub(crate) mishaps: [u64; Mishap::ALL.len()],
    /// By branch, in the order of [`Branch::ALL`].
    branches: Vec<u64>,
}

impl Tally {
    /// Adds another's numbers.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.steps += other.steps;
        self.submissions += other.submissions;
        self.certified += other.certified;
        self.traded += other.traded;
        self.outcomes.resize(OUTCOMES.len(), 0);
        self.outcomes.iter_mut().zip(&other.outcomes).for_each(|(sum, more)| *sum += more);
        self.mishaps.iter_mut().zip(other.mishaps).for_each(|(sum, more)| *sum += more);
        self.branches.resize(Branch::ALL.len(), 0);
        self.branches.iter_mut().zip(&other.branches).for_each(|(sum, more)| *sum += more);
    }

    /// Takes what this thread counted since the last call.
    pub fn take_branches(&mut self) {
        let taken = COUNTS.with_borrow_mut(std::mem::take);
        self.branches.resize(Branch::ALL.len(), 0);
        self.branches.iter_mut().zip(taken).for_each(|(sum, more)| *sum += more);
    }

    /// Each branch with its count.
    pub fn branches(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.branches.iter().copied().chain(std::iter::repeat(0));
        Branch::ALL.iter().map(|branch| branch.as_str()).zip(counts)
    }

    /// Each outcome of the supply side with its count.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.outcomes.iter().copied().chain(std::iter::repeat(0));
        OUTCOMES.iter().copied().zip(counts)
    }

    /// Each mishap with its count.
    pub fn mishaps(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Mishap::ALL.iter().map(|mishap| mishap.as_str()).zip(self.mishaps)
    }
}

thread_local! {
    static COUNTS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Counts branches from now on, in every thread of this program.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Another listener would have been set by this program itself.
        let _ = tracing::subscriber::set_global_default(Listener);
    });
}

/// Hears the door tell its branches, and nothing else.
struct Listener;

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == TARGET { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Count);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Count;

impl Visit for Count {
    fn record_str(&mut self, _: &Field, word: &str) {
        let Some(index) = Branch::ALL.iter().position(|branch| branch.as_str() == word) else { return };
        COUNTS.with_borrow_mut(|counts| {
            counts.resize(Branch::ALL.len(), 0);
            if let Some(count) = counts.get_mut(index) {
                *count += 1;
            }
        });
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
