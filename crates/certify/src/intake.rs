//! A delivery from its first byte to its answer: verify, parse, judge, submit, word the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use door::{Answer, Door, Failure, Key};
use kernel::{Clock, Digest, Outcome, Record, Standing, Time};
use metrics::counter;
use parking_lot::RwLock;
use source::{Delivery, Event, Rejection, Source};
use store::Write;

use crate::answer::{self, Reply};
use crate::buffer::Buffer;
use crate::command::{Arrival, Arrives, CertifyEvent, SIGNING, Shared, announcement_left_out};
use crate::identity::{Identity, Plain};
use crate::keyring::{Folder, Keyring, Tending};
use crate::policy::{CertifiedMode, Policy};
use crate::rows::arrive;
use crate::run::Issuer;
use crate::shelf::{Form, Shelf};
use crate::sql;

/// What is told to a sender whose delivery can't be acknowledged yet.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// One configured endpoint.
pub struct Endpoint {
    /// How its sender signs.
    pub source: Source,
    /// Whether its account's references are plain.
    pub plain: Plain,
    /// Mode of events whose sender states none.
    pub unstated: CertifiedMode,
}

/// How AuditVisa is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is certified.
    pub policy: Policy,
    /// Who issues.
    pub issuer: Issuer,
    /// Channels that hear of a new certificate.
    pub announce: Vec<String>,
    /// Channels that hear of every repeat; empty by default.
    pub announce_repeats: Vec<String>,
    /// How long a twin waits for the first delivery's result.
    pub wait: Duration,
}

/// Where a delivery came from, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Id of the HTTP request.
    pub request_id: String,
    /// W3C trace id, or the request's id.
    pub trace_id: String,
    /// Address of the client, as far as the configured proxies are trusted.
    pub client_ip: Option<String>,
}

/// AuditVisa, running.
pub struct AuditVisa {
    pub(crate) door: Door,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) folder: Folder,
    pub(crate) keys: RwLock<Arc<Keyring>>,
    pub(crate) tending: Tending,
    pub(crate) buffer: RwLock<Option<Arc<Buffer>>>,
    endpoints: RwLock<Arc<BTreeMap<String, Arc<Endpoint>>>>,
    wait: Duration,
    /// Name of this server among those that share the store; `None` where it is the only one.
    pub(crate) node: Option<String>,
    /// The last audit row that was known to be settled.
    pub(crate) settled: AtomicI64,
}

impl AuditVisa {
    /// Brings the parts together; keys are loaded, or made at the very first start.
    ///
    /// # Errors
    /// [`crate::keyring::Error`] when the keys can't be used.
    pub async fn open(
        door: Door,
        clock: Arc<dyn Clock>,
        shelf: Shelf,
        folder: Folder,
        settings: Settings,
    ) -> Result<Self, crate::keyring::Error> {
        let keys = folder.load(&door).await?;
        let shared = Shared {
            shelf,
            policy: settings.policy,
            issuer: settings.issuer,
            announce: settings.announce,
            announce_repeats: settings.announce_repeats,
            door: door.clone(),
        };
        Ok(Self {
            door,
            clock,
            shared: Arc::new(shared),
            folder,
            keys: RwLock::new(Arc::new(keys)),
            tending: Tending::default(),
            buffer: RwLock::default(),
            endpoints: RwLock::default(),
            wait: settings.wait,
            node: None,
            settled: AtomicI64::new(0),
        })
    }

    /// One of several servers on a store, by a name that stays: what is noted about its files is noted
    /// under that name.
    #[must_use]
    pub fn on_node(mut self, name: String) -> Self {
        self.node = Some(name);
        self
    }

    /// Replaces the endpoints, at start and when secrets are reloaded. Deliveries under way keep theirs.
    pub fn set_endpoints(&self, endpoints: Vec<Endpoint>) {
        let named =
            endpoints.into_iter().map(|endpoint| (endpoint.source.name().to_owned(), Arc::new(endpoint)));
        *self.endpoints.write() = Arc::new(named.collect());
    }

