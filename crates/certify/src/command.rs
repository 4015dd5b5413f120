//! A webhook event in the door's transaction: what to look at, what to decide, what a repeat leaves
//! behind. Atomic form: files are built and stand complete before the one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use door::{AuditRow, Command, Decision, Door, Failure, OutboxRow, Repeat, Ruling, Steps};
use kernel::{Digest, Fingerprint, Outcome, Time};
use seal::key::SigningKey;
use serde_json::{Map, Value as Json, json};
use source::{Event, Kind};
use store::{Query, Raise, RaiseKind, Row, Value, Write, values};

use crate::answer::{self, Links};
use crate::identity::Identity;
use crate::issue::{self, Recorded};
use crate::keyring::Keyring;
use crate::money;
use crate::policy::{CertifiedMode, Policy, SecondReport, Terms, Verdict};
use crate::rows::RowFacts;
use crate::run::{self, Facts, Issuer};
use crate::shelf::Shelf;
use crate::sql;

/// The step that fails on a node that may not sign.
pub(crate) const SIGNING: &str = "signing the certificate";
/// The write whose check asks for the active key.
const ISSUE: &str = "certificates.insert";

/// One arrival: who brought it, when, under which request.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) received_at: Time,
    pub(crate) source: String,
    pub(crate) request_id: String,
    pub(crate) trace_id: String,
    pub(crate) client_ip: Option<String>,
    pub(crate) payload_hash: Digest,
}

/// What every command of one server shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) shelf: Shelf,
    pub(crate) policy: Policy,
    pub(crate) issuer: Issuer,
    /// Channels that hear of a new certificate.
    pub(crate) announce: Vec<String>,
    /// Channels that hear of each repeat; empty unless switched on.
    pub(crate) announce_repeats: Vec<String>,
    /// For reads before the transaction, and ids of rows that repeats leave behind.
    pub(crate) door: Door,
}

/// Whether somebody brought the event just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrives {
    /// Recovery and people's retries don't count as arrivals.
    No,
    /// It gets its row.
    Now,
    /// It has a row of this number from a try that was in vain; what becomes of it now goes there.
    Again(i64),
}

/// The command. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CertifyEvent {
    pub(crate) shared: Arc<Shared>,
    pub(crate) keys: Arc<Keyring>,
    pub(crate) identity: Identity,
    pub(crate) kind: Kind,
    pub(crate) event: Arc<Event>,
    pub(crate) mode: CertifiedMode,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) verdict: Verdict,
    pub(crate) arrival: Arrival,
    pub(crate) payload: Option<Bytes>,
    pub(crate) arrives: Arrives,
    /// Set when files were made for it: they are of no use when its result turns out to be another's.
    pub(crate) built: Arc<AtomicBool>,
}

/// What stands ready before the transaction: a certificate whose files are on the shelf, or nothing.
pub(crate) struct Prepared {
    certificate: Option<Recorded>,
    pub(crate) began: Time,
}

impl Command for CertifyEvent {
    type Prepared = Prepared;

    fn prepares(&self) -> bool {
        matches!(self.verdict, Verdict::Certify(_))
    }

