//! Artefacts without a record, and records whose artefacts can't be made again (AuditVisa specification
//! section 6, `orphaned`): adopted, mended, removed, or left to a person.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::TryStreamExt as _;
use metrics::counter;
use seal::verify::{Trust, Verdict, verify};
use store::{Query, Write, values};

use crate::acts::Refused;
use crate::adopt::{self, Adopted};
use crate::delivery::recorded;
use crate::intake::AuditVisa;
use crate::issue;
use crate::recovery::{OPEN_MAX, Swept};
use crate::shelf::Form;
use crate::sql;

/// Files without a record are left alone for this long: their event may be on its way again.
const ORPHAN_AFTER: Duration = Duration::from_secs(15 * 60);
/// Slugs looked up in one read.
const LOOK_UP: usize = 256;

/// What files without a record turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// They have a record now, under this reference.
    Adopted(String),
    /// They had one already, made meanwhile.
    Known,
    /// The event of this reference, or its change, has another result.
    Superfluous(String),
    /// They can't become a record; why.
    Unusable(&'static str),
    /// Signed with this key, whose file is here and whose row is not: the database was restored.
    KeyForgotten(String),
}

impl AuditVisa {
    /// A record whose files can't be made again waits for a person.
    pub(crate) async fn mark_orphaned(&self, event: i64, cause: &str) {
        counter!("certify_orphaned_total").increment(1);
        let cause: String = cause.chars().take(500).collect();
        let note = cause.clone();
        let marked = self.door.maintain("orphaned", Vec::new(), move |_, now| {
            let status = "update certify_events set status = 'orphaned', cause = $1, updated_at = $2 where id = $3";
            let pass = "insert into certify_transitions (event, n, status, at, note)
                select e.id, coalesce((select max(t.n) from certify_transitions t where t.event = e.id), 0) + 1, 'orphaned', $1, $2
                from certify_events e where e.id = $3 and e.status <> 'orphaned'";
            // The transition first: it looks at the state that was.
            let writes = vec![
                Write::any("transitions.insert", pass, values![now, &cause, event]).numbered(),
                Write::one("events.orphaned", status, values![&cause, now, event]),
            ];
            Ok((writes, ()))
        });
        match marked.await {
            Ok(_) => tracing::error!(event, cause = %note, "event_orphaned"),
            Err(error) => tracing::error!(event, %error, "event_orphaned_not_recorded"),
        }
    }

    /// Orphaned records whose files can be made again stand as before.
    pub(crate) async fn sweep_orphaned(&self) -> Result<(), Refused> {
        // The first condition is the partial index's own, word for word.
        let sql = "select coalesce(certificate_event, id), ref from certify_events
            where status in ('processing', 'failed', 'orphaned') and status = 'orphaned' order by updated_at limit $1";
        for row in self.door.store().query(Query::new("events.orphaned", sql, values![OPEN_MAX])).await? {
            self.mend_orphaned(row.int(0)?, row.text(1)?).await?;
        }
        Ok(())
    }

    /// Whether the orphaned event's certificate, issued for event number `certificate`, could be made again.
    pub(crate) async fn mend_orphaned(&self, certificate: i64, reference: &str) -> Result<bool, Refused> {
        let Some(row) = self.certificate_of(certificate).await? else { return Ok(false) };
        let Some(kept) = recorded(&row)?.1 else { return Ok(false) };
        let Ok(files) = self.rebuild(&kept).await else { return Ok(false) };
        let put = issue::put(&self.shared.shelf, &kept.slug, files).await;
        put.map_err(|cause| Refused::Input(cause.to_string()))?;
        let reference = reference.to_owned();
        let mended = "update certify_events set status = 'processed', cause = null, updated_at = $1 where ref = $2 and status = 'orphaned'";
        self.door
            .maintain("mended", Vec::new(), move |_, now| {
                let passed = values!["processed", now, "reconciled", &reference];
                let writes = vec![
                    Write::one("events.mended", mended, values![now, &reference]),
                    Write::one("transitions.insert", sql::PASS, passed).numbered(),
                ];
                Ok((writes, ()))
            })
            .await?;
        Ok(true)
    }

    /// Files without a record: what verifies and is whole becomes one; the rest goes.
    pub(crate) async fn sweep_shelf(&self, done: &mut Swept) -> Result<(), Refused> {
        let limit = self.clock.now().minus(ORPHAN_AFTER).micros();
        let mut listed = std::pin::pin!(self.shared.shelf.slugs().try_chunks(LOOK_UP));
        let fail = |cause: &dyn std::fmt::Display| Refused::Input(cause.to_string());
        while let Some(chunk) = listed.try_next().await.map_err(|cause| fail(&cause.1))? {
            let old: BTreeSet<String> =
                chunk.into_iter().filter(|(_, at)| *at < limit).map(|(slug, _)| slug).collect();
            let sql = "select slug, run is null from certify_certificates where slug = $1";
            let queries =
                old.iter().map(|slug| Query::new("certificates.slug", sql, values![slug])).collect();
            for (slug, rows) in old.iter().zip(self.door.store().queries(queries).await?) {
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
        match self.adopt_files(slug).await? {
            Found::Adopted(reference) => {
                tracing::warn!(r#ref = %reference, slug, "event_orphaned");
                done.adopted += 1;
            }
            // Its event came while the sweep looked: the files are its.
            Found::Known => {}
            // Nothing but these files may be left of it.
            Found::KeyForgotten(key) => tracing::warn!(slug, key, "delivery_signed_with_forgotten_key"),
            Found::Superfluous(_) | Found::Unusable(_) => self.discard(slug, done).await,
        }
        Ok(())
    }

    /// Makes a record of files that have none, where they verify and give themselves again.
    pub(crate) async fn adopt_files(&self, slug: &str) -> Result<Found, Refused> {
        let keys = self.keys();
        let Ok(Some(json)) = self.shared.shelf.get(slug, Form::Json).await else {
            return Ok(Found::Unusable("its JSON is missing or can't be read"));
        };
        match verify(&json, &Trust::from(&keys.jwks()?)).verdict {
            Verdict::Valid | Verdict::ValidDateClaimed => {}
            Verdict::IntactSignerUnknown => {
                let key = adopt::key_of(&json).filter(|key| self.folder.holds(key));
                return Ok(key.map_or(Found::Unusable("its signer is not known"), Found::KeyForgotten));
            }
            Verdict::Invalid(_) => return Ok(Found::Unusable("its JSON was changed or is damaged")),
        }
        let Some(adoption) = adopt::read(&json, slug, &keys) else {
            return Ok(Found::Unusable("it is of another installation"));
        };
        if self.rebuild(&adoption.recorded).await.is_err() {
            return Ok(Found::Unusable("this program can't make its files again"));
        }
        let reference = adoption.identity.reference.clone();
        Ok(match self.adopt(adoption).await? {
            Adopted::Recorded => Found::Adopted(reference),
            Adopted::Known => Found::Known,
            Adopted::Superfluous => Found::Superfluous(reference),
        })
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
}
