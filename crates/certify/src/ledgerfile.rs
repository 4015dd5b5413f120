//! `processed.jsonl` (AuditVisa specification 8.1, 14.1): an append-only export of processed events. The
//! database decides; the file is a copy, and is made anew on demand.
//!
//! Not here: the import of such a file (`import`), and whose hand is on it (crate `onceseal`).

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use door::Failure;
use kernel::{Digest, Time};
use serde_json::{Value as Json, json};
use store::{Query, Row, values};

use crate::acts::Refused;
use crate::intake::AuditVisa;
use crate::recovery::mark_write;

/// Lines in one batch of the export.
const BATCH: u32 = 500;
pub(crate) const EXPORTED: &str = "export.audit";
const EXPORTED_BYTES: &str = "export.bytes";
/// Length on record while the file is replaced: either file may stand there, and nothing is cut off it.
const LENGTH_UNCERTAIN: i64 = i64::MAX;
/// Longest pause while transactions are waited for; about twice as long in sum. After that the export goes on
/// with what was known to be settled before.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);
/// Audit rows without a line for the file that are read again at each look, at most.
const AHEAD_MAX: i64 = 1_000;

/// Audit rows in the order of their commits, each with its event: what was processed after which. $1 after
/// this row, $2 up to this one, $3 how many.
const PROCESSED: &str = "select a.id, e.event_id, e.ref, e.sid, e.status, e.created_at, e.updated_at, e.response_body, e.payload_hash
from audit_events a join certify_events e on e.ref = a.object_id
where a.id > $1 and a.id <= $2 and a.event_name in ('certify.event.processed', 'certify.event.change_reused', 'certify.event.adopted', 'certify.event.imported')
order by a.id limit $3";

/// The newest audit row, the next transaction's number, and the oldest's that runs. A transaction has its
/// number before its audit rows have theirs, so those with a number from the next one on add newer rows.
const HORIZON: &str =
    "select coalesce(max(id), 0), {next_transaction}, {oldest_transaction} from audit_events";

/// A part of the export.
pub(crate) struct Page {
    /// Without line ends.
    pub(crate) lines: Vec<String>,
    /// The audit row to go on after; none on an empty page.
    pub(crate) next: Option<i64>,
}

