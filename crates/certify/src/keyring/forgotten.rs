//! Private keys that are here and not on record: made after the backup that was restored. What they signed is
//! published, so they come back on record, as retired; what signs today stays as the store says.

use door::AuditRow;
use kernel::Time;
use seal::key::KeyId;
use serde_json::json;
use store::{Write, values};

use super::rows::Known;
use super::{Error, Folder};
use crate::intake::AuditVisa;

/// $1 key id, $2 public key, $3 and $4 since when its file is there, $5 now.
const BRING_BACK: &str = "insert into certify_keys (key_id, public_key, status, announced_at, active_from, retired_at) values ($1, $2, 'retired', $3, $4, $5) on conflict do nothing";

/// What became of a key.
#[derive(Clone, Debug)]
pub(crate) struct Forgotten {
    /// Which.
    pub(crate) id: KeyId,
    /// Why its file can't be used; otherwise it is on record again.
    pub(crate) cause: Option<Error>,
}

impl Folder {
    /// Whether a key of this id has a file here.
    pub(crate) fn holds(&self, id: &str) -> bool {
        id.parse().is_ok_and(|id: KeyId| self.path().join(super::folder::file_name(id)).is_file())
    }

    /// All keys with a file here, and when it was last written.
    fn ids(&self) -> Result<Vec<(KeyId, Time)>, Error> {
        let fail =
            |cause: std::io::Error| Error::File { file: "the folder".into(), cause: cause.to_string() };
        let mut ids: Vec<(KeyId, Time)> = Vec::new();
        for entry in std::fs::read_dir(self.path()).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let id = name.strip_prefix("anchor-").and_then(|name| name.strip_suffix(".pem"));
            if let Some(id) = id.and_then(|id| id.parse().ok()) {
                let written = entry.metadata().and_then(|meta| meta.modified()).map_err(fail)?;
                let since = written.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                ids.push((id, Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))));
            }
        }
        ids.sort_by_key(|(id, at)| (*at, id.to_string()));
        Ok(ids)
    }
}

impl AuditVisa {
    /// Puts keys whose files are here and whose rows are not on record again, as retired.
    pub(crate) async fn bring_keys_back(&self, operator: &str) -> Result<Vec<Forgotten>, Error> {
        let known = Known::now(&self.door).await?;
        let on_record = |id: &KeyId| known.anchors.iter().any(|anchor| anchor.key.id() == *id);
        let mut forgotten = Vec::new();
        for (id, since) in self.folder.ids()?.into_iter().filter(|(id, _)| !on_record(id)) {
            let cause = match self.folder.private(id) {
                Ok(key) => {
                    self.bring_back(id, *key.public_key().as_bytes(), since, operator).await.map(|()| None)?
                }
                Err(cause) => Some(cause),
            };
            forgotten.push(Forgotten { id, cause });
        }
        if !forgotten.is_empty() {
            self.look_at_keys().await?;
        }
        Ok(forgotten)
    }

    async fn bring_back(
        &self,
        id: KeyId,
        public: [u8; 32],
        since: Time,
        operator: &str,
    ) -> Result<(), Error> {
        let (random, operator, name) = (self.door.random(), operator.to_owned(), id.to_string());
        self.door
            .maintain("keys.bring_back", Vec::new(), move |_, now| {
                let mut audit = AuditRow::system(
                    "certify.key.bring_back",
                    "anchor_key",
                    name.clone(),
                    format!("key:{name}"),
                );
                audit.metadata = json!({ "by": operator });
                audit.after_state = json!({ "status": "retired" });
                let since = since.min(now);
                let row =
                    Write::any("keys.bring_back", BRING_BACK, values![&name, public, since, since, now]);
                Ok((vec![row, audit.write(now, &*random)], ()))
            })
            .await?;
        Ok(())
    }
}
