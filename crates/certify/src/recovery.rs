//! What a crash or a fault left half-done (AuditVisa specification section 11), found and finished at
//! start and while running: lapsed claims, failed attempts, files without a record, records without
//! files, files not yet synced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use door::AuditRow;
use kernel::{Digest, Time};
use serde_json::{Value as Json, json};
use store::{Query, Row, Write, values};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::acts::Refused;
use crate::delivery::{hash_of, recorded};
use crate::intake::AuditVisa;
use crate::issue;
use crate::shelf::Form;
use crate::sql;

/// Between two sweeps while running.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Between two looks for files that are due to be synced.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Between two looks at the keys, and two signs of life of this node.
const KEYS_EVERY: Duration = Duration::from_secs(3);
/// Certificates synced at a time.
const SYNC_BATCH: u32 = 1024;
/// The stated limit of the backlog, in certificates: beyond it files are synced however young they are.
const BACKLOG_MAX: i64 = 65_536;
/// Longest time that syncing may hold up a stop.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// Certificates whose files are compared at a time.
const CHECK_BATCH: u32 = 512;
/// Open events looked at in one sweep.
pub(crate) const OPEN_MAX: i64 = 256;
/// A failed event is tried again this often by itself; then it waits for its sender or a person.
const ATTEMPTS_MAX: i64 = 10;
/// First pause after a failure; it doubles with each attempt.
const RETRY_FIRST: Duration = Duration::from_secs(30);

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

