//! The guard at a transaction's end (section 15.1, layer 2): the answer that would be stored, the audit rows and the
//! outbox rows are looked at before they are written; a credential in one of them fails the whole transaction. Not
//! here: what is sent over HTTP (the edge looks at that once more), and what a credential looks like (`guard`).

mod quiet;

use std::fmt::Write as _;

use door::{AuditRow, Decision, Door, Failure, OutboxRow};
use guard::{Exposure, Guard};
use kernel::{Outcome, Time};
use serde_json::json;
use store::{Error, Row, Write};

use crate::action::Context;
use crate::alert::{self, Level};
use crate::caller::{Caller, Object, PLATFORM};
use crate::house::House;

pub use quiet::Quiet;

/// Counter of answers, rows and lines that were withheld because a credential was about to leave with them.
pub const BLOCKED: &str = "onceseal_credential_exposure_blocked_total";
/// Counter of those that were not told, because the same was told a moment ago.
pub const UNTOLD: &str = "onceseal_credential_exposure_untold_total";
/// The statement that is named in the error of a transaction that the guard failed.
const GUARDED: &str = "guard.exit";
/// Fields are told apart by route only where a route has exceptions; no transaction has one.
const NO_ROUTE: &str = "";

/// The audit's name for a credential that was about to leave with an answer.
pub const IN_RESPONSE: &str = "CRED-EXPOSE-RESPONSE";
/// In the audit itself.
pub const IN_LOG: &str = "CRED-EXPOSE-LOG";
/// In what the outbox tells others.
pub const IN_WEBHOOK: &str = "CRED-EXPOSE-WEBHOOK";

/// In a file that is made for somebody.
pub const IN_EXPORT: &str = "CRED-EXPOSE-EXPORT";

/// A credential that was about to leave: where, by which rule, and the HMAC of the match; never the match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    event: &'static str,
    location: String,
    rule: String,
    mac: String,
}

impl Withheld {
    /// Of what the guard says about one of the exits above.
    #[must_use]
    pub fn new(event: &'static str, exposure: &Exposure) -> Self {
        let mac = exposure.mac.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self { event, location: exposure.location.clone(), rule: exposure.rule.to_owned(), mac }
    }

    /// What failed this submission, if it was the guard.
    #[must_use]
    pub fn of(failure: &Failure) -> Option<Self> {
        let Failure::Store(Error::Statement { name: GUARDED, cause }) = failure else { return None };
        let mut words = cause.split(' ');
        let (event, location) = (words.next()?, words.next()?);
        let event = [IN_RESPONSE, IN_LOG, IN_WEBHOOK].into_iter().find(|known| *known == event)?;
        let (rule, mac) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some(Self { event, location: location.to_owned(), rule, mac })
    }

    /// As an error of the store, which undoes the transaction. Its text has no blank inside a word: locations are
    /// constants and paths of fields.
    fn undoing(&self) -> Error {
        let Self { event, location, rule, mac } = self;
        Error::Statement { name: GUARDED, cause: format!("{event} {location} {rule} {mac}") }
    }

    /// Counts it; audits it and raises the P0 alert, in a transaction of its own.
    ///
    /// # Errors
    /// The store can't take them: the caller logs that, and withholds the answer all the same. It is counted.
    pub async fn tell(&self, door: &Door, context: &Context, object: &Object) -> Result<(), Failure> {
        metrics::counter!(BLOCKED).increment(1);
        self.on_record(door, (context, object), 0).await
    }

    /// As [`Withheld::tell`], for what a sender may bring about as often as it likes: the same of one operator is told
    /// once a minute, and the next row says how many were left out.
    ///
    /// # Errors
    /// As [`Withheld::tell`].
    pub async fn tell_once(
        &self,
        quiet: &Quiet,
        door: &Door,
        (context, object): (&Context, &Object),
    ) -> Result<(), Failure> {
        metrics::counter!(BLOCKED).increment(1);
        let of = (context.caller.operator_id, self.location.as_str(), self.rule.as_str());
        match quiet.lets(of, context.house.clock.now()) {
            Some(left_out) => self.on_record(door, (context, object), left_out).await,
            None => {
                metrics::counter!(UNTOLD).increment(1);
                Ok(())
            }
        }
    }

    async fn on_record(
        &self,
        door: &Door,
        (context, object): (&Context, &Object),
        left_out: u64,
    ) -> Result<(), Failure> {
        let Self { event, location, rule, mac } = self;
        let mut row = context.caller.audit(event, object);
        row.result_code = "SUP_COM_5002".into();
        row.metadata = json!({ "blocked": true, "rule": rule, "location": location, "mac": mac });
        if let (1.., Some(metadata)) = (left_out, row.metadata.as_object_mut()) {
            metadata.insert("left_out".into(), left_out.into());
        }
        // It may be the key that was exposed.
        let guard = context.house.guard.as_deref();
        row.idempotency_key.take_if(|key| guard.is_some_and(|guard| !guard.passes(key)));
        let system = Context { caller: Caller::system(PLATFORM, "alert"), house: context.house.clone() };
        let (random, object) = (door.random(), object.clone());
        let plan = move |_: Vec<Vec<Row>>, now: Time| {
            let raised = alert::raised(Level::P0, "credential_exposure_blocked", &object);
            let mut writes: Vec<Write> = vec![row.clone().write(now, &*random)];
            writes.extend(raised.told(&system, now).writes(now, &*random));
            Ok((writes, ()))
        };
        door.maintain("exposure", Vec::new(), plan).await.map(|_| ())
    }
}

