//! A consumer called a supplier past the platform, as whoever watches what leaves the consumers' networks saw it
//! (sections 16.2 and 19, M-015). Each event is on record once, is a P0, and is only ever a fact: nothing is done to
//! the consumer here.

use door::{Failure, Steps};
use kernel::Time;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, values};

use super::fields::{self, is_text};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::alert::{Level, raised};
use crate::caller::Object;
use crate::code::Code;

/// Name of its row in the audit: what M-015 counts.
pub const DIRECT: &str = "CRED-DIRECT-SUPPLIER";

/// Held, so that of two reports of an event the second sees what the first wrote.
const CONSUMER: &str = "select id from core_tenants where id = $1 and type = 'consumer' {for_update}";
const KNOWN: &str = "select cast(metadata as text) from audit_events
where tenant_id = $1 and tenant_id > 1 and object_type = $2 and object_id = $3
  and event_name = $4 order by id limit 1";

/// Kind in audit and outbox.
const KIND: &str = "egress_event";
/// How far the clock of a source may be ahead.
const AHEAD: std::time::Duration = std::time::Duration::from_secs(300);

/// `POST /api/v1/platform/egress-events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEgress {
    /// The source's own id of it, unique for the consumer: `1..=64` of letters, digits, `.`, `_`, `:`, `-`.
    pub event_id: String,
    /// Who called.
    pub consumer_tenant_id: i64,
    /// Whose supplier: one of the platform's providers.
    pub provider: String,
    /// Which host was called, without a path: `1..=253` of letters, digits, `.`, `-`, and `:` for a port.
    pub host: String,
    /// When.
    pub occurred_at: Time,
    /// Who saw it and where, `1..=200` characters without a credential.
    pub source: String,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether the tenant is a consumer.
    consumer: bool,
    /// The event, where it is on record: what its row says.
    known: Option<Json>,
}

impl ReportEgress {
    fn fields(&self, at: Time) -> Result<(), Refusal> {
        let of = |text: &str, most: usize, marks: &str| {
            (1..=most).contains(&text.len())
                && text.chars().all(|one| one.is_ascii_alphanumeric() || marks.contains(one))
        };
        fields::checked(&[
            ("event_id", "characters", of(&self.event_id, 64, "._:-")),
            ("host", "host", of(&self.host, 253, ".-:")),
            ("occurred_at", "not_in_future", self.occurred_at <= at.plus(AHEAD)),
            ("source", "text", is_text(&self.source, 200)),
        ])
    }

    /// What is kept of it, and answered.
    fn said(&self) -> Json {
        json!({
            "event_id": self.event_id, "consumer_tenant_id": self.consumer_tenant_id, "provider": self.provider,
            "host": self.host, "occurred_at": self.occurred_at.to_rfc3339_millis(), "source": self.source,
        })
    }
}

/// Without the instant that only the record knows.
fn bare(mut known: Json) -> Json {
    if let Some(members) = known.as_object_mut() {
        members.remove("recorded_at");
    }
    known
}

impl Action for ReportEgress {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "platform.egress.report"
    }

    fn object(&self) -> Object {
        Object::new_of(KIND)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, _: &Context, (): &()) -> Vec<Query> {
        let consumer = self.consumer_tenant_id;
        vec![
            Query::new("egress.consumer", CONSUMER, values![consumer]),
            Query::new("egress.known", KNOWN, values![consumer, KIND, &self.event_id, DIRECT]),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let damaged = || Error::Corrupt { table: "audit_events", column: "metadata".into() };
        let [consumer, known] = rows else { return Err(damaged()) };
        let known = known.first().map(|row| serde_json::from_str(row.text(0)?).map_err(|_| damaged()));
        Ok(State { consumer: !consumer.is_empty(), known: known.transpose()? })
    }

    fn decide(&self, _: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        self.fields(at)?;
        if !state.consumer {
            return Err(Refusal::of(Code::ComMissing).with("field", "consumer_tenant_id").into());
        }
        let object = Object { kind: KIND, id: self.event_id.clone() };
        let after = json!({ "status": "recorded", "version": 0 });
        let mut said = self.said();
        if let Some(known) = &state.known {
            if bare(known.clone()) != said {
                let refusal = Refusal::of(Code::ComState).with("field", "event_id");
                return Err(refusal.about(object, after).into());
            }
            let change = Change::of(object, known)?;
            let metadata = json!({ "repeated": true });
            return Ok(Change { before: after.clone(), after, metadata, status: 201, ..change });
        }
        if let Some(members) = said.as_object_mut() {
            members.insert("recorded_at".into(), at.to_rfc3339_millis().into());
        }
        let alert = raised(Level::P0, "direct_supplier_call", &object);
        let change = Change::of(object, &said)?;
        let audited_as = Some(DIRECT);
        Ok(Change { audited_as, after, metadata: said, events: vec![alert], status: 201, ..change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, NOW};

    fn report() -> ReportEgress {
        ReportEgress {
            event_id: "fw-1:2026.03_17".into(),
            consumer_tenant_id: 9,
            provider: "openai".into(),
            host: "api.openai.com:443".into(),
            occurred_at: NOW,
            source: "egress proxy of consumer 9".into(),
        }
    }

    fn decided(report: &ReportEgress, known: Option<Json>) -> Result<Change, Stop> {
        let context = fixtures::context(crate::caller::Capacity::Admin);
        report.decide(&context, &(), &State { consumer: true, known }, NOW)
    }

    fn code(ended: Result<Change, Stop>) -> &'static str {
        match ended {
            Err(Stop::Refused(refusal)) => refusal.code.as_str(),
            other => panic!("no refusal: {other:?}"),
        }
    }

    #[test]
    fn an_event_is_a_fact_with_an_alert_once_and_a_repeat_is_given_it_again() {
        let first = decided(&report(), None).unwrap();
        let alert = &first.events[0];
        assert_eq!(
            (first.audited_as, first.status, &alert.after["level"]),
            (Some(DIRECT), 201, &json!("P0"))
        );
        let again = decided(&report(), Some(first.metadata.clone())).unwrap();
        assert_eq!((again.audited_as, again.events.len(), &again.data), (None, 0, &first.data));
        let other = ReportEgress { host: "api.anthropic.com".into(), ..report() };
        assert_eq!(code(decided(&other, Some(first.metadata))), "SUP_COM_4091");
    }

    #[test]
    fn every_field_has_its_form_and_only_consumers_are_reported() {
        let wrong = [
            ReportEgress { event_id: String::new(), ..report() },
            ReportEgress { event_id: "a b".into(), ..report() },
            ReportEgress { event_id: "e".repeat(65), ..report() },
            ReportEgress { host: "api.openai.com/v1?key=x".into(), ..report() },
            ReportEgress { host: "h".repeat(254), ..report() },
            ReportEgress { source: " ".into(), ..report() },
            ReportEgress { occurred_at: NOW.plus(AHEAD * 2), ..report() },
        ];
        for each in wrong {
            assert_eq!(code(decided(&each, None)), "SUP_COM_4001", "{each:?}");
        }
        let context = fixtures::context(crate::caller::Capacity::Admin);
        let stranger = State { consumer: false, known: None };
        assert_eq!(code(report().decide(&context, &(), &stranger, NOW)), "SUP_COM_4041");
    }
}
