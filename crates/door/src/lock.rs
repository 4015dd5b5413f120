//! Who runs just now in this process. On the embedded store one process owns the folder, so this is the
//! try-lock on (scope, key); the fingerprint beside it tells a twin from a different payload.

use std::collections::HashMap;
use std::sync::Arc;

use kernel::{Digest, Fingerprint};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

#[derive(Clone, Debug, Default)]
pub(crate) struct Locks(Arc<Mutex<HashMap<Digest, Holder>>>);

#[derive(Debug)]
struct Holder {
    fingerprint: Fingerprint,
    /// Never gives a permit; closed when the holder goes, which wakes in the order of coming.
    gone: Arc<Semaphore>,
}

/// The lock, free again when dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    locks: Locks,
    key: Digest,
    gone: Arc<Semaphore>,
}

/// Somebody else holds it.
#[derive(Debug)]
pub(crate) struct Busy {
    /// Whether the same payload is running.
    pub(crate) same: bool,
    gone: Arc<Semaphore>,
}

impl Locks {
    pub(crate) fn try_lock(&self, key: Digest, fingerprint: Fingerprint) -> Result<Guard, Busy> {
        let mut held = self.0.lock();
        if let Some(holder) = held.get(&key) {
            return Err(Busy { same: holder.fingerprint == fingerprint, gone: Arc::clone(&holder.gone) });
        }
        let gone = Arc::new(Semaphore::new(0));
        held.insert(key, Holder { fingerprint, gone: Arc::clone(&gone) });
        Ok(Guard { locks: self.clone(), key, gone })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.locks.0.lock().remove(&self.key);
        self.gone.close();
    }
}

impl Busy {
    /// Waits until the holder is gone.
    pub(crate) async fn gone(self) {
        // Ends with an error, when the guard is dropped: there are no permits.
        let _ = self.gone.acquire().await;
    }
}
