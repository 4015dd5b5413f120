//! Who runs just now in this process. On the embedded store one process owns the folder, so this is the
//! try-lock on (scope, key); the fingerprint beside it tells a twin from a different payload.

use std::collections::HashMap;
use std::sync::Arc;

use kernel::{Digest, Fingerprint};
use parking_lot::Mutex;
use tokio::sync::watch;

#[derive(Clone, Debug, Default)]
pub(crate) struct Locks(Arc<Mutex<HashMap<Digest, Holder>>>);

#[derive(Debug)]
struct Holder {
    fingerprint: Fingerprint,
    gone: watch::Receiver<()>,
}

/// The lock, free again when dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    locks: Locks,
    key: Digest,
    _gone: watch::Sender<()>,
}

/// Somebody else holds it.
#[derive(Debug)]
pub(crate) struct Busy {
    /// Whether the same payload is running.
    pub(crate) same: bool,
    gone: watch::Receiver<()>,
}

impl Locks {
    pub(crate) fn try_lock(&self, key: Digest, fingerprint: Fingerprint) -> Result<Guard, Busy> {
        let mut held = self.0.lock();
        if let Some(holder) = held.get(&key) {
            return Err(Busy { same: holder.fingerprint == fingerprint, gone: holder.gone.clone() });
        }
        let (sender, gone) = watch::channel(());
        held.insert(key, Holder { fingerprint, gone });
        Ok(Guard { locks: self.clone(), key, _gone: sender })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.locks.0.lock().remove(&self.key);
    }
}

impl Busy {
    /// Waits until the holder is gone.
    pub(crate) async fn gone(mut self) {
        // The sender never sends: `changed` ends, with an error, when the guard is dropped.
        while self.gone.changed().await.is_ok() {}
    }
}
