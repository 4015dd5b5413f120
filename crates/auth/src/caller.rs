//! From the `Authorization` header to the one who calls: form, token, status, in this order. The edge and the
//! gate ask this and nothing in between, so no check can be left out or moved.
//!
//! Not here: what the caller may do; each route asks its [`Need`](crate::Need).

use kernel::Time;

use crate::access::Principal;
use crate::bearer;
use crate::refusal::Refusal;
use crate::status::Statuses;
use crate::token::Token;
use crate::verify::{Verified, Verifier};

/// Tells who calls.
#[derive(Debug)]
pub struct Callers {
    verifier: Verifier,
    statuses: Statuses,
}

impl Callers {
    /// Puts both checks behind each other.
    #[must_use]
    pub const fn new(verifier: Verifier, statuses: Statuses) -> Self {
        Self { verifier, statuses }
    }

    /// Who calls at this instant, by the values of all `Authorization` headers of the request.
    ///
    /// # Errors
    /// The [`Refusal`] of the first check that is not passed: 401, or 503 where it can't be told.
    pub async fn identify<'a>(
        &self,
        values: impl IntoIterator<Item = &'a [u8]>,
        now: Time,
    ) -> Result<Principal, Refusal> {
        let token = bearer::read(values)?;
        let verified = self.verifier.verify(&token, now).await?;
        self.statuses.check(&verified, now).await?;
        Ok(verified.principal())
    }

    /// Whether a token that somebody asks about is genuine; its standing is another question.
    ///
    /// # Errors
    /// The [`Refusal`] of the first check that is not passed.
    pub async fn verify(&self, token: &Token, now: Time) -> Result<Verified, Refusal> {
        self.verifier.verify(token, now).await
    }

    /// For [`Statuses::revoke`].
    #[must_use]
    pub const fn statuses(&self) -> &Statuses {
        &self.statuses
    }
}
