//! The keys at a start. The first node of an empty store makes a key and a secret; of many that start at
//! once one wins, and the others find its rows.

use door::{AuditRow, Door, Failure};
use serde_json::json;
use store::{RaiseKind, Write, values};

use super::rows::{BEGIN, INSERT, Known, Stage};
use super::{Error, Folder, Keyring, Secret};

/// Looks at the store: one finds it empty, the next what was made; further ones mean that a commit's answer
/// was lost each time.
const LOOKS_MAX: usize = 3;

impl Folder {
    /// Loads the keys, making the first ones when the store has none.
    ///
    /// # Errors
    /// [`Error`]: [`Error::Missing`] and [`Error::OtherSecret`] where this node has other keys than the store
    /// was begun with. A key file that was made in vain is removed again.
    pub async fn load(&self, door: &Door) -> Result<Keyring, Error> {
        for _ in 0..LOOKS_MAX {
            let known = Known::now(door).await?;
            if known.anchors.is_empty() {
                self.begin(door).await?;
            } else {
                return self.open(known);
            }
        }
        Err(Error::Recorded("the first one could not be kept".into()))
    }

    /// Only a node that can sign starts.
    fn open(&self, known: Known) -> Result<Keyring, Error> {
        let Some(secret) = self.secret()? else {
            // A folder without anything is told of the key: it names what to look for.
            let active = known.anchors.iter().find(|anchor| anchor.stage == Stage::Active);
            let lacking = active.and_then(|anchor| self.private(anchor.key.id()).err());
            return Err(lacking.unwrap_or_else(Self::no_secret));
        };
        let ring = Keyring::of(known, self, secret, None)?;
        match ring.active() {
            Ok(_) => Ok(ring),
            Err(cause) => Err(cause.clone()),
        }
    }

    /// Makes key and secret and puts them on record, unless another node was faster.
    async fn begin(&self, door: &Door) -> Result<(), Error> {
        let random = door.random();
        let before = self.secret()?;
        let made = if before.is_none() { self.make_secret(&*random)? } else { None };
        let is_ours = made.is_some();
        let secret = before.or(made).map_or_else(|| self.secret(), |secret| Ok(Some(secret)))?;
        let secret = secret.ok_or_else(Self::no_secret)?;
        // The file first: a row without its private half would keep every node from starting.
        let key = self.make(&*random)?;
        let (id, public) = (key.id(), *key.public_key().as_bytes());
        let (name, digest) = (id.to_string(), secret.digest());
        let ended = door.maintain("keys.begin", Vec::new(), move |_, now| {
            let mut audit =
                AuditRow::system("certify.key.rotate", "anchor_key", name.clone(), format!("key:{name}"));
            audit.metadata = json!({ "by": "system" });
            audit.after_state = json!({ "status": "active" });
            let row = values![&name, public, Stage::Active.as_str(), now, now];
            let writes = vec![
                Write::one("keys.secret", BEGIN, values![digest, now]),
                Write::one("keys.insert", INSERT, row),
                audit.write(now, &*random),
            ];
            Ok((writes, ()))
        });
        match ended.await {
            Ok(_) => Ok(()),
            Err(Failure::Store(store::Error::Raised(raise))) if raise.kind == RaiseKind::Unique => {
                self.remove(id);
                self.leave_secret(door, is_ours, &secret).await
            }
            // It may have happened: the files stay, and the next look tells.
            Err(Failure::Store(store::Error::Indeterminate { .. })) => Ok(()),
            Err(failure) => {
                self.remove(id);
                Err(failure.into())
            }
        }
    }

    /// A secret made just now, while another folder's node began the store: it would only be in the way of
    /// the right one.
    async fn leave_secret(&self, door: &Door, is_ours: bool, secret: &Secret) -> Result<(), Error> {
        if is_ours && Known::now(door).await?.secret != Some(secret.digest()) {
            self.remove_secret();
        }
        Ok(())
    }
}
