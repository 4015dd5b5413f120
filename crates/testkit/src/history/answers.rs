//! Rules about what the clients of one key were told.

use std::collections::BTreeMap;

use kernel::Fingerprint;

use super::{Answer, Effect, Finished, Kind, Story, Submission};

/// How much of an outcome is shown.
const SHOWN_MAX: usize = 80;

/// An answer with the effect that explains it.
struct Explained<'a> {
    submission: &'a Submission,
    finished: &'a Finished,
    effect: &'a Effect,
}

/// Judges the answers of one key.
pub(super) fn judge(story: &Story<'_>, told: &mut impl FnMut(Kind, String)) {
    for submission in &story.submissions {
        if submission.ended < submission.started {
            told(Kind::Disordered, format!("{} ended before it began", span(submission)));
        }
    }
    let explained = explain(story, told);
    let mut generations: BTreeMap<u32, Vec<&Explained<'_>>> = BTreeMap::new();
    for answer in &explained {
        generations.entry(answer.effect.generation).or_default().push(answer);
    }
    for answers in generations.values() {
        fingerprints(answers, told);
        firsts(answers, told);
    }
    stale(&generations, told);
    first_count(story, &generations, told);
    alone(story, told);
}

/// Finds the effect behind each formal answer. An answer that fits several generations, as when the same
/// bytes came out twice, is left out: only what is certain is judged.
fn explain<'a>(story: &Story<'a>, told: &mut impl FnMut(Kind, String)) -> Vec<Explained<'a>> {
    let mut explained = Vec::new();
    for &submission in &story.submissions {
        let Answer::Finished(finished) = &submission.answer else { continue };
        let in_life =
            |effect: &&&Effect| finished.generation.is_none_or(|generation| generation == effect.generation);
        let lives: Vec<&Effect> = story.effects.iter().filter(in_life).copied().collect();
        let mut fitting: Vec<&Effect> =
            lives.iter().filter(|effect| effect.outcome == finished.outcome).copied().collect();
        fitting.sort_by_key(|effect| effect.generation);
        fitting.dedup_by_key(|effect| effect.generation);
        let alike = |effect: &&Effect| {
            effect.fingerprint.is_none_or(|own| (own == submission.fingerprint) == finished.same)
        };
        if fitting.len() > 1 && fitting.iter().any(alike) {
            fitting.retain(alike);
        }
        match fitting.as_slice() {
            [] => unexplained(submission, finished, &lives, told),
            [effect] => explained.push(Explained { submission, finished, effect }),
            _ => {}
        }
    }
    explained
}

fn unexplained(
    submission: &Submission,
    finished: &Finished,
    lives: &[&Effect],
    told: &mut impl FnMut(Kind, String),
) {
    let (span, outcome) = (span(submission), shown(&finished.outcome));
    match lives.first() {
        None => told(Kind::Lost, format!("{span} was answered {outcome}, the store holds no effect")),
        Some(effect) => told(
            Kind::OtherOutcome,
            format!("{span} was answered {outcome}, effect {} is {}", effect.id, shown(&effect.outcome)),
        ),
    }
}

