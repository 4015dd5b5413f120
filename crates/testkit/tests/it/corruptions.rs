//! One thing broken in a good history must be found, and nothing else be blamed.

use std::collections::BTreeSet;

use kernel::Fingerprint;
use testkit::Seeded;
use testkit::history::{Announcement, Answer, Effect, Finished, History, Kind, Submission};

use crate::model::right;

const SEEDS: u64 = 400;
const KEYS: u64 = 12;

/// Breaks one thing and names the keys it touched, or finds nothing to break.
type Break = fn(&mut History, &mut Seeded) -> Option<Vec<String>>;

const BREAKS: [(&str, Kind, Break); 20] = [
    ("an acknowledged effect is lost", Kind::Lost, lost),
    ("an effect happens again", Kind::DoubleEffect, doubled),
    ("two keys share an effect", Kind::SharedEffect, shared),
    ("an effect comes from nowhere", Kind::EffectUnasked, from_nowhere),
    ("an effect is of a payload that nobody sent", Kind::EffectUnasked, of_unknown_payload),
    ("every sender of an effect was refused", Kind::MismatchTookEffect, refused),
    ("one answer has another byte", Kind::OtherOutcome, other_answer),
    ("the effect has another byte", Kind::OtherOutcome, other_effect),
    ("two answers are exchanged", Kind::OtherOutcome, exchanged),
    ("another payload is told the same", Kind::MissedMismatch, missed_mismatch),
    ("the own payload is told mismatch", Kind::FalseMismatch, false_mismatch),
    ("the first run is told mismatch", Kind::FalseMismatch, mismatched_first),
    ("two answers are the first", Kind::TwoFirsts, two_firsts),
    ("a late answer is no replay", Kind::NotReplayed, not_replayed),
    ("an expired result comes back", Kind::StaleGeneration, stale),
    ("somebody is told in progress of nobody", Kind::InProgressAlone, in_progress_alone),
    ("somebody is told mismatch with nobody", Kind::MismatchAlone, mismatch_alone),
    ("an announcement is sent again", Kind::DoubleAnnouncement, announced_twice),
    ("nothing is announced", Kind::AnnouncedNothing, announced_nothing),
    ("an answer comes before its question", Kind::Disordered, disordered),
];

#[test]
fn every_break_of_a_good_history_is_found_and_nothing_else_is_blamed() {
    for (name, kind, broken) in BREAKS {
        let mut tried = 0;
        for seed in 0..SEEDS {
            let mut history = right(seed, KEYS);
            let Some(keys) = broken(&mut history, &mut Seeded::new(seed)) else { continue };
            tried += 1;
            let found = history.anomalies();
            assert!(found.iter().any(|anomaly| anomaly.kind == kind), "{name}, seed {seed}: {found:#?}");
            let blamed: BTreeSet<_> = found.iter().map(|anomaly| &anomaly.key).collect();
            assert!(blamed.iter().all(|key| keys.contains(key)), "{name}, seed {seed}: {found:#?}");
        }
        assert!(tried >= SEEDS / 4, "{name}: only {tried} histories could be broken");
    }
}

fn any<T>(mut items: Vec<T>, seeded: &mut Seeded) -> Option<T> {
    let chosen = usize::try_from(seeded.below(items.len() as u64)).ok()?;
    (chosen < items.len()).then(|| items.swap_remove(chosen))
}

const fn finished(submission: &Submission) -> Option<&Finished> {
    match &submission.answer {
        Answer::Finished(finished) => Some(finished),
        _ => None,
    }
}

fn finish(submission: &mut Submission) -> &mut Finished {
    match &mut submission.answer {
        Answer::Finished(finished) => finished,
        other => panic!("no formal answer: {other:?}"),
    }
}

/// The only effect of a key, where it has but one.
fn single<'a>(history: &'a History, key: &str) -> Option<&'a Effect> {
    let mut effects = history.effects.iter().filter(|effect| effect.key == key);
    effects.next().filter(|_| effects.next().is_none())
}

/// Submissions of keys with one effect that has its fingerprint, formally answered, that pass `wanted`.
fn answered(history: &History, wanted: impl Fn(&Submission, &Finished) -> bool) -> Vec<usize> {
    let fits = |submission: &Submission| {
        single(history, &submission.key).is_some_and(|effect| effect.fingerprint.is_some())
            && finished(submission).is_some_and(|finished| wanted(submission, finished))
    };
    (0..history.submissions.len()).filter(|index| fits(&history.submissions[*index])).collect()
}

fn of_key<'a>(history: &'a History, key: &'a str) -> impl Iterator<Item = &'a Submission> {
    history.submissions.iter().filter(move |submission| submission.key == key)
}

fn lost(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, _| true), seeded)?;
    let key = history.submissions[index].key.clone();
    history.effects.retain(|effect| effect.key != key);
    Some(vec![key])
}

fn doubled(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let effect = any(history.effects.clone(), seeded)?;
    let key = effect.key.clone();
    history.effects.push(Effect { id: format!("{}-again", effect.id), ..effect });
    Some(vec![key])
}

fn shared(history: &mut History, _: &mut Seeded) -> Option<Vec<String>> {
    let first = history.effects.first()?.clone();
    let other = history.effects.iter_mut().find(|effect| effect.key != first.key)?;
    other.id.clone_from(&first.id);
    Some(vec![first.key, other.key.clone()])
}

