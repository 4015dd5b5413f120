//! Renews an active token: a new one takes its row, the old one is nobody's from then on (section 3.3).

use std::sync::Arc;
use std::time::Duration;

use auth::issuer::Minted;
use auth::{Grant, Issuer, Role, Scopes, UserType};
use door::{Failure, Steps};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::{Granted, KIND, Shown, Stored, kind_of, stands, user};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;

/// The token `$1` of the tenant `$2`, if it is of the user `$3`: somebody else's is one that does not exist.
const OF_USER: &str = "select id, state, expires_at, refresh_until
from auth_tokens where id = $1 and tenant_id = $2 and user_id = $3";

/// `refresh_until` stays that of the day it was issued: after it there is no renewal, whatever came between.
const RENEW: &str = "update auth_tokens set name = $1, fingerprint = $2, expires_at = $3, updated_at = $4
where id = $5 and tenant_id = $6 and state = 'active' and fingerprint = $7";

/// `POST /api/v1/platform/tokens/{tokenId}/refresh`.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// Which token.
    pub token_id: i64,
    /// The fingerprint of the token that it is renewed with: its own.
    pub fingerprint: kernel::Digest,
    /// What the renewed one says: as the old one.
    pub grant: Grant,
    /// Who signs it.
    pub issuer: Arc<Issuer>,
    /// Where the caller finds it.
    pub shown: Shown,
}

impl Refresh {
    /// What a renewed token says, from the claims of the old one.
    #[must_use]
    pub fn grant(
        who: (i64, i64),
        (role, user_type): (Role, UserType),
        scopes: Scopes,
        ttl: Duration,
    ) -> Grant {
        let (tenant_id, operator_id) = who;
        Grant { operator_id, tenant_id, role, user_type, scopes, ttl }
    }
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    stored: Option<Stored>,
    /// Kind of the user's tenant, if there still is such a user.
    kind: Option<String>,
}

impl Action for Refresh {
    type Prepared = Minted;
    type State = State;

    fn event(&self) -> &'static str {
        "token.refresh"
    }

    fn object(&self) -> Object {
        Object::row(KIND, self.token_id)
    }

    fn prepares(&self) -> bool {
        true
    }

    async fn prepare(&self, context: &Context, _: &Steps) -> Result<Minted, Failure> {
        let minted = self.issuer.mint(&self.grant, context.house.clock.now(), &*context.house.random);
        minted.map_err(|error| Failure::Step { step: "mint", cause: error.to_string() })
    }

    fn load(&self, context: &Context, _: &Minted) -> Vec<Query> {
        let of_user = values![self.token_id, context.caller.tenant_id, self.grant.operator_id];
        let stored = Query::new("token", OF_USER, of_user);
        vec![stored, user(&self.grant)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let stored = rows.first().and_then(|rows| rows.first()).map(Stored::read).transpose()?;
        Ok(State { stored, kind: kind_of(rows.get(1))? })
    }

    fn decide(
        &self,
        context: &Context,
        minted: &Minted,
        State { stored, kind }: &State,
        at: Time,
    ) -> Result<Change, Stop> {
        let stored = stored.as_ref().ok_or_else(|| Refusal::of(Code::ComMissing))?;
        stands(kind.as_deref(), self.grant.user_type)?;
        let state = stored.state_at(at);
        if state != "active" || stored.refresh_until <= at {
            let before = json!({ "status": state, "version": 0 });
            return Err(Refusal::of(Code::ComState)
                .with("status", state)
                .about(self.object(), before)
                .into());
        }
        let row = values![
            &minted.jti,
            minted.fingerprint,
            minted.expires_at,
            at,
            stored.id,
            context.caller.tenant_id,
            self.fingerprint,
        ];
        let data = Granted {
            token_id: stored.id,
            access_token: None,
            token_type: "Bearer",
            expires_at: Stamp(minted.expires_at),
            refresh_until: Stamp(stored.refresh_until),
        };
        let change = Change::of(self.object(), &data)?;
        self.shown.put(minted);
        let same = json!({ "status": "active", "version": 0 });
        let writes = vec![Write::one("token.renew", RENEW, row)];
        Ok(Change { before: same.clone(), after: same, writes, ..change })
    }

    fn outrun(&self, write: &'static str, _: &State) -> Option<Refusal> {
        (write == "token.renew").then(|| Refusal::of(Code::ComState))
    }
}
