//! What was sent and what was told, one line a try: the senders' side of the history.

use anyhow::{Context as _, Result};
use kernel::{Digest, Fingerprint};
use serde_json::Value as Json;
use testkit::history::{Answer, Finished, Submission};

use crate::lab::event::{self, Event, Report};
use crate::lab::wire;

/// Where the stored outcome begins in an answer: what stands before it belongs to this one arrival.
const OUTCOME: &str = "\"created_at\":";
/// What the sample charges, and what its altered twin does.
const AMOUNT: (&str, &str) = ("\"amount_total\": 2000", "\"amount_total\": 2001");

/// What a delivery says of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saying {
    /// The event, as ever.
    Same,
    /// The same change under another event id.
    SecondId,
    /// Another amount under the known event id.
    OtherPayload,
}

/// A delivery that can be sent any number of times.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) event: Event,
    fingerprint: Fingerprint,
}

/// One try.
#[derive(Clone, Debug)]
pub(super) struct Try {
    /// The event's id at the sender.
    pub(super) event: String,
    fingerprint: Fingerprint,
    /// Microseconds since the load began.
    started: u64,
    ended: u64,
    /// HTTP status of a whole answer.
    status: Option<u16>,
    /// The machine's word in a problem.
    pub(super) code: Option<String>,
    answer: Answer,
}

impl Delivery {
    /// What is said of change number `number`.
    ///
    /// # Errors
    /// The sample event can't be used.
    pub(super) fn of(number: u64, saying: Saying) -> Result<Self> {
        let report = if saying == Saying::SecondId { Report::Second } else { Report::First };
        let mut event = event::checkout(number, report)?;
        if saying == Saying::OtherPayload {
            let text = String::from_utf8(event.body)?;
            anyhow::ensure!(text.contains(AMOUNT.0), "the sample lost its amount");
            event.body = text.replacen(AMOUNT.0, AMOUNT.1, 1).into_bytes();
        }
        let fingerprint = Digest::of(&event.body);
        Ok(Self { event, fingerprint })
    }

    /// The request, signed now.
    ///
    /// # Errors
    /// The secret is none; it is fixed, so never.
    pub(super) fn request(&self) -> Result<Vec<u8>> {
        event::delivery(&self.event, crate::lab::now())
    }

    /// How a try of it ended.
    pub(super) fn ended(&self, (started, ended): (u64, u64), end: Result<wire::Answer>) -> Try {
        let mut one = Try {
            event: self.event.id.clone(),
            fingerprint: self.fingerprint,
            started,
            ended,
            status: None,
            code: None,
            answer: Answer::Unknown,
        };
        let Ok(told) = end else { return one };
        let json = told.json();
        one.status = Some(told.status);
        one.code = json.get("code").and_then(Json::as_str).map(ToOwned::to_owned);
        if told.status == 200
            && let Some((_, outcome)) = told.text().split_once(OUTCOME)
        {
            one.answer = Answer::Finished(Finished {
                outcome: outcome.as_bytes().to_vec(),
                replayed: told.header("idempotent-replayed") == Some("true"),
                same: json.get("payload_differs").is_none(),
                generation: None,
            });
        } else if one.code.as_deref() == Some("EVENT_IN_PROGRESS") {
            one.answer = Answer::InProgress;
        }
        one
    }
}

impl Try {
    /// The sender will not come again.
    pub(super) fn is_acknowledged(&self) -> bool {
        matches!(self.answer, Answer::Finished(_))
    }

    /// As the checker wants it. While strangers hold locks of our keys, "in progress" can be said with
    /// nobody at work: then it counts as no answer.
    pub(super) fn submission(&self, excuse: Excuse) -> Submission {
        let answer = match (&self.answer, excuse) {
            (Answer::InProgress, Excuse::KeysHeld) => Answer::Unknown,
            (answer, _) => answer.clone(),
        };
        Submission {
            key: self.event.clone(),
            fingerprint: self.fingerprint,
            started: self.started,
            ended: self.ended,
            answer,
        }
    }

    /// A status that no sender of ours may be told, with the machine's word.
    pub(super) fn strange(&self, excuse: Excuse) -> Option<(u16, &str)> {
        let (status, code) = (self.status?, self.code.as_deref().unwrap_or_default());
        let excused = match (status, excuse) {
            (200 | 503, _) => true,
            (400, Excuse::ClockJumps) => ["SIG_STALE", "SIG_FUTURE"].contains(&code),
            _ => false,
        };
        (!excused).then_some((status, code))
    }
}

/// What a kind of fault makes right that would else be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Excuse {
    /// Nothing.
    #[default]
    None,
    /// A session of another program holds locks of our keys.
    KeysHeld,
    /// A node's clock jumps: until it sees that, it finds right signatures too old or too young.
    ClockJumps,
}

/// What every answer of an event must carry, from its record.
///
/// # Errors
/// The record has another shape than an outcome.
pub(super) fn kept_outcome(body: &str) -> Result<Vec<u8>> {
    let (_, outcome) = body.split_once(OUTCOME).context("a stored outcome without its beginning")?;
    Ok(outcome.as_bytes().to_vec())
}

/// The fingerprint of the delivery that became the result, by which the checker tells payloads apart.
pub(super) fn kept_fingerprint(payload_hash: &str) -> Option<Fingerprint> {
    Digest::from_slice(&hex::decode(payload_hash).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u16, body: &str) -> wire::Answer {
        wire::Answer { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    #[test]
    fn what_belongs_to_the_arrival_is_no_part_of_the_outcome() {
        let delivery = Delivery::of(7, Saying::Same).unwrap();
        let answer = told(200, r#"{"arrivals":3,"status":"x","created_at":"t","event_id":"e"}"#);
        let one = delivery.ended((1, 2), Ok(answer));
        let Answer::Finished(finished) = one.submission(Excuse::None).answer else { panic!("{one:?}") };
        assert_eq!(finished.outcome, kept_outcome(r#"{"created_at":"t","event_id":"e"}"#).unwrap());
        assert!(finished.same && !finished.replayed);
    }

    #[test]
    fn another_payload_has_another_fingerprint_under_the_same_id() {
        let [one, other, second] =
            [Saying::Same, Saying::OtherPayload, Saying::SecondId].map(|it| Delivery::of(7, it).unwrap());
        assert_eq!(one.event.id, other.event.id);
        assert_ne!(one.fingerprint, other.fingerprint);
        assert_ne!(one.event.id, second.event.id);
    }

    #[test]
    fn a_stranger_s_lock_makes_in_progress_no_answer() {
        let delivery = Delivery::of(7, Saying::Same).unwrap();
        let one = delivery.ended((1, 2), Ok(told(503, r#"{"code":"EVENT_IN_PROGRESS"}"#)));
        assert_eq!(one.submission(Excuse::None).answer, Answer::InProgress);
        assert_eq!(one.submission(Excuse::KeysHeld).answer, Answer::Unknown);
        assert!(!one.is_acknowledged() && one.strange(Excuse::None).is_none());
    }

    #[test]
    fn a_right_delivery_may_be_refused_only_by_a_clock_that_jumps() {
        let delivery = Delivery::of(7, Saying::Same).unwrap();
        let one = delivery.ended((1, 2), Ok(told(400, r#"{"code":"SIG_STALE"}"#)));
        assert_eq!(one.strange(Excuse::None), Some((400, "SIG_STALE")));
        assert_eq!(one.strange(Excuse::ClockJumps), None);
    }
}
