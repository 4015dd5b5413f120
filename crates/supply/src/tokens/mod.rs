//! Platform tokens as rows (section 3.3): issued, renewed, revoked by commands like all others; their standing is
//! what the edge asks for at each request. Only a fingerprint is kept; a token is shown once.

mod issue;
mod refresh;
mod revoke;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use auth::Token;
use auth::issuer::Minted;
use kernel::Time;
use parking_lot::Mutex;
use serde::Serialize;
use store::{Error, Row};

use crate::exact::Stamp;
use crate::rows::Reader;

pub use issue::Issue;
pub use refresh::Refresh;
pub use revoke::Revoke;
pub use standing::TokenRows;

/// Kind in audit and outbox.
const KIND: &str = "auth_token";

/// How long an active token may be renewed (section 3.3).
const RENEWABLE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Where the command leaves the token for its caller, who shows it once. A repeat finds nothing here: what is
/// stored under the key has no token in it.
#[derive(Clone, Debug, Default)]
pub struct Shown(Arc<Mutex<Option<Token>>>);

impl Shown {
    fn put(&self, minted: &Minted) {
        *self.0.lock() = Some(minted.token.clone());
    }

    /// The token, if this very call made one.
    #[must_use]
    pub fn take(&self) -> Option<Token> {
        self.0.lock().take()
    }
}

/// `data` of issuing and renewing, as it is stored: without the token.
#[derive(Debug, Serialize)]
struct Granted<'a> {
    token_id: i64,
    access_token: Option<&'a str>,
    token_type: &'static str,
    expires_at: Stamp,
    refresh_until: Stamp,
}

/// A row of `auth_tokens` that stands for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub(crate) id: i64,
    pub(crate) state: String,
    pub(crate) expires_at: Time,
    pub(crate) refresh_until: Time,
}

/// The token `$1` of the tenant `$2`.
const BY_ID: &str = "select id, state, expires_at, refresh_until
from auth_tokens where id = $1 and tenant_id = $2 and user_id is not null";

impl Stored {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        Ok(Self {
            id: reader.int()?,
            state: reader.text()?.to_owned(),
            expires_at: reader.time()?,
            refresh_until: reader.time()?,
        })
    }

    /// Revoked, expired, or good.
    fn state_at(&self, at: Time) -> &str {
        if self.state == "active" && self.expires_at <= at { "expired" } else { &self.state }
    }
}

/// Tenant and fingerprint of a token, for whoever is to hear of its revocation.
///
/// # Errors
/// The store's.
pub async fn of(store: &store::Store, token_id: i64) -> Result<Option<(i64, kernel::Digest)>, Error> {
    let sql = "select tenant_id, fingerprint from auth_tokens where id = $1 and user_id is not null";
    let rows = store.query(store::Query::new("token.of", sql, store::values![token_id])).await?;
    rows.first().map(|row| Ok((row.int(0)?, row.digest(1)?))).transpose()
}