    async fn prepare(&self, _steps: &Steps) -> Result<Prepared, Failure> {
        let began = self.arrival.received_at;
        let Verdict::Certify(terms) = &self.verdict else {
            return Ok(Prepared { certificate: None, began });
        };
        tracing::debug!(event_id = %self.identity.event_id, r#ref = %self.identity.reference, "event_processing_started");
        let failed = |step, cause: issue::Error| Failure::Step { step, cause: cause.to_string() };
        let key = self.keys.active();
        let key = key.map_err(|cause| Failure::Step { step: SIGNING, cause: cause.to_string() })?;
        let issued = self.issue(terms, key).map_err(|cause| failed("building the certificate", cause))?;
        let slug = issued.recorded.slug.clone();
        self.built.store(true, Ordering::Relaxed);
        let written = self.put(&slug, &issued.files.map(Bytes::from)).await;
        written.map_err(|cause| Failure::Step { step: "writing the certificate's files", cause })?;
        tracing::debug!(event_id = %self.identity.event_id, %slug, "delivery_written");
        Ok(Prepared { certificate: Some(issued.recorded), began })
    }

    fn facts(&self) -> Vec<Value> {
        self.row_facts(RowFacts { input: true, ..RowFacts::default() })
    }

    fn load(&self, _prepared: &Prepared) -> Vec<Query> {
        let change = self.change_key().filter(|_| self.prepares());
        change
            .map(|key| Query::new("certificates.by_change", sql::CERTIFIED_CHANGE, values![key]))
            .into_iter()
            .collect()
    }

    fn decide(&self, prepared: &Prepared, loaded: &[Vec<Row>], at: Time) -> Result<Decision, store::Error> {
        let first = loaded.first().and_then(|rows| rows.first());
        match (&self.verdict, &prepared.certificate, first) {
            (Verdict::Certify(_), _, Some(first)) => self.reuse(first, prepared, at),
            (Verdict::Certify(_), Some(certificate), None) => Ok(self.certify(certificate, prepared, at)),
            // Preparing gives a certificate or a failure.
            (Verdict::Certify(_), None, None) => {
                Err(store::Error::Statement { name: "certify", cause: "nothing was prepared".into() })
            }
            (Verdict::Record { reason }, ..) => Ok(self.keep("received", reason, prepared, at)),
            (Verdict::Refuse { reason }, ..) => Ok(self.keep("failed", reason, prepared, at)),
        }
    }

    /// Two checks stand for a rule. The change already has its certificate: then that one counts. Or the key
    /// is no longer the active one: then the key of the record stays open, and whoever submitted signs again.
    fn raised(
        &self,
        prepared: &Prepared,
        raise: &Raise,
        loaded: &[Vec<Row>],
        at: Time,
    ) -> Result<Decision, store::Error> {
        match loaded.first().and_then(|rows| rows.first()) {
            Some(first) => self.reuse(first, prepared, at),
            None if raise.write == ISSUE && raise.kind == (RaiseKind::Rows { hit: 0 }) => {
                Ok(self.sign_again(prepared, at))
            }
            None => Err(store::Error::Raised(raise.clone())),
        }
    }

    fn repeat(&self, repeat: &Repeat, at: Time) -> Vec<Write> {
        let Some(arrival) = self.arrive("duplicate_reused", !repeat.same) else { return Vec::new() };
        let mut writes = vec![arrival];
        if !repeat.same {
            let mut audit = self.audit("certify.event.payload_differs", "PAYLOAD_DIFFERS");
            audit.metadata = json!({ "payload_hash": self.arrival.payload_hash.to_hex() });
            writes.push(audit.write(at, &*self.shared.door.random()));
        }
        if !self.shared.announce_repeats.is_empty()
            && let Some(payload) = announcement_of_repeat(&repeat.outcome)
        {
            let row = self.outbox("certify.event.repeat.reused", payload, &self.shared.announce_repeats, at);
            writes.extend(row.writes(at, &*self.shared.door.random()));
        }
        writes
    }

    fn failed(&self, failure: &Failure, at: Time) -> Vec<Write> {
        let cause: String = failure.to_string().chars().take(500).collect();
        self.failed_rows(&cause, self.arrival.received_at, at)
    }
}

impl CertifyEvent {
    /// Puts the files of an event that had no record. Where other bytes stand by now, another node may have
    /// been faster: then its record says which bytes are right, and this attempt ends as a repeat.
    async fn put(&self, slug: &str, files: &[Bytes; 3]) -> Result<(), String> {
        let told = |cause: &dyn std::fmt::Display| cause.to_string();
        let shelf = &self.shared.shelf;
        if shelf.put_new(slug, files).await.map_err(|cause| told(&cause))?.is_empty() {
            return Ok(());
        }
        let recorded = Query::new("certificates.by_slug", sql::BY_SLUG, values![slug]);
        let rows = self.shared.door.store().query(recorded).await.map_err(|cause| told(&cause))?;
        if rows.is_empty() {
            shelf.put_all(slug, files).await.map_err(|cause| told(&cause))?;
        }
        Ok(())
    }

    fn issue(&self, terms: &Terms, key: &SigningKey) -> Result<issue::Issued, issue::Error> {
        let issued_at = self.event.occurred_at.unwrap_or_else(|| self.arrival.received_at.seconds());
        let run = run::run(&Facts {
            identity: &self.identity,
            kind: self.kind,
            event: &self.event,
            mode: self.mode,
            issued_at,
            fingerprint: self.fingerprint,
            policy: &self.shared.policy,
            terms,
            issuer: &self.shared.issuer,
        });
        let slug = self.identity.slug(self.keys.slug_key());
        issue::issue(slug, run, Time::from_seconds(issued_at), key)
    }

