//! What is sent and where it is cut: a function of the seed.

use testkit::Seeded;

use crate::lab::event::{self, Event, Report};
use crate::lab::wire::Cut;

/// How often each event is sent, all at the same instant.
pub(crate) const SENDS: usize = 8;
/// Of a hundred connections, so many are cut.
const CUT: u64 = 10;
/// Every so many-th change is reported under a second event id.
const SECOND_EVERY: u64 = 20;
/// Cuts while reading fall below this; an answer has some 1,600 bytes.
const ANSWER_BYTES: u64 = 1_800;
/// Cuts while sending fall up to this; a request has some 3,500 bytes.
const REQUEST_BYTES: u64 = 3_600;

/// One change with its reports.
#[derive(Debug)]
pub(crate) struct Change {
    /// One, or two that say the same.
    pub(crate) events: Vec<Event>,
    /// For each event, how each send of it ends.
    pub(crate) cuts: Vec<[Cut; SENDS]>,
}

/// All changes.
#[derive(Debug)]
pub(crate) struct Plan {
    seed: u64,
    pub(crate) changes: Vec<Change>,
}

impl Plan {
    /// The plan of a seed.
    ///
    /// # Errors
    /// The sample event can't be used.
    pub(crate) fn new(seed: u64, count: u64) -> anyhow::Result<Self> {
        let mut choice = Seeded::new(seed);
        let mut changes = Vec::new();
        for number in 0..count {
            let mut events = vec![event::checkout(number, Report::First)?];
            if number % SECOND_EVERY == SECOND_EVERY / 2 {
                events.push(event::checkout(number, Report::Second)?);
            }
            let cuts = events.iter().map(|_| std::array::from_fn(|_| cut(&mut choice))).collect();
            changes.push(Change { events, cuts });
        }
        Ok(Self { seed, changes })
    }

    /// All events.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.changes.iter().flat_map(|change| &change.events)
    }

    /// One line for people.
    pub(crate) fn summary(&self) -> String {
        let twice = self.changes.iter().filter(|change| change.events.len() == 2).count();
        let cuts = || self.changes.iter().flat_map(|change| &change.cuts).flatten();
        let cut = cuts().filter(|cut| **cut != Cut::Never).count();
        format!(
            "{} changes, {twice} of them under two event ids; {} sends, {cut} connections to be cut; seed {}",
            self.changes.len(),
            cuts().count(),
            self.seed
        )
    }
}

fn cut(choice: &mut Seeded) -> Cut {
    let bytes = |number: u64| usize::try_from(number).unwrap_or_default();
    if !choice.chance(CUT) {
        Cut::Never
    } else if choice.chance(50) {
        Cut::Sending(bytes(choice.below(REQUEST_BYTES)))
    } else {
        Cut::Reading(bytes(choice.below(ANSWER_BYTES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_plan_again_and_cuts_about_a_tenth() {
        let cuts = |seed| -> Vec<Cut> {
            let plan = Plan::new(seed, 200).unwrap();
            plan.changes.iter().flat_map(|change| change.cuts.clone()).flatten().collect()
        };
        assert_eq!(cuts(7), cuts(7));
        assert_ne!(cuts(7), cuts(8));
        let cut = cuts(7).iter().filter(|cut| **cut != Cut::Never).count();
        assert!((100..=240).contains(&cut), "{cut} of {}", cuts(7).len());
    }
}