/// The mark of how far files were synced.
const SYNCED: &str = "files.synced";

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
        match (self.mark_if_any(SYNCED).await?, &self.node) {
            // A new node's folder is empty: what is asked for is built when it is asked for.
            (None, Some(_)) => self.set_mark(SYNCED, self.newest_certificate().await?).await?,
            (synced, _) => self.check_files(synced.unwrap_or(0), &mut done).await?,
        }
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
            .maintain("reconcile", Vec::new(), move |_, now| {
                Ok((vec![audit.clone().write(now, &*random)], ()))
            })
            .await?;
        Ok(report)
    }

    /// Lapsed claims and failed attempts whose pause is over, those with the fewest attempts first. What
    /// can't be tried again (its source is gone) uses its attempts up, so that it makes room.
    pub(crate) async fn sweep_open(&self, done: &mut Swept) -> Result<(), Refused> {
        if self.keys().active().is_err() {
            // Each try here would be in vain and count; nodes that can sign look, too.
            return Ok(());
        }
        // The first condition is the partial index's own, word for word.
        let sql = "select ref, attempt_no, updated_at, locked_until, status from certify_events
            where status in ('processing', 'failed', 'orphaned') and status <> 'orphaned' and response_code is null and attempt_no < $1 order by attempt_no, updated_at limit $2";
        let query = Query::new("events.unfinished", sql, values![ATTEMPTS_MAX, OPEN_MAX]);
        let now = self.clock.now();
        for row in self.door.store().query(query).await? {
            let (reference, attempts) = (row.text(0)?, row.int(1)?);
            let pause = RETRY_FIRST * 2_u32.saturating_pow(u32::try_from(attempts).unwrap_or(31));
            let due = match row.text(4)? {
                "processing" => row.time_or_null(3)?.unwrap_or(now),
                _ => row.time(2)?.plus(pause),
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
                Err(cause) => {
                    tracing::warn!(r#ref = reference, %cause, "event_not_recoverable");
                    self.use_attempt(reference.to_owned()).await?;
                }
            }
        }
        Ok(())
    }

    async fn use_attempt(&self, reference: String) -> Result<(), Refused> {
        let sql = "update certify_events set attempt_no = attempt_no + 1, updated_at = $1 where ref = $2 and status = 'failed' and response_code is null";
        let plan = move |_, now| Ok((vec![Write::any("events.attempt", sql, values![now, &reference])], ()));
        self.door.maintain("attempt", Vec::new(), plan).await?;
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
        match self.rebuild(&recorded).await {
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

    /// Syncs the files of the next certificates after the mark that are at least `age` old; `false` when
    /// there were none. By then the system has usually written them by itself, and the sync costs next to
    /// nothing; a sync of each new file at once would make the database's commits wait for it.
    ///
    /// # Errors
    /// [`Refused`]; the mark stays where it was then.
    pub async fn sync_files(&self, age: Duration) -> Result<bool, Refused> {
        let after = self.mark(SYNCED).await?;
        let sql = "select event, slug, created_at, (select max(event) from certify_certificates)
            from certify_certificates where event > $1 order by event limit $2";
        let query = Query::new("certificates.unsynced", sql, values![after, i64::from(SYNC_BATCH)]);
        let mut rows = self.door.store().query(query).await?;
        let due = self.clock.now().minus(age);
        // The mark may not pass a certificate that is too young.
        let young = rows.iter().position(|row| {
            let backlog = row.int(3).unwrap_or(0) - row.int(0).unwrap_or(0);
            row.time(2).is_ok_and(|at| at > due) && backlog <= BACKLOG_MAX
        });
        rows.truncate(young.unwrap_or(rows.len()));
        let Some(last) = rows.last() else { return Ok(false) };
        let last = last.int(0)?;
        let slugs =
            rows.iter().map(|row| row.text(1).map(ToOwned::to_owned)).collect::<Result<Vec<_>, _>>()?;
        let missing = self.sync(slugs).await?;
        // Where many share the store, most were issued by others and stand in their folders.
        if !missing.is_empty() && self.node.is_none() {
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
        self.set_mark(SYNCED, last).await?;
        Ok(true)
    }

    async fn newest_certificate(&self) -> Result<i64, store::Error> {
        let sql = "select coalesce(max(event), 0) from certify_certificates";
        let rows = self.door.store().query(Query::new("certificates.newest", sql, Vec::new())).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    async fn sync(&self, slugs: Vec<String>) -> Result<Vec<String>, Refused> {
        self.shared.shelf.sync(slugs).await.map_err(|cause| Refused::Input(cause.to_string()))
    }

    pub(crate) async fn mark(&self, name: &str) -> Result<i64, store::Error> {
        Ok(self.mark_if_any(name).await?.unwrap_or(0))
    }

    async fn mark_if_any(&self, name: &str) -> Result<Option<i64>, store::Error> {
        let name = self.mark_name(name);
        let query = Query::new("marks.get", "select value from certify_marks where name = $1", values![name]);
        let rows = self.door.store().query(query).await?;
        rows.first().map(|row| row.int(0)).transpose()
    }

    /// A mark is about files, and files are a node's own where many share the store.
    pub(crate) fn mark_name(&self, name: &str) -> String {
        self.node.as_ref().map_or_else(|| name.to_owned(), |node| format!("{name}@{node}"))
    }

    pub(crate) async fn set_mark(&self, name: &str, value: i64) -> Result<(), Refused> {
        let name = self.mark_name(name);
        self.door
            .maintain("mark", Vec::new(), move |_, now| Ok((vec![mark_write(&name, value, now)], ())))
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

pub(crate) fn mark_write(name: &str, value: i64, now: Time) -> Write {
    let sql = "insert into certify_marks (name, value, updated_at) values ($1, $2, $3)
      on conflict (name) do update set value = excluded.value, updated_at = excluded.updated_at";
    Write::one("marks.set", sql, values![name, value, now])
}

/// The background workers: one syncs files, one sweeps, one looks after the keys.
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
        let keys = worker(Arc::clone(visa), Arc::clone(&stopping), KEYS_EVERY, Work::Keys);
        Self { stopping, tasks: vec![tokio::spawn(sync), tokio::spawn(sweep), tokio::spawn(keys)] }
    }

    /// Lets all finish what they are at, syncs what is left, and takes this node off the list.
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
    Keys,
}

async fn worker(visa: Arc<AuditVisa>, stopping: Arc<(AtomicBool, Notify)>, every: Duration, work: Work) {
    let mut first = true;
    loop {
        let done = match work {
            // The store moves elsewhere: what is to be recovered is recovered there.
            _ if visa.door.store().is_closed() => Ok(()),
            Work::Sync(age) => drain(&visa, age).await,
            Work::Sweep => sweep(&visa, first).await,
            Work::Keys => visa.tend_keys().await.map_err(Refused::from),
        };
        if let Err(cause) = done {
            tracing::warn!(%cause, "recovery_failed");
        }
        first = false;
        let stopped = stopping.1.notified();
        if stopping.0.load(Ordering::SeqCst) {
            // What is not done in time is made up for: files are compared with their records at the next start,
            // and a node that is not seen any more is soon forgotten.
            let _ = tokio::time::timeout(STOP_WITHIN, last(&visa, work)).await;
            return;
        }
        // Either is fine: the pause is over, or the server stops.
        let _ = tokio::time::timeout(every, stopped).await;
    }
}

/// What a worker has to do before it ends.
async fn last(visa: &AuditVisa, work: Work) -> Result<(), Refused> {
    match work {
        Work::Sync(_) => drain(visa, Duration::ZERO).await,
        Work::Keys => Ok(visa.leave().await?),
        Work::Sweep => Ok(()),
    }
}

async fn drain(visa: &AuditVisa, age: Duration) -> Result<(), Refused> {
    while visa.sync_files(age).await? {}
    Ok(())
}

async fn sweep(visa: &AuditVisa, first: bool) -> Result<(), Refused> {
    let mut done = Swept::default();
    visa.sweep_open(&mut done).await?;
    visa.sweep_orphaned().await?;
    if first {
        visa.sweep_shelf(&mut done).await?;
    }
    visa.drop_payloads().await?;
    if done != Swept::default() {
        tracing::info!(?done, "recovered");
    }
    Ok(())
}