    /// The endpoint at `/webhooks/{name}`.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> Option<Arc<Endpoint>> {
        self.endpoints.read().get(name).cloned()
    }

    /// All endpoints.
    #[must_use]
    pub fn endpoints(&self) -> Arc<BTreeMap<String, Arc<Endpoint>>> {
        Arc::clone(&self.endpoints.read())
    }

    /// The keys as they are now.
    #[must_use]
    pub fn keys(&self) -> Arc<Keyring> {
        Arc::clone(&self.keys.read())
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// For housekeeping and reads.
    #[must_use]
    pub const fn door(&self) -> &Door {
        &self.door
    }

    /// Receives a delivery at an endpoint and gives the answer for its sender. The answer is a promise:
    /// 2xx only when record and arrival are durable.
    ///
    /// # Errors
    /// [`Rejection`] when the signature or the content allows no identity; nothing is written then.
    pub async fn receive(
        &self,
        endpoint: &Endpoint,
        headers: &[(&str, &[u8])],
        body: Bytes,
        context: Context,
    ) -> Result<Reply, Rejection> {
        let received_at = self.clock.now();
        let source = &endpoint.source;
        let delivery = Delivery { headers, body: &body, now: received_at.seconds() };
        let arrival = Arrival {
            received_at,
            source: source.name().to_owned(),
            request_id: context.request_id,
            trace_id: context.trace_id,
            client_ip: context.client_ip,
            payload_hash: Digest::of(&body),
        };
        let buffer = self.buffer.read().clone();
        let hot = buffer.and_then(|buffer| {
            let key = Buffer::key(source.kind(), source.account(), arrival.payload_hash)?;
            Some((buffer, key))
        });
        if let Some((buffer, key)) = &hot {
            source
                .verify(&delivery)
                .inspect_err(|rejection| rejected(source.name(), rejection, received_at))?;
            if let Some(reply) = buffer.repeat(key, |outcome| repeated(&arrival, outcome)) {
                return Ok(reply);
            }
        }
        let event = source
            .open(&delivery)
            .inspect_err(|rejection| rejected(source.name(), rejection, received_at))?;
        let kept = (self.shared.policy.keep_payload_days > 0).then_some(body);
        let command = self.command(endpoint, event, arrival, kept);
        tracing::debug!(event_id = %command.identity.event_id, r#ref = %command.identity.reference, "event_received");
        Ok(self.answer(command, hot).await)
    }

    /// The command for an event that somebody brought.
    fn command(
        &self,
        endpoint: &Endpoint,
        event: Event,
        arrival: Arrival,
        payload: Option<Bytes>,
    ) -> CertifyEvent {
        let source = &endpoint.source;
        let mode = CertifiedMode::of(event.mode, endpoint.unstated);
        CertifyEvent {
            shared: Arc::clone(&self.shared),
            keys: self.keys(),
            identity: Identity::new(source.account(), &event.id, endpoint.plain),
            kind: source.kind(),
            mode,
            fingerprint: fingerprint(&event),
            verdict: self.shared.policy.judge(source.name(), source.kind(), &event, mode),
            event: Arc::new(event),
            arrival,
            payload,
            arrives: Arrives::Now,
            built: Arc::default(),
        }
    }

    async fn answer(&self, command: CertifyEvent, hot: Option<(Arc<Buffer>, Digest)>) -> Reply {
        let identity = command.identity.clone();
        let arrival = command.arrival.clone();
        let fingerprint = command.fingerprint;
        let slug = command.identity.slug(command.keys.slug_key());
        let built = Arc::clone(&command.built);
        let reply = match self.submit(command, self.wait).await {
            Ok(Answer::Done(done)) => {
                let row = done.written.row("arrivals.insert");
                let arrivals = row.and_then(|row| row.int(0).ok()).unwrap_or(1);
                // Also a repeat may have built: another node was at the same event.
                if built.load(Ordering::Relaxed) && answer::points_elsewhere(&done.outcome.body) {
                    self.discard_unused(&slug).await;
                }
                if !done.replayed && door::planted::is("announce-outside-commit") {
                    self.announce_late(&done.outcome).await;
                }
                if let Some((buffer, key)) = hot.filter(|_| done.same) {
                    buffer.keep(key, &done.outcome, arrivals);
                }
                answer::reply(&done.outcome, done.replayed, arrivals, !done.same)
            }
            Ok(Answer::InProgress { durable: true, same: true, retry_after }) => {
                self.in_progress(&identity, &arrival, retry_after).await
            }
            Ok(Answer::InProgress { retry_after, .. }) => answer::come_again(
                "EVENT_IN_PROGRESS",
                "the first delivery of this event is still being worked on",
                "该事件的首次投递仍在处理中",
                retry_after,
            ),
            Ok(Answer::Orphaned) => self.orphaned(&identity, &arrival, fingerprint).await,
            Ok(Answer::Open { .. }) => unavailable(),
            Err(failure) => self.failed(&identity, &failure),
        };
        log(&identity, &arrival.source, &reply);
        reply
    }

    /// A bug on purpose: the announcement is written in a transaction of its own, after the certificate's.
    async fn announce_late(&self, outcome: &Outcome) {
        if answer::points_elsewhere(&outcome.body) {
            return;
        }
        if let Some(row) = announcement_left_out(&self.shared, outcome, self.clock.now()) {
            let random = self.door.random();
            let plan = move |_, at| Ok((row.clone().writes(at, &*random), ()));
            // As somebody would write it who has this bug: what fails here is nobody's business.
            let _ = self.door.maintain("announce", Vec::new(), plan).await;
        }
    }

    /// The loser of a race over one change built files that no record names.
    async fn discard_unused(&self, slug: &str) {
        for form in Form::ALL {
            if let Err(cause) = self.shared.shelf.remove(slug, form).await {
                // Recovery removes it later.
                tracing::warn!(slug, %cause, "delivery_not_removed");
            }
        }
    }

    /// A twin of durable work: its arrival is on record before it is told so.
    async fn in_progress(&self, identity: &Identity, arrival: &Arrival, retry_after: Duration) -> Reply {
        let arrival = arrive(arrival, &identity.reference, "processing", false);
        match self.door.maintain("arrival", Vec::new(), move |_, _| Ok((vec![arrival.clone()], ()))).await {
            Ok(_) => answer::processing(identity, retry_after),
            Err(failure) => self.failed(identity, &failure),
        }
    }

    /// Recovery comes first: where the record can give its files again, this arrival gets them, too.
    async fn orphaned(&self, identity: &Identity, arrival: &Arrival, fingerprint: Digest) -> Reply {
        tracing::error!(event_id = %identity.event_id, r#ref = %identity.reference, "event_orphaned");
        match self.mended(identity, arrival, fingerprint).await {
            Ok(Some(reply)) => reply,
            Ok(None) => answer::come_again(
                "EVENT_ORPHANED",
                "the event's record and its certificate's files disagree; an operator must look",
                "该事件的记录与产物不一致，需要人工核验",
                COME_AGAIN,
            ),
            Err(cause) => {
                tracing::error!(r#ref = %identity.reference, %cause, "event_failed");
                unavailable()
            }
        }
    }

    /// Tries to mend an orphaned record; gives its result to this arrival when that worked.
    async fn mended(
        &self,
        identity: &Identity,
        arrival: &Arrival,
        fingerprint: Digest,
    ) -> Result<Option<Reply>, crate::acts::Refused> {
        let row = self.only(&identity.reference).await?;
        let certificate = row.int_or_null(22)?.unwrap_or(row.int(0)?);
        if !self.mend_orphaned(certificate, &identity.reference).await? {
            return Ok(None);
        }
        let key = Key::lasting(&sql::EVENTS, store::values![&identity.reference], fingerprint);
        let (source, reference) = (arrival.clone(), identity.reference.clone());
        let found = self.door.maintain("arrival.mended", vec![sql::EVENTS.find(&key)], move |rows, _| {
            let record =
                rows.first().and_then(|rows| rows.first()).map(|row| sql::EVENTS.read(row)).transpose()?;
            let Some(Record { fingerprint: kept, standing: Standing::Finished { outcome, .. }, .. }) = record
            else {
                return Ok((Vec::new(), None));
            };
            let same = kept == fingerprint || kept == Digest::UNKNOWN;
            Ok((vec![arrive(&source, &reference, "duplicate_reused", !same)], Some((outcome, same))))
        });
        let (found, written) = found.await?;
        let arrivals = written.row("arrivals.insert").and_then(|row| row.int(0).ok()).unwrap_or(1);
        Ok(found.map(|(outcome, same)| answer::reply(&outcome, true, arrivals, !same)))
    }

    fn failed(&self, identity: &Identity, failure: &Failure) -> Reply {
        tracing::error!(event_id = %identity.event_id, r#ref = %identity.reference, cause = %failure, "event_failed");
        match failure {
            // On its way when the fence went up.
            Failure::Store(store::Error::Fenced) => answer::come_again(
                "STORE_FENCED",
                "this installation moves to another database, and the delivery was not kept",
                "该实例正在迁移到另一数据库，未保存该投递",
                COME_AGAIN,
            ),
            Failure::Step { step: SIGNING, .. } => answer::come_again(
                "KEYS_UNUSABLE",
                "this server can't sign new certificates just now; another one may take the delivery, or this one later",
                "本服务器暂时无法签发新证书",
                COME_AGAIN,
            ),
            _ => unavailable(),
        }
    }
}

/// An attacker must not be able to force writes: a counter, and one line a second at most for operators,
/// who would otherwise not see that a secret was rotated away.
fn rejected(source: &str, rejection: &Rejection, now: Time) {
    static LAST: AtomicI64 = AtomicI64::new(i64::MIN);
    counter!("certify_rejected_total", "source" => source.to_owned(), "code" => rejection.code).increment(1);
    if LAST.swap(now.seconds(), Ordering::Relaxed) == now.seconds() {
        tracing::debug!(source, code = rejection.code, "delivery_rejected");
    } else {
        tracing::warn!(source, code = rejection.code, "delivery_rejected");
    }
}

/// The row of a repeat that is answered from memory.
fn repeated(arrival: &Arrival, outcome: &str) -> Option<Write> {
    let reference = outcome.split_once("\"ref\":\"")?.1.split_once('"')?.0;
    Some(arrive(arrival, reference, "duplicate_reused", false))
}

/// The record's key of an event.
pub(crate) fn key(command: &CertifyEvent) -> Key {
    Key::lasting(&sql::EVENTS, store::values![&command.identity.reference], command.fingerprint)
}

/// Digest of the event's stable fields: canonical, so that neither order nor spacing matters.
pub(crate) fn fingerprint(event: &Event) -> Digest {
    // Stable fields are strings, integers and booleans, which always have a canonical form.
    let canonical = seal::jcs::to_vec(&event.stable).unwrap_or_default();
    Digest::of_fields(&[event.id.as_bytes(), &canonical])
}

fn unavailable() -> Reply {
    answer::come_again(
        "STORE_UNAVAILABLE",
        "the delivery could not be kept just now",
        "暂时无法保存该投递",
        COME_AGAIN,
    )
}

fn log(identity: &Identity, source: &str, reply: &Reply) {
    let (verdict, line) = match (reply.status, answer::heading(&reply.body)) {
        (202, _) => ("processing", "event_in_progress"),
        (200, Some("processed")) => ("processed", "event_processed"),
        (200, Some("duplicate_reused")) => ("duplicate_reused", "event_duplicate_reused"),
        (200, Some("failed")) => ("failed", "event_failed"),
        (200, _) => ("recorded", "event_received"),
        _ => ("not_acknowledged", "event_not_acknowledged"),
    };
    counter!("certify_arrivals_total", "source" => source.to_owned(), "verdict" => verdict).increment(1);
    tracing::info!(event_id = %identity.event_id, r#ref = %identity.reference, source, status = reply.status, "{line}");
}
