//! The rows that an event leaves behind beside its certificate: arrival, states passed through, words
//! to be found by, raw payload.

use std::time::Duration;

use kernel::{Digest, Time};
use store::{Value, Write, values};

use crate::command::{Arrival, Arrives, CertifyEvent, Prepared};
use crate::policy::{Shown, masked};
use crate::sql;

/// Which of the optional facts a row keeps.
#[derive(Clone, Copy, Default)]
pub(crate) struct RowFacts<'a> {
    pub(crate) input: bool,
    pub(crate) reason: Option<&'a str>,
    pub(crate) certificate_event: Option<i64>,
}

impl CertifyEvent {
    /// Arrival, states passed through, words to be found by, raw payload.
    pub(crate) fn settled_rows(
        &self,
        verdict: &'static str,
        prepared: &Prepared,
        at: Time,
        note: Option<&str>,
    ) -> Vec<Write> {
        let mut writes = self.arrived(verdict);
        writes.push(match verdict {
            "received" => self.pass("received", self.arrival.received_at, note),
            "failed" => self.passed(["received", "processing", "failed"], prepared.began, at, note),
            _ => self.passed(["received", "processing", "processed"], prepared.began, at, note),
        });
        writes.extend(self.found_by());
        if let Some(body) = &self.payload {
            let days = u64::from(self.shared.policy.keep_payload_days.min(400));
            let until = at.plus(Duration::from_secs(days * 86_400));
            let row = values![body.to_vec(), until, &self.identity.reference];
            writes.push(Write::any("payloads.insert", sql::KEEP_PAYLOAD, row));
        }
        writes
    }

    pub(crate) fn found_by(&self) -> impl Iterator<Item = Write> {
        let row = |word| values![word, &self.identity.reference];
        self.words().into_iter().map(move |word| Write::any("search.insert", sql::FIND_BY, row(word)))
    }

    pub(crate) fn arrived(&self, verdict: &'static str) -> Vec<Write> {
        self.arrive(verdict, false).into_iter().collect()
    }

    /// The row of this arrival, if it is one.
    pub(crate) fn arrive(&self, verdict: &'static str, differs: bool) -> Option<Write> {
        let reference = &self.identity.reference;
        match self.arrives {
            Arrives::No => None,
            Arrives::Now => Some(arrive(&self.arrival, reference, verdict, differs)),
            Arrives::Again(n) => {
                let row = values![verdict, differs, n, reference];
                Some(Write::one("arrivals.insert", sql::ARRIVE_AGAIN, row))
            }
        }
    }

    pub(crate) fn passed(
        &self,
        states: [&'static str; 3],
        began: Time,
        at: Time,
        note: Option<&str>,
    ) -> Write {
        let [first, second, third] = states;
        let received = self.arrival.received_at.min(began);
        let none = None::<&str>;
        let reference = &self.identity.reference;
        let row = values![first, received, none, second, began, none, third, at, note, reference];
        Write::any("transitions.insert", sql::PASS_THREE, row).numbered()
    }

    pub(crate) fn pass(&self, state: &'static str, at: Time, note: Option<&str>) -> Write {
        Write::one("transitions.insert", sql::PASS, values![state, at, note, &self.identity.reference])
            .numbered()
    }

    pub(crate) fn row_facts(&self, keep: RowFacts<'_>) -> Vec<Value> {
        let input = keep.input.then(|| self.kept_input());
        values![
            &self.arrival.source,
            &self.identity.account,
            &self.identity.event_id,
            &self.event.kind,
            self.mode.as_str(),
            self.event.occurred_at.map(Time::from_seconds),
            self.event.subject.session_id.clone(),
            self.arrival.payload_hash,
            input,
            keep.reason,
            None::<&str>,
            None::<&str>,
            keep.certificate_event,
        ]
    }

    /// The projected event as the record keeps it for a later attempt. A full mail address stays out unless
    /// the policy shows it: masked, it gives the same certificate.
    fn kept_input(&self) -> String {
        let mut event = source::Event::clone(&self.event);
        if self.shared.policy.email != Shown::Full {
            event.subject.email = event.subject.email.as_deref().map(masked);
        }
        serde_json::to_string(&event).unwrap_or_default()
    }

    /// Words to be found by. A later attempt from the record adds none for the mail: it has it masked, and
    /// the first attempt's word is there.
    pub(crate) fn words(&self) -> Vec<i64> {
        let subject = &self.event.subject;
        let mail = subject.email.as_deref().filter(|_| self.arrives != Arrives::No);
        let mut words = Vec::new();
        words.extend(subject.session_id.as_deref().map(|sid| word("sid", sid)));
        words.extend(subject.payment_id.as_deref().map(|payment| word("payment", payment)));
        words.extend(mail.map(|email| Digest::of(&self.keys.mail_digest(email)).word()));
        words
    }
}

/// The row of an arrival.
pub(crate) fn arrive(arrival: &Arrival, reference: &str, verdict: &'static str, differs: bool) -> Write {
    let Arrival { received_at, source, request_id, trace_id, client_ip, payload_hash } = arrival;
    let row = values![
        *received_at,
        source,
        verdict,
        differs,
        *payload_hash,
        request_id,
        trace_id,
        client_ip.clone(),
        reference,
    ];
    Write::one("arrivals.insert", sql::ARRIVE, row).numbered()
}

/// The word under which an event is found by a session or payment.
pub(crate) fn word(kind: &str, text: &str) -> i64 {
    Digest::of_fields(&[kind.as_bytes(), text.as_bytes()]).word()
}