impl Page {
    fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

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
        let page = self.page(after, self.settled().await?, limit).await?;
        Ok((page.lines, page.next))
    }

    /// The next lines after audit row `after`, up to `to`.
    pub(crate) async fn page(&self, after: i64, to: i64, limit: u32) -> Result<Page, store::Error> {
        let limit = i64::from(limit.clamp(1, BATCH));
        let query = Query::new("export.page", PROCESSED, values![after, to, limit]);
        let rows = self.door.store().query(query).await?;
        Ok(Page {
            lines: rows.iter().map(line).collect::<Result<_, _>>()?,
            next: rows.last().map(|row| row.int(0)).transpose()?,
        })
    }

    /// The audit row up to which no further one can appear. Where many write, numbers commit out of order: a
    /// lower one may still be on its way while a higher one stands there. So it is waited for, in bounds,
    /// until every transaction that ran beside the newest row is over.
    async fn settled(&self) -> Result<i64, store::Error> {
        let look = || self.door.store().query(Query::new("audit.horizon", HORIZON, Vec::new()));
        let read = |rows: Vec<Row>| {
            let row = rows
                .first()
                .ok_or(store::Error::Statement { name: "audit.horizon", cause: "no row".into() })?;
            Ok::<_, store::Error>((row.int(0)?, row.int(1)?, row.int(2)?))
        };
        let (newest, begun, mut oldest) = read(look().await?)?;
        let mut pause = Duration::from_millis(5);
        while oldest < begun {
            if pause > SETTLED_WITHIN {
                return Ok(self.settled.load(Ordering::Relaxed));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
            (_, _, oldest) = read(look().await?)?;
        }
        Ok(self.settled.fetch_max(newest, Ordering::Relaxed).max(newest))
    }

    /// Appends what was processed since the last time to the file, synced before the mark moves. Only one
    /// hand at a time may be on the file; the same holds for the two below.
    ///
    /// # Errors
    /// The store's, or the file's; nothing is lost, the next call goes on.
    pub async fn append_export(&self, file: &ProcessedFile) -> Result<u32, Refused> {
        let mut written = 0;
        // Up to here and no further: other servers may write faster than this one reads, and a stop waits for
        // the end of this.
        let settled = self.settled().await?;
        loop {
            let after = self.mark(EXPORTED).await?;
            let page = self.page(after, settled, BATCH).await?;
            let Some(next) = page.next else {
                if settled.saturating_sub(after) > AHEAD_MAX {
                    self.set_mark(EXPORTED, settled).await?;
                }
                return Ok(written);
            };
            let (target, text) = (file.clone(), page.text());
            let length = on_disk(move || target.append(text.as_bytes())).await?;
            let (rows, bytes) = (self.mark_name(EXPORTED), self.mark_name(EXPORTED_BYTES));
            self.door
                .maintain("export.mark", Vec::new(), move |_, now| {
                    Ok((vec![mark_write(&rows, next, now), mark_write(&bytes, length, now)], ()))
                })
                .await?;
            written += u32::try_from(page.lines.len()).unwrap_or(u32::MAX);
        }
    }

    /// At start: what stands in the file beyond the mark is a torn or unmarked tail. It is kept aside,
    /// and its events are written again.
    ///
    /// # Errors
    /// The store's, or the file's.
    pub async fn mend_export(&self, file: &ProcessedFile) -> Result<(), Refused> {
        let marked = self.mark(EXPORTED_BYTES).await?;
        let (target, now) = (file.clone(), self.clock.now());
        let (aside, length) = on_disk(move || Ok((target.cut_tail(marked, now)?, target.length()?))).await?;
        if let Some((aside, bytes)) = aside {
            tracing::warn!(bytes, aside, "export_tail_kept_aside");
        }
        if length < marked {
            if marked != LENGTH_UNCERTAIN {
                tracing::warn!("processed.jsonl was rotated or cut; it goes on from its present end");
            }
            self.set_mark(EXPORTED_BYTES, length).await?;
        }
        Ok(())
    }

    /// Starts the file anew with every processed event, and gives its lines: the old one is replaced in one
    /// step. What others wrote to its end is kept aside.
    ///
    /// # Errors
    /// The store's, or the file's; the old file goes on then.
    pub async fn rebuild_export(&self, file: &ProcessedFile) -> Result<u64, Refused> {
        self.mend_export(file).await?;
        // Up to the mark, not further: after a crash either file goes on from there.
        let to = self.mark(EXPORTED).await?;
        let fresh = file.path.with_extension("jsonl.new");
        let written = self.write_export(fresh.clone(), to).await;
        let (lines, length) = written.inspect_err(|_| {
            // The next rebuild would replace it as well; until then it only takes room.
            let _ = std::fs::remove_file(&fresh);
        })?;
        self.set_mark(EXPORTED_BYTES, LENGTH_UNCERTAIN).await?;
        let target = file.clone();
        on_disk(move || target.replace(&fresh)).await?;
        self.set_mark(EXPORTED_BYTES, length).await?;
        Ok(lines + u64::from(self.append_export(file).await?))
    }

    /// Writes and syncs the lines up to an audit row; gives their number and the file's length.
    async fn write_export(&self, path: PathBuf, to: i64) -> Result<(u64, i64), Refused> {
        let mut out = on_disk(move || File::create(path)).await?;
        let (mut after, mut lines) = (0, 0);
        loop {
            let page = self.page(after, to, BATCH).await?;
            let Some(next) = page.next else { break };
            let text = page.text();
            out = on_disk(move || out.write_all(text.as_bytes()).map(|()| out)).await?;
            lines += page.lines.len() as u64;
            after = next;
        }
        let length = on_disk(move || out.sync_all().and_then(|()| length(&out.metadata()?))).await?;
        Ok((lines, length))
    }
}

/// Work on the file, where it may wait. What fails there is ours, never the asker's.
async fn on_disk<T, F>(work: F) -> Result<T, Refused>
where
    T: Send + 'static,
    F: FnOnce() -> std::io::Result<T> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).and_then(|done| done);
    done.map_err(|cause| Failure::Step { step: "processed.jsonl", cause: cause.to_string() }.into())
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
        "payload_hash": Some(row.digest(8)?).filter(|hash| *hash != Digest::UNKNOWN).map(|hash| hash.to_hex()),
    });
    Ok(line.to_string())
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

    /// Where it stands.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        length(&file.metadata()?)
    }

    /// Puts a file in its place that is whole and synced.
    fn replace(&self, fresh: &Path) -> std::io::Result<()> {
        std::fs::rename(fresh, &self.path)?;
        self.sync_folder()
    }

    fn sync_folder(&self) -> std::io::Result<()> {
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    fn length(&self) -> std::io::Result<i64> {
        match std::fs::metadata(&self.path) {
            Ok(meta) => length(&meta),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(cause) => Err(cause),
        }
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

/// As the marks hold it.
fn length(meta: &std::fs::Metadata) -> std::io::Result<i64> {
    i64::try_from(meta.len()).map_err(std::io::Error::other)
}
