//! After the database was restored to an earlier moment: what stands outside of it and says more than it
//! (files, `processed.jsonl`, key files), and what it would do a second time. What verifies is put on record
//! again; the rest is told, and nothing is removed or guessed.
//!
//! Not here: what a crash left (`recovery`), which a server mends by itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use door::AuditRow;
use futures::TryStreamExt as _;
use kernel::Digest;
use serde_json::{Value as Json, json};
use store::{Query, Write, values};

use crate::acts::Refused;
use crate::intake::AuditVisa;
use crate::ledgerfile::{EXPORTED, ProcessedFile};
use crate::orphans::Found;

/// Entries listed of each kind; more are counted.
const SHOWN: usize = 200;
/// Slugs or references looked up in one read.
const LOOK_UP: usize = 256;
/// Lines of a page of the export.
const PAGE: u32 = 500;

/// What happens to announcements that may have gone out before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcements {
    /// They are told, and sent at the next start.
    Tell,
    /// They wait for a person, as `uncertain`.
    Hold,
}

/// Findings of one kind: all counted, the first ones kept.
#[derive(Default)]
struct Findings {
    count: u64,
    list: Vec<Json>,
}

impl Findings {
    fn push(&mut self, finding: Json) {
        self.count += 1;
        if self.list.len() < SHOWN {
            self.list.push(finding);
        }
    }

    fn told(self) -> Json {
        json!({ "count": self.count, "list": self.list })
    }
}

impl AuditVisa {
    /// Compares the restored database with files, export and keys. For a moment at which no server runs.
    ///
    /// # Errors
    /// [`Refused`], after what could be done was done; another call goes on.
    pub async fn after_restore(
        &self,
        export: &ProcessedFile,
        announcements: Announcements,
        operator: &str,
    ) -> Result<Json, Refused> {
        // Before anything is adopted: those of adopted certificates are held by themselves.
        let announced = self.unsent(announcements).await?;
        // Keys first: files that they signed are known by them.
        let keys = self.forgotten_keys(operator).await?;
        let (adopted, files) = self.forgotten_files().await?;
        let (lines, differing, named) = self.forgotten_lines(export).await?;
        let unlisted = self.unlisted_records(&named).await?;
        let kinds = [&keys, &adopted, &files, &lines, &differing, &unlisted, &announced];
        let found: u64 = kinds.iter().map(|kind| kind.count).sum();
        let counts = kinds.map(|kind| kind.count);
        self.note_restore(operator, counts).await?;
        Ok(json!({
            "found": found,
            "keys": keys.told(),
            "adopted": adopted.told(),
            "files_without_record": files.told(),
            "lines_without_record": lines.told(),
            "lines_that_differ": differing.told(),
            "records_without_line": unlisted.told(),
            "announcements": announced.told(),
        }))
    }

    async fn forgotten_keys(&self, operator: &str) -> Result<Findings, Refused> {
        let mut findings = Findings::default();
        for key in self.bring_keys_back(operator).await? {
            let became = key.cause.map_or_else(
                || "on record again as retired; if it was the active one, make a new one: `onceseal keys rotate`".to_owned(),
                |cause| format!("not on record, and its file can't be used: {cause}"),
            );
            findings.push(json!({ "key_id": key.id.to_string(), "what": became }));
        }
        Ok(findings)
    }

