//! What can go wrong between a node and the store.

use testkit::Seeded;

/// A mishap of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mishap {
    /// No connection can be had.
    Unavailable,
    /// The first trip never reaches the store.
    LostBefore,
    /// The first trip's answer is lost; its session stays behind.
    LostAfter,
    /// The store undid the transaction for reasons that lie in others.
    Deadlock,
    /// The store could not write.
    Full,
    /// The commit's answer is lost, and it did not happen.
    CommitNever,
    /// The commit's answer is lost, and it did happen.
    CommitDone,
    /// The commit's answer is lost, and it happens later.
    CommitLate,
}

impl Mishap {
    pub(crate) const ALL: [Self; 8] = [
        Self::Unavailable,
        Self::LostBefore,
        Self::LostAfter,
        Self::Deadlock,
        Self::Full,
        Self::CommitNever,
        Self::CommitDone,
        Self::CommitLate,
    ];

    /// For people.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "no connection",
            Self::LostBefore => "first trip lost",
            Self::LostAfter => "first trip's answer lost",
            Self::Deadlock => "undone for others",
            Self::Full => "no space",
            Self::CommitNever => "commit lost, not done",
            Self::CommitDone => "commit lost, done",
            Self::CommitLate => "commit lost, done later",
        }
    }
}

/// Which mishaps are due.
#[derive(Debug, Default)]
pub(crate) struct Mishaps {
    /// So many of a thousand operations go wrong.
    pub(crate) of_thousand: u64,
    /// For the next operation of a node.
    due: Vec<(usize, Mishap)>,
    /// How often each happened.
    pub(crate) counts: [u64; Mishap::ALL.len()],
}

impl Mishaps {
    pub(crate) fn next(&mut self, node: usize, choice: &mut Seeded) -> Option<Mishap> {
        let due = self.due.iter().position(|(of, _)| *of == node).map(|at| self.due.swap_remove(at).1);
        let by_chance = self.of_thousand > 0 && choice.below(1000) < self.of_thousand;
        due.or_else(|| by_chance.then(|| any(choice)))
    }

    /// The next operation of the node goes wrong in some way.
    pub(crate) fn plan(&mut self, node: usize, choice: &mut Seeded) -> Mishap {
        let mishap = any(choice);
        self.due.push((node, mishap));
        mishap
    }

    /// It did happen: an operation that writes nothing can't lose a commit.
    pub(crate) fn happened(&mut self, mishap: Mishap) {
        if let Some(count) = self.counts.get_mut(mishap as usize) {
            *count += 1;
        }
    }

    /// From now on all is well.
    pub(crate) fn stop(&mut self) {
        self.of_thousand = 0;
        self.due.clear();
    }
}

fn any(choice: &mut Seeded) -> Mishap {
    let index = usize::try_from(choice.below(Mishap::ALL.len() as u64)).unwrap_or(0);
    Mishap::ALL.get(index).copied().unwrap_or(Mishap::Unavailable)
}
