//! What the history checker accepts, and what only a hand-made history shows.

use kernel::Fingerprint;
use testkit::history::{Answer, Effect, Finished, History, Kind, Submission};

use crate::model::right;

fn submission(span: (u64, u64), payload: &[u8], answer: Answer) -> Submission {
    let (started, ended) = span;
    Submission { key: "k".into(), fingerprint: Fingerprint::of(payload), started, ended, answer }
}

fn answer(outcome: &str, replayed: bool, same: bool) -> Answer {
    Answer::Finished(Finished { outcome: outcome.into(), replayed, same, generation: None })
}

fn effect(outcome: &str, generation: u32) -> Effect {
    let id = format!("{outcome}/{generation}");
    Effect { key: "k".into(), outcome: outcome.into(), id, fingerprint: None, generation }
}

fn kinds(submissions: &[Submission], effects: &[Effect]) -> Vec<Kind> {
    let history =
        History { submissions: submissions.to_vec(), effects: effects.to_vec(), announcements: Vec::new() };
    history.anomalies().into_iter().map(|anomaly| anomaly.kind).collect()
}

#[test]
fn histories_of_a_server_that_does_it_right_have_no_anomaly() {
    for seed in 0..2_000 {
        let history = right(seed, 12);
        assert_eq!(history.anomalies(), [], "seed {seed}");
    }
}

#[test]
fn an_empty_history_is_good_and_says_how_small_it_is() {
    let history = History::default();
    assert_eq!(history.anomalies(), []);
    assert!(history.summary().starts_with("0 submissions of 0 keys, 0 finished"));
}

#[test]
fn an_effect_may_stand_whose_answer_nobody_got() {
    assert_eq!(kinds(&[submission((1, 2), b"a", Answer::Unknown)], &[effect("x", 0)]), []);
}

#[test]
fn who_overlaps_the_first_may_be_a_replay_or_be_told_in_progress() {
    let first = submission((1, 9), b"a", answer("x", false, true));
    let twin = submission((2, 3), b"a", answer("x", true, true));
    let early = submission((2, 3), b"a", Answer::InProgress);
    assert_eq!(kinds(&[first, twin, early], &[effect("x", 0)]), []);
}

#[test]
fn somebody_whose_client_left_may_still_be_at_work() {
    let left = submission((1, 2), b"a", Answer::Unknown);
    let later = submission((5, 6), b"a", Answer::InProgress);
    assert_eq!(kinds(&[left.clone(), later.clone()], &[]), []);
    let done = submission((1, 2), b"a", answer("x", false, true));
    assert_eq!(kinds(&[done, later], &[effect("x", 0)]), [Kind::InProgressAlone]);
}

#[test]
fn another_payload_that_came_later_explains_no_mismatch() {
    let early = submission((1, 2), b"a", Answer::Mismatch);
    let late = submission((3, 4), b"b", answer("x", false, true));
    assert_eq!(kinds(&[early, late], &[effect("x", 0)]), [Kind::MismatchAlone]);
}

#[test]
fn without_a_kept_fingerprint_the_first_answer_says_whose_effect_it_is() {
    let first = submission((1, 2), b"a", answer("x", false, true));
    let other = submission((3, 4), b"b", answer("x", true, true));
    assert_eq!(kinds(&[first.clone(), other], &[effect("x", 0)]), [Kind::MissedMismatch]);
    let other = submission((3, 4), b"b", answer("x", true, false));
    assert_eq!(kinds(&[first, other], &[effect("x", 0)]), []);
}

#[test]
fn the_same_bytes_in_two_generations_have_two_firsts_and_no_third() {
    let sent = |count: u64| -> Vec<Submission> {
        (0..count).map(|at| submission((at * 2, at * 2 + 1), b"a", answer("x", false, true))).collect()
    };
    let effects = [effect("x", 0), effect("x", 1)];
    assert_eq!(kinds(&sent(2), &effects), []);
    assert_eq!(kinds(&sent(3), &effects), [Kind::TwoFirsts]);
}

#[test]
fn an_anomaly_says_what_was_seen() {
    let history = History {
        submissions: vec![submission((1, 2), b"a", answer("200 {}", false, true))],
        ..History::default()
    };
    let told: Vec<String> = history.anomalies().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["Lost: key k: the submission 1..2 was answered \"200 {}\", the store holds no effect"]);
}