    /// Certificates whose files stand there and whose record does not: those that became one, and the others.
    async fn forgotten_files(&self) -> Result<(Findings, Findings), Refused> {
        let (mut adopted, mut others) = (Findings::default(), Findings::default());
        let mut told = HashSet::new();
        let mut listed = std::pin::pin!(self.shared.shelf.slugs().try_chunks(LOOK_UP));
        let fail = |cause: &dyn std::fmt::Display| Refused::Input(cause.to_string());
        while let Some(chunk) = listed.try_next().await.map_err(|cause| fail(&cause.1))? {
            let slugs: Vec<String> = chunk.into_iter().map(|(slug, _)| slug).collect();
            let sql = "select slug from certify_certificates where slug = $1";
            let queries =
                slugs.iter().map(|slug| Query::new("certificates.slug", sql, values![slug])).collect();
            for (slug, rows) in slugs.into_iter().zip(self.door.store().queries(queries).await?) {
                // Each form of a certificate is listed.
                if !rows.is_empty() || !told.insert(Digest::of(slug.as_bytes()).word()) {
                    continue;
                }
                match self.adopt_files(&slug).await? {
                    Found::Adopted(reference) => adopted.push(json!({ "ref": reference, "slug": slug })),
                    Found::Known => {}
                    Found::Superfluous(reference) => {
                        let what = "its event or change has another certificate on record";
                        others.push(json!({ "slug": slug, "ref": reference, "what": what }));
                    }
                    Found::Unusable(what) => others.push(json!({ "slug": slug, "what": what })),
                    Found::KeyForgotten(key) => {
                        let what = format!("signed with the key {key}, which could not be brought back");
                        others.push(json!({ "slug": slug, "what": what }));
                    }
                }
            }
        }
        Ok((adopted, others))
    }

    /// Lines whose event has no record, lines that say something else than the record, and the references of
    /// all lines.
    async fn forgotten_lines(
        &self,
        export: &ProcessedFile,
    ) -> Result<(Findings, Findings, HashSet<i64>), Refused> {
        let (mut missing, mut differing) = (Findings::default(), Findings::default());
        let mut named = HashSet::new();
        for file in export.with_tails().map_err(|cause| unreadable(&cause))? {
            let mut lines = Lines::open(&file).map_err(|cause| unreadable(&cause))?;
            loop {
                let chunk = lines.next(LOOK_UP).map_err(|cause| unreadable(&cause))?;
                if chunk.is_empty() {
                    break;
                }
                let sql = "select e.ref, c.run_hash from certify_events e left join certify_certificates c on c.event = coalesce(e.certificate_event, e.id) where e.ref = $1";
                let queries =
                    chunk.iter().map(|line| Query::new("events.line", sql, values![&line.reference]));
                let answers = self.door.store().queries(queries.collect()).await?;
                for (line, rows) in chunk.into_iter().zip(answers) {
                    let first = named.insert(word(&line.reference));
                    let shown = || json!({ "ref": line.reference, "event_id": line.event_id, "html_url": line.html_url });
                    match rows.first() {
                        None if first => missing.push(shown()),
                        None => {}
                        Some(row) => {
                            let kept = row.bytes_or_null(1)?.map(hex::encode);
                            if kept.is_some() && line.run_hash.is_some() && kept != line.run_hash {
                                differing.push(shown());
                            }
                        }
                    }
                }
            }
        }
        Ok((missing, differing, named))
    }

    /// Records that were exported, by the database's own mark, and have no line.
    async fn unlisted_records(&self, named: &HashSet<i64>) -> Result<Findings, Refused> {
        let mut findings = Findings::default();
        let exported = self.mark(EXPORTED).await?;
        let mut after = 0;
        while after < exported {
            let page = self.page(after, exported, PAGE).await?;
            let Some(next) = page.next else { break };
            for line in &page.lines {
                let line: Json = serde_json::from_str(line).unwrap_or_default();
                let reference = line.get("ref").and_then(Json::as_str).unwrap_or_default();
                if !named.contains(&word(reference)) {
                    findings.push(json!({ "ref": reference }));
                }
            }
            after = next;
        }
        Ok(findings)
    }

