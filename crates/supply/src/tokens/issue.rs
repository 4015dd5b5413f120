//! Issues a token for a user of a tenant (section 3.3).

use std::sync::Arc;

use auth::issuer::Minted;
use auth::{Grant, Issuer};
use door::{Failure, Steps};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::{Granted, KIND, RENEWABLE, Shown, kind_of, stands, user};
use crate::action::{Action, Change, Context, Stop};
use crate::caller::Object;
use crate::exact::Stamp;

const INSERT: &str = "insert into auth_tokens (id, tenant_id, name, fingerprint, expires_at, user_id, role, user_type, scope, refresh_until, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// `POST /api/v1/platform/tokens/issue`.
#[derive(Clone, Debug)]
pub struct Issue {
    /// What the token is to say.
    pub grant: Grant,
    /// Who signs it.
    pub issuer: Arc<Issuer>,
    /// Where the caller finds it.
    pub shown: Shown,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    id: i64,
    /// Kind of the user's tenant, if there is such a user.
    kind: Option<String>,
}

impl Action for Issue {
    type Prepared = Minted;
    type State = State;

    fn event(&self) -> &'static str {
        "token.issue"
    }

    fn object(&self) -> Object {
        Object::new_of(KIND)
    }

    fn prepares(&self) -> bool {
        true
    }

    async fn prepare(&self, context: &Context, _: &Steps) -> Result<Minted, Failure> {
        let minted = self.issuer.mint(&self.grant, context.house.clock.now(), &*context.house.random);
        minted.map_err(|error| Failure::Step { step: "mint", cause: error.to_string() })
    }

    fn load(&self, _: &Context, _: &Minted) -> Vec<Query> {
        vec![Query::new("token.id", "select {next_id auth_tokens}", values![]), user(&self.grant)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let id = rows.first().and_then(|rows| rows.first()).map_or(Ok(0), |row| row.int(0))?;
        Ok(State { id, kind: kind_of(rows.get(1))? })
    }

    fn decide(&self, _: &Context, minted: &Minted, state: &State, at: Time) -> Result<Change, Stop> {
        let grant = &self.grant;
        stands(state.kind.as_deref(), grant.user_type)?;
        let scope: Vec<&str> = grant.scopes.iter().collect();
        let refresh_until = minted.issued_at.plus(RENEWABLE);
        let row = values![
            state.id,
            grant.tenant_id,
            &minted.jti,
            minted.fingerprint,
            minted.expires_at,
            grant.operator_id,
            grant.role.as_str(),
            grant.user_type.as_str(),
            json!(scope).to_string(),
            refresh_until,
            at,
            at,
        ];
        let data = Granted {
            token_id: state.id,
            access_token: None,
            token_type: "Bearer",
            expires_at: Stamp(minted.expires_at),
            refresh_until: Stamp(refresh_until),
        };
        let after = json!({ "status": "active", "version": 0, "user_id": grant.operator_id, "role": grant.role.as_str(), "scope": scope });
        let change = Change::of(Object::row(KIND, state.id), &data)?;
        self.shown.put(minted);
        let writes = vec![Write::one("token.insert", INSERT, row)];
        Ok(Change { after, writes, status: 201, ..change })
    }
}
