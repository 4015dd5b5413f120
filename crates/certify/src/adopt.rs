//! Files that verify and have no record become a record: the crash came between the files and the
//! commit, and nobody brought the event again.

use base64::Engine as _;
use door::{AuditRow, OutboxRow};
use kernel::{Digest, Time};
use seal::key::{PublicKey, Signature};
use serde_json::{Value as Json, json};
use store::{Error, Query, Write, values};

use crate::acts::Refused;
use crate::answer::{Links, Stem, outcome};
use crate::identity::{Identity, Plain};
use crate::intake::AuditVisa;
use crate::issue::{self, Recorded};
use crate::keyring::Keyring;
use crate::policy::SecondReport;
use crate::sql;

/// What the files of an orphan say.
pub(crate) struct Adoption {
    pub(crate) identity: Identity,
    pub(crate) recorded: Recorded,
    fingerprint: Digest,
    /// What a second report of the same change would find.
    change: Option<Digest>,
}

/// What became of an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adopted {
    /// It has a record now.
    Recorded,
    /// It had one already, made meanwhile: the files are that one's.
    Known,
    /// Its event or its change has another result.
    Superfluous,
}

/// Reads the served JSON of an orphan; `None` when it is not one of ours under this name. Its signature
/// has been verified.
pub(crate) fn read(json: &[u8], slug: &str, keys: &Keyring) -> Option<Adoption> {
    let file = seal::json::parse(json).ok()?;
    let run = file.pointer("/metadata/run")?.clone();
    let text = |pointer: &str| run.pointer(pointer).and_then(Json::as_str);
    let (account, id, reference) = (text("/event/account")?, text("/event/id")?, text("/ref")?);
    let identity = [Plain::Yes, Plain::No]
        .map(|plain| Identity::new(account, id, plain))
        .into_iter()
        .find(|identity| identity.reference == reference)?;
    if identity.slug(keys.slug_key()) != slug {
        return None;
    }
    let kid = file.pointer("/signature/kid")?.as_str()?;
    let signature = file.pointer("/signature/signature")?.as_str()?;
    let signature =
        base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(signature).ok()?.try_into().ok()?;
    let fingerprint = Digest::from_slice(&hex::decode(text("/event/fingerprint")?).ok()?)?;
    let key: &PublicKey = keys.public(kid)?;
    let issued_at = Time::from_seconds(run.get("issued_at")?.as_i64()?);
    let recorded =
        issue::restored(slug, run, issued_at, &Signature::from_bytes(signature).ok()?, key).ok()?;
    let change = change_key(&identity, &recorded);
    Some(Adoption { identity, recorded, fingerprint, change })
}

/// The id of the key that a certificate says it was signed with.
pub(crate) fn key_of(json: &[u8]) -> Option<String> {
    Some(seal::json::parse(json).ok()?.pointer("/signature/kid")?.as_str()?.to_owned())
}

impl AuditVisa {
    /// Makes the record, unless one has appeared meanwhile or the change has its certificate. The
    /// announcement may have gone out or not: it is `uncertain` and waits for a person.
    pub(crate) async fn adopt(&self, adoption: Adoption) -> Result<Adopted, Refused> {
        // Where each report gets a certificate of its own, none is in another's way.
        let guarded = self.shared.policy.second_report == SecondReport::Reuse;
        let adoption = Adoption { change: adoption.change.filter(|_| guarded), ..adoption };
        let reads = vec![
            Query::new(
                "certificates.slug",
                "select event from certify_certificates where slug = $1",
                values![&adoption.recorded.slug],
            ),
            Query::new(
                "events.by_ref",
                "select id from certify_events where ref = $1",
                values![&adoption.identity.reference],
            ),
            Query::new("certificates.by_change", sql::CERTIFIED_CHANGE, values![adoption.change]),
        ];
        let base = self.shared.issuer.url.clone();
        let (random, channels) = (self.door.random(), self.shared.announce.clone());
        let source = self.source_of(&adoption.identity.account);
        let adopted = self.door.maintain("adopt", reads, move |rows, now| {
            let mut found = rows.iter().map(|found| !found.is_empty());
            if found.next() == Some(true) {
                return Ok((Vec::new(), Adopted::Known));
            }
            if found.any(|found| found) {
                return Ok((Vec::new(), Adopted::Superfluous));
            }
            let mut writes = record(&adoption, &source, &base, now)?;
            let name = adoption.identity.reference.clone();
            let mut audit = AuditRow::system("certify.event.adopted", "certify_event", name.clone(), format!("adopt:{name}"));
            audit.after_state = json!({ "status": "processed", "mark": "adopted" });
            writes.push(audit.write(now, &*random));
            writes.extend(announcement(&adoption, &base, channels.clone()).writes(now, &*random));
            let held = "update outbox_deliveries set status = 'uncertain', error = 'adopted after a crash' where object_key = $1";
            writes.push(Write::any("deliveries.hold", held, values![format!("certify_event:{name}")]));
            Ok((writes, Adopted::Recorded))
        });
        Ok(adopted.await?.0)
    }

