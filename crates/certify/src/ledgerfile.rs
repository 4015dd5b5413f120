//! `processed.jsonl` (AuditVisa specification 8.1, 14.1): an append-only export of processed events, and
//! the import of such a file from an existing installation. The database decides; the file is a copy.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use door::AuditRow;
use kernel::{Digest, Time};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use store::{Query, Row, Write, values};

use crate::acts::Refused;
use crate::identity::Identity;
use crate::intake::AuditVisa;
use crate::recovery::mark_write;

/// Lines in one batch of the export.
const BATCH: u32 = 500;
/// Lines in one transaction of an import.
const IMPORT_BATCH: usize = 200;
/// Longest line of an import, in bytes.
const LINE_MAX: usize = 64 * 1024;
const EXPORTED: &str = "export.audit";
const EXPORTED_BYTES: &str = "export.bytes";

/// Audit rows in the order of their commits, each with its event: what was processed after which.
const PROCESSED: &str = "select a.id, e.event_id, e.ref, e.sid, e.status, e.created_at, e.updated_at, e.response_body, e.payload_hash
from audit_events a join certify_events e on e.ref = a.object_id
where a.id > $1 and a.event_name in ('certify.event.processed', 'certify.event.change_reused', 'certify.event.adopted', 'certify.event.imported')
order by a.id limit $2";

impl AuditVisa {
    /// The next lines of the export after audit row `after`, and the row to go on after.
    ///
    /// # Errors
    /// The store's.
    pub async fn export_page(
        &self,
        after: i64,
        limit: u32,
    ) -> Result<(Vec<String>, Option<i64>), store::Error> {
        let limit = limit.clamp(1, BATCH);
        let rows = self
            .door
            .store()
            .query(Query::new("export.page", PROCESSED, values![after, i64::from(limit)]))
            .await?;
        let next = rows.last().map(|row| row.int(0)).transpose()?;
        Ok((rows.iter().map(line).collect::<Result<_, _>>()?, next))
    }

