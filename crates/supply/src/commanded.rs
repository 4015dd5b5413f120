//! The one place where an action becomes a command of the door. Audit, invariants, outbox, codes and stored answers are
//! added here, and whether its supplier may write is asked, so that an action can't forget them.

use door::{AuditRow, Command, Decision, Failure, Form, Repeat, Ruling, Steps};
use kernel::{Outcome, Time};
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Raise, RaiseKind, Row, Value, values};

use crate::action::{Action, Change, Context, Refusal, Stop, text};
use crate::caller::Capacity;
use crate::code::{Code, Invariant};
use crate::exact::Details;
use crate::{books, exit, standing};

/// Status words of `supply_idempotency_record`.
const SUCCEEDED: &str = "succeeded";
const FAILED: &str = "failed";
/// The detail that `Retry-After` is made of.
const AGAIN: &str = "retry_after_seconds";

/// An action of a caller, on its way to the door.
#[derive(Clone, Debug)]
pub struct Commanded<A> {
    /// Who asks.
    pub context: Context,
    /// For what.
    pub action: A,
}

impl<A: Action> Commanded<A> {
    /// What the rows say to the action, and why its supplier may not write.
    fn seen(&self, loaded: &[Vec<Row>]) -> Result<(A::State, Option<Refusal>), Error> {
        let (own, blocked) = standing::split(&self.context, &self.action, loaded)?;
        Ok((self.action.read(&self.context, own)?, blocked))
    }

    fn ruled(
        &self,
        prepared: &A::Prepared,
        (state, blocked): (&A::State, Option<Refusal>),
        at: Time,
    ) -> Result<Change, Stop> {
        let change = self.action.decide(&self.context, prepared, state, at)?;
        Ok(standing::judged(change, &self.action, blocked)?)
    }

    /// With what the audit says of what was prepared, in the command's own row.
    fn noted(&self, prepared: &A::Prepared, mut decision: Decision) -> Decision {
        let Json::Object(noted) = self.action.noted(&self.context, prepared) else { return decision };
        let own = decision.audit.iter_mut().filter(|row| row.event_name == self.action.event());
        for metadata in own.filter_map(|row| row.metadata.as_object_mut()) {
            metadata.extend(noted.clone());
        }
        decision
    }