fn from_nowhere(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let effect = any(history.effects.clone(), seeded)?;
    history.effects.push(Effect { key: "ghost".into(), id: "ghost".into(), ..effect });
    Some(vec!["ghost".into()])
}

fn of_unknown_payload(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let effect = any(history.effects.iter_mut().collect(), seeded)?;
    effect.fingerprint = Some(Fingerprint::of(b"nobody's"));
    Some(vec![effect.key.clone()])
}

fn refused(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, finished| finished.same), seeded)?;
    let Submission { key, fingerprint, .. } = history.submissions[index].clone();
    let own = history.submissions.iter_mut().filter(|one| one.key == key && one.fingerprint == fingerprint);
    own.for_each(|one| one.answer = Answer::Mismatch);
    Some(vec![key])
}

fn other_answer(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, _| true), seeded)?;
    finish(&mut history.submissions[index]).outcome.push(b' ');
    Some(vec![history.submissions[index].key.clone()])
}

fn other_effect(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, _| true), seeded)?;
    let key = history.submissions[index].key.clone();
    history.effects.iter_mut().find(|effect| effect.key == key)?.outcome.pop();
    Some(vec![key])
}

fn exchanged(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let one = any(answered(history, |_, _| true), seeded)?;
    let key = history.submissions[one].key.clone();
    let other = any(answered(history, |submission, _| submission.key != key), seeded)?;
    let answer = history.submissions[one].answer.clone();
    history.submissions[one].answer = std::mem::replace(&mut history.submissions[other].answer, answer);
    Some(vec![key, history.submissions[other].key.clone()])
}

fn missed_mismatch(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, finished| !finished.same), seeded)?;
    finish(&mut history.submissions[index]).same = true;
    Some(vec![history.submissions[index].key.clone()])
}

fn false_mismatch(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, finished| finished.same && finished.replayed), seeded)?;
    finish(&mut history.submissions[index]).same = false;
    Some(vec![history.submissions[index].key.clone()])
}

fn mismatched_first(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, finished| !finished.replayed), seeded)?;
    finish(&mut history.submissions[index]).same = false;
    Some(vec![history.submissions[index].key.clone()])
}

fn two_firsts(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let has_first = |key: &str| of_key(history, key).filter_map(finished).any(|finished| !finished.replayed);
    let index = any(answered(history, |one, finished| finished.replayed && has_first(&one.key)), seeded)?;
    finish(&mut history.submissions[index]).replayed = false;
    Some(vec![history.submissions[index].key.clone()])
}

fn not_replayed(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let known = |late: &Submission| {
        of_key(history, &late.key).any(|one| finished(one).is_some() && one.ended < late.started)
    };
    let index = any(answered(history, |one, finished| finished.replayed && known(one)), seeded)?;
    let late = history.submissions[index].clone();
    for one in history.submissions.iter_mut().filter(|one| one.key == late.key) {
        if let Answer::Finished(finished) = &mut one.answer {
            finished.replayed = true;
        }
    }
    finish(&mut history.submissions[index]).replayed = false;
    Some(vec![late.key])
}

fn stale(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let later = history.effects.iter().filter(|effect| effect.generation > 0 && effect.fingerprint.is_some());
    let later = any(later.cloned().collect(), seeded)?;
    let has_later = of_key(history, &later.key)
        .any(|one| finished(one).is_some_and(|finished| finished.outcome == later.outcome));
    let first = history.effects.iter().find(|one| one.key == later.key && one.generation == 0)?;
    let answer = Answer::Finished(Finished {
        outcome: first.outcome.clone(),
        replayed: true,
        same: true,
        generation: None,
    });
    let fingerprint = first.fingerprint?;
    let key = later.key;
    history.submissions.push(Submission { key: key.clone(), fingerprint, started: 900, ended: 901, answer });
    has_later.then(|| vec![key])
}

fn in_progress_alone(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let settled = |key: &str| {
        of_key(history, key).all(|one| matches!(one.answer, Answer::Finished(_) | Answer::Mismatch))
    };
    let index = any(answered(history, |one, _| settled(&one.key)), seeded)?;
    let late = Submission {
        started: 900,
        ended: 901,
        answer: Answer::InProgress,
        ..history.submissions[index].clone()
    };
    history.submissions.push(late.clone());
    Some(vec![late.key])
}

fn mismatch_alone(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let one_payload = |submission: &Submission| {
        of_key(history, &submission.key).all(|one| one.fingerprint == submission.fingerprint)
    };
    let index = any(answered(history, |one, _| one_payload(one)), seeded)?;
    let late = Submission {
        started: 900,
        ended: 901,
        answer: Answer::Mismatch,
        ..history.submissions[index].clone()
    };
    history.submissions.push(late.clone());
    Some(vec![late.key])
}

fn announced_twice(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let announcement = any(history.announcements.clone(), seeded)?;
    history.announcements.push(announcement.clone());
    Some(vec![announcement.key])
}

fn announced_nothing(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let key = any(history.effects.clone(), seeded)?.key;
    history.announcements.push(Announcement { key: key.clone(), generation: 99 });
    Some(vec![key])
}

fn disordered(history: &mut History, seeded: &mut Seeded) -> Option<Vec<String>> {
    let index = any(answered(history, |_, _| true), seeded)?;
    let submission = &mut history.submissions[index];
    submission.ended = submission.started - 1;
    Some(vec![submission.key.clone()])
}
