//! What can be wrong with a history.

use std::fmt;

/// Something that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Which rule is broken.
    pub kind: Kind,
    /// Under which key.
    pub key: String,
    /// What was seen, with its values.
    pub text: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: key {}: {}", self.kind, self.key, self.text)
    }
}

/// The rules, each by what breaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The history itself is wrong: a submission ended before it began.
    Disordered,
    /// Two effects of one key in one generation.
    DoubleEffect,
    /// One effect under two keys or generations.
    SharedEffect,
    /// An effect that nobody asked for: no submission of its key, or none with its fingerprint.
    EffectUnasked,
    /// An effect whose every submission was told "mismatch".
    MismatchTookEffect,
    /// An acknowledged effect isn't in the store.
    Lost,
    /// An answer that carries other bytes than the effect of its key.
    OtherOutcome,
    /// Another payload was told that it is the same.
    MissedMismatch,
    /// The record's own payload, or the first run, was told that it differs.
    FalseMismatch,
    /// Two answers of one effect that each claim to be the first.
    TwoFirsts,
    /// A submission began after the result was known, and its answer was no replay.
    NotReplayed,
    /// A submission began after a later generation's result was known, and got an earlier one's.
    StaleGeneration,
    /// "In progress" was said while nobody could be at work.
    InProgressAlone,
    /// "Mismatch" was said while no other payload had come.
    MismatchAlone,
    /// Two formal announcements in one generation.
    DoubleAnnouncement,
    /// An announcement of what isn't in the store.
    AnnouncedNothing,
}
