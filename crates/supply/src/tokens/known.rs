//! What is known of a token, for whoever asks about one (section 3.3, introspection). Not here: whether a token is
//! genuine, which its signature says (`auth`), and who may ask.

use auth::Verified;
use kernel::{Digest, Time};
use serde::Serialize;
use store::{Error, Query, Row, Store, values};

use crate::exact::Stamp;
use crate::rows::Reader;

const COLUMNS: &str = "id, state, name, tenant_id, user_id, role, user_type, cast(scope as text), expires_at";

/// A token that is good, with what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Known {
    /// Its row; an issuer outside keeps none here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<i64>,
    /// Its own id.
    pub jti: String,
    /// Whose.
    pub tenant_id: i64,
    /// The user.
    pub user_id: i64,
    /// What its bearer is.
    pub role: String,
    /// On which side of the market.
    pub user_type: String,
    /// What it opens.
    pub scope: Vec<String>,
    /// When it ends.
    pub expires_at: Stamp,
}

/// Which token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The one of this row.
    Id(i64),
    /// The one of which this is kept; it was verified.
    Fingerprint(Digest),
}

impl Known {
    /// The token, if it is there and good at this instant: neither revoked nor over.
    ///
    /// # Errors
    /// The store's.
    pub async fn find(store: &Store, by: By, at: Time) -> Result<Option<Self>, Error> {
        let (column, value) = match by {
            By::Id(id) => ("id", values![id]),
            By::Fingerprint(fingerprint) => ("fingerprint", values![fingerprint]),
        };
        let sql = format!("select {COLUMNS} from auth_tokens where {column} = $1 and user_id is not null");
        let rows = store.query(Query::new("token.known", sql, value)).await?;
        rows.first().map_or(Ok(None), |row| Self::read(row, at))
    }

    /// A token of an issuer outside, as it says itself; it was verified and stands.
    #[must_use]
    pub fn of_outside_issuer(token: &Verified) -> Self {
        let claims = &token.claims;
        Self {
            token_id: None,
            jti: claims.jti.clone(),
            tenant_id: claims.tenant_id,
            user_id: claims.operator_id,
            role: claims.role.as_str().to_owned(),
            user_type: claims.user_type.as_str().to_owned(),
            scope: claims.scopes.iter().map(ToString::to_string).collect(),
            expires_at: Stamp(claims.expires_at),
        }
    }

    fn read(row: &Row, at: Time) -> Result<Option<Self>, Error> {
        let damaged = || Error::Corrupt { table: "auth_tokens", column: "scope".into() };
        let mut reader = Reader::new(row);
        let token_id = Some(reader.int()?);
        let is_active = reader.text()? == "active";
        let known = Self {
            token_id,
            jti: reader.text()?.to_owned(),
            tenant_id: reader.int()?,
            user_id: reader.int()?,
            role: reader.text()?.to_owned(),
            user_type: reader.text()?.to_owned(),
            scope: serde_json::from_str(reader.text()?).map_err(|_| damaged())?,
            expires_at: Stamp(reader.time()?),
        };
        Ok((is_active && at < known.expires_at.0).then_some(known))
    }
}