    fn changed(&self, change: Change, at: Time) -> Decision {
        let Change { audited_as, object, before, after, metadata, writes, audit: more, events, status, data } =
            change;
        let mut audit = self.context.caller.audit(audited_as.unwrap_or_else(|| self.action.event()), &object);
        audit.action = self.action.event();
        (audit.before_state, audit.after_state, audit.metadata) = (before, after, metadata);
        let body = format!(r#"{{"data":{data}}}"#);
        Decision {
            status: SUCCEEDED,
            facts: self.facts(),
            ruling: Ruling::Formal(Outcome { code: status, body }),
            writes,
            audit: [vec![audit], more].concat(),
            outbox: events.into_iter().map(|event| event.row(&self.context, at)).collect(),
        }
    }

    fn refused(&self, refusal: Refusal, lost_race: LostRace, at: Time) -> Result<Decision, Error> {
        let Refusal { code, rule, object, before, details, writes } = refusal;
        let details = match rule {
            Some(rule) => details.with("rule_code", rule.as_str()),
            None => details,
        };
        // For whoever asked: the state was another one when they looked. And for who counts (section 18).
        let details = match lost_race {
            LostRace::Yes => details.with("lost_race", true),
            LostRace::Again => details.with("lost_race", true).with("retryable", true),
            LostRace::No => details,
        };
        let details = match code.come_again().filter(|_| details.get(AGAIN).is_none()) {
            Some(seconds) => details.with(AGAIN, seconds),
            None => details,
        };
        let object = object.unwrap_or_else(|| self.action.object());
        let row = |name| {
            let mut row = self.context.caller.audit(name, &object);
            row.action = self.action.event();
            row.result_code = code.as_str().into();
            row.rule_code = rule.map(Invariant::as_str);
            (row.before_state, row.after_state) = (before.clone(), before.clone());
            row.metadata = json!({ "details": details.plain(), "lost_race": lost_race != LostRace::No });
            row
        };
        let violation = rule.map(|_| row("invariant_violation"));
        let alert = (rule == Some(Invariant::Set003)).then(|| crate::alert::unbalanced(&object, code));
        let (message, message_zh) = (code.message(), code.message_zh());
        let error = ErrorBody { code: code.as_str(), message, message_zh, details: &details };
        let body = match text(&Body { error }) {
            Ok(body) => body,
            Err(Stop::Broken(error)) => return Err(error),
            Err(Stop::Refused(_)) => String::new(),
        };
        let outcome = Outcome { code: code.status(), body };
        let passes = code.is_passing() || lost_race == LostRace::Again;
        let ruling = if passes { Ruling::Passing(outcome) } else { Ruling::Formal(outcome) };
        let refused = (!self.is_done_elsewhere(code)).then(|| row(self.action.event()));
        let audit: Vec<AuditRow> = violation.into_iter().chain(refused).collect();
        let outbox = alert.into_iter().map(|event| event.row(&self.context, at)).collect();
        Ok(Decision { status: FAILED, facts: self.facts(), ruling, writes, audit, outbox })
    }

    /// Whether another node was faster with what came due.
    fn is_done_elsewhere(&self, code: Code) -> bool {
        let is_system = self.context.caller.capacity == Capacity::System;
        is_system && self.action.comes_due() && is_of_state(code)
    }

    fn stopped(&self, stop: Stop, at: Time) -> Result<Decision, Error> {
        match stop {
            Stop::Refused(refusal) => self.refused(*refusal, LostRace::No, at),
            Stop::Broken(error) => Err(error),
        }
    }
}

/// Whether a refusal came of somebody who was faster, which counts against the service (section 18).
#[derive(Clone, Copy, PartialEq, Eq)]
enum LostRace {
    /// Their doing refuses it now.
    Yes,
    /// The state would still allow it (its version was raised, by a rewrap say): the key stays open, ask again.
    Again,
    No,
}

/// The object's state does not allow it.
fn is_of_state(code: Code) -> bool {
    [Code::AccState, Code::ComState, Code::OrdState, Code::PkgState, Code::SetState].contains(&code)
}

#[derive(Serialize)]
struct Body<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: &'static str,
    message: &'static str,
    message_zh: &'static str,
    details: &'a Details,
}

impl<A: Action> Command for Commanded<A> {
    type Prepared = A::Prepared;

    fn form(&self) -> Form {
        self.action.form(&self.context)
    }

    fn prepares(&self) -> bool {
        self.action.prepares()
    }

    async fn prepare(&self, steps: &Steps) -> Result<A::Prepared, Failure> {
        self.action.prepare(&self.context, steps).await
    }

    fn facts(&self) -> Vec<Value> {
        values![&self.context.caller.request_id]
    }

    fn load(&self, prepared: &A::Prepared) -> Vec<Query> {
        let mut loads = self.action.load(&self.context, prepared);
        loads.extend(standing::query(&self.context, &self.action));
        loads
    }

    fn decide(&self, prepared: &A::Prepared, loaded: &[Vec<Row>], at: Time) -> Result<Decision, Error> {
        let (state, blocked) = self.seen(loaded)?;
        let decision = match self.ruled(prepared, (&state, blocked), at) {
            Ok(change) => self.changed(change, at),
            Err(stop) => self.stopped(stop, at)?,
        };
        exit::guarded(&self.context.house, self.noted(prepared, decision))
    }

