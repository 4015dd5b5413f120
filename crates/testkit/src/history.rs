//! What clients were told and what the store holds afterwards, judged against each other: every answer is
//! explained by one effect of its key, nothing doubled, nothing acknowledged lost.
//!
//! Modules in reading order: this one (what a run writes down), [`anomaly`] (what can be wrong), `answers`
//! and `effects` (the rules, one key at a time). Pure: the simulation, the race and the runs with faults
//! all end here. Not here: whether work is stuck (a key without any answer is no anomaly), and whether the
//! run was worth judging; see [`History::summary`] for its size.

mod anomaly;
mod answers;
mod effects;

use std::collections::{BTreeMap, HashMap};

use kernel::Fingerprint;

pub use anomaly::{Anomaly, Kind};

/// Everything that happened in a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What clients sent, in any order.
    pub submissions: Vec<Submission>,
    /// What the store holds after the run: every formal outcome, refusals too, expired ones too.
    pub effects: Vec<Effect>,
    /// The formal announcements that somebody received.
    pub announcements: Vec<Announcement>,
}

/// One submission as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Its key, with whatever makes it unique in the run (scope, tenant).
    pub key: String,
    /// Digest of the fields that make two submissions the same.
    pub fingerprint: Fingerprint,
    /// When it was about to be sent, on any clock that all clients of the run share.
    pub started: u64,
    /// When the client had the answer, or gave up.
    pub ended: u64,
    /// What it was told.
    pub answer: Answer,
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A formal result.
    Finished(Finished),
    /// Another payload holds the key; its result was not shown.
    Mismatch,
    /// Somebody else is at work under the key, or this submission goes on without its client.
    InProgress,
    /// A failure, a lost connection, a time-out: it may have happened, or may still happen.
    Unknown,
}

/// A formal result as a client got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Status and body, as bytes, without what differs between arrivals by contract.
    pub outcome: Vec<u8>,
    /// Whether the answer said that the result stood there before.
    pub replayed: bool,
    /// Whether the answer said that this submission's fingerprint is the record's.
    pub same: bool,
    /// Which life of the key the answer is from, where the client can know it.
    pub generation: Option<u32>,
}

/// One formal outcome in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Of the key.
    pub key: String,
    /// What its answers must carry, byte for byte.
    pub outcome: Vec<u8>,
    /// What tells two effects apart: row, ledger entry, certificate.
    pub id: String,
    /// The fingerprint in the record; `None` where none is kept or the record came from elsewhere.
    pub fingerprint: Option<Fingerprint>,
    /// Which life of the key: 0, and one more each time an expired key was used again.
    pub generation: u32,
}

/// One formal announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Of the key.
    pub key: String,
    /// Which life of the key, as in [`Effect::generation`].
    pub generation: u32,
}

/// All that concerns one key.
#[derive(Default)]
struct Story<'a> {
    submissions: Vec<&'a Submission>,
    effects: Vec<&'a Effect>,
    announcements: Vec<&'a Announcement>,
}

impl History {
    /// What is wrong; empty when all is well. By key, then by rule.
    #[must_use]
    pub fn anomalies(&self) -> Vec<Anomaly> {
        let mut found = Vec::new();
        for (key, story) in self.stories() {
            let mut told = |kind, text| found.push(Anomaly { kind, key: key.to_owned(), text });
            effects::judge(&story, &mut told);
            answers::judge(&story, &mut told);
        }
        found.extend(self.shared_effects());
        found
    }

    /// The size of what is judged, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let finished = self.submissions.iter().filter_map(|submission| match &submission.answer {
            Answer::Finished(finished) => Some(finished),
            _ => None,
        });
        let replayed = finished.clone().filter(|finished| finished.replayed).count();
        let unknown =
            self.submissions.iter().filter(|submission| submission.answer == Answer::Unknown).count();
        format!(
            "{} submissions of {} keys, {} finished ({replayed} replayed), {unknown} unknown, {} effects, {} announcements",
            self.submissions.len(),
            self.stories().len(),
            finished.count(),
            self.effects.len(),
            self.announcements.len()
        )
    }

    fn stories(&self) -> BTreeMap<&str, Story<'_>> {
        let mut stories: BTreeMap<&str, Story<'_>> = BTreeMap::new();
        for submission in &self.submissions {
            stories.entry(&submission.key).or_default().submissions.push(submission);
        }
        for effect in &self.effects {
            stories.entry(&effect.key).or_default().effects.push(effect);
        }
        for announcement in &self.announcements {
            stories.entry(&announcement.key).or_default().announcements.push(announcement);
        }
        stories
    }

    /// One effect can't be two keys' or two lives' effect.
    fn shared_effects(&self) -> Vec<Anomaly> {
        let mut owners: HashMap<&str, &Effect> = HashMap::new();
        let mut found = Vec::new();
        for effect in &self.effects {
            let owner = *owners.entry(&effect.id).or_insert(effect);
            if (&owner.key, owner.generation) != (&effect.key, effect.generation) {
                let text = format!(
                    "its effect {} (generation {}) is also the effect of {} (generation {})",
                    effect.id, effect.generation, owner.key, owner.generation
                );
                found.push(Anomaly { kind: Kind::SharedEffect, key: effect.key.clone(), text });
            }
        }
        found
    }
}