    /// Announcements that the restored database has still to send: the time that was undone may have sent
    /// them.
    async fn unsent(&self, announcements: Announcements) -> Result<Findings, Refused> {
        let mut findings = Findings::default();
        let mut after = 0;
        loop {
            let sql = "select d.id, d.destination, o.object_id, o.event_name, d.created_at from outbox_deliveries d join outbox o on o.id = d.outbox_id
                where d.status in ('pending', 'sending') and d.id > $1 order by d.id limit $2";
            let page = Query::new("deliveries.unsent", sql, values![after, i64::from(PAGE)]);
            let rows = self.door.store().query(page).await?;
            let Some(last) = rows.last() else { return Ok(findings) };
            after = last.int(0)?;
            for row in &rows {
                findings.push(json!({
                    "id": row.int(0)?,
                    "destination": row.text(1)?,
                    "ref": row.text(2)?,
                    "kind": row.text(3)?,
                    "since": row.time(4)?.to_rfc3339_seconds(),
                    "held": announcements == Announcements::Hold,
                }));
            }
            if announcements == Announcements::Hold {
                self.hold(rows.first().map_or(Ok(after), |row| row.int(0))?, after).await?;
            }
        }
    }

    async fn hold(&self, from: i64, to: i64) -> Result<(), Refused> {
        let sql = "update outbox_deliveries set status = 'uncertain', claimed_by = null, claimed_until = null, error = 'the database was restored; it may have been sent', updated_at = $1
            where id between $2 and $3 and status in ('pending', 'sending')";
        let plan = move |_, now| Ok((vec![Write::any("deliveries.hold", sql, values![now, from, to])], ()));
        self.door.maintain("restored.hold", Vec::new(), plan).await?;
        Ok(())
    }

    async fn note_restore(&self, operator: &str, counts: [u64; 7]) -> Result<(), Refused> {
        let [keys, adopted, files, lines, differing, unlisted, announcements] = counts;
        let random = self.door.random();
        let mut audit = AuditRow::system(
            "certify.store.after_restore",
            "store",
            "certify".into(),
            format!("restored:{operator}"),
        );
        audit.metadata = json!({ "by": operator, "keys": keys, "adopted": adopted, "files_without_record": files, "lines_without_record": lines, "lines_that_differ": differing, "records_without_line": unlisted, "announcements": announcements });
        self.door
            .maintain("restored.note", Vec::new(), move |_, now| {
                Ok((vec![audit.clone().write(now, &*random)], ()))
            })
            .await?;
        Ok(())
    }
}

fn word(reference: &str) -> i64 {
    Digest::of(reference.as_bytes()).word()
}

fn unreadable(cause: &std::io::Error) -> Refused {
    Refused::Input(format!("processed.jsonl can't be read: {cause}"))
}

/// A line of the export, as far as it matters here.
struct Line {
    reference: String,
    event_id: Json,
    run_hash: Option<String>,
    html_url: Json,
}

/// A file's whole lines.
struct Lines {
    file: std::io::BufReader<std::fs::File>,
}

impl Lines {
    fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { file: std::io::BufReader::new(std::fs::File::open(path)?) })
    }

    /// The next ones that name an event; empty at the end. A torn line names none.
    fn next(&mut self, limit: usize) -> std::io::Result<Vec<Line>> {
        use std::io::BufRead as _;
        let mut lines = Vec::with_capacity(limit);
        let mut bytes = Vec::new();
        while lines.len() < limit {
            bytes.clear();
            if self.file.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let Ok(line) = serde_json::from_slice::<Json>(&bytes) else { continue };
            let of = |name: &str| line.get(name).cloned().unwrap_or_default();
            let text = |name: &str| line.get(name).and_then(Json::as_str).map(ToOwned::to_owned);
            if let Some(reference) = text("ref") {
                let (event_id, html_url) = (of("event_id"), of("html_url"));
                lines.push(Line { reference, event_id, run_hash: text("run_hash"), html_url });
            }
        }
        Ok(lines)
    }
}

impl ProcessedFile {
    /// The file and what was ever kept aside of it, as far as they stand there, oldest first.
    fn with_tails(&self) -> std::io::Result<Vec<PathBuf>> {
        let path = self.path();
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("processed.jsonl.tail-") {
                files.push(entry.path());
            }
        }
        files.sort();
        if path.is_file() {
            files.push(path.to_owned());
        }
        Ok(files)
    }
}
