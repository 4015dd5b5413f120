//! The ring is made anew when the store or the folder says something new: every few seconds, at SIGHUP, and
//! when a certificate was refused because its key is no longer the active one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use door::{Answer, Failure, Submission};

use super::rows::Known;
use super::{Error, Folder, Keyring, Secret};
use crate::command::{Arrives, CertifyEvent, SIGNING};
use crate::intake::{AuditVisa, key};

/// How often one event is signed: once more after each rotation that came between, and two in the time of
/// one delivery are one too many.
const SIGNED_MAX: usize = 3;

/// What belongs to looking after the keys.
#[derive(Debug, Default)]
pub(crate) struct Tending {
    /// Held while the ring is made anew: many deliveries may find at once that it is old.
    turn: tokio::sync::Mutex<()>,
    /// Where people find this node.
    pub(super) address: OnceLock<String>,
}

impl AuditVisa {
    /// Looks at keys and folder, finishes what a rotation left to be finished, and says that this node is
    /// alive. To be called every few seconds.
    ///
    /// # Errors
    /// [`Error::Door`] while the store can't be used; the ring stays as it is then.
    pub async fn tend_keys(&self) -> Result<(), Error> {
        self.look_at_keys().await?;
        self.retire_closed().await?;
        self.beat().await
    }

    /// Makes the ring anew from what the store and the folder say now.
    ///
    /// # Errors
    /// [`Error::Door`], [`Error::Recorded`]; the ring stays as it is then.
    pub async fn look_at_keys(&self) -> Result<(), Error> {
        let _turn = self.tending.turn.lock().await;
        self.look().await
    }

    /// The ring after one that turned out to be old.
    pub(crate) async fn keys_after(&self, old: &Arc<Keyring>) -> Arc<Keyring> {
        let _turn = self.tending.turn.lock().await;
        if Arc::ptr_eq(&self.keys(), old)
            && let Err(cause) = self.look().await
        {
            tracing::warn!(%cause, "keys_not_reloaded");
        }
        self.keys()
    }

    /// Submits an event, and again, bounded, where its certificate was signed with a key that was no longer
    /// the active one at the commit: nothing was kept then but the try.
    pub(crate) async fn submit(&self, command: CertifyEvent, wait: Duration) -> Result<Answer, Failure> {
        let mut command = command;
        for _ in 0..SIGNED_MAX {
            let mut again = command.clone();
            let answer = self.door.submit(Submission { key: Some(key(&command)), command, wait }).await?;
            let Answer::Open { written, .. } = answer else { return Ok(answer) };
            if let Some(row) = written.row("arrivals.insert") {
                again.arrives = Arrives::Again(row.int(0)?);
            }
            again.keys = self.keys_after(&again.keys).await;
            command = again;
        }
        let cause = format!("the active key was another one {SIGNED_MAX} times; try again");
        Err(Failure::Step { step: SIGNING, cause })
    }

    async fn look(&self) -> Result<(), Error> {
        let known = Known::now(&self.door).await?;
        let (before, folder) = (self.keys(), self.folder.clone());
        if before.says(&known) {
            return Ok(());
        }
        // A file under a passphrase takes a while to open.
        let ring = tokio::task::spawn_blocking(move || before.renewed(known, &folder)).await;
        let ring = ring.map_err(|_| Failure::Stopping)??;
        *self.keys.write() = Arc::new(ring);
        Ok(())
    }
}

impl Keyring {
    /// Whether nothing is new and nothing is lacking.
    fn says(&self, known: &Known) -> bool {
        self.anchors == known.anchors && self.lacking.is_empty() && self.signer.is_ok() && self.fits(known)
    }

    fn fits(&self, known: &Known) -> bool {
        known.secret == Some(Secret::digest(&self.secret))
    }

    fn renewed(&self, known: Known, folder: &Folder) -> Result<Self, Error> {
        let ring = Self::of(known, folder, self.secret.clone(), Some(self))?;
        // Each finding is told once.
        for (id, cause) in &ring.lacking {
            if self.lacking.get(id).map(ToString::to_string) != Some(cause.to_string()) {
                tracing::warn!(key_id = %id, %cause, "key_not_loaded");
            }
        }
        let word = |ring: &Self| ring.signer.as_ref().map(|key| key.id()).map_err(ToString::to_string);
        match word(&ring) {
            same if same == word(self) => {}
            Ok(active) => tracing::info!(%active, "keys_reloaded"),
            Err(cause) => tracing::error!(%cause, "keys_unusable"),
        }
        Ok(ring)
    }
}
