//! What a crash or a fault left half-done (AuditVisa specification section 11), found and finished at
//! start and while running: lapsed claims, failed attempts, files without a record, records without
//! files, files not yet synced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use door::AuditRow;
use kernel::{Digest, Time};
use metrics::counter;
use seal::verify::{Trust, Verdict, verify};
use serde_json::{Value as Json, json};
use store::{Query, Row, Write, values};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::acts::Refused;
use crate::adopt::{self, Adopted};
use crate::delivery::{hash_of, recorded};
use crate::intake::AuditVisa;
use crate::issue;
use crate::shelf::Form;
use crate::sql;

/// Between two sweeps while running.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Between two looks for files that are due to be synced.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Certificates synced at a time.
const SYNC_BATCH: u32 = 1024;
/// The stated limit of the backlog, in certificates: beyond it files are synced however young they are.
const BACKLOG_MAX: i64 = 65_536;
/// Longest time that syncing may hold up a stop.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// Certificates whose files are compared at a time.
const CHECK_BATCH: u32 = 512;
/// Open events looked at in one sweep.
const OPEN_MAX: i64 = 256;
/// A failed event is tried again this often by itself; then it waits for its sender or a person.
const ATTEMPTS_MAX: i64 = 10;
/// First pause after a failure; it doubles with each attempt.
const RETRY_FIRST: Duration = Duration::from_secs(30);
/// Files without a record are left alone for this long: their event may be on its way again.
const ORPHAN_AFTER: Duration = Duration::from_secs(15 * 60);
/// Slugs looked up in one read.
const LOOK_UP: usize = 256;

/// What a sweep found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Events tried again.
    pub retried: u32,
    /// Certificates whose files were rebuilt.
    pub rebuilt: u32,
    /// Files without a record that became one.
    pub adopted: u32,
    /// Files without a record that don't verify, or of erased certificates: removed.
    pub removed: u32,
    /// Records whose files can't be made again.
    pub orphaned: u32,
}

impl AuditVisa {
    /// Before the first delivery: leftovers of interrupted writes go, and certificates that were not
    /// yet synced before a crash get their files checked.
    ///
    /// # Errors
    /// The store's, or the folder's.
    pub async fn recover_at_start(&self) -> Result<Swept, Refused> {
        let swept = self.shared.shelf.sweep();
        swept.map_err(|cause| Refused::Input(format!("the delivery folder can't be swept: {cause}")))?;
        let mut done = Swept::default();
        let synced = self.mark("files.synced").await?;
        self.check_files(synced, &mut done).await?;
        Ok(done)
    }

    /// A whole sweep, as at start and more: open events, all files, files without a record.
    ///
    /// # Errors
    /// [`Refused`], after what could be done was done.
    pub async fn reconcile(&self, operator: &str) -> Result<Json, Refused> {
        let mut done = Swept::default();
        self.sweep_open(&mut done).await?;
        self.check_files(0, &mut done).await?;
        self.sweep_orphaned().await?;
        self.sweep_shelf(&mut done).await?;
        let random = self.door.random();
        let mut audit = AuditRow::system(
            "certify.store.reconcile",
            "store",
            "certify".into(),
            format!("reconcile:{operator}"),
        );
        audit.metadata = json!({ "by": operator, "retried": done.retried, "rebuilt": done.rebuilt, "adopted": done.adopted, "removed": done.removed, "orphaned": done.orphaned });
        let report = audit.metadata.clone();
        self.door
            .maintain("reconcile", Vec::new(), move |_, now| Ok((vec![audit.write(now, &*random)], ())))
            .await?;
        Ok(report)
    }