/// Who was told "the same" has the effect's fingerprint, who was told "not the same" has another.
fn fingerprints(answers: &[&Explained<'_>], told: &mut impl FnMut(Kind, String)) {
    let kept = answers.iter().find_map(|answer| answer.effect.fingerprint);
    // Without one in the record the first run's counts, and without that the first who was told "the same".
    let same = || answers.iter().filter(|answer| answer.finished.same);
    let first = || same().find(|answer| !answer.finished.replayed).or_else(|| same().next());
    let own = kept.or_else(|| first().map(|answer| answer.submission.fingerprint));
    for Explained { submission, finished, effect } in answers {
        let is_own = own.map(|own: Fingerprint| own == submission.fingerprint);
        let span = span(submission);
        match (finished.same, is_own) {
            (true, Some(false)) => told(
                Kind::MissedMismatch,
                format!("{span} has another fingerprint than effect {}, and was told the same", effect.id),
            ),
            (false, Some(true)) => told(
                Kind::FalseMismatch,
                format!("{span} has the fingerprint of effect {}, and was told mismatch", effect.id),
            ),
            (false, _) if !finished.replayed => {
                told(Kind::FalseMismatch, format!("{span} made effect {} and was told mismatch", effect.id));
            }
            _ => {}
        }
    }
}

/// One answer is the first; who began after any answer was there gets a replay.
fn firsts(answers: &[&Explained<'_>], told: &mut impl FnMut(Kind, String)) {
    let firsts: Vec<_> = answers.iter().filter(|answer| !answer.finished.replayed).collect();
    if let [one, other, ..] = firsts.as_slice() {
        told(
            Kind::TwoFirsts,
            format!(
                "{} answers of effect {} are no replays, such as {} and {}",
                firsts.len(),
                one.effect.id,
                span(one.submission),
                span(other.submission)
            ),
        );
    }
    let Some(known) = answers.iter().min_by_key(|answer| answer.submission.ended) else { return };
    for late in firsts.iter().filter(|answer| answer.submission.started > known.submission.ended) {
        told(
            Kind::NotReplayed,
            format!(
                "{} began after {} had the result, and its answer is no replay",
                span(late.submission),
                span(known.submission)
            ),
        );
    }
}

/// A key's next life ends the one before.
fn stale(generations: &BTreeMap<u32, Vec<&Explained<'_>>>, told: &mut impl FnMut(Kind, String)) {
    let mut later: Option<&Submission> = None;
    for (generation, answers) in generations.iter().rev() {
        for answer in answers {
            if let Some(later) = later.filter(|later| answer.submission.started > later.ended) {
                told(
                    Kind::StaleGeneration,
                    format!(
                        "{} got generation {generation} after {} had a later one",
                        span(answer.submission),
                        span(later)
                    ),
                );
            }
        }
        let ended = answers.iter().map(|answer| answer.submission).chain(later);
        later = ended.min_by_key(|submission| submission.ended);
    }
}

/// Also of answers that fit several generations, no more can be first than there are generations.
fn first_count(
    story: &Story<'_>,
    generations: &BTreeMap<u32, Vec<&Explained<'_>>>,
    told: &mut impl FnMut(Kind, String),
) {
    let is_first = |submission: &&&Submission| matches!(&submission.answer, Answer::Finished(finished) if !finished.replayed);
    let firsts = story.submissions.iter().filter(is_first).count();
    let mut lives: Vec<u32> = story.effects.iter().map(|effect| effect.generation).collect();
    lives.sort_unstable();
    lives.dedup();
    let seen = generations
        .values()
        .any(|answers| answers.iter().filter(|answer| !answer.finished.replayed).count() > 1);
    if firsts > lives.len() && !lives.is_empty() && !seen {
        told(Kind::TwoFirsts, format!("{firsts} answers are no replays, in {} generations", lives.len()));
    }
}

/// "In progress" and "mismatch" speak of somebody else.
fn alone(story: &Story<'_>, told: &mut impl FnMut(Kind, String)) {
    let mut starts: Vec<u64> = story.submissions.iter().map(|submission| submission.started).collect();
    // Who had no formal answer may still be at work, long after its client left.
    let mut ends: Vec<u64> = story
        .submissions
        .iter()
        .filter(|submission| matches!(submission.answer, Answer::Finished(_) | Answer::Mismatch))
        .map(|submission| submission.ended)
        .collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let others = Others::of(story);
    for submission in &story.submissions {
        let span = span(submission);
        match &submission.answer {
            Answer::InProgress => {
                let begun = starts.partition_point(|started| *started <= submission.ended);
                let over = ends.partition_point(|ended| *ended < submission.started);
                // One of those that had begun is this one.
                if begun <= over + 1 {
                    told(
                        Kind::InProgressAlone,
                        format!("{span} was told in progress while nobody was at work"),
                    );
                }
            }
            Answer::Mismatch | Answer::Finished(Finished { same: false, .. })
                if others.before(submission.fingerprint).is_none_or(|first| first > submission.ended) =>
            {
                told(Kind::MismatchAlone, format!("{span} was told mismatch, but no other payload had come"));
            }
            _ => {}
        }
    }
}

/// When the two earliest fingerprints of a key came.
#[derive(Default)]
struct Others {
    first: Option<(Fingerprint, u64)>,
    second: Option<u64>,
}

impl Others {
    fn of(story: &Story<'_>) -> Self {
        let mut others = Self::default();
        let mut came: Vec<_> = story.submissions.iter().map(|one| (one.started, one.fingerprint)).collect();
        came.sort_unstable();
        for (started, fingerprint) in came {
            match others.first {
                None => others.first = Some((fingerprint, started)),
                Some((first, _)) if first != fingerprint => {
                    others.second = Some(started);
                    break;
                }
                Some(_) => {}
            }
        }
        others
    }

    /// When the first other fingerprint came.
    fn before(&self, own: Fingerprint) -> Option<u64> {
        match self.first {
            Some((first, started)) if first != own => Some(started),
            _ => self.second,
        }
    }
}

fn span(submission: &Submission) -> String {
    format!("the submission {}..{}", submission.started, submission.ended)
}

fn shown(outcome: &[u8]) -> String {
    let text = String::from_utf8_lossy(outcome);
    let short: String = text.chars().take(SHOWN_MAX).collect();
    if short.len() < text.len() {
        format!("{short:?} and more, {} bytes", outcome.len())
    } else {
        format!("{short:?}")
    }
}