    fn certify(&self, certificate: &Recorded, prepared: &Prepared, at: Time) -> Decision {
        let links = Links::of(&self.shared.issuer.url, certificate);
        let summary = self.summary();
        let outcome = answer::outcome(&self.stem("processed", at), Some((&links, &summary)), None);
        let mut writes = self.settled_rows("processed", prepared, at, None);
        let [html, zip, json_hash] = certificate.hashes;
        let row = values![
            &certificate.slug,
            self.change_key(),
            certificate.run.to_string(),
            certificate.run_hash,
            certificate.signature,
            html,
            zip,
            json_hash,
            certificate.issued_at,
            at,
            &certificate.key_id,
            &self.identity.reference,
        ];
        let asks = !door::planted::is("active-key-not-asked");
        let issue = if asks {
            sql::CERTIFY_ACTIVE.into()
        } else {
            sql::CERTIFY_ACTIVE.replace("= 'active'", "<> ''")
        };
        writes.push(Write::one(ISSUE, issue, row));
        let mut audit = self.audit("certify.event.processed", "OK");
        audit.after_state =
            json!({ "status": "processed", "version": 1, "run_hash": certificate.run_hash.to_hex() });
        let payload = self.announcement(&links);
        let told = self.outbox("certify.certificate.issue.succeeded", payload, &self.shared.announce, at);
        Decision {
            status: "processed",
            facts: self.row_facts(RowFacts::default()),
            ruling: Ruling::Formal(outcome),
            writes,
            audit: vec![audit],
            outbox: if door::planted::is("announce-outside-commit") { Vec::new() } else { vec![told] },
        }
    }

    /// A second report of a certified change: it points at the first certificate.
    fn reuse(&self, first: &Row, prepared: &Prepared, at: Time) -> Result<Decision, store::Error> {
        let (event, reference, body) = (first.int(0)?, first.text(1)?, first.text(2)?);
        let damaged = |_| store::Error::Corrupt { table: "certify_events", column: "response_body".into() };
        let kept: Map<String, Json> = serde_json::from_str(body).map_err(damaged)?;
        let mut audit = self.audit("certify.event.change_reused", "OK");
        audit.after_state = json!({ "status": "processed", "version": 1, "reused": reference });
        Ok(Decision {
            status: "processed",
            facts: self.row_facts(RowFacts { certificate_event: Some(event), ..RowFacts::default() }),
            ruling: Ruling::Formal(answer::reused(kept, &self.stem("processed", at), reference)),
            writes: self.settled_rows("duplicate_reused", prepared, at, Some(reference)),
            audit: vec![audit],
            outbox: Vec::new(),
        })
    }

    /// The certificate's key was no longer the active one when it was to be kept. Nothing of it was; the event
    /// is as after any failed try, and the next one signs with the key of now.
    fn sign_again(&self, prepared: &Prepared, at: Time) -> Decision {
        Decision {
            status: "failed",
            facts: self.facts(),
            ruling: Ruling::Open,
            writes: self.failed_rows(
                "its key was no longer the active one; signed again",
                prepared.began,
                at,
            ),
            audit: Vec::new(),
            outbox: Vec::new(),
        }
    }

    fn failed_rows(&self, cause: &str, began: Time, at: Time) -> Vec<Write> {
        let mut writes = self.arrived("failed");
        writes.push(self.passed(["received", "processing", "failed"], began, at, Some(cause)));
        writes.extend(self.found_by());
        let cause_row = "update certify_events set cause = $1 where ref = $2";
        writes.push(Write::one("events.cause", cause_row, values![cause, &self.identity.reference]));
        writes
    }

    /// The event is on record, with its reason and without a certificate.
    fn keep(&self, status: &'static str, reason: &str, prepared: &Prepared, at: Time) -> Decision {
        let code = if status == "failed" { "REFUSED" } else { "RECORDED" };
        let mut audit = self.audit("certify.event.recorded", code);
        audit.after_state = json!({ "status": status, "version": 1 });
        audit.metadata = json!({ "reason": reason });
        Decision {
            status,
            facts: self.row_facts(RowFacts { input: true, reason: Some(reason), ..RowFacts::default() }),
            ruling: Ruling::Formal(answer::outcome(&self.stem(status, at), None, Some(reason))),
            writes: self.settled_rows(status, prepared, at, Some(reason)),
            audit: vec![audit],
            outbox: Vec::new(),
        }
    }