    /// Takes over the lines of a `processed.jsonl` from an existing installation for a source, so that
    /// its events are not certified again. All lines are checked before the first is kept; events that
    /// are known already stay as they are.
    ///
    /// # Errors
    /// [`Refused::Input`] names the first line that can't be used; nothing was kept then.
    pub async fn import(&self, source: &str, lines: Vec<String>, operator: &str) -> Result<Json, Refused> {
        let endpoint = self.endpoint(source);
        let endpoint =
            endpoint.ok_or_else(|| Refused::Input(format!("source {source:?} is not configured")))?;
        let mut parsed = Vec::with_capacity(lines.len());
        for (number, text) in lines.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let fault =
                |cause: String| Refused::Input(format!("line {}: {cause}; nothing was imported", number + 1));
            let line = Line::parse(text).map_err(fault)?;
            let identity = Identity::new(endpoint.source.account(), &line.event_id, endpoint.plain);
            if line.reference != identity.reference {
                return Err(fault(format!(
                    "ref is {:?}, source {source:?} gives {:?}",
                    line.reference, identity.reference
                )));
            }
            parsed.push((identity, line));
        }
        let total = parsed.len();
        let mut kept = 0;
        while !parsed.is_empty() {
            let batch = parsed.split_off(parsed.len().saturating_sub(IMPORT_BATCH));
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

    /// Appends what was processed since the last time to the file, synced before the mark moves.
    ///
    /// # Errors
    /// The store's, or the file's; nothing is lost, the next call goes on.
    pub async fn append_export(&self, file: &ProcessedFile) -> Result<u32, Refused> {
        let mut written = 0;
        loop {
            let after = self.mark(EXPORTED).await?;
            let (lines, next) = self.export_page(after, BATCH).await?;
            let Some(next) = next else { return Ok(written) };
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let target = file.clone();
            let length = tokio::task::spawn_blocking(move || target.append(text.as_bytes())).await;
            let length = length.map_err(std::io::Error::other).and_then(|done| done);
            let length = length
                .map_err(|cause| Refused::Input(format!("processed.jsonl can't be written: {cause}")))?;
            self.door
                .maintain("export.mark", Vec::new(), move |_, now| {
                    Ok((vec![mark_write(EXPORTED, next, now), mark_write(EXPORTED_BYTES, length, now)], ()))
                })
                .await?;
            written += u32::try_from(lines.len()).unwrap_or(u32::MAX);
        }
    }

    /// At start: what stands in the file beyond the mark is a torn or unmarked tail. It is kept aside,
    /// and its events are written again.
    ///
    /// # Errors
    /// The store's, or the file's.
    pub async fn mend_export(&self, file: &ProcessedFile) -> Result<(), Refused> {
        let marked = self.mark(EXPORTED_BYTES).await?;
        let kept = file.cut_tail(marked, self.clock.now());
        match kept.map_err(|cause| Refused::Input(format!("processed.jsonl can't be read: {cause}")))? {
            Some(aside) => tracing::warn!(bytes = aside.1, aside = %aside.0, "export_tail_kept_aside"),
            None if file.is_shorter_than(marked) => {
                tracing::warn!("processed.jsonl was rotated or cut; it goes on from its present end");
            }
            None => {}
        }
        Ok(())
    }

    /// Starts the file anew with every processed event: the old one is replaced in one step.
    ///
    /// # Errors
    /// The store's, or the file's; the old file stands then.
    pub async fn rebuild_export(&self, file: &ProcessedFile) -> Result<u64, Refused> {
        let fail =
            |cause: std::io::Error| Refused::Input(format!("processed.jsonl can't be rebuilt: {cause}"));
        let aside = file.path.with_extension("jsonl.new");
        let mut out = File::create(&aside).map_err(fail)?;
        let (mut after, mut count) = (0, 0_u64);
        loop {
            let (lines, next) = self.export_page(after, BATCH).await?;
            for line in &lines {
                writeln!(out, "{line}").map_err(fail)?;
                count += 1;
            }
            let Some(next) = next else { break };
            after = next;
        }
        out.sync_all().map_err(fail)?;
        let length = i64::try_from(out.metadata().map_err(fail)?.len()).unwrap_or(i64::MAX);
        std::fs::rename(&aside, &file.path).map_err(fail)?;
        file.sync_folder().map_err(fail)?;
        self.door
            .maintain("export.mark", Vec::new(), move |_, now| {
                Ok((vec![mark_write(EXPORTED, after, now), mark_write(EXPORTED_BYTES, length, now)], ()))
            })
            .await?;
        Ok(count)
    }
}

fn line(row: &Row) -> Result<String, store::Error> {
    let body: Json =
        row.text_or_null(7)?.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    let of = |name: &str| body.get(name).cloned().unwrap_or(Json::Null);
    let line = json!({
        "event_id": row.text(1)?,
        "ref": row.text(2)?,
        "sid": row.text_or_null(3)?,
        "status": "processed",
        "created_at": row.time(5)?.to_rfc3339_seconds(),
        "updated_at": row.time(6)?.to_rfc3339_seconds(),
        "html_url": of("html_url"),
        "zip_url": of("zip_url"),
        "run_hash": of("run_hash"),
        "payload_hash": hex::encode(row.bytes(8)?),
    });
    Ok(line.to_string())
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
    payload_hash: String,
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
        "payload_hash": line.payload_hash,
    });
    let payload = hex::decode(&line.payload_hash).ok().and_then(|bytes| Digest::from_slice(&bytes));
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
    [Write::one("events.import", sql, row), Write::one("transitions.insert", crate::sql::PASS, passed)]
}

/// The file on disk. Opened anew for every batch, so that it may be moved away at any time.
#[derive(Clone, Debug)]
pub struct ProcessedFile {
    path: PathBuf,
}

impl ProcessedFile {
    /// The file at `path`; it need not exist.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Appends whole lines and syncs; gives the file's length afterwards.
    fn append(&self, text: &[u8]) -> std::io::Result<i64> {
        let fresh = !self.path.exists();
        // Append mode: a file that was cut meanwhile grows from its new end, without a hole.
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(text)?;
        file.sync_all()?;
        if fresh {
            self.sync_folder()?;
        }
        Ok(i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX))
    }

    fn sync_folder(&self) -> std::io::Result<()> {
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    fn is_shorter_than(&self, length: i64) -> bool {
        let now = std::fs::metadata(&self.path).map_or(0, |meta| meta.len());
        now < u64::try_from(length).unwrap_or(0)
    }

    /// Moves what stands beyond `marked` bytes into a file of its own; gives its name and size.
    fn cut_tail(&self, marked: i64, now: Time) -> std::io::Result<Option<(String, u64)>> {
        let marked = u64::try_from(marked).unwrap_or(0);
        let mut file = match OpenOptions::new().read(true).write(true).open(&self.path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause),
        };
        if file.metadata()?.len() <= marked {
            return Ok(None);
        }
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(marked))?;
        file.read_to_end(&mut tail)?;
        let name = format!("processed.jsonl.tail-{}", now.seconds());
        let aside = self.path.with_file_name(&name);
        let mut out = OpenOptions::new().create(true).append(true).open(aside)?;
        out.write_all(&tail)?;
        out.sync_all()?;
        file.set_len(marked)?;
        file.sync_all()?;
        Ok(Some((name, tail.len() as u64)))
    }
}
