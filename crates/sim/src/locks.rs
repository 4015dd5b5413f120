//! Who holds which advisory lock and which row, by sessions of the store. A session that nobody serves any
//! more keeps its locks until the store notices.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a statement waits for a lock.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(2);
/// How long a session may stay idle in its transaction.
pub(crate) const IDLE: Duration = Duration::from_secs(10);

/// What a lock is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A number: an advisory lock.
    Number(i64),
    /// A row, by table and number.
    Row(String, i64),
}

/// All locks of the store.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    sessions: u64,
    held: BTreeMap<Subject, u64>,
    /// Open sessions, and when the store will end them by itself.
    open: BTreeMap<u64, Option<Instant>>,
}

impl Locks {
    /// Opens a session.
    pub(crate) fn open(&self) -> u64 {
        let mut state = self.state.lock();
        state.sessions += 1;
        let session = state.sessions;
        state.open.insert(session, None);
        session
    }

    /// Sets when the store will end the session by itself.
    pub(crate) fn ends_at(&self, session: u64, end: Option<Instant>) {
        if let Some(kept) = self.state.lock().open.get_mut(&session) {
            *kept = end;
        }
        // Who waits must look at the new end.
        self.freed.notify_waiters();
    }

    /// Whether the session still stands.
    pub(crate) fn stands(&self, session: u64) -> bool {
        let mut state = self.state.lock();
        state.expire(Instant::now());
        state.open.contains_key(&session)
    }

    /// Ends a session and frees its locks.
    pub(crate) fn close(&self, session: u64) {
        self.state.lock().close(session);
        self.freed.notify_waiters();
    }

    /// Takes a lock unless another session has it.
    pub(crate) fn take(&self, session: u64, subject: Subject) -> bool {
        let mut state = self.state.lock();
        state.expire(Instant::now());
        if !state.open.contains_key(&session) {
            return false;
        }
        *state.held.entry(subject).or_insert(session) == session
    }

    /// Takes a lock, waiting for it. `false` when the time was over.
    pub(crate) async fn wait(&self, session: u64, subject: &Subject) -> bool {
        let end = Instant::now() + LOCK_WAIT;
        loop {
            if self.take(session, subject.clone()) {
                return true;
            }
            let now = Instant::now();
            if now >= end {
                return false;
            }
            let holder_ends = self.state.lock().end_of(subject).filter(|at| *at > now);
            let until = holder_ends.map_or(end, |at| at.min(end));
            // Either is a reason to look again.
            let _ = tokio::time::timeout_at(until, self.freed.notified()).await;
        }
    }

    /// Locks that are held.
    pub(crate) fn count(&self) -> usize {
        let mut state = self.state.lock();
        state.expire(Instant::now());
        state.held.len()
    }
}

impl State {
    fn expire(&mut self, now: Instant) {
        let over = |end: &Option<Instant>| end.is_some_and(|end| end <= now);
        if self.open.values().any(over) {
            let ended: Vec<u64> =
                self.open.iter().filter(|(_, end)| over(end)).map(|(session, _)| *session).collect();
            ended.into_iter().for_each(|session| self.close(session));
        }
    }

    fn close(&mut self, session: u64) {
        self.open.remove(&session);
        self.held.retain(|_, holder| *holder != session);
    }

    fn end_of(&self, subject: &Subject) -> Option<Instant> {
        self.open.get(self.held.get(subject)?).copied().flatten()
    }
}