    fn stem<'a>(&'a self, status: &'static str, at: Time) -> answer::Stem<'a> {
        answer::Stem {
            identity: &self.identity,
            sid: self.event.subject.session_id.as_deref(),
            status,
            mode: self.mode.as_str(),
            created_at: self.arrival.received_at,
            updated_at: at,
            payload_hash: self.arrival.payload_hash,
        }
    }

    fn change_key(&self) -> Option<Digest> {
        let change = self.event.change.as_deref().filter(|_| {
            self.shared.policy.second_report == SecondReport::Reuse
                && !door::planted::is("change-key-not-unique")
        })?;
        let sub = self.event.account.as_deref().unwrap_or("");
        let fields = ["change", &self.identity.account, sub, change];
        Some(Digest::of_fields(&fields.map(str::as_bytes)))
    }

    fn summary(&self) -> String {
        let subject = &self.event.subject;
        let amount = match (subject.amount_minor, &subject.currency) {
            (Some(minor), Some(currency)) => money::display(minor, currency),
            _ => "no amount".into(),
        };
        format!("{} · {} · {amount} · {}", self.identity.reference, self.event.kind, self.mode.as_str())
    }

    fn audit(&self, name: &'static str, code: &str) -> AuditRow {
        let request_id = self.arrival.request_id.clone();
        let mut row = AuditRow::system(name, "certify_event", self.identity.reference.clone(), request_id);
        row.trace_id.clone_from(&self.arrival.trace_id);
        row.idempotency_key = Some(self.identity.reference.clone());
        row.result_code = code.into();
        row.client_ip.clone_from(&self.arrival.client_ip);
        row
    }

    fn announcement(&self, links: &Links) -> Json {
        let subject = &self.event.subject;
        json!({
            "kind": "issued",
            "event_id": self.identity.event_id,
            "ref": self.identity.reference,
            "sid": subject.session_id,
            "mode": self.mode.as_str(),
            "amount": subject.amount_minor.zip(subject.currency.as_deref()).map(|(minor, c)| money::display(minor, c)),
            "html_url": links.html,
            "zip_url": links.zip,
            "json_url": links.json,
            "before_state": {},
            "after_state": { "status": "processed" },
        })
    }

    fn outbox(&self, name: &'static str, payload: Json, destinations: &[String], at: Time) -> OutboxRow {
        OutboxRow {
            event_name: name,
            object_type: "certify_event",
            object_id: self.identity.reference.clone(),
            aggregate_version: 1,
            tenant_id: 1,
            operator_id: 1,
            request_id: self.arrival.request_id.clone(),
            payload,
            occurred_at: at,
            destinations: destinations.to_vec(),
        }
    }
}

/// For a bug on purpose: what [`CertifyEvent::certify`] should have announced, from its outcome.
pub(crate) fn announcement_left_out(shared: &Shared, outcome: &Outcome, at: Time) -> Option<OutboxRow> {
    let mut payload = announcement_of_repeat(outcome)?;
    payload.as_object_mut()?.insert("kind".into(), "issued".into());
    Some(OutboxRow {
        event_name: "certify.certificate.issue.succeeded",
        object_type: "certify_event",
        object_id: payload.get("ref")?.as_str()?.to_owned(),
        aggregate_version: 1,
        tenant_id: 1,
        operator_id: 1,
        request_id: "announced-late".into(),
        payload,
        occurred_at: at,
        destinations: shared.announce.clone(),
    })
}

fn announcement_of_repeat(outcome: &Outcome) -> Option<Json> {
    let mut payload: Map<String, Json> = serde_json::from_str(&outcome.body).ok()?;
    payload.get("html_url")?;
    payload.retain(|key, _| {
        ["event_id", "ref", "sid", "mode", "html_url", "zip_url", "json_url"].contains(&key.as_str())
    });
    payload.insert("kind".into(), "duplicate".into());
    payload.insert("before_state".into(), json!({ "status": "processed" }));
    payload.insert("after_state".into(), json!({ "status": "processed" }));
    Some(Json::Object(payload))
}