    /// The state has changed since: what refuses now is the answer; where nothing does, somebody was faster.
    fn raised(
        &self,
        prepared: &A::Prepared,
        raise: &Raise,
        loaded: &[Vec<Row>],
        at: Time,
    ) -> Result<Decision, Error> {
        let (state, blocked) = self.seen(loaded)?;
        let (mut lost_race, mut is_allowed) = (LostRace::Yes, false);
        let refusal = match self.ruled(prepared, (&state, blocked), at) {
            Err(Stop::Refused(refusal)) => Some(*refusal),
            Err(Stop::Broken(error)) => return Err(error),
            // A value that its column does not take is nobody's speed; only a broken invariant is behind it, or nothing.
            Ok(_) => {
                is_allowed = true;
                let refusal = self.action.outrun(raise.write, &state);
                let refusal = refusal.or_else(|| books::unbalanced(raise.write));
                refusal.filter(|refusal| raise.kind != RaiseKind::Rule || refusal.rule.is_some())
            }
        };
        match refusal {
            Some(refusal) => {
                if refusal.rule == Some(Invariant::Set003) {
                    // What does not add up is nobody's speed.
                    lost_race = LostRace::No;
                } else if is_allowed && is_of_state(refusal.code) {
                    lost_race = LostRace::Again;
                }
                let decision = self.refused(refusal, lost_race, at)?;
                exit::guarded(&self.context.house, self.noted(prepared, decision))
            }
            None => Err(Error::Raised(raise.clone())),
        }
    }

    /// A repeat leaves one audit row: what was repeated, or that it differs.
    fn repeat_audit(&self, repeat: &Repeat, _at: Time) -> Vec<AuditRow> {
        let (name, code) = if repeat.same {
            ("idempotency.replayed", "OK")
        } else {
            ("idempotency.payload_mismatch", "IDEMPOTENCY_PAYLOAD_MISMATCH")
        };
        let mut row = self.context.caller.audit(name, &self.action.object());
        row.action = self.action.event();
        row.result_code = code.into();
        row.metadata = json!({ "record": repeat.record, "replayed_status": repeat.outcome.code });
        vec![row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, context};
    use crate::{Capacity, Code};

    #[test]
    fn who_was_only_slower_may_ask_again_under_the_same_key() {
        let action = crate::settlements::Cancel { settlement_id: 5 };
        let command = Commanded { context: context(Capacity::User), action };
        for code in Code::ALL.iter().copied().filter(|code| is_of_state(*code)) {
            assert_eq!(code.status(), 409);
            let decision = command.refused(Refusal::of(code), LostRace::Again, NOW).unwrap();
            let Ruling::Passing(outcome) = &decision.ruling else { panic!("{decision:?}") };
            assert!(outcome.body.contains(r#""lost_race":true,"retryable":true"#), "{}", outcome.body);
            let decision = command.refused(Refusal::of(code), LostRace::Yes, NOW).unwrap();
            assert!(matches!(decision.ruling, Ruling::Formal(_)), "{decision:?}");
        }
    }

    #[test]
    fn whatever_may_be_sent_again_says_when() {
        let action = crate::accounts::Activate { account_id: 5 };
        let command = Commanded { context: context(Capacity::User), action };
        let mut later = 0;
        for code in Code::ALL.iter().copied() {
            let decision = command.refused(Refusal::of(code), LostRace::No, NOW).unwrap();
            let body = match (&decision.ruling, code.is_passing()) {
                (Ruling::Passing(outcome), true) | (Ruling::Formal(outcome), false) => &outcome.body,
                other => panic!("{code:?}: {other:?}"),
            };
            let body: Json = serde_json::from_str(body).unwrap();
            let seconds = body["error"]["details"][AGAIN].as_i64();
            assert_eq!(
                seconds.is_some_and(|seconds| seconds > 0),
                matches!(code.status(), 429 | 503),
                "{code:?}"
            );
            later += usize::from(seconds.is_some());
        }
        assert!(later >= 4);
        let known = Refusal::of(Code::SetCooling).with(AGAIN, 77);
        let decision = command.refused(known, LostRace::No, NOW).unwrap();
        let Ruling::Passing(outcome) = &decision.ruling else { panic!("{decision:?}") };
        assert!(outcome.body.ends_with(r#""details":{"retry_after_seconds":77}}}"#), "{}", outcome.body);
    }
}
