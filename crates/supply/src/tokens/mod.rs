//! Platform tokens as rows (section 3.3): issued, renewed, revoked by commands like all others; their standing is
//! what the edge asks for at each request. Only a fingerprint is kept; a token is shown once.

mod issue;
mod known;
mod refresh;
mod revoke;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use auth::issuer::Minted;
use auth::{Grant, Token, UserType};
use kernel::Time;
use parking_lot::Mutex;
use serde::Serialize;
use store::{Error, Query, Row, values};

use crate::action::Refusal;
use crate::code::Code;
use crate::exact::Stamp;
use crate::platform::fields;
use crate::rows::Reader;

pub use issue::Issue;
pub use known::{By, Known};
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

/// Kind of the tenant `$2`, while its user `$1` and it are active.
const USER: &str = "select t.type from iam_users u join core_tenants t on t.id = u.tenant_id
where u.id = $1 and u.tenant_id = $2 and u.status = 'active' and t.status = 'active'";

/// The user that a token stands for.
fn user(grant: &Grant) -> Query {
    Query::new("token.user", USER, values![grant.operator_id, grant.tenant_id])
}

/// What [`user`] found.
fn kind_of(rows: Option<&Vec<Row>>) -> Result<Option<String>, Error> {
    let row = rows.and_then(|rows| rows.first());
    row.map(|row| Ok(Reader::new(row).text()?.to_owned())).transpose()
}

/// Whether such a user may have a token of this kind: whoever is of a supplier or a buyer is never the platform's staff,
/// whatever a token is asked to say (sections 3.1, 3.2).
fn stands(kind: Option<&str>, user_type: UserType) -> Result<(), Refusal> {
    let fits = match kind.ok_or_else(|| Refusal::of(Code::ComMissing).with("field", "user_id"))? {
        "supplier" => UserType::Supply,
        "consumer" => UserType::Consumer,
        _ => UserType::Platform,
    };
    if fits == user_type { Ok(()) } else { Err(fields::refused("user_type", "of_the_tenant")) }
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
    let rows = store.query(Query::new("token.of", sql, values![token_id])).await?;
    rows.first().map(|row| Ok((row.int(0)?, row.digest(1)?))).transpose()
}
