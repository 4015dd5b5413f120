//! Where a token stands: the port that the edge asks, on our rows.

use auth::Verified;
use auth::status::{Backend, Standing, Unavailable};
use futures::future::BoxFuture;
use store::{Query, Store, values};

use crate::rows::Reader;

/// By fingerprint, which the signature is no part of.
const STANDING: &str =
    "select state from auth_tokens where fingerprint = $1 and user_id = $2 and tenant_id = $3";

/// The token service on the store's rows.
#[derive(Clone, Debug)]
pub struct TokenRows {
    store: Store,
    /// What is said of a token that has no row.
    absent: Standing,
}

impl TokenRows {
    /// On this store, in which every token that was issued has its row.
    #[must_use]
    pub const fn new(store: Store) -> Self {
        Self { store, absent: Standing::Unknown }
    }

    /// For an issuer outside, which keeps no rows here: its tokens are good until their end, which they say
    /// themselves. A token of a former issuer inside that has a row stands as that says.
    #[must_use]
    pub const fn of_outside_issuer(store: Store) -> Self {
        Self { store, absent: Standing::Active }
    }

    async fn look(&self, token: &Verified) -> Result<Standing, Unavailable> {
        let by = values![token.fingerprint, token.claims.operator_id, token.claims.tenant_id];
        let rows =
            self.store.query(Query::new("token.standing", STANDING, by)).await.map_err(|_| Unavailable)?;
        let Some(row) = rows.first() else { return Ok(self.absent) };
        match Reader::new(row).text().map_err(|_| Unavailable)? {
            // Its end is in its own claims, which were looked at before.
            "active" => Ok(Standing::Active),
            "expired" => Ok(Standing::Expired),
            _ => Ok(Standing::Revoked),
        }
    }
}

impl Backend for TokenRows {
    fn standing<'a>(&'a self, token: &'a Verified) -> BoxFuture<'a, Result<Standing, Unavailable>> {
        Box::pin(self.look(token))
    }
}