/// A decision that may be written: nothing in its answer, its audit or its outbox looks like a credential.
///
/// # Errors
/// [`Error::Statement`], which undoes everything; [`Withheld::of`] reads it.
pub(crate) fn guarded(house: &House, decision: Decision) -> Result<Decision, Error> {
    let Some(guard) = house.guard.as_deref() else { return Ok(decision) };
    if let Some(Outcome { body, .. }) = decision.ruling.outcome() {
        let verdict = guard.body(NO_ROUTE, "outcome", body.as_bytes());
        verdict.clean().map_err(|exposure| Withheld::new(IN_RESPONSE, &exposure).undoing())?;
    }
    told(guard, &decision.audit, &decision.outbox)?;
    Ok(decision)
}

/// As [`guarded`], of rows that are written without a decision: slices of a batch, refusals before the door.
///
/// # Errors
/// As [`Withheld::of`] reads it.
pub fn rows(house: &House, audit: &[AuditRow], outbox: &[OutboxRow]) -> Result<(), Error> {
    house.guard.as_deref().map_or(Ok(()), |guard| told(guard, audit, outbox))
}

fn told(guard: &Guard, audit: &[AuditRow], outbox: &[OutboxRow]) -> Result<(), Error> {
    for row in audit {
        let fields = json!({
            "object_id": row.object_id, "request_id": row.request_id, "idempotency_key": row.idempotency_key,
            "before_state": row.before_state, "after_state": row.after_state, "metadata": row.metadata,
            "user_agent": row.user_agent,
        });
        let verdict = guard.json(NO_ROUTE, "audit", &fields);
        verdict.clean().map_err(|exposure| Withheld::new(IN_LOG, &exposure).undoing())?;
    }
    for row in outbox {
        let verdict = guard.json(NO_ROUTE, "outbox", &row.payload);
        verdict.clean().map_err(|exposure| Withheld::new(IN_WEBHOOK, &exposure).undoing())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use guard::Scanner;

    use super::*;
    use crate::fixtures::{context, house};
    use crate::{Capacity, Event};

    fn guarding() -> House {
        let guard = Guard::new(Scanner::standard().unwrap(), Vec::new(), &[7; 32]);
        House { guard: Some(Arc::new(guard)), ..house() }
    }

    fn canary() -> String {
        format!("sk-{}", "Q7".repeat(24))
    }

    /// A decision with a text in its answer, its audit and its outbox.
    fn decision([body, audited, told]: [&str; 3]) -> Decision {
        let context = context(Capacity::User);
        let object = Object::row("supply_package", 17);
        let mut row = context.caller.audit("supply.package.publish", &object);
        row.metadata = json!({ "note": [{ "text": audited }] });
        let (name, version, before) = ("supply.package.publish.succeeded", 1, json!({}));
        let event = Event { name, object, version, before, after: json!({ "note": told }) };
        Decision {
            status: "succeeded",
            facts: Vec::new(),
            ruling: door::Ruling::Formal(Outcome {
                code: 200,
                body: json!({ "data": { "x": body } }).to_string(),
            }),
            writes: Vec::new(),
            audit: vec![row],
            outbox: vec![event.row(&context, Time::from_seconds(0))],
        }
    }

    #[test]
    fn a_credential_in_answer_audit_or_outbox_undoes_the_transaction_and_is_not_told() {
        let canary = canary();
        let cases = [
            ([canary.as_str(), "", ""], IN_RESPONSE, "outcome/data/x"),
            (["", canary.as_str(), ""], IN_LOG, "audit/metadata/note/0/text"),
            (["", "", canary.as_str()], IN_WEBHOOK, "outbox/after_state/note"),
        ];
        for (texts, event, location) in cases {
            let error = guarded(&guarding(), decision(texts)).unwrap_err();
            assert!(!guard::canary::contains_run(&error.to_string(), &canary, 8), "{error}");
            let withheld = Withheld::of(&Failure::Store(error)).unwrap();
            assert_eq!((withheld.event, withheld.location.as_str()), (event, location));
            assert_eq!((withheld.rule.as_str(), withheld.mac.len()), ("sk_generic", 64));
        }
    }

    #[test]
    fn what_holds_none_passes_and_a_house_without_a_guard_asks_nobody() {
        assert!(guarded(&guarding(), decision(["a", "b", "c"])).is_ok());
        assert!(guarded(&house(), decision([&canary(), "", ""])).is_ok());
        let other = Failure::Store(Error::Statement { name: "x", cause: "a b c d".into() });
        assert_eq!(Withheld::of(&other), None);
    }

    #[test]
    fn a_part_of_a_live_secret_is_enough() {
        let house = guarding();
        house.guard.as_ref().unwrap().remember("account:5", "zx81-Quick4Brown7Foxes9Jump").unwrap();
        let error = guarded(&house, decision(["", "see Quick4Brown7", ""])).unwrap_err();
        let withheld = Withheld::of(&Failure::Store(error)).unwrap();
        assert_eq!(withheld.rule, guard::FRAGMENT);
    }
}