    fn source_of(&self, account: &str) -> String {
        let endpoints = self.endpoints();
        let found = endpoints.values().find(|endpoint| endpoint.source.account() == account);
        found.map_or_else(|| account.to_owned(), |endpoint| endpoint.source.name().to_owned())
    }
}

fn change_key(identity: &Identity, recorded: &Recorded) -> Option<Digest> {
    let run = &recorded.run;
    let change = run.pointer("/event/change")?.as_str()?;
    let sub = run.pointer("/event/sub_account").and_then(Json::as_str).unwrap_or("");
    Some(Digest::of_fields(&["change", &identity.account, sub, change].map(str::as_bytes)))
}

fn record(adoption: &Adoption, source: &str, base: &str, now: Time) -> Result<Vec<Write>, Error> {
    let Adoption { identity, recorded, fingerprint, change } = adoption;
    let run = &recorded.run;
    let text = |pointer: &str| run.pointer(pointer).and_then(Json::as_str);
    let missing = |column: &str| Error::Corrupt { table: "run", column: column.into() };
    let mode = if text("/mode") == Some("test") { "test" } else { "live" };
    let sid = text("/subject/session_id");
    let stem = Stem {
        identity,
        sid,
        status: "processed",
        mode,
        created_at: now,
        updated_at: now,
        payload_hash: Digest::UNKNOWN,
    };
    let links = Links::of(base, recorded);
    let outcome = outcome(&stem, Some((&links, "adopted after a crash")), None);
    let event = "insert into certify_events (ref, source, scope, event_id, event_type, mode, occurred_at, sid, payload_hash, mark, status, fingerprint, response_code, response_body, created_at, updated_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'adopted', 'processed', $10, $11, $12, $13, $14)";
    let occurred = run.pointer("/event/occurred_at").and_then(Json::as_i64).map(Time::from_seconds);
    let event_row = values![
        &identity.reference,
        source,
        &identity.account,
        &identity.event_id,
        text("/event/type").ok_or_else(|| missing("event.type"))?,
        mode,
        occurred,
        sid,
        Digest::UNKNOWN,
        *fingerprint,
        outcome.code,
        outcome.body,
        now,
        now,
    ];
    let [html, zip, json_hash] = recorded.hashes;
    let certificate = values![
        &recorded.slug,
        *change,
        run.to_string(),
        recorded.run_hash,
        &recorded.key_id,
        recorded.signature,
        html,
        zip,
        json_hash,
        recorded.issued_at,
        now,
        &identity.reference,
    ];
    let passed = values![
        "orphaned",
        now,
        None::<&str>,
        "processing",
        now,
        None::<&str>,
        "processed",
        now,
        "adopted",
        &identity.reference
    ];
    Ok(vec![
        Write::one("events.adopt", event, event_row).numbered(),
        Write::one("certificates.insert", sql::CERTIFY, certificate).numbered(),
        Write::any("transitions.insert", sql::PASS_THREE, passed).numbered(),
    ])
}

fn announcement(adoption: &Adoption, base: &str, destinations: Vec<String>) -> OutboxRow {
    let links = Links::of(base, &adoption.recorded);
    let reference = &adoption.identity.reference;
    OutboxRow {
        event_name: "certify.certificate.issue.succeeded",
        object_type: "certify_event",
        object_id: reference.clone(),
        aggregate_version: 1,
        tenant_id: 1,
        operator_id: 1,
        request_id: format!("adopt:{reference}"),
        payload: json!({
            "kind": "issued",
            "event_id": adoption.identity.event_id,
            "ref": reference,
            "sid": adoption.recorded.run.pointer("/subject/session_id"),
            "mode": adoption.recorded.run.get("mode"),
            "html_url": links.html,
            "zip_url": links.zip,
            "json_url": links.json,
            "before_state": {},
            "after_state": { "status": "processed" },
        }),
        occurred_at: adoption.recorded.issued_at,
        destinations,
    }
}
