//! Whether a genuine token is still active at the token service: a port, a small cache in front of it, and
//! the rule that no answer means no (domain specification, section 3.3).
//!
//! An answer is believed for [`BELIEVED`], so a revocation takes effect by then on nodes that did not hear of
//! it, and at once where [`Statuses::revoke`] was called. Not here: the rows; the store implements [`Backend`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kernel::{Digest, Time};
use parking_lot::Mutex;
use quick_cache::sync::Cache;

use crate::refusal::Refusal;
use crate::verify::Verified;

/// How long an answer is believed unless set otherwise: a revocation takes effect within 5 s, also on nodes that did not
/// hear of it and with what a request takes on its way.
pub const BELIEVED: Duration = Duration::from_secs(4);
/// Longest time for which an answer may be believed.
pub const BELIEVED_MAX: Duration = Duration::from_secs(5);
/// How long the token service may take.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Tokens that are remembered, at about 100 bytes each.
const REMEMBERED_MAX: usize = 16 * 1024;

/// Where a token stands. `Revoked` is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It is good.
    Active,
    /// It was taken back.
    Revoked,
    /// It is over.
    Expired,
    /// The service doesn't know it. For an outside issuer, whose tokens are never stored, the backend says
    /// `Active` instead.
    Unknown,
}

/// The token service did not answer; the cause is the backend's to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token service did not answer")]
pub struct Unavailable;

/// The token service.
pub trait Backend: Send + Sync {
    /// Where this token stands now. By `fingerprint` for tokens that the service issued, by issuer and `jti`
    /// for those of an outside issuer. The answer must come from the primary: an old replica may not have
    /// heard of a revocation.
    fn standing<'a>(&'a self, token: &'a Verified) -> BoxFuture<'a, Result<Standing, Unavailable>>;
}

/// The token service behind a cache.
pub struct Statuses {
    backend: Arc<dyn Backend>,
    believed: Duration,
    held: Cache<Digest, Held>,
    /// Writers take turns: an answer on its way must not overwrite a revocation.
    turn: Mutex<()>,
}

#[derive(Clone, Copy)]
struct Held {
    standing: Standing,
    /// When the question was put, not when the answer came: a revocation in between is not in the answer.
    asked: Time,
}

impl Statuses {
    /// With the usual time for which an answer is believed.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self::believing_for(backend, BELIEVED)
    }

    /// With another time, at most [`BELIEVED_MAX`]; zero asks every time.
    #[must_use]
    pub fn believing_for(backend: Arc<dyn Backend>, believed: Duration) -> Self {
        let believed = believed.min(BELIEVED_MAX);
        Self { backend, believed, held: Cache::new(REMEMBERED_MAX), turn: Mutex::new(()) }
    }

    /// Whether the token is active.
    ///
    /// # Errors
    /// [`Refusal::Revoked`], [`Refusal::Over`] or [`Refusal::Unknown`]; [`Refusal::StatusUnavailable`] when
    /// the service failed or took longer than [`ANSWER_WITHIN`].
    pub async fn check(&self, token: &Verified, now: Time) -> Result<(), Refusal> {
        if let Some(standing) = self.remembered(&token.fingerprint, now) {
            return judge(standing);
        }
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.backend.standing(token)).await;
        let Ok(Ok(standing)) = answer else { return Err(Refusal::StatusUnavailable) };
        judge(self.keep(token.fingerprint, Held { standing, asked: now }))
    }

    /// Tells this node that a token was revoked, or that another took its place: no request passes with it from now on. The store must say
    /// so already, since a full cache may forget it.
    pub fn revoke(&self, fingerprint: Digest, now: Time) {
        let _turn = self.turn.lock();
        self.held.insert(fingerprint, Held { standing: Standing::Revoked, asked: now });
    }

    fn remembered(&self, fingerprint: &Digest, now: Time) -> Option<Standing> {
        let held = self.held.get(fingerprint)?;
        let is_final = held.standing == Standing::Revoked;
        // A clock that went back makes an answer old, not young.
        let is_young = held.asked <= now && now.since(held.asked) < self.believed;
        (is_final || is_young).then_some(held.standing)
    }

    /// Keeps an answer and returns what counts now.
    fn keep(&self, fingerprint: Digest, answer: Held) -> Standing {
        let _turn = self.turn.lock();
        match self.held.get(&fingerprint) {
            Some(held) if held.standing == Standing::Revoked => Standing::Revoked,
            // A token that was just issued may be known a moment later.
            _ if answer.standing == Standing::Unknown => Standing::Unknown,
            _ => {
                self.held.insert(fingerprint, answer);
                answer.standing
            }
        }
    }
}

impl fmt::Debug for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statuses").field("believed", &self.believed).finish_non_exhaustive()
    }
}

fn judge(standing: Standing) -> Result<(), Refusal> {
    match standing {
        Standing::Active => Ok(()),
        Standing::Revoked => Err(Refusal::Revoked),
        Standing::Expired => Err(Refusal::Over),
        Standing::Unknown => Err(Refusal::Unknown),
    }
}
