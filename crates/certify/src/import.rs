//! A `processed.jsonl` of an existing installation (AuditVisa specification 8.1) taken over, so that its
//! events are not certified again. Not here: the file that this installation writes (`ledgerfile`).

use std::collections::HashSet;

use door::AuditRow;
use kernel::{Digest, Time};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use store::{Query, Write, values};

use crate::acts::Refused;
use crate::identity::Identity;
use crate::intake::{AuditVisa, Endpoint};

/// Lines in one transaction.
const BATCH: usize = 200;
/// Longest line, in bytes.
const LINE_MAX: usize = 64 * 1024;

impl AuditVisa {
    /// Takes over the lines of a `processed.jsonl` from an existing installation for a source, so that
    /// its events are not certified again. All lines are checked before the first is kept; events that
    /// are known already stay as they are, and of several lines about one event the first counts.
    ///
    /// # Errors
    /// [`Refused::Input`] names the first line that can't be used; nothing was kept then.
    pub async fn import(&self, source: &str, lines: Vec<String>, operator: &str) -> Result<Json, Refused> {
        let endpoint = self.endpoint(source);
        let endpoint =
            endpoint.ok_or_else(|| Refused::Input(format!("source {source:?} is not configured")))?;
        let parsed = parsed(&endpoint, &lines)?;
        let total = parsed.len();
        let mut seen = HashSet::new();
        let mut fresh =
            parsed.into_iter().filter(|(identity, _)| seen.insert(identity.reference.clone())).peekable();
        let mut kept = 0;
        while fresh.peek().is_some() {
            let batch = fresh.by_ref().take(BATCH).collect();
            kept += self.import_batch(source.to_owned(), batch, operator.to_owned()).await?;
        }
        Ok(json!({ "lines": total, "imported": kept, "already_known": total - kept }))
    }

    async fn import_batch(
        &self,
        source: String,
        batch: Vec<(Identity, Line)>,
        operator: String,
    ) -> Result<usize, Refused> {
        let known = "select id from certify_events where ref = $1";
        let reads =
            batch.iter().map(|(identity, _)| Query::new("events.known", known, values![&identity.reference]));
        let reads = reads.collect();
        let random = self.door.random();
        let imported = self.door.maintain("import", reads, move |rows, now| {
            let mut writes = Vec::new();
            let mut kept = 0;
            for ((identity, line), found) in batch.iter().zip(&rows) {
                if found.is_empty() {
                    kept += 1;
                    writes.extend(imported(&source, identity, line));
                    let name = identity.reference.clone();
                    let mut audit = AuditRow::system(
                        "certify.event.imported",
                        "certify_event",
                        name,
                        format!("import:{operator}"),
                    );
                    audit.after_state = json!({ "status": "processed", "mark": "imported" });
                    writes.push(audit.write(now, &*random));
                }
            }
            Ok((writes, kept))
        });
        Ok(imported.await?.0)
    }
}

/// All lines, each with the identity that the source gives its event.
fn parsed(endpoint: &Endpoint, lines: &[String]) -> Result<Vec<(Identity, Line)>, Refused> {
    let mut parsed = Vec::with_capacity(lines.len());
    for (number, text) in lines.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let fault =
            |cause: String| Refused::Input(format!("line {}: {cause}; nothing was imported", number + 1));
        let line = Line::parse(text).map_err(fault)?;
        let identity = Identity::new(endpoint.source.account(), &line.event_id, endpoint.plain);
        if line.reference != identity.reference {
            let (source, wanted) = (endpoint.source.name(), &identity.reference);
            return Err(fault(format!("ref is {:?}, source {source:?} gives {wanted:?}", line.reference)));
        }
        parsed.push((identity, line));
    }
    Ok(parsed)
}

/// One line of section 8.1.
#[derive(Debug, Deserialize)]
struct Line {
    event_id: String,
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default)]
    sid: Option<String>,
    status: String,
    created_at: String,
    updated_at: String,
    html_url: String,
    zip_url: String,
    run_hash: String,
    #[serde(default)]
    payload_hash: Option<String>,
    #[serde(skip)]
    times: (Time, Time),
}

impl Line {
    fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LINE_MAX {
            return Err(format!("longer than {LINE_MAX} bytes"));
        }
        let value = seal::json::parse(text.as_bytes()).map_err(|cause| cause.to_string())?;
        let mut line: Self = serde_json::from_value(value).map_err(|cause| cause.to_string())?;
        if line.status != "processed" {
            return Err(format!("status is {:?}, only \"processed\" is imported", line.status));
        }
        if line.event_id.is_empty() || line.event_id.len() > 255 {
            return Err("event_id must have 1 to 255 bytes".into());
        }
        let time = |text: &str| Time::parse_rfc3339(text).map_err(|cause| cause.to_string());
        line.times = (time(&line.created_at)?, time(&line.updated_at)?);
        Ok(line)
    }
}

/// The rows of an imported event: no certificate of ours, its links are foreign.
fn imported(source: &str, identity: &Identity, line: &Line) -> [Write; 2] {
    let (created, updated) = line.times;
    let payload = line.payload_hash.as_ref().and_then(|hash| Digest::from_slice(&hex::decode(hash).ok()?));
    let body = json!({
        "event_id": line.event_id,
        "ref": line.reference,
        "sid": line.sid,
        "record_status": "processed",
        "created_at": created.to_rfc3339_seconds(),
        "updated_at": updated.to_rfc3339_seconds(),
        "html_url": line.html_url,
        "zip_url": line.zip_url,
        "run_hash": line.run_hash,
        "payload_hash": payload.map(|hash| hash.to_hex()),
    });
    let sql = "insert into certify_events (ref, source, scope, event_id, event_type, mode, sid, payload_hash, mark, status, fingerprint, response_code, response_body, created_at, updated_at)
        values ($1, $2, $3, $4, 'imported', 'live', $5, $6, 'imported', 'processed', $7, 200, $8, $9, $10)";
    let row = values![
        &identity.reference,
        source,
        &identity.account,
        &identity.event_id,
        line.sid.clone(),
        payload.unwrap_or(Digest::UNKNOWN),
        Digest::UNKNOWN,
        body.to_string(),
        created,
        updated,
    ];
    let passed = values!["processed", updated, "imported", &identity.reference];
    [
        Write::one("events.import", sql, row).numbered(),
        Write::one("transitions.insert", crate::sql::PASS, passed).numbered(),
    ]
}
