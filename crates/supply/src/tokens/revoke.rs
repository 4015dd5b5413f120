//! Revokes a token, for good (section 3.3).

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::{BY_ID, KIND, Stored};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;

const REVOKE: &str = "update auth_tokens set state = 'revoked', updated_at = $1 where id = $2 and tenant_id = $3 and state = 'active'";

/// `POST /api/v1/platform/tokens/{tokenId}/revoke`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoke {
    /// Which token.
    pub token_id: i64,
}

/// `data` of the answer.
#[derive(Debug, Serialize)]
struct Revoked {
    token_id: i64,
    status: &'static str,
    updated_at: Stamp,
}

impl Action for Revoke {
    type Prepared = ();
    type State = Option<Stored>;

    fn event(&self) -> &'static str {
        "token.revoke"
    }

    fn object(&self) -> Object {
        Object::row(KIND, self.token_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        vec![Query::new("token", BY_ID, values![self.token_id, context.caller.tenant_id])]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Option<Stored>, Error> {
        rows.first().and_then(|rows| rows.first()).map(Stored::read).transpose()
    }

    fn decide(&self, context: &Context, (): &(), stored: &Option<Stored>, at: Time) -> Result<Change, Stop> {
        let stored = stored.as_ref().ok_or_else(|| Refusal::of(Code::ComMissing))?;
        let before = json!({ "status": stored.state, "version": 0 });
        // An expired one may still be revoked: a clock may be set back, a revocation is for good.
        if stored.state != "active" {
            return Err(Refusal::of(Code::ComState)
                .with("status", stored.state.as_str())
                .about(self.object(), before)
                .into());
        }
        let data = Revoked { token_id: stored.id, status: "revoked", updated_at: Stamp(at) };
        let after = json!({ "status": "revoked", "version": 0 });
        let row = values![at, stored.id, context.caller.tenant_id];
        let writes = vec![Write::one("token.revoke", REVOKE, row)];
        Ok(Change { before, after, writes, ..Change::of(self.object(), &data)? })
    }

    fn outrun(&self, write: &'static str, _: &Option<Stored>) -> Option<Refusal> {
        (write == "token.revoke").then(|| Refusal::of(Code::ComState))
    }
}