    /// Lapsed claims and failed attempts whose pause is over.
    pub(crate) async fn sweep_open(&self, done: &mut Swept) -> Result<(), Refused> {
        let sql = "select ref, attempt_no, updated_at, locked_until, status from certify_events where status in ('processing', 'failed') and response_code is null order by updated_at limit $1";
        let rows = self.door.store().query(Query::new("events.unfinished", sql, values![OPEN_MAX])).await?;
        let now = self.clock.now();
        for row in rows {
            let (reference, attempts) = (row.text(0)?, row.int(1)?);
            let due = match row.text(4)? {
                "processing" => row.time_or_null(3)?.unwrap_or(now),
                _ if attempts >= ATTEMPTS_MAX => continue,
                _ => row
                    .time(2)?
                    .plus(RETRY_FIRST * 2_u32.saturating_pow(u32::try_from(attempts).unwrap_or(31))),
            };
            if due > now {
                continue;
            }
            let found = self.only(reference).await?;
            match self.command_again(&found, "recovery").await {
                Ok(command) => match self.run_again(command).await {
                    Ok(_) => done.retried += 1,
                    Err(cause) => tracing::warn!(r#ref = reference, %cause, "event_failed"),
                },
                Err(cause) => tracing::warn!(r#ref = reference, %cause, "event_not_recoverable"),
            }
        }
        Ok(())
    }

    /// Checks the files of certificates after event number `after`; rebuilds what is missing or damaged.
    pub(crate) async fn check_files(&self, after: i64, done: &mut Swept) -> Result<(), Refused> {
        let mut after = after;
        loop {
            let query = Query::new(
                "certificates.after",
                sql::CERTIFICATES_AFTER,
                values![after, i64::from(CHECK_BATCH)],
            );
            let rows = self.door.store().query(query).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.int(0)?;
            for row in &rows {
                self.check_certificate(row, done).await?;
            }
        }
    }

    async fn check_certificate(&self, row: &Row, done: &mut Swept) -> Result<(), Refused> {
        let (event, Some(recorded)) = recorded(row)? else {
            return Ok(());
        };
        let mut whole = true;
        for form in Form::ALL {
            let stands = self.shared.shelf.get(&recorded.slug, form).await.ok().flatten();
            whole &= stands.is_some_and(|bytes| Digest::of(&bytes) == hash_of(&recorded, form));
        }
        if whole {
            return Ok(());
        }
        match self.rebuild(&recorded) {
            Ok(files) => {
                let put = issue::put(&self.shared.shelf, &recorded.slug, files).await;
                put.map_err(|cause| Refused::Input(cause.to_string()))?;
                tracing::info!(slug = %recorded.slug, "delivery_written");
                done.rebuilt += 1;
            }
            Err(cause) => {
                self.mark_orphaned(event, &cause.to_string()).await;
                done.orphaned += 1;
            }
        }
        Ok(())
    }

    /// A record whose files can't be made again waits for a person.
    pub(crate) async fn mark_orphaned(&self, event: i64, cause: &str) {
        counter!("certify_orphaned_total").increment(1);
        let cause: String = cause.chars().take(500).collect();
        let note = cause.clone();
        let marked = self.door.maintain("orphaned", Vec::new(), move |_, now| {
            let status = "update certify_events set status = 'orphaned', cause = $1, updated_at = $2 where id = $3";
            let pass = "insert into certify_transitions (event, n, status, at, note) select $1, coalesce(max(n), 0) + 1, 'orphaned', $2, $3 from certify_transitions where event = $4";
            let writes = vec![
                Write::one("events.orphaned", status, values![&cause, now, event]),
                Write::one("transitions.insert", pass, values![event, now, cause, event]),
            ];
            Ok((writes, ()))
        });
        match marked.await {
            Ok(_) => tracing::error!(event, cause = %note, "event_orphaned"),
            Err(error) => tracing::error!(event, %error, "event_orphaned_not_recorded"),
        }
    }

    /// Orphaned records whose files can be made again stand as before.
    async fn sweep_orphaned(&self) -> Result<(), Refused> {
        let sql = "select coalesce(certificate_event, id), ref from certify_events where status = 'orphaned' order by updated_at limit $1";
        for row in self.door.store().query(Query::new("events.orphaned", sql, values![OPEN_MAX])).await? {
            let Some(certificate) = self.certificate_of(row.int(0)?).await? else { continue };
            let Some(kept) = recorded(&certificate)?.1 else { continue };
            if self.rebuild(&kept).is_err() {
                continue;
            }
            let reference = row.text(1)?.to_owned();
            let mended = "update certify_events set status = 'processed', cause = null, updated_at = $1 where ref = $2 and status = 'orphaned'";
            self.door
                .maintain("mended", Vec::new(), move |_, now| {
                    let passed = values!["processed", now, "reconciled", &reference];
                    let writes = vec![
                        Write::one("events.mended", mended, values![now, &reference]),
                        Write::one("transitions.insert", sql::PASS, passed),
                    ];
                    Ok((writes, ()))
                })
                .await?;
        }
        Ok(())
    }

    /// Files without a record: what verifies and is whole becomes one; the rest goes.
    pub(crate) async fn sweep_shelf(&self, done: &mut Swept) -> Result<(), Refused> {
        let listed = self.shared.shelf.slugs().await.map_err(|cause| Refused::Input(cause.to_string()))?;
        let limit = self.clock.now().minus(ORPHAN_AFTER).micros();
        let mut newest: BTreeMap<String, i64> = BTreeMap::new();
        for (slug, _, changed) in listed {
            let entry = newest.entry(slug).or_insert(changed);
            *entry = (*entry).max(changed);
        }
        let old: Vec<String> =
            newest.into_iter().filter(|(_, at)| *at < limit).map(|(slug, _)| slug).collect();
        for slugs in old.chunks(LOOK_UP) {
            let sql = "select slug, run is null from certify_certificates where slug = $1";
            let queries =
                slugs.iter().map(|slug| Query::new("certificates.slug", sql, values![slug])).collect();
            for (slug, rows) in slugs.iter().zip(self.door.store().queries(queries).await?) {
                match rows.first().map(|row| row.flag(1)).transpose()? {
                    Some(false) => {}
                    Some(true) => self.discard(slug, done).await,
                    None => self.adopt_or_discard(slug, done).await?,
                }
            }
        }
        Ok(())
    }

    async fn adopt_or_discard(&self, slug: &str, done: &mut Swept) -> Result<(), Refused> {
        let set = self.keys().jwks()?;
        let Ok(Some(json)) = self.shared.shelf.get(slug, Form::Json).await else {
            self.discard(slug, done).await;
            return Ok(());
        };
        let genuine =
            matches!(verify(&json, &Trust::from(&set)).verdict, Verdict::Valid | Verdict::ValidDateClaimed);
        let adoption = genuine.then(|| adopt::read(&json, slug, &self.keys())).flatten();
        let Some(adoption) = adoption.filter(|found| self.rebuild(&found.recorded).is_ok()) else {
            self.discard(slug, done).await;
            return Ok(());
        };
        let reference = adoption.identity.reference.clone();
        match self.adopt(adoption).await? {
            Adopted::Recorded => {
                tracing::warn!(r#ref = %reference, slug, "event_orphaned");
                done.adopted += 1;
            }
            // Its event came while the sweep looked: the files are its.
            Adopted::Known => {}
            Adopted::Superfluous => self.discard(slug, done).await,
        }
        Ok(())
    }

    async fn discard(&self, slug: &str, done: &mut Swept) {
        for form in Form::ALL {
            match self.shared.shelf.remove(slug, form).await {
                Ok(()) => {}
                Err(cause) => tracing::warn!(slug, %cause, "delivery_not_removed"),
            }
        }
        tracing::warn!(slug, "delivery_without_record_removed");
        done.removed += 1;
    }

    /// Syncs the files of the next certificates after the mark that are at least `age` old; `false` when
    /// there were none. By then the system has usually written them by itself, and the sync costs next to
    /// nothing; a sync of each new file at once would make the database's commits wait for it.
    ///
    /// # Errors
    /// [`Refused`]; the mark stays where it was then.
    pub async fn sync_files(&self, age: Duration) -> Result<bool, Refused> {
        let after = self.mark("files.synced").await?;
        let sql = "select event, slug from certify_certificates where event > $1
            and (created_at <= $2 or event <= (select max(event) from certify_certificates) - $3) order by event limit $4";
        let values = values![after, self.clock.now().minus(age), BACKLOG_MAX, i64::from(SYNC_BATCH)];
        let rows = self.door.store().query(Query::new("certificates.unsynced", sql, values)).await?;
        let Some(last) = rows.last() else { return Ok(false) };
        let last = last.int(0)?;
        let slugs =
            rows.iter().map(|row| row.text(1).map(ToOwned::to_owned)).collect::<Result<Vec<_>, _>>()?;
        let missing = self.sync(slugs).await?;
        if !missing.is_empty() {
            // A sweep took them for leftovers just before their commit: past the mark nobody would look.
            let mut done = Swept::default();
            for slug in &missing {
                let query = Query::new("certificates.by_slug", sql::BY_SLUG, values![slug]);
                for row in self.door.store().query(query).await? {
                    self.check_certificate(&row, &mut done).await?;
                }
            }
            self.sync(missing).await?;
        }
        self.set_mark("files.synced", last).await?;
        Ok(true)
    }

    async fn sync(&self, slugs: Vec<String>) -> Result<Vec<String>, Refused> {
        self.shared.shelf.sync(slugs).await.map_err(|cause| Refused::Input(cause.to_string()))
    }

    pub(crate) async fn mark(&self, name: &'static str) -> Result<i64, store::Error> {
        let query = Query::new("marks.get", "select value from certify_marks where name = $1", values![name]);
        let rows = self.door.store().query(query).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    pub(crate) async fn set_mark(&self, name: &'static str, value: i64) -> Result<(), Refused> {
        self.door
            .maintain("mark", Vec::new(), move |_, now| Ok((vec![mark_write(name, value, now)], ())))
            .await?;
        Ok(())
    }

    /// Raw payloads whose time is over go.
    pub(crate) async fn drop_payloads(&self) -> Result<(), Refused> {
        let sql = "delete from certify_payloads where event in (select event from certify_payloads where keep_until <= $1 order by keep_until limit 500)";
        self.door
            .maintain("payloads", Vec::new(), move |_, now| {
                Ok((vec![Write::any("payloads.drop", sql, values![now])], ()))
            })
            .await?;
        Ok(())
    }
}

pub(crate) fn mark_write(name: &'static str, value: i64, now: Time) -> Write {
    let sql = "insert into certify_marks (name, value, updated_at) values ($1, $2, $3)
      on conflict (name) do update set value = excluded.value, updated_at = excluded.updated_at";
    Write::one("marks.set", sql, values![name, value, now])
}

/// The background workers: one syncs files, one sweeps.
#[derive(Debug)]
pub struct Recovery {
    stopping: Arc<(AtomicBool, Notify)>,
    tasks: Vec<JoinHandle<()>>,
}

impl Recovery {
    /// Starts the workers; files are synced when they are `sync_after` old.
    #[must_use]
    pub fn start(visa: &Arc<AuditVisa>, sync_after: Duration) -> Self {
        let stopping = Arc::new((AtomicBool::new(false), Notify::new()));
        let sync = worker(
            Arc::clone(visa),
            Arc::clone(&stopping),
            SYNC_EVERY.min(sync_after),
            Work::Sync(sync_after),
        );
        let sweep = worker(Arc::clone(visa), Arc::clone(&stopping), SWEEP_EVERY, Work::Sweep);
        Self { stopping, tasks: vec![tokio::spawn(sync), tokio::spawn(sweep)] }
    }

    /// Lets both finish what they are at, and syncs what is left.
    pub async fn stop(self) {
        self.stopping.0.store(true, Ordering::SeqCst);
        self.stopping.1.notify_waiters();
        for task in self.tasks {
            // A worker that panicked has been logged by the runtime; stopping goes on.
            let _ = task.await;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Sync(Duration),
    Sweep,
}

async fn worker(visa: Arc<AuditVisa>, stopping: Arc<(AtomicBool, Notify)>, every: Duration, work: Work) {
    let mut first = true;
    loop {
        let done = match work {
            Work::Sync(age) => drain(&visa, age).await,
            Work::Sweep => sweep(&visa, first).await,
        };
        if let Err(cause) = done {
            tracing::warn!(%cause, "recovery_failed");
        }
        first = false;
        let stopped = stopping.1.notified();
        if stopping.0.load(Ordering::SeqCst) {
            if let Work::Sync(_) = work {
                // What is not synced in time is compared with its records at the next start.
                let _ = tokio::time::timeout(STOP_WITHIN, drain(&visa, Duration::ZERO)).await;
            }
            return;
        }
        // Either is fine: the pause is over, or the server stops.
        let _ = tokio::time::timeout(every, stopped).await;
    }
}

async fn drain(visa: &AuditVisa, age: Duration) -> Result<(), Refused> {
    while visa.sync_files(age).await? {}
    Ok(())
}

async fn sweep(visa: &AuditVisa, first: bool) -> Result<(), Refused> {
    let mut done = Swept::default();
    visa.sweep_open(&mut done).await?;
    if first {
        visa.sweep_shelf(&mut done).await?;
    }
    visa.drop_payloads().await?;
    if done != Swept::default() {
        tracing::info!(?done, "recovered");
    }
    Ok(())
}
